"""The programs of the process, by what they compute: a bounded number of those that were used last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

from graphdock.locks import new_lock

from graphdock_onednn.library import Library
from graphdock_onednn.program import Program, Steps, row_major

__all__ = ["KEPT", "Call", "Make", "program_of"]

#: Programs that are kept, with their primitives; what runs has its own hold of them.
KEPT = 512


@dataclass(frozen=True, slots=True)
class Call:
    """Arrays that a program is made for.

    Attributes:
      shapes: of inputs, then outputs. ``strides``: in elements, likewise. ``dtypes``: likewise.
      inputs: how many of them are inputs.
      attrs: attributes of the node that the program depends on.
      used: whether each output is read.
      constants: places of inputs that are always the same, which may be brought into another layout for nothing.
    """

    shapes: tuple[tuple[int, ...], ...]
    strides: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    inputs: int
    attrs: tuple[tuple[str, Any], ...]
    used: tuple[bool, ...]
    constants: tuple[int, ...] = ()

    def attr(self, name: str) -> Any:
        return dict(self.attrs)[name]

    def lying(self, place: int, strides: tuple[int, ...]) -> Call:
        """The same with an array in one place that lies otherwise; none of them is constant."""
        return replace(self, strides=(*self.strides[:place], strides, *self.strides[place + 1 :]), constants=())

    @classmethod
    def contiguous(
        cls,
        inputs: Any,
        outputs: Any,
        attrs: tuple[tuple[str, Any], ...],
    ) -> Call:
        """Of arrays without gaps: ``inputs`` and ``outputs`` are what a kernel is told of them, with known shapes."""
        every = (*inputs, *outputs)
        shapes = tuple(tuple(i.shape) for i in every)
        strides = tuple(row_major(s) for s in shapes)
        dtypes, used = tuple(i.dtype.name for i in every), tuple(o.used for o in outputs)
        constants = tuple(number for number, i in enumerate(inputs) if i.value is not None)
        return cls(shapes, strides, dtypes, len(inputs), attrs, used, constants)


#: Adds to the steps what computes a call.
Make = Callable[[Steps, Call], None]

_LOCK = new_lock()
_KEPT: OrderedDict[Hashable, Program] = OrderedDict()


def program_of(library: Library, make: Make, call: Call, threads: int) -> Program:
    """The program for a call on so many threads. Any thread may ask.

    Raises:
      Unimplemented: the library has no primitive for it.
    """
    key = library.path, make, call, threads
    with _LOCK:
        found = _KEPT.get(key)
        if found is None:
            library.api.omp_set_num_threads(threads)
            steps = Steps(library, threads)
            make(steps, call)
            found = _KEPT[key] = steps.end()
            while len(_KEPT) > KEPT:
                _KEPT.popitem(last=False)
        _KEPT.move_to_end(key)
        return found
