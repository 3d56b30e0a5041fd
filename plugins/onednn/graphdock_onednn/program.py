"""Primitives of the library, one behind the other, that compute one node: made once per shapes, called with arrays.

Tensors are *slots*: an array of the call, or room in the program's scratch memory for one that is in a layout of the library's own.
A primitive is made for a number of threads, which it divides its work among; nobody else may run it on other ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphdock_onednn.interface import Arg, Fact, Kind
from graphdock_onednn.library import Library, Unimplemented

__all__ = ["TYPES", "Program", "Slot", "Step", "Steps", "row_major"]

#: dtype -> ``dnnl_data_type_t``.
TYPES = {"float16": 1, "bfloat16": 2, "float32": 3}
#: Bytes between the beginnings of rooms: lines of the cache.
_LINE = 64


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements from one to the next along each dim of a contiguous array."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


@dataclass(frozen=True, slots=True)
class Slot:
    """A tensor: array ``place`` of the call, an array that is always the ``same``, or else ``nbytes`` of scratch memory from
    ``offset`` on.
    """

    layout: Any
    place: int | None
    offset: int = 0
    nbytes: int = 0
    same: Any = None

    @property
    def is_room(self) -> bool:
        """Return whether it lies in scratch memory."""
        return self.place is None and self.same is None


@dataclass(frozen=True, slots=True)
class Step:
    """A primitive and its arguments, slots by number; which slots it reads and writes, besides its own scratch memory."""

    primitive: Any
    args: tuple[tuple[int, int], ...]
    reads: frozenset[int]
    writes: frozenset[int]


@dataclass(frozen=True, slots=True)
class Program:
    """Steps over slots, for so many threads, with ``nbytes`` of scratch memory."""

    library: Library
    threads: int
    slots: tuple[Slot, ...]
    steps: tuple[Step, ...]
    nbytes: int

    def of_constants(self, constants: Collection[int]) -> list[int]:
        """Numbers of the steps that read nothing but constant arrays, of these places."""
        known = {i for i, slot in enumerate(self.slots) if slot.same is not None or slot.place in constants}
        found = []
        for number, step in enumerate(self.steps):
            if step.reads <= known and all(self.slots[i].is_room for i in step.writes):
                known.update(step.writes)
                found.append(number)
        return found


@dataclass
class Steps:
    """A program while it is made, under the number of threads that it is for."""

    library: Library
    threads: int
    _slots: list[Slot] = field(default_factory=list)
    _steps: list[Step] = field(default_factory=list)
    _end: int = 0

    def layout(self, dtype: str, dims: Sequence[int], strides: Sequence[int] | None = None) -> Any:
        """Layout of a tensor; as the library likes it, without strides."""
        lib, rank = self.library, len(dims)
        sizes = lib.ffi.new("int64_t[12]", list(dims))
        if strides is None:
            make = lib.api.dnnl_memory_desc_create_with_tag
            return lib.made("dnnl_memory_desc_t", make, rank, sizes, TYPES[dtype], Kind.ANY)
        steps = lib.ffi.new("int64_t[12]", list(strides))
        make = lib.api.dnnl_memory_desc_create_with_strides
        return lib.made("dnnl_memory_desc_t", make, rank, sizes, TYPES[dtype], steps)

    def array(self, place: int, layout: Any) -> int:
        """Slot of an array of the call."""
        self._slots.append(Slot(layout, place))
        return len(self._slots) - 1

    def again(self, slot: int, layout: Any) -> int:
        """Slot of the same memory as another one's, with another layout of as many elements."""
        self._slots.append(replace(self._slots[slot], layout=layout))
        return len(self._slots) - 1

    def same(self, array: Any, layout: Any) -> int:
        """Slot of an array that nobody changes."""
        self._slots.append(Slot(layout, None, same=array))
        return len(self._slots) - 1

    def room(self, layout: Any) -> int:
        """Slot in scratch memory."""
        nbytes = self.library.api.dnnl_memory_desc_get_size(layout)
        self._slots.append(Slot(layout, None, self._end, nbytes))
        self._end += -(-nbytes // _LINE) * _LINE
        return len(self._slots) - 1

    def layout_of(self, slot: int) -> Any:
        return self._slots[slot].layout

    def wants(self, description: Any, what: Fact) -> Any:
        """Layout that a primitive has chosen."""
        lib = self.library
        found = lib.api.dnnl_primitive_desc_query_md(description, what, 0)
        return lib.made("dnnl_memory_desc_t", lib.api.dnnl_memory_desc_clone, found)

    def read(self, slot: int, layout: Any) -> int:
        """The slot in that layout: itself, or room that it is copied to."""
        if self.library.api.dnnl_memory_desc_equal(self._slots[slot].layout, layout):
            return slot
        made = self.room(layout)
        self.copy(slot, made)
        return made

    def written(self, slot: int, layout: Any) -> int:
        """Slot of that layout that a step may write, and :meth:`write` then brings into ``slot``: itself, or room."""
        same = self.library.api.dnnl_memory_desc_equal(self._slots[slot].layout, layout)
        return slot if same else self.room(layout)

    def write(self, made: int, slot: int) -> None:
        """Copy what a step has written to where it belongs, unless it is there."""
        if made != slot:
            self.copy(made, slot)

    def copy(self, source: int, target: int) -> None:
        """Copy from slot to slot, whatever their layouts."""
        lib = self.library
        layouts = self.layout_of(source), self.layout_of(target)
        made = lib.made(
            "dnnl_primitive_desc_t", lib.api.dnnl_reorder_primitive_desc_create, layouts[0], lib.engine, layouts[1],
            lib.engine, self.attributes(),
        )  # fmt: skip
        self.add(made, {Arg.SRC: source, Arg.DST: target}, (target,))

    def attributes(self, post_ops: Any = None) -> Any:
        """Attributes of a primitive whose scratch memory is ours."""
        lib = self.library
        made = lib.made("dnnl_primitive_attr_t", lib.api.dnnl_primitive_attr_create)
        set_mode = lib.api.dnnl_primitive_attr_set_scratchpad_mode
        lib.check(set_mode(made, Kind.USER_SCRATCHPAD), set_mode)
        if post_ops is not None:
            lib.check(lib.api.dnnl_primitive_attr_set_post_ops(made, post_ops), "post-ops")
        return made

    def described(self, kind: str, *args: Any) -> Any:
        """Description of a primitive of a kind. Raises Unimplemented where the library has it for reference only."""
        lib = self.library
        make = getattr(lib.api, f"dnnl_{kind}_primitive_desc_create")
        given = [lib.ffi.NULL if a is None else a for a in args]
        made = lib.made("dnnl_primitive_desc_t", make, lib.engine, *given)
        told = lib.ffi.new("const char **")
        lib.check(lib.api.dnnl_primitive_desc_query(made, Fact.IMPLEMENTATION, 0, told), "a query")
        name = lib.ffi.string(told[0]).decode()
        if name.startswith(("ref", "simple")):
            raise Unimplemented(f"oneDNN {lib.version} computes it by its reference ({name}) on {lib.isa}")
        return made

    def numbers(self, values: Sequence[int]) -> Any:
        """Numbers per spatial dim, as the library takes them."""
        return self.library.ffi.new("int64_t[12]", list(values))

    def add(self, description: Any, args: Mapping[Any, int], writes: Sequence[int]) -> None:
        """Append a primitive over slots, of which it writes some."""
        lib = self.library
        primitive = lib.made("dnnl_primitive_t", lib.api.dnnl_primitive_create, description)
        given, changed = dict(args), frozenset(writes)
        pad = self.wants(description, Fact.SCRATCHPAD)
        if lib.api.dnnl_memory_desc_get_size(pad):
            given[Arg.SCRATCHPAD] = self.room(pad)
        reads = frozenset(args.values()) - changed
        self._steps.append(Step(primitive, tuple((int(a), s) for a, s in given.items()), reads, changed))

    def end(self) -> Program:
        """All of it, which is not added to any more."""
        return Program(self.library, self.threads, tuple(self._slots), tuple(self._steps), self._end)
