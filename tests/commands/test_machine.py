"""Facts of the machine, and the one warning that follows from them."""

from __future__ import annotations

import platform

import numpy
import pytest
from graphdock_commands.machine import facts, note

OLD = {"blas_core": "Haswell", "avx512": True, "coretype": None}


def test_facts_are_those_of_this_process():
    found = facts()
    assert found["numpy"] == numpy.__version__ and platform.python_version() in found["python"]
    assert found["cores"] >= 1 and isinstance(found["avx512"], bool)


def test_old_kernels_on_a_new_cpu_are_warned_of():
    assert "OPENBLAS_CORETYPE=SkylakeX" in (note(OLD) or "")


@pytest.mark.parametrize(
    "change", [{"blas_core": "SkylakeX"}, {"avx512": False}, {"coretype": "Haswell"}, {"blas_core": None}]
)
def test_nothing_is_said_where_it_would_not_help(change):
    assert note({**OLD, **change}) is None
