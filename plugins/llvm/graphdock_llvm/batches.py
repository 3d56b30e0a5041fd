"""Calls of functions whose numbers only a step knows: of gathered rows, and of images of which the plan knows all but how many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import NativeShapes, PrepareContext, Value, errors

from graphdock_llvm.extents import Results
from graphdock_llvm.gathered import Work, numbers
from graphdock_llvm.gathered_text import HEAD
from graphdock_llvm.launch import single_threaded

__all__ = ["BUFFERS", "FRAME", "Works", "images_of"]

#: Places of the numbers of a frame: how many buffers a call has, and the address of memory for one behind them.
BUFFERS, FRAME = 22, 23


class Works(NativeShapes):
    """Numbers of the calls of gathered rows that a node's one output takes, one behind the other.

    Attributes:
      left: whether the last shapes fit, and are computed otherwise.
    """

    def __init__(self, ctx: PrepareContext) -> None:
        self._node, self._threads = ctx.node, ctx.threads
        self._shared = single_threaded(ctx.device) if ctx.threads > 1 else None
        self._make = Results(ctx.outputs[0].dtype.np)
        self._shape: tuple[int, ...] = ()
        self.numbers, self.left = np.zeros(HEAD, np.int64), False

    def tell(self, works: Sequence[Work], shape: tuple[int, ...]) -> Sequence[tuple[int, ...]]:
        """Have the next calls do some work, which makes an output of this shape."""
        self._its = [numbers(work, self._threads) for work in works]
        self.numbers[: 1 + len(self._its)] = [len(self._its), *[its.ctypes.data for its in self._its]]
        size = max([work.frame.size for work in works if work.frame], default=0)
        self._room = np.empty(size, np.float32)
        self.numbers[[BUFFERS, FRAME]] = len(self._node.inputs) + 1, self._room.ctypes.data if size else 0
        self.within = self._shared if any(its[0] > 1 for its in self._its) else None
        self._shape = shape
        return [shape]

    def make(self, output: int) -> Any:
        return self._make(self._shape)


def images_of(values: Sequence[Value], shapes: Sequence[tuple[int, ...]]) -> int:
    """Number of images that arrays of these shapes hold, all as many; the other dims are those of the plan.

    Raises:
      ShapeError: they are not, or hold different numbers.
    """
    count = shapes[0][0] if shapes[0] else 0
    for value, shape in zip(values, shapes, strict=True):
        want = count, *(value.shape or ())[1:]
        if shape != want:
            raise errors.ShapeError(
                f"the shape of {value.name} is not that of the plan", expected=str(list(want)), got=str(list(shape))
            )
    return count
