"""Every source that any case of any op needs compiles to a cubin for every architecture, on a machine without a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from graphdock.errors import KernelNotFoundError
from graphdock.graph.graph import Graph
from graphdock.plugin.host import Host
from graphdock.session.session import Session
from graphdock_cuda.compiled import Image, Images, Source
from graphdock_cuda.driver.errors import CompileError
from graphdock_cuda.driver.nvrtc import Nvrtc, find_libraries
from graphdock_cuda.kernels import special
from graphdock_cuda.testing import Emulator, kernels, toolkit
from graphdock_cuda.testing.install import install
from graphdock_opgen.samples import make_arrays
from graphdock_testing.bench import run_program
from graphdock_testing.case import Case
from graphdock_testing.conformance import Conformance
from graphdock_testing.programs import Program

ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
OPS = sorted({k.op for k in kernels()})
_ELF = b"\x7fELF"
#: Lines of PTX that a special function may have. What NVRTC takes beyond it grows faster than they do: minutes at 20,000.
LINES = 6000


class Nothing:
    """A compiler for plans that are made and never run."""

    version = "nothing"

    def compile(self, source: str, name: str, architecture: str) -> bytes:
        return b""


class Sources:
    """What plans need compiled. ``seen``: by text; ``ran``: ops whose kernels tell what they need in the step only.

    ``asked``: texts that the cases of the last op need, new or not. ``refused``: names of sources that no compiler takes.
    ``untested``: ops whose specs have no samples.
    """

    def __init__(self) -> None:
        self._nvrtc, self._emulator = Nvrtc(), Emulator()
        self.seen: dict[str, Source] = {}
        self.asked: set[str] = set()
        self.ran: set[str] = set()
        self.refused: list[str] = []
        self._compiled: set[str] = set()
        plain, running = toolkit(), toolkit(seed=1)
        self._planning = self._kit(replace(plain, compiler=Nothing(), cache=False))
        self._running = self._kit(running)
        self.untested = set(self._planning.untested)

    def _kit(self, tools: object) -> Conformance:
        host = Host()
        install(host, tools)  # type: ignore[arg-type]
        return Conformance("cuda", host=host, oracle="reference")

    def needed(self, op: str, dtype: str | None = None) -> int:
        """See what the cases of an op need; in the plan, and where that tells nothing, in a step. How many cases were planned."""
        self.asked.clear()
        cases = [c for c in self._planning.cases(op) if c.kind == "value" and dtype in (None, c.dtype)]
        planned = []
        for case in cases:
            session, program, arrays = _opened(self._planning, case)
            try:
                session.explain([*program.outputs, program.op], program.feed(arrays))
            except KernelNotFoundError:
                continue  # of dtypes that the op has and a GPU has not
            planned.append(case)
        if not self.asked:
            self.ran.add(op)
            for case in planned:
                run_program(*_opened(self._running, case))
        return len(planned)

    def compile(self) -> None:
        """Compile what is new. Raises CompileError with the log.

        A formula without a function for its dtype compiles nowhere, and its kernel is refused: g++ must say so too.
        """
        for text, source in list(self.seen.items()):
            if text in self._compiled:
                continue
            self._compiled.add(text)
            for architecture in ARCHITECTURES:
                try:
                    assert self._nvrtc.compile(text, source.name, architecture)[:4] == _ELF
                except CompileError:
                    if self._compiles_here(text, source.name):
                        raise
                    self.refused.append(source.name)
                    break

    def _compiles_here(self, text: str, name: str) -> bool:
        try:
            self._emulator.compile(text, name, ARCHITECTURES[0])
        except CompileError:
            return False
        return True


def _opened(kit: Conformance, case: Case) -> tuple[Session, Program, Mapping[str, Any]]:
    """A session of the case's own, its program, and what that is fed."""
    arrays = make_arrays(case.data, case.sample, case.types, f"{case.op} {case.index}")
    graph = Graph(kit.host)
    program = kit._bench.build(graph, kit.host.ops.get(case.op), arrays, case.attrs)
    return kit._bench.open(graph, plain=True), program, arrays


@pytest.fixture(scope="module")
def sources() -> Iterator[Sources]:
    if not find_libraries():
        pytest.skip("needs NVRTC")
    found, image = Sources(), Images.image

    def noted(images: Images, source: Source) -> Image:
        found.seen.setdefault(source.text, source)
        found.asked.add(source.text)
        return image(images, source)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Images, "image", noted)
        yield found
    print(f"\n{len(found.seen)} sources for {', '.join(ARCHITECTURES)}; in a step: {', '.join(sorted(found.ran))}")
    print(f"refused: {len(found.refused)}, of {', '.join(sorted(set(found.refused)))}")


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", OPS)
def test_every_source_compiles(sources: Sources, op: str) -> None:
    planned = sources.needed(op)
    assert planned > 0 or op in sources.untested
    sources.compile()
    assert sources._compiled == set(sources.seen)


def test_sources_are_seen_in_plans_and_in_steps(sources: Sources) -> None:
    """One op whose kernel is told when the plan is made, and one whose kernel reads values."""
    for op, dtype in (("Softplus", "float32"), ("Where", "bool")):
        sources.needed(op, dtype)
        assert sources.asked <= sources.seen.keys() and sources.asked, op
    assert "Where" in sources.ran and "Softplus" not in sources.ran


@pytest.mark.parametrize(
    "op",
    [
        pytest.param(op, marks=[] if op in ("Polygamma", "IgammaGradA") else [pytest.mark.exhaustive])
        for op in sorted(k.op for k in special.KERNELS)
    ],
)
def test_special_functions_stand_once_in_a_source(sources: Sources, op: str) -> None:
    """A kernel calls them: it has a dozen places of them, and they call one another."""
    sources.needed(op, "float64")
    made = [sources._nvrtc.compile(text, op, "compute_90") for text in sources.asked]
    assert made
    assert max(len(ptx.splitlines()) for ptx in made) < LINES
