"""Launches of several nodes made one: updates of many variables, by a table of addresses that is made when they are bound."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from graphdock_cuda.bound import Arrays, Bindings
from graphdock_cuda.launch import Launch, i64, raw, u64
from graphdock_cuda.work import Step, Work

__all__ = ["Joinable", "joined_launches", "like"]


class Joinable:
    """A launch over buffers that are known, which may be made one with others."""

    __slots__ = ("arrays", "bindings", "run", "step")

    def __init__(self, run: Callable[..., None], step: Step, arrays: Arrays, bindings: Bindings) -> None:
        self.run = run
        self.step = step
        self.arrays = arrays
        self.bindings = bindings

    def __call__(self, *_: Any) -> None:
        self.run()

    def addresses(self, which: str) -> bytes:
        """Of a ``row`` or of what is ``shared``."""
        return b"".join(u64(self.arrays.address(x) or 0) for x in getattr(self.step.together, which))


def like(work: Work) -> Hashable:
    """Return what launches have in common that may be made one; None for work that may not."""
    step = work.steps[0] if len(work.steps) == 1 else None
    return None if step is None or step.together is None else (step.source, step.together.entry)


def joined_launches(launches: Sequence[Any]) -> Callable[..., None] | None:
    """One function for all launches, whose ``like`` are the same; None where their arguments differ too much."""
    if not all(isinstance(launch, Joinable) for launch in launches):
        return None
    first = launches[0]
    shared, most = first.addresses("shared"), first.step.together.most
    if any(launch.addresses("shared") != shared for launch in launches):
        return None
    made = [_launch(launches[i : i + most], shared) for i in range(0, len(launches), most)]

    def run(*_: Any) -> None:
        for launch in made:
            launch.run()

    return run


def _launch(launches: Sequence[Joinable], shared: bytes) -> Launch:
    step, device = launches[0].step, launches[0].bindings.device
    assert step.source is not None and step.together is not None
    table, grid = b"", 0
    for launch in launches:
        assert launch.step.together is not None
        table += launch.addresses("row") + launch.step.together.size + u64(grid)
        grid += launch.step.grid[0]
    length = len(table) // len(launches) * step.together.most
    pointers = [raw(shared[i : i + 8]) for i in range(0, len(shared), 8)]
    params = (raw(table.ljust(length, b"\0")), *pointers, i64(len(launches)))
    function = device.images.function(step.source, step.together.entry)
    stream = launches[0].bindings.queue.stream
    return Launch(device.driver, function, (grid,), step.block, 0, params, stream)
