"""Stages that choose elements and their order: shuffle, repeat, take, skip, shard, concatenate, zip."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from graphdock_data.dataset.stages.stage import Element, Run, Stage, Value

__all__ = ["Cache", "Concatenate", "Passing", "Repeat", "Shard", "Shuffle", "Skip", "Take", "Zip"]


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
      size: how many it chooses among. seeds: None for another order in every iterator.
      again: each time that it is iterated anew its order is another one.
      epochs: how many times the source is repeated, for each time another order; None for 1.
    """

    title = "ShuffleDataset"
    size: Value
    seeds: tuple[int, int] | None
    again: bool = True
    epochs: Value | None = None

    def check(self, run: Run) -> None:
        if run.number(self.size) <= 0:
            raise self.refusal("buffer_size must be greater than zero.", got=str(run.number(self.size)))

    def iterate(self, run: Run) -> Iterator[Element]:
        size = run.number(self.size)
        parent = run.state(
            self, lambda: random.Random(None if self.seeds is None else f"{self.seeds[0]},{self.seeds[1]}")
        )
        if self.again:
            return _shuffled(self.source.iterate(run), size, random.Random(parent.getrandbits(64)))
        seed = run.state((self, "order"), lambda: parent.getrandbits(64))
        return _shuffled(self.source.iterate(run), size, random.Random(seed))


def _shuffled(source: Iterator[Element], size: int, order: random.Random) -> Iterator[Element]:
    """Any of the next elements. Source: Knuth, The Art of Computer Programming, 3.2.2, algorithm B."""
    draw = order.random
    buffer = list(itertools.islice(source, size))
    if len(buffer) == size:
        for element in source:
            at = int(draw() * size)
            chosen, buffer[at] = buffer[at], element
            yield chosen
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
        count = run.number(self.count)
        while count != 0:
            source = self.source.iterate(run)
            first = next(source, None)
            if first is None:
                return
            yield first
            del first
            yield from source
            count -= 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Take(Passing):
    """The first elements; below 0 all."""

    title = "TakeDataset"
    count: Value

    def iterate(self, run: Run) -> Iterator[Element]:
        count = run.number(self.count)
        return self.source.iterate(run) if count < 0 else itertools.islice(self.source.iterate(run), count)


@dataclass(frozen=True, eq=False, kw_only=True)
class Skip(Passing):
    """All but the first elements; below 0 none."""

    title = "SkipDataset"
    count: Value

    def iterate(self, run: Run) -> Iterator[Element]:
        count = run.number(self.count)
        return iter(()) if count < 0 else itertools.islice(self.source.iterate(run), count, None)


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
        return itertools.islice(self.source.iterate(run), run.number(self.index), None, run.number(self.count))


@dataclass(frozen=True, eq=False, kw_only=True)
class Cache(Stage):
    """The same elements, kept in memory from the first time that all were given."""

    title = "CacheDataset"
    source: Stage

    def iterate(self, run: Run) -> Iterator[Element]:
        kept = run.state(self, lambda: list[list[Element]]())
        return iter(kept[0]) if kept else _keeping(self.source.iterate(run), kept)


def _keeping(source: Iterator[Element], kept: list[list[Element]]) -> Iterator[Element]:
    found = []
    for element in source:
        found.append(element)
        yield element
    if not kept:
        kept.append(found)


@dataclass(frozen=True, eq=False, kw_only=True)
class Concatenate(Stage):
    """All elements of one dataset, then all of another."""

    title = "ConcatenateDataset"
    sources: tuple[Stage, ...]

    def iterate(self, run: Run) -> Iterator[Element]:
        return itertools.chain.from_iterable(source.iterate(run) for source in self.sources)

    def own(self) -> bool:
        return all(source.own() for source in self.sources)


@dataclass(frozen=True, eq=False, kw_only=True)
class Zip(Stage):
    """An element of each of several datasets, until one of them ends."""

    title = "ZipDataset"
    sources: tuple[Stage, ...]

    def iterate(self, run: Run) -> Iterator[Element]:
        return map(_joined, zip(*[source.iterate(run) for source in self.sources], strict=False))

    def own(self) -> bool:
        return all(source.own() for source in self.sources)


def _joined(parts: tuple[Element, ...]) -> Element:
    return tuple(itertools.chain.from_iterable(parts))
