"""Stages that bring elements of one key together: into windows, or into one result for each key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from graphdock_data.dataset.stages.functional import unpacked
from graphdock_data.dataset.stages.stage import Element, Function, Resumed, Run, Stage

__all__ = ["Given", "GroupByReducer", "GroupByWindow"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Given(Stage):
    """Elements that another stage hands over: those of a window."""

    title = "GivenDataset"

    def iterate(self, run: Run) -> Iterator[Element]:
        return iter(run.given[self])


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupByWindow(Stage):
    """Elements of one key, in windows of a size, each made a dataset of its own.

    Attributes:
      key: gives an element's key, int64. size: gives the size of a key's windows, int64.
      reduce: gives the dataset of a key and a window. window: the stage that stands for the window there.
    """

    title = "GroupByWindowDataset"
    source: Stage
    key: Function
    size: Function
    reduce: Function
    window: Given

    def iterate(self, run: Run) -> Iterator[Element]:
        windows = _Windows(self, run)
        return Resumed(windows.elements)


class _Windows:
    """The windows of an iterator: those that are open, and the elements of the one that was made last."""

    def __init__(self, stage: GroupByWindow, run: Run) -> None:
        self._stage, self._run = stage, run
        self._source = stage.source.iterate(run)
        self._key = unpacked(stage, run.call(stage.key))
        self._size = unpacked(stage, run.call(stage.size))
        self._reduce = unpacked(stage, run.call(stage.reduce))
        self._open: dict[Any, list[Element]] = {}
        self._sizes: dict[Any, int] = {}
        self._made: Iterator[Element] | None = None

    def elements(self) -> Iterator[Element]:
        while True:
            if self._made is not None:
                yield from self._made
                self._made = None
            if not self._next():
                return

    def _next(self) -> bool:
        """Gather the next window; False where there is none."""
        try:
            for element in self._source:
                key = int(self._key(element)[0])
                if key not in self._sizes:
                    self._sizes[key] = self._size_of(key)
                rows = self._open.setdefault(key, [])
                rows.append(element)
                if len(rows) >= self._sizes[key]:
                    self._begin(key)
                    return True
        except StopIteration:  # a function ended it all
            self._open.clear()
        if not self._open:
            return False
        self._begin(min(self._open))
        return True

    def _size_of(self, key: int) -> int:
        size = int(self._size((self._key_array(key),))[0])
        if size <= 0:
            raise self._stage.refusal(f"Window size must be greater than zero, but got {size}.")
        return size

    def _begin(self, key: int) -> None:
        rows = self._open.pop(key)
        self._sizes.pop(key)
        function = self._stage.reduce
        pipeline = function.inner
        assert pipeline is not None
        arrays = self._reduce((self._key_array(key),)) if pipeline.tensors else ()
        inside = self._run.inside(function, arrays, {self._stage.window: rows})
        self._made = pipeline.stage.iterate(inside)

    def _key_array(self, key: int) -> Any:
        return self._stage.key.body.outputs[0].dtype.np.type(key)


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupByReducer(Stage):
    """One element for each key, which is reduced from the elements of that key.

    Attributes:
      key: gives an element's key. begin: the first state of a key. reduce: the next one, of the state and an element.
      finish: the result, of the last one.
    """

    title = "GroupByReducerDataset"
    source: Stage
    key: Function
    begin: Function
    reduce: Function
    finish: Function

    def iterate(self, run: Run) -> Iterator[Element]:
        functions = [unpacked(self, run.call(f)) for f in (self.key, self.begin, self.reduce, self.finish)]
        source, states = self.source.iterate(run), dict[int, Element]()
        return Resumed(lambda: _reduced(source, states, *functions))


def _reduced(
    source: Iterator[Element],
    states: dict[int, Element],
    key_of: Callable[[Element], Any],
    begin: Callable[[Element], Any],
    reduce: Callable[[Element], Any],
    finish: Callable[[Element], Any],
) -> Iterator[Element]:
    for element in source:
        found = key_of(element)[0]
        key = int(found)
        state = states[key] if key in states else begin((found,))
        states[key] = reduce((*state, *element))
    while states:
        yield finish(states.pop(min(states)))
