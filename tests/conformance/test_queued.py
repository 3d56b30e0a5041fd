"""The asynchronous device passes the kit: every op in late execution, from a memory space of its own, under the race checker.

A few dtypes, one error and one gradient per op are enough: the kernels are cpu's, which ``test_cpu.py`` runs with all of them; what
is checked here is the runtime around them. `make test-exhaustive` takes every sample and gradient. The oracles are the specs', so
that cpu and this device can't be wrong together.
"""

from __future__ import annotations

import pytest
from graphdock.plugin.host import Host
from graphdock.testing import queued
from graphdock.testing.conformance import Conformance
from graphdock.testing.covering import covering

CPU = Conformance("cpu")
#: Ops with a kernel for host memory alone, whatever the device; test_cpu.py runs them.
ON_HOST = {op for op in CPU.ops if (found := CPU.kernels(op)) and all(k.kernel.device == "host" for k in found)}
OPS = ["device queued", *(op for op in CPU.ops if op not in ON_HOST)]
DTYPES = frozenset({"-", "float32", "int32"})

pytestmark = pytest.mark.slow  # the kit's sessions are in debug mode anyway


@pytest.fixture(scope="module")
def kit() -> Conformance:
    host = Host()
    queued.install(host, seed=1)
    return Conformance("queued", host=host, oracle="reference")


@pytest.mark.parametrize("op", OPS)
def test_op(kit: Conformance, op: str) -> None:
    seen: set[str] = set()
    for case in covering(c for c in kit.cases(op) if c.dtype in DTYPES or c.kind == "gradient"):
        if case.kind == "value" or case.kind not in seen:
            kit.check(case)
        seen.add(case.kind)


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", OPS)
def test_every_sample_and_gradient(kit: Conformance, op: str) -> None:
    for case in kit.cases(op):
        if case.dtype in DTYPES or case.kind == "gradient":
            kit.check(case)
