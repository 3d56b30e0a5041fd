"""Kernels compiled ahead: what the plans of programs need, for GPUs that need not be here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from graphdock.contracts import CommandTools

from graphdock_triton.compiling import Asked, cubin_of, noted

__all__ = ["BACKENDS", "Built", "build"]

BACKENDS = ("triton", "cuda", "cpu")


@dataclass(frozen=True, slots=True)
class Built:
    """Products of building for one architecture.

    Attributes:
      asked: each kernel once, in the order of the plans; those for addresses of which nothing is known come last.
      refused: what Triton's compilers of regions said to nodes that they did not take, each reason once.
      unknown: whether sizes of the plans are not known; nothing is fused there.
    """

    architecture: str
    asked: Sequence[Asked]
    refused: Sequence[str]
    unknown: bool

    @property
    def failed(self) -> list[tuple[Asked, BaseException]]:
        """Kernels that did not compile. The plans have other kernels in their place."""
        found = ((a, a.cubin.exception()) for a in self.asked)
        return [(asked, error) for asked, error in found if error is not None]


def build(
    tools: CommandTools,
    targets: Sequence[str],
    architecture: str,
    backends: Sequence[str] = BACKENDS,
    tune: bool = False,
    progress: Callable[[int, int], None] = lambda done, asked: None,
) -> Built:
    """Plan programs for a GPU, and compile the kernels of this package that the plans need, into the cache folder.

    A plan compiles its kernels for addresses that are multiples of 16, as graphdock's memory has them; each is compiled for any
    addresses besides, so that a step whose views lie otherwise finds its kernels too.

    Args:
      targets: programs, as ``graphdock explain`` takes them.
      tune: estimate first which sizes of tiles suit the GPU, and keep that.
      progress: called with how many kernels are done, and how many were asked for, from any thread.

    Raises:
      What loading and planning the programs raise; DeviceUnavailable for an architecture that is not known.
    """
    found: dict[Any, Asked] = {}
    count = _Count(progress)

    def ask(asked: Asked) -> None:
        if asked.cubin not in found:
            found[asked.cubin] = asked
            count.add(asked)

    explained: list[Any] = []
    config: dict[str, Any] = {"backends": list(backends), "plan_for": {"cuda": architecture}}
    for target in targets if tune else ():
        tools.explain(target, **config, options={"triton": {"tune": "estimate"}})
    with noted(ask):
        for target in targets:
            explained += tools.explain(target, **config)
        for asked in list(found.values()):
            for job in (asked.job.plain, *asked.job.otherwise):
                cubin_of(job, asked.architecture)
    for asked in found.values():
        asked.cubin.exception()
    notes = [n for e in explained for n in e.plan.placement.notes if n.compiler.startswith("triton.") and not n.claimed]
    return Built(architecture, list(found.values()), list(dict.fromkeys(n.what for n in notes)), _unknown(explained))


def _unknown(explained: Sequence[Any]) -> bool:
    nodes = [n for e in explained for g in e.plan.graph.all_graphs() for n in g.nodes]
    return any(v.shape is None or None in v.shape for n in nodes for v in n.outputs)


class _Count:
    """Tells how far the compilers have come."""

    def __init__(self, progress: Callable[[int, int], None]) -> None:
        self._progress, self._done, self._asked = progress, 0, 0
        self._lock = threading.Lock()

    def add(self, asked: Asked) -> None:
        with self._lock:
            self._asked += 1
            self._progress(self._done, self._asked)
        asked.cubin.add_done_callback(self._finished)

    def _finished(self, _: Any) -> None:
        with self._lock:
            self._done += 1
            self._progress(self._done, self._asked)
