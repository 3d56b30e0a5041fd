"""The library's kernels as kernels of ops: samples of their specs, in every dtype they take, on the emulated device."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from graphdock.plugin.host import Host
from graphdock_cuda.testing import find_compiler, toolkit
from graphdock_cuda.testing.install import install
from graphdock_testing.conformance import Conformance, Missing, Refused
from graphdock_triton import compiling
from graphdock_triton.operations.table import OPERATIONS
from graphdock_triton.testing.compiler import InterpretingCompiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler for the emulated CUDA")


@pytest.fixture(scope="module")
def kit():
    host = Host()
    install(host, toolkit())
    before = compiling.use(InterpretingCompiler())
    yield Conformance("triton", host=host, oracle="reference")
    compiling.use(before)


#: Of an op with several kernels the one that takes any sizes: samples are small.
EVERY = [o for o in OPERATIONS if not o.priority]


def agrees(kit, operation, enough):
    """Check samples of one op in the order of its spec, until each dtype had as many as are enough."""
    checked, dtypes = 0, Counter()
    for case in kit.cases(operation.op):
        taken = all(case.types[variable] in names for variable, names in operation.types.items())
        dtype = case.types.get("T")
        if case.kind != "value" or not taken or dtypes[dtype] >= enough or (case.index > 1 and dtype != "float32"):
            continue
        try:
            kit.check(case, brief=True)
        except (Missing, Refused):  # what is empty, or laid out otherwise: another backend's
            continue
        checked += 1
        dtypes[dtype] += 1
    assert checked >= 3 and {"float32", "float16", "bfloat16"} <= set(dtypes)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "operation",
    [o for o in EVERY if not o.op.startswith("Attention")],  # these take ten seconds; test_steps.py has them by hand
    ids=lambda o: o.op,
)
def test_an_op_agrees_with_its_reference(kit, operation):
    agrees(kit, operation, enough=1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("operation", EVERY, ids=[o.op for o in EVERY])
def test_an_op_agrees_with_its_reference_in_every_sample(kit, operation):
    agrees(kit, operation, enough=math.inf)


def test_the_kits_random_graphs_give_what_their_nodes_do(kit):
    (case,) = kit.cases("compiler triton.region")
    kit.check(case, brief=True)
