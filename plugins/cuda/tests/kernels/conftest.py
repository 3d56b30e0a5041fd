"""Conformance of kernels, on a CUDA that runs their sources on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock.testing.conformance import Conformance
from graphdock.testing.covering import covering
from graphdock_cuda.driver.api import Toolkit
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install

import graphdock as tf

#: dtypes of the quick run; `exhaustive` tests take all.
QUICK = frozenset({"-", "float32", "int32", "bfloat16"})


@pytest.fixture(scope="session")
def cuda() -> Toolkit:
    """One emulated CUDA for tests that look at results only."""
    return toolkit(seed=1)


@pytest.fixture(scope="session")
def kit(cuda: Toolkit) -> Iterator[Conformance]:
    """Conformance of the plugin with the specs' oracles."""
    host = Host()
    install(host, cuda)
    yield Conformance("cuda", host=host, oracle="reference")
    cuda.driver.verify()  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def run_on_cuda(cuda: Toolkit, kit: Conformance) -> Callable[..., list[Any]]:
    """``run_on_cuda(make, *values)`` fetches what ``make(*placeholders)`` returns, from kernels on the GPU alone."""

    def run(make: Callable[..., Any], *values: Any) -> list[Any]:
        arrays = [np.asarray(v) for v in values]
        with tf.Graph(host=kit.host).as_default() as graph:
            feeds = [tf.placeholder(a.dtype, a.shape) for a in arrays]
            fetches = make(*feeds)
            config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
            with tf.Session(graph=graph, config=config) as session:
                found: list[Any] = session.run(fetches, dict(zip(feeds, arrays, strict=True)))
        return found

    return run


@pytest.fixture
def conforms(kit: Conformance) -> Callable[..., None]:
    """``conforms(op)`` checks a sample of an op's cases, ``conforms(op, every=True)`` all of them."""

    def check(op: str, every: bool = False) -> None:
        cases = [c for c in kit.cases(op) if every or c.dtype in QUICK]
        for case in cases if every else covering(c for c in cases if c.kind != "gradient"):
            kit.check(case)

    return check
