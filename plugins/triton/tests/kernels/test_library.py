"""The library as a whole: what it imports, and that every kernel of it is tried."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import graphdock_triton.kernels
import pytest
from graphdock_triton.kernels import FAMILIES, library


def test_triton_is_imported_on_use_only():
    code = "import sys; import graphdock_triton.kernels.spec; assert not [m for m in sys.modules if m.split('.')[0] == 'triton']"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_module_with_kernels_is_a_family_with_a_test():
    here, tests = Path(graphdock_triton.kernels.__file__).parent, Path(__file__).parent / "interpreted"
    assert {p.stem for p in here.glob("*.py") if "KERNELS = (" in p.read_text()} == set(FAMILIES)
    assert all((tests / f"test_{family}.py").exists() for family in FAMILIES)


def test_kernels_have_names_of_their_own_and_no_argument_but_sizes_that_no_function_has():
    pytest.importorskip("triton")
    from .cases import cases

    found = library()
    assert {kernel.name for _, kernel, _ in cases()} == set(found)
    for kernel in found.values():
        parameters = {name for stage in kernel.stages for name in stage.function.arg_names}
        assert {a.name for a in kernel.arguments} - parameters <= {"programs", "batch", "tokens", "rows"}, kernel.name
        assert kernel.doc and all(a.doc for a in kernel.arguments if a.role in ("in", "out", "update", "scratch"))
