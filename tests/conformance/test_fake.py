"""The fake asynchronous device passes the kit: every op in late execution, from a memory space of its own.

A few dtypes per op are enough: the kernels are cpu's, which ``test_cpu.py`` runs with all of them; what is checked here is
the runtime around them. The oracles are the specs', so that cpu and fake can't be wrong together.
"""

from __future__ import annotations

import pytest
from graphdock.plugin.host import Host
from graphdock.testing import fake
from graphdock.testing.conformance import Conformance

DTYPES = frozenset({"-", "float32", "int32", "string", "float64"})

pytestmark = pytest.mark.slow  # the kit's sessions are in debug mode anyway


@pytest.fixture(scope="module")
def kit() -> Conformance:
    host = Host()
    fake.install(host)
    return Conformance("fake", host=host, oracle="reference")


@pytest.mark.parametrize("op", Conformance("cpu").ops)
def test_op(kit: Conformance, op: str) -> None:
    for case in kit.cases(op):
        if case.dtype in DTYPES and (case.kind == "gradient" or case.dtype != "float64"):
            kit.check(case)
