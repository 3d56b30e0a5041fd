"""The asynchronous device passes the kit: every op in late execution, from a memory space of its own, under the race checker.

What is checked here is the runtime around cpu's kernels, which ``test_cpu.py`` runs in all dtypes: one case of an op is taken in
every mode, its other samples and one gradient in plans of known shapes. `make test-exhaustive` takes every sample and gradient of a
few dtypes in every mode. The oracles are the specs', so that cpu and this device can't be wrong together.
"""

from __future__ import annotations

import pytest
from graphdock.plugin.host import Host
from graphdock_testing import queued
from graphdock_testing.conformance import Conformance

CPU = Conformance("cpu")
#: Ops that run on the host alone, whatever the device; test_cpu.py and the conformance of storage run them.
ON_HOST = {op for op in CPU.ops if "host" in CPU.host.ops.get(op).traits}
ON_HOST |= {op for op in CPU.ops if (found := CPU.kernels(op)) and all(k.kernel.device == "host" for k in found)}
OPS = ["device queued", *(op for op in CPU.ops if op not in ON_HOST)]
DTYPES = frozenset({"-", "float32", "int32"})

pytestmark = pytest.mark.slow  # the kit's sessions are in debug mode anyway


@pytest.fixture(scope="module")
def kit() -> Conformance:
    host = Host()
    queued.install(host, seed=1)
    return Conformance("queued", host=host, oracle="reference")


@pytest.mark.parametrize("op", OPS)
@pytest.mark.sampled(144)
def test_op(kit: Conformance, op: str) -> None:
    seen: set[tuple[str, int]] = set()
    for case in kit.cases(op):
        index = case.index if case.kind in ("value", "device") else 0
        if (case.kind, index) in seen or case.kind == "value" and case.dtype not in DTYPES:
            continue
        kit.check(case, brief=case.kind == "gradient" or any(kind == case.kind for kind, _ in seen))
        seen.add((case.kind, index))


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", OPS)
def test_every_sample_and_gradient(kit: Conformance, op: str) -> None:
    for case in kit.cases(op):
        if case.dtype in DTYPES or case.kind == "gradient":
            kit.check(case)
