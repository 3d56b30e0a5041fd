"""The asynchronous device passes the kit: every op in late execution, from a memory space of its own, under the race checker.

A few dtypes per op are enough: the kernels are cpu's, which ``test_cpu.py`` runs with all of them; what is checked here is
the runtime around them. The oracles are the specs', so that cpu and this device can't be wrong together.
"""

from __future__ import annotations

import pytest
from graphdock.plugin.host import Host
from graphdock.testing import queued
from graphdock.testing.conformance import Conformance

DTYPES = frozenset({"-", "float32", "int32"})

pytestmark = pytest.mark.slow  # the kit's sessions are in debug mode anyway


@pytest.fixture(scope="module")
def kit() -> Conformance:
    host = Host()
    queued.install(host, seed=1)
    return Conformance("queued", host=host, oracle="reference")


@pytest.mark.parametrize("op", ["device queued", *Conformance("cpu").ops])
def test_op(kit: Conformance, op: str) -> None:
    for case in kit.cases(op):
        if case.dtype in DTYPES or case.kind == "gradient":
            kit.check(case)
