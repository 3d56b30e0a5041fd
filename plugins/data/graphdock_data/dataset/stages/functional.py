"""Stages that call functions of elements: map, filter, flat_map, interleave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from graphdock.contracts import errors

from graphdock_data.dataset.stages.order import Passing
from graphdock_data.dataset.stages.prefetch import Ahead
from graphdock_data.dataset.stages.stage import Element, Function, Pipeline, Run, Stage, Value

__all__ = ["Filter", "FlatMap", "Interleave", "Map", "unpacked"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Map(Stage):
    """What a function makes of each element."""

    title = "MapDataset"
    fresh = True
    source: Stage
    function: Function

    def iterate(self, run: Run) -> Iterator[Element]:
        # map, unlike a generator, goes on after an error
        return map(unpacked(self, run.call(self.function)), self.source.iterate(run))


def unpacked(stage: Stage, compute: Callable[..., Any]) -> Callable[[Element], Any]:
    """A function of an element, whose OutOfRangeError ends the elements."""

    def call(element: Element) -> Any:
        try:
            with stage.blame():
                return compute(*element)
        except errors.OutOfRangeError:
            raise StopIteration from None

    return call


@dataclass(frozen=True, eq=False, kw_only=True)
class Filter(Passing):
    """The elements for which a function holds."""

    title = "FilterDataset"
    function: Function

    def iterate(self, run: Run) -> Iterator[Element]:
        holds = unpacked(self, run.call(self.function))
        return filter(lambda element: bool(holds(element)[0]), self.source.iterate(run))


def _inner(stage: Stage, function: Function, run: Run) -> Callable[[Element], Iterator[Element]]:
    """A function that begins the dataset which a graph function makes of an element."""
    pipeline = function.inner
    assert pipeline is not None
    compute = unpacked(stage, run.call(function)) if pipeline.tensors else _nothing
    known: Pipeline = pipeline

    def begin(element: Element) -> Iterator[Element]:
        inside = run.inside(known, compute(element))
        return known.stage.iterate(inside)

    return begin


def _nothing(element: Element) -> tuple[Any, ...]:
    return ()


@dataclass(frozen=True, eq=False, kw_only=True)
class FlatMap(Stage):
    """The elements of the datasets that a function makes of each element, one dataset after another."""

    title = "FlatMapDataset"
    source: Stage
    function: Function

    def iterate(self, run: Run) -> Iterator[Element]:
        begin = _inner(self, self.function, run)
        for element in self.source.iterate(run):
            yield from begin(element)


@dataclass(frozen=True, eq=False, kw_only=True)
class Interleave(Stage):
    """As a FlatMap, but of several datasets at once, so many elements of each at a time.

    Attributes:
      cycle: datasets that are open at once. block: elements of each at a time.
      ahead: elements that a thread per dataset makes ahead; 0 for no threads.
    """

    title = "InterleaveDataset"
    source: Stage
    function: Function
    cycle: Value
    block: Value
    ahead: Value

    def check(self, run: Run) -> None:
        for name in ("cycle", "block"):
            if run.number(getattr(self, name)) <= 0:
                raise self.refusal(f"{name}_length must be greater than zero.")

    def iterate(self, run: Run) -> Iterator[Element]:
        cycle, block, ahead = run.number(self.cycle), run.number(self.block), run.number(self.ahead)
        begin = _inner(self, self.function, run)
        source = self.source.iterate(run)
        slots: list[Iterator[Element] | None] = [None] * cycle
        left, at, given = True, 0, 0  # the source may have more; the slot; how many it gave of its block
        while left or any(slot is not None for slot in slots):
            current = slots[at]
            if current is not None:
                made = next(current, None)
                if made is not None:
                    given += 1
                    if given == block:
                        at, given = (at + 1) % cycle, 0
                    yield made
                    continue
                slots[at] = None
            elif left:
                element = next(source, None)
                if element is None:
                    left = False
                else:
                    inner = begin(element)
                    slots[at] = Ahead(inner, ahead, run) if ahead else inner
                continue
            at, given = (at + 1) % cycle, 0
