"""Stages that choose among elements or datasets, or carry a state from one element to the next."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from graphdock.contracts import errors

from graphdock_data.dataset.stages.functional import unpacked
from graphdock_data.dataset.stages.order import Passing
from graphdock_data.dataset.stages.stage import Element, Function, Resumed, Run, Stage, Steps, Value

__all__ = ["Directed", "Draws", "IgnoreErrors", "Scan", "TakeWhile", "Unique"]


@dataclass(frozen=True, eq=False, kw_only=True)
class IgnoreErrors(Passing):
    """The elements without those whose making failed."""

    title = "IgnoreErrorsDataset"

    def iterate(self, run: Run) -> Iterator[Element]:
        source = self.source.iterate(run)

        def step() -> Element:
            while True:
                try:
                    return next(source)
                except errors.CancelledError:
                    raise
                except errors.GraphdockError:
                    continue

        return Steps(step)


@dataclass(frozen=True, eq=False, kw_only=True)
class TakeWhile(Passing):
    """The elements before the first one for which a function does not hold."""

    title = "TakeWhileDataset"
    function: Function

    def iterate(self, run: Run) -> Iterator[Element]:
        holds = unpacked(self, run.call(self.function))
        return itertools.takewhile(lambda element: bool(holds(element)[0]), self.source.iterate(run))


@dataclass(frozen=True, eq=False, kw_only=True)
class Unique(Passing):
    """The elements of one scalar component that were not there before."""

    title = "UniqueDataset"

    def iterate(self, run: Run) -> Iterator[Element]:
        seen: set[Any] = set()

        def new(element: Element) -> bool:
            value = element[0].item()
            before = len(seen)
            seen.add(value)
            return len(seen) > before

        return filter(new, self.source.iterate(run))


@dataclass(frozen=True, eq=False, kw_only=True)
class Scan(Stage):
    """What a function makes of a state and each element, beside the next state.

    Attributes:
      initial: the components of the first state. function: gives the next state's, and an element's.
    """

    title = "ScanDataset"
    fresh = False
    source: Stage
    initial: tuple[Value, ...]
    function: Function

    def iterate(self, run: Run) -> Iterator[Element]:
        state: Element = tuple([run.array(v) for v in self.initial])
        call, source, width = unpacked(self, run.call(self.function)), self.source.iterate(run), len(state)

        def step() -> Element:
            nonlocal state
            made = call((*state, *next(source)))
            state = tuple(made[:width])
            return tuple(made[width:])

        return Steps(step)


@dataclass(frozen=True, eq=False, kw_only=True)
class Draws(Stage):
    """Random integers int64, for good.

    Attributes:
      weights: how often each of 0, 1 and so on comes; None for integers of 32 bits. seeds: as of a Shuffle.
    """

    title = "RandomDataset"
    weights: Value | None
    seeds: tuple[Value, ...] | None

    def iterate(self, run: Run) -> Iterator[Element]:
        seed = None if self.seeds is None else ",".join([str(run.number(one)) for one in self.seeds])
        draw, kind = random.Random(seed), self.types[0].np.type
        if self.weights is None:
            return Steps(lambda: (kind(draw.getrandbits(32)),))
        weights = run.array(self.weights).tolist()
        bounds = list(itertools.accumulate(weights))
        numbers = range(len(weights))
        return Steps(lambda: (kind(draw.choices(numbers, cum_weights=bounds)[0]),))


@dataclass(frozen=True, eq=False, kw_only=True)
class Directed(Stage):
    """The next element of one of several datasets, as another one says; a dataset that has ended is passed over.

    Attributes:
      selector: gives numbers of the others, int64.
    """

    title = "DirectedInterleaveDataset"
    selector: Stage
    sources: tuple[Stage, ...]

    def iterate(self, run: Run) -> Iterator[Element]:
        *runs, chooses = run.apart(self, every := (*self.sources, self.selector))
        left = dict(enumerate([source.iterate(own) for source, own in zip(every, runs, strict=False)]))
        selector = self.selector.iterate(chooses)
        return Resumed(lambda: self._chosen(selector, left))

    def _chosen(self, selector: Iterator[Element], left: dict[int, Iterator[Element]]) -> Iterator[Element]:
        while left:
            chosen = next(selector, None)
            if chosen is None:
                return
            number = int(chosen[0])
            if not 0 <= number < len(self.sources):
                raise self.refusal(f"Selector index out of range: {number} >= {len(self.sources)}")
            if number not in left:
                continue
            element = next(left[number], None)
            if element is None:
                del left[number]
            else:
                yield element

    def own(self) -> bool:
        return all(source.own() for source in self.sources)
