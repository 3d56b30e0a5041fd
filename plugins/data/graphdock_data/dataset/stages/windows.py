"""Stages of windows and reductions: elements side by side as datasets of their own, and all elements as one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from graphdock.contracts import errors

from graphdock_data.dataset.stages.functional import unpacked
from graphdock_data.dataset.stages.stage import Element, Function, Resumed, Run, Stage, Value

__all__ = ["Reduce", "Windows"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Windows(Stage):
    """Windows of elements. Each component is the list of the elements of a dataset.

    Attributes:
      size: elements of a window. shift: from one window's first element to the next one's. stride: between elements of a window.
      drop: windows with fewer elements are left out.
      ends: where, among a source element's components, those of each tensor, dense or sparse, end.
    """

    title = "WindowDataset"
    source: Stage
    size: Value
    shift: Value
    stride: Value
    drop: Value
    ends: tuple[int, ...]

    def check(self, run: Run) -> None:
        for name in ("size", "shift", "stride"):
            if run.number(getattr(self, name)) <= 0:
                raise self.refusal(f"Window {name} must be greater than zero.")

    def iterate(self, run: Run) -> Iterator[Element]:
        size, shift, stride = (run.number(value) for value in (self.size, self.shift, self.stride))
        source, seen = self.source.iterate(run), deque[Element | errors.GraphdockError]()
        least = (size - 1) * stride + 1 if bool(run.array(self.drop)) else 1
        return Resumed(lambda: self._windows(source, seen, (size - 1) * stride + 1, least, shift, stride))

    def _windows(
        self,
        source: Iterator[Element],
        seen: deque[Element | errors.GraphdockError],
        most: int,
        least: int,
        shift: int,
        stride: int,
    ) -> Iterator[Element]:
        begins = (0, *self.ends)
        while True:
            while len(seen) < most:
                try:
                    seen.append(next(source))
                except StopIteration:
                    break
                except errors.GraphdockError as error:
                    seen.append(error)
            if len(seen) < least:
                return
            window = list(seen)[::stride]
            for _ in range(min(shift, len(seen))):
                seen.popleft()
            for _ in range(shift - most):  # elements between this window and the next
                if next(source, None) is None:
                    break
            failed = next((row for row in window if isinstance(row, errors.GraphdockError)), None)
            if failed is not None:  # in each window that holds it, as in TensorFlow
                raise failed
            rows: list[Element] = window  # type: ignore[assignment]
            yield tuple([[row[a:b] for row in rows] for a, b in zip(begins, self.ends, strict=False)])


@dataclass(frozen=True, eq=False, kw_only=True)
class Reduce(Stage):
    """One element: what a function of a state and an element makes of all elements.

    Attributes:
      state: the first state's components. function: gives the next state, of a state and an element.
    """

    title = "ReduceDataset"
    source: Stage
    state: tuple[Value, ...]
    function: Function

    def iterate(self, run: Run) -> Iterator[Element]:
        step: Callable[[Element], Any] = unpacked(self, run.call(self.function))
        state: Element = tuple([run.array(value) for value in self.state])
        for element in self.source.iterate(run):
            state = step((*state, *element))
        return iter([state])
