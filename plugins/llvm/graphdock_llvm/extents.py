"""Calls of a function whose extents only a call knows: what they are is read off its arguments, and checked there."""

from __future__ import annotations

import functools
import math
import sys
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import BindContext, Native, NativeCall, NativeShapes, RegionInput, RegionProgram, errors

from graphdock_llvm.native import chain
from graphdock_llvm.schedule import TOGETHER, Schedule
from graphdock_llvm.target import width

__all__ = ["Extents", "Results", "bind_any"]

#: Bytes from which the memory of a result is worth being used again, and whether this Python tells who knows of it.
_LARGE = 1 << 12
_COUNTS = hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()


class Extents(NativeShapes):
    """The numbers that a function of a program gets: threads, the pool's address, parts, the extents that it does not say, and the
    address of memory where its parts keep what takes more for larger ones.

    Args:
      within: a context for calls whose rows threads share, or None.
      parts: extents -> in how many parts threads share a call, and how many bytes each keeps; else as the program's schedule says.
      arranged: numbers of the inputs that come in another order.
      before: how many of the numbers stand before those of the program's function.
    """

    def __init__(
        self,
        program: RegionProgram,
        numbers: Sequence[int],
        within: Any = None,
        parts: Callable[[Sequence[int | None]], tuple[int, int]] | None = None,
        arranged: Collection[int] = (),
        before: int = 0,
    ) -> None:
        self._program, self._open = program, [a for a, axis in enumerate(program.axes) if axis.extent is None]
        self._parts = parts or functools.partial(_of_rows, Schedule(program, width()))
        self._read = [i for i in program.inputs if i.source not in arranged]
        self.numbers = np.array([*numbers, 1, *[0 for _ in self._open], 0], np.int64)
        self._own = self.numbers[before:]
        self._memory: np.ndarray[Any, Any] | None = None
        self._shared, self._makers = within, [Results(o.dtype.np) for o in program.made]
        self._shapes: list[tuple[int, ...]] = []

    def read(self, shapes: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        """The shapes of all that is made, of inputs of these shapes.

        Raises:
          ShapeError: two dims that are to be the same are not; names the tensors.
        """
        program = self._program
        extents = [a.extent for a in program.axes]
        first = ["the plan" for _ in extents]
        for source in self._read:
            shape = _shape_of(source, shapes[source.source])
            for number, (size, axis) in enumerate(zip(shape, source.dims, strict=True)):
                if axis is not None and extents[axis] is None:
                    extents[axis], first[axis] = size, f"{source.name}, dim {number}"
                want = source.shape[number] if axis is None else extents[axis]
                if size != want:
                    raise errors.ShapeError(
                        f"dim {number} of {source.name} is not that of {'the plan' if axis is None else first[axis]}",
                        expected=str(want),
                        got=str(size),
                        hint='shape_policy="exact" makes a plan for each set of shapes',
                    )
        for source in self._read:
            if source.strides is not None:
                _check_within(source, shapes[source.source], extents)
        self._own[2], room = self._parts(extents)
        for place, axis in enumerate(self._open):
            self._own[3 + place] = extents[axis] or 0
        if room:
            self._memory = np.empty(room * int(self._own[2]) + TOGETHER, np.uint8)
            self._own[-1] = -(-self._memory.ctypes.data // TOGETHER) * TOGETHER
        self.within = self._shared if self._own[2] > 1 else None
        self._shapes = [tuple([1 if a is None else extents[a] or 0 for a in out.dims]) for out in program.made]
        return self._shapes

    def make(self, output: int) -> np.ndarray[Any, Any]:
        return self._makers[output](self._shapes[output])


def _shape_of(source: RegionInput, shape: tuple[int, ...]) -> Sequence[int | None]:
    """The shape of an input; ``shape`` is that of the array, which for a part is the tensor that it is a part of."""
    name, planned = source.name, source.shape
    if source.strides is not None:
        name, planned = f"the tensor that {name} is a part of", source.whole
        if wrong := [i for i, (n, want) in enumerate(zip(shape, planned, strict=False)) if want not in (None, n)]:
            raise errors.ShapeError(
                f"dim {wrong[0]} of {name} is not that of the plan",
                expected=str(planned[wrong[0]]),
                got=str(shape[wrong[0]]),
            )
    if len(shape) != len(planned):
        raise errors.ShapeError(
            f"{name} is of another rank than planned", expected=str(len(planned)), got=str(len(shape))
        )
    if source.strides is None:
        return shape
    spans = source.spans or (None,) * len(source.shape)
    return [n if s is None else s.extent(shape) for n, s in zip(source.shape, spans, strict=True)]


def _check_within(source: RegionInput, shape: Sequence[int], extents: Sequence[int | None]) -> None:
    """Raise ShapeError where a part goes beyond the tensor that it is a part of."""
    sizes = [1 if axis is None else extents[axis] or 0 for axis in source.dims]
    strides, count = source.lies(extents) or (), math.prod(shape)
    last = source.offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if 0 not in sizes and last >= count:
        raise errors.ShapeError(
            f"{source.name} is no part of a tensor of shape {list(shape)}",
            expected=f"{last + 1} elements and more",
            got=str(count),
        )


def _of_rows(schedule: Schedule, extents: Sequence[int | None]) -> tuple[int, int]:
    """Parts of a program of rows, and what each keeps of these."""
    return schedule.parts(extents), -(-(extents[-1] or 0) // TOGETHER) * TOGETHER * schedule.room


class Results:
    """Maker of one result: of one of a page and more the last array again, where nobody else knows of it and its shape has stayed.

    Results go at the end of a step, and with them their pages, which the system zeroes one by one when the next step touches them.
    """

    __slots__ = ("_dtype", "_last")

    def __init__(self, dtype: Any) -> None:
        self._dtype = dtype
        self._last: np.ndarray[Any, Any] | None = None

    def __call__(self, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        last = self._last
        # known to the attribute, the variable and the argument
        mine = last is not None and sys.getrefcount(last) == 3 and not weakref.getweakrefcount(last)
        if last is not None and mine and last.shape == shape and last.flags.writeable:
            return last
        made = np.empty(shape, self._dtype)
        self._last = made if made.nbytes >= _LARGE and _COUNTS else None
        return made


def bind_any(
    count: int,
    outputs: int,
    native: Native,
    ctx: BindContext,
    otherwise: Callable[..., Any] | None = None,
    refuse: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """The kernel of a function whose extents only a call knows.

    Args:
      count: how many inputs it has. ``outputs``: likewise.
      otherwise: gives the one output of inputs that ``Native.sized`` refuses and whose shapes it calls ``left``, or raises what is
        wrong with them.
      refuse: called with the arguments for which the function leaves a status: raises their error.
    """
    assert native.sized is not None
    extents = native.sized()
    made = [i for i, o in enumerate(ctx.outputs) if o.mode.kind not in ("planned", "inplace")]
    given = count + outputs - len(made)
    places: list[Any] = list(range(given))
    for place, i in enumerate(made):  # what is returned stands among the others, and is given behind them
        places.insert(count + i, given + place)
    call = chain([NativeCall(native.address, tuple(places), extents.numbers, status=native.status)], count + outputs)
    last: list[Any] = [None]

    def compute(*args: Any) -> Any:
        shapes = [a.shape for a in args[:count]]
        if shapes != last[0]:
            last[0] = None  # what it was given before, if this is refused
            try:
                extents.read(shapes)
            except errors.ShapeError:
                if otherwise is None or not getattr(extents, "left", False):
                    raise
                result = otherwise(*args[:count])
                return result if made else np.copyto(args[count], result)
            last[0] = shapes
        returned = [extents.make(i) for i in made]
        if extents.within is not None:
            with extents.within:
                failed = call(*args, *returned)
        else:
            failed = call(*args, *returned)
        if failed is not None and refuse is not None:
            refuse(*args)
        return None if not returned else returned[0] if len(returned) == 1 else tuple(returned)

    return compute
