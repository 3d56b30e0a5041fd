"""The library's kernels as kernels of ops: every sample of their specs, in every dtype they take, on the emulated device."""

from __future__ import annotations

import pytest
from graphdock.plugin.host import Host
from graphdock.testing.conformance import Conformance, Missing, Refused
from graphdock_cuda.testing import find_compiler, toolkit
from graphdock_cuda.testing.install import install
from graphdock_triton import compiling
from graphdock_triton.operations.calls import CALLS
from graphdock_triton.testing.compiler import InterpretingCompiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler for the emulated CUDA")


@pytest.fixture(scope="module")
def kit():
    host = Host()
    install(host, toolkit())
    before = compiling.use(InterpretingCompiler())
    yield Conformance("triton", host=host, oracle="reference")
    compiling.use(before)


@pytest.mark.parametrize("op", [c.op for c in CALLS])
def test_an_op_agrees_with_its_reference(kit, op):
    checked, dtypes = 0, set()
    for case in kit.cases(op):
        if case.kind != "value":
            continue
        try:
            kit.check(case, brief=True)
        except (Missing, Refused):  # float64, and what is empty: another backend's
            continue
        checked += 1
        dtypes.add(case.types["T"])
    assert checked >= 3 and {"float32", "float16", "bfloat16"} <= dtypes
