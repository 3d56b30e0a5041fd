"""Stages that call functions of elements: map, filter, flat_map, interleave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from graphdock.contracts import errors

from graphdock_data.dataset.stages.order import Passing
from graphdock_data.dataset.stages.prefetch import Ahead
from graphdock_data.dataset.stages.stage import Element, Function, Pipeline, Resumed, Run, Stage, Value

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
            return compute(*element)
        except errors.OutOfRangeError:
            raise StopIteration from None
        except errors.GraphdockError as error:
            stage.name(error)
            raise

    return call


@dataclass(frozen=True, eq=False, kw_only=True)
class Filter(Passing):
    """The elements for which a function holds."""

    title = "FilterDataset"
    function: Function

    def iterate(self, run: Run) -> Iterator[Element]:
        holds = unpacked(self, run.call(self.function))
        return filter(lambda element: bool(holds(element)[0]), self.source.iterate(run))


def _inner(stage: Stage, function: Function, run: Run) -> Callable[[Element], Iterator[Element] | None]:
    """A function that begins the dataset which a graph function makes of an element; None where the function ended it all."""
    pipeline = function.inner
    assert pipeline is not None
    compute = unpacked(stage, run.call(function)) if pipeline.tensors else _nothing
    known: Pipeline = pipeline
    windows = function.windows
    places = {at for at, _ in windows}

    def begin(element: Element) -> Iterator[Element] | None:
        given = {each: element[at] for at, each in windows}
        if windows:
            element = tuple([part for at, part in enumerate(element) if at not in places])
        try:
            inside = run.inside(function, compute(element), given)
        except StopIteration:
            return None
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
        source, now = self.source.iterate(run), list[Iterator[Element]]()
        return Resumed(lambda: _flat(source, begin, now))


def _flat(
    source: Iterator[Element], begin: Callable[[Element], Iterator[Element] | None], now: list[Iterator[Element]]
) -> Iterator[Element]:
    """Elements of inner datasets; the list has the one that is read."""
    while True:
        if now:
            yield from now[0]
            now.clear()
        element = next(source, None)
        inner = None if element is None else begin(element)
        if inner is None:
            return
        now.append(inner)


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
        begin, ahead = _inner(self, self.function, run), run.number(self.ahead)

        def opened(element: Element) -> Iterator[Element] | None:
            inner = begin(element)
            return Ahead(inner, ahead, run) if ahead and inner is not None else inner

        cycle = _Cycle(run.number(self.cycle), run.number(self.block), self.source.iterate(run), opened)
        return Resumed(cycle.elements)


class _Cycle:
    """Datasets that are open at once, and whose turn it is.

    Attributes:
      slots: an iterator each; None where it has ended. at: the slot. given: how many it gave of its block.
      source: gives what the next dataset is opened with; None at its end.
    """

    def __init__(
        self,
        count: int,
        block: int,
        source: Iterator[Element],
        opened: Callable[[Element], Iterator[Element] | None],
    ) -> None:
        self.slots: list[Iterator[Element] | None] = [None] * count
        self.block, self.opened = block, opened
        self.source: Iterator[Element] | None = source
        self.at = self.given = 0

    def elements(self) -> Iterator[Element]:
        while self.source is not None or any(slot is not None for slot in self.slots):
            current = self.slots[self.at]
            if current is not None:
                made = next(current, None)
                if made is None:
                    self.slots[self.at] = None
                    self._turn()
                    continue
                self.given += 1
                if self.given == self.block:
                    self._turn()
                yield made
            elif self.source is not None:
                self._open(self.source)
            else:
                self._turn()

    def _open(self, source: Iterator[Element]) -> None:
        element = next(source, None)
        inner = None if element is None else self.opened(element)
        self.slots[self.at] = inner
        if inner is None:
            self.source = None

    def _turn(self) -> None:
        self.at, self.given = (self.at + 1) % len(self.slots), 0
