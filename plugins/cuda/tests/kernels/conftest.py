"""Conformance of kernels, on a CUDA that runs their sources on the CPU."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.graph.graph import Graph
from graphdock.plugin.host import Host
from graphdock_cuda.driver.api import Compiler, Toolkit
from graphdock_cuda.driver.nvrtc import Nvrtc, find_libraries
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install
from graphdock_testing.bench import run_program
from graphdock_testing.conformance import Conformance, Refused
from graphdock_testing.covering import covering

#: What every source compiles for.
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
#: dtypes of the quick run, for ops that have them; `exhaustive` tests take all.
QUICK = frozenset({"-", "float32", "int32"})


class Checked:
    """The emulator's compiler, which has every source compiled for GPUs as well: one that NVRTC refuses fails its op's test.

    Args:
      emulator: the compiler. ``architectures``: how many of :data:`ARCHITECTURES`, from one on that the source decides.
    """

    def __init__(self, emulator: Compiler, architectures: int) -> None:
        self._emulator, self._nvrtc = emulator, Nvrtc()
        self._count = architectures
        self.version = f"{self._emulator.version}, checked by {self._nvrtc.version} for {architectures}"

    def compile(self, source: str, name: str, architecture: str) -> bytes:
        first = zlib.crc32(source.encode())
        for number in range(self._count):
            self._nvrtc.compile(source, name, ARCHITECTURES[(first + number) % len(ARCHITECTURES)])
        return self._emulator.compile(source, name, architecture)


def _toolkit(architectures: int, fma: bool = False) -> Toolkit:
    tools = toolkit(seed=1, fma=fma)
    return replace(tools, compiler=Checked(tools.compiler, architectures)) if find_libraries() else tools


@pytest.fixture(scope="session")
def cuda() -> Toolkit:
    """One emulated CUDA for tests that look at results only."""
    return _toolkit(1)


@pytest.fixture(scope="session")
def every_kit() -> Iterator[Conformance]:
    """As ``kit``, with every source compiled for every architecture, and products fused with sums, as GPUs have them."""
    tools, host = _toolkit(len(ARCHITECTURES), fma=True), Host()
    install(host, tools)
    yield Conformance("cuda", host=host, oracle="reference")
    tools.driver.verify()  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def kit(cuda: Toolkit) -> Iterator[Conformance]:
    """Conformance of the plugin with the specs' oracles."""
    host = Host()
    install(host, cuda)
    made = Conformance("cuda", host=host, oracle="reference")
    with made.watching.case():
        pass  # queues are watched from the first one on, whichever test makes it
    yield made
    cuda.driver.verify()  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def run_on_cuda(kit: Conformance) -> Callable[..., list[Any]]:
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
def conforms(kit: Conformance) -> Callable[[str], int]:
    """``conforms(op)`` checks a sample of an op's cases: one for each dtype in every mode, the others in plans of known shapes.

    Of its launches behind a busy queue one is checked.

    It raises ConformanceError, and returns how many cases were checked.
    """

    def check(op: str) -> int:
        if op in kit.untested:
            pytest.skip(f"the spec of {op} has no samples")
        every = [c for c in kit.cases(op) if c.kind != "gradient"]
        late = [c for c in every if c.kind == "late"][:1]
        every = [c for c in every if c.kind != "late"]
        cases = [*([c for c in every if c.dtype in QUICK] or every), *late]
        seen: set[tuple[str, str]] = set()
        count = 0
        for case in covering(cases):
            try:
                kit.check(case, brief=(case.kind, case.dtype) in seen)
            except Refused:  # by cuDNN's kernels, which is not installed here
                continue
            seen.add((case.kind, case.dtype))
            count += 1
        return count

    return check


@pytest.fixture
def run(kit: Conformance) -> Callable[..., Any]:
    """``run(function, *arrays, backend="cuda", **config)``: what a graph of placeholders, made by ``function``, gives."""

    def compute(function: Callable[..., Any], *arrays: Any, backend: str = "cuda", **config: Any) -> Any:
        with tf.Graph().as_default() as graph:
            inputs = [tf.placeholder(a.dtype, a.shape) for a in arrays]
            made = function(*inputs)
        settings = tf.SessionConfig(backends=(backend, "cpu") if backend != "cpu" else ("cpu",), **config)
        with tf.Session(graph=graph, config=settings, host=kit.host) as session:
            return session.run(made, dict(zip(inputs, arrays, strict=True)))

    return compute


@pytest.fixture
def computed(kit: Conformance) -> Callable[..., list[np.ndarray]]:
    """``computed(op, arrays, **attrs)``: what an op gives for arrays by name; of variables what they hold then."""

    def compute(op: str, arrays: Mapping[str, np.ndarray], **attrs: Any) -> list[np.ndarray]:
        graph, bench = Graph(kit.host), kit._bench
        program = bench.build(graph, kit.host.ops.get(op), arrays, attrs)
        return list(run_program(bench.open(graph, plain=True), program, arrays))

    return compute


def _run(host: Host, device: str, make: Callable[..., Any], arrays: Sequence[np.ndarray], steps: int) -> list[Any]:
    graph = tf.Graph()
    with graph.as_default(), graph.device(f"/device:{device}:0"):
        feeds = [tf.placeholder(a.dtype, a.shape) for a in arrays]
        made = make(*feeds)
        fetched = list(made) if isinstance(made, (list, tuple)) else [made]
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        found: list[Any] = []
        with tf.Session(graph=graph, config=config, host=host) as session:
            for _ in range(steps):
                found = session.run(fetched, dict(zip(feeds, arrays, strict=True)))
    return found


@pytest.fixture
def on_cuda(kit: Conformance) -> Callable[..., list[Any]]:
    """``on_cuda(make, *arrays)``: what ``make(*placeholders)`` gives, every op of it on the emulated GPU."""
    return lambda make, *arrays, steps=1: _run(kit.host, "cuda", make, arrays, steps)


@pytest.fixture
def on_both(kit: Conformance) -> Callable[..., list[tuple[Any, Any]]]:
    """As ``on_cuda``, after so many ``steps``: pairs of what the GPU and the cpu make."""

    def both(make: Callable[..., Any], *arrays: np.ndarray, steps: int = 1) -> list[tuple[Any, Any]]:
        got, expected = (_run(kit.host, device, make, arrays, steps) for device in ("cuda", "cpu"))
        return list(zip(got, expected, strict=True))

    return both
