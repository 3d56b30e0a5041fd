"""Stages that choose elements and their order: shuffle, repeat, take, skip, shard, concatenate, zip."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from graphdock_data.dataset.stages.sources import Tensors
from graphdock_data.dataset.stages.stage import Element, Resumed, Run, Stage, Steps, Value, fill

__all__ = ["Concatenate", "Passing", "Repeat", "Shard", "Shuffle", "Skip", "Take", "Zip"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Passing(Stage):
    """Base of stages whose components are those of the stage behind them."""

    source: Stage

    def own(self) -> bool:
        return self.source.own()


@dataclass(frozen=True, eq=False, kw_only=True)
class Shuffle(Passing):
    """A random one of the next elements.

    Attributes:
      size: how many it chooses among. seeds: two integers; None for another order in every iterator.
      again: each time that it is iterated anew its order is another one.
    """

    title = "ShuffleDataset"
    size: Value
    seeds: tuple[Value, ...] | None
    again: bool = True

    def check(self, run: Run) -> None:
        if run.number(self.size) <= 0:
            raise self.refusal("buffer_size must be greater than zero.", got=str(run.number(self.size)))

    def iterate(self, run: Run) -> Iterator[Element]:
        size = run.number(self.size)
        parent = run.state(self, lambda: random.Random(self._seed(run)))
        if self.again:
            seed = parent.getrandbits(64)
        else:
            seed = run.state((self, "order"), lambda: parent.getrandbits(64))
        order, source, buffer = random.Random(seed), self.source.iterate(run), list[Element]()
        return Resumed(lambda: _shuffled(source, size, order, buffer))

    def _seed(self, run: Run) -> str | None:
        return None if self.seeds is None else ",".join([str(run.number(one)) for one in self.seeds])


def _shuffled(source: Iterator[Element], size: int, order: random.Random, buffer: list[Element]) -> Iterator[Element]:
    """Any of the next elements. Source: Knuth, The Art of Computer Programming, 3.2.2, algorithm B."""
    draw = order.random
    fill(buffer, source, size - len(buffer))
    while len(buffer) == size:
        at = int(draw() * size)
        chosen = buffer[at]
        buffer[at] = buffer[-1]
        buffer.pop()
        yield chosen
        for element in source:  # not before its place is free: what the source raises loses no element
            buffer.append(element)
            break
    order.shuffle(buffer)
    buffer.reverse()
    while buffer:
        yield buffer.pop()


@dataclass(frozen=True, eq=False, kw_only=True)
class Repeat(Passing):
    """All elements, several times; below 0 for good."""

    title = "RepeatDataset"
    count: Value

    def iterate(self, run: Run) -> Iterator[Element]:
        left = _Left(run.number(self.count))
        if isinstance(self.source, Tensors):
            (element,) = self.source.iterate(run)
            return itertools.repeat(element) if left.count < 0 else itertools.repeat(element, left.count)
        return Resumed(lambda: self._repeated(run, left))

    def _repeated(self, run: Run, left: _Left) -> Iterator[Element]:
        while left.count != 0:
            source = left.source
            if source is None:
                source = left.source = self.source.iterate(run)
                left.empty = True
            if left.empty:
                first = next(source, None)
                if first is None:
                    return
                left.empty = False
                yield first
                del first
            yield from source
            left.source = None
            left.count -= 1


class _Left:
    """Where a stage is that counts.

    Attributes:
      count: what is left. source: what it reads now; None before. empty: it gave nothing so far.
    """

    def __init__(self, count: int, source: Iterator[Element] | None = None) -> None:
        self.count, self.source, self.empty = count, source, True


@dataclass(frozen=True, eq=False, kw_only=True)
class Take(Passing):
    """The first elements; below 0 all."""

    title = "TakeDataset"
    count: Value

    def iterate(self, run: Run) -> Iterator[Element]:
        count = run.number(self.count)
        source = self.source.iterate(run)
        left = _Left(count)
        return source if count < 0 else Resumed(lambda: _taken(source, left))


def _taken(source: Iterator[Element], left: _Left) -> Iterator[Element]:
    while left.count > 0:
        element = next(source, None)
        if element is None:
            return
        left.count -= 1
        yield element


@dataclass(frozen=True, eq=False, kw_only=True)
class Skip(Passing):
    """All but the first elements; below 0 none."""

    title = "SkipDataset"
    count: Value

    def iterate(self, run: Run) -> Iterator[Element]:
        count = run.number(self.count)
        source = self.source.iterate(run)
        left = _Left(count)
        return iter(()) if count < 0 else Resumed(lambda: _skipped(source, left))


def _skipped(source: Iterator[Element], left: _Left) -> Iterator[Element]:
    for _ in itertools.islice(source, left.count):  # after an error as many anew, as in TensorFlow
        pass
    left.count = 0
    yield from source


@dataclass(frozen=True, eq=False, kw_only=True)
class Shard(Passing):
    """Every so many-th element, from one on."""

    title = "ShardDataset"
    count: Value
    index: Value

    def check(self, run: Run) -> None:
        count, index = run.number(self.count), run.number(self.index)
        if count < 1:
            raise self.refusal("Number of shards must be greater than zero", got=f"{count}")
        if not 0 <= index < count:
            raise self.refusal("index must be between 0 and the number of shards", got=f"{index} of {count}")

    def iterate(self, run: Run) -> Iterator[Element]:
        source, every = self.source.iterate(run), run.number(self.count)
        left = _Left(run.number(self.index))
        return Resumed(lambda: _sharded(source, every, left))


def _sharded(source: Iterator[Element], every: int, left: _Left) -> Iterator[Element]:
    while True:
        for _ in itertools.islice(source, left.count):
            pass
        left.count = 0
        element = next(source, None)
        if element is None:
            return
        left.count = every - 1
        yield element


@dataclass(frozen=True, eq=False, kw_only=True)
class Concatenate(Stage):
    """All elements of one dataset, then all of another."""

    title = "ConcatenateDataset"
    sources: tuple[Stage, ...]

    def iterate(self, run: Run) -> Iterator[Element]:
        runs = zip(self.sources, run.apart(self, self.sources), strict=True)
        return itertools.chain.from_iterable(source.iterate(own) for source, own in runs)

    def own(self) -> bool:
        return all(source.own() for source in self.sources)


@dataclass(frozen=True, eq=False, kw_only=True)
class Zip(Stage):
    """An element of each of several datasets, until one of them ends."""

    title = "ZipDataset"
    sources: tuple[Stage, ...]

    def iterate(self, run: Run) -> Iterator[Element]:
        runs = zip(self.sources, run.apart(self, self.sources), strict=True)
        sources = [source.iterate(own) for source, own in runs]

        def step() -> Element:
            joined: list[Any] = []
            at = 0
            try:
                for source in sources:
                    at += 1
                    joined += next(source)
            except BaseException as error:
                for source in sources[at:]:  # so that the next elements belong together, and all of one length end
                    next(source, None)
                if isinstance(error, StopIteration):
                    sources.clear()
                raise
            if not sources:
                raise StopIteration
            return tuple(joined)

        return Steps(step)

    def own(self) -> bool:
        return all(source.own() for source in self.sources)
