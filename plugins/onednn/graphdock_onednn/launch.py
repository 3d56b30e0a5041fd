"""A program bound to the arrays of one instance of a plan: memory objects that are made once, and told where arrays lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import get_ident
from time import perf_counter
from typing import Any

import numpy as np

from graphdock_onednn.library import Library
from graphdock_onednn.program import Program
from graphdock_onednn.threads import CLAIMS, Pace, use

__all__ = ["Kept", "Launch", "Shared", "room_of"]

#: Number of threads and slot -> memory of what steps over constant arrays alone have made; and which of these, by a number below 0,
#: have run.
Kept = dict[tuple[int, int], Any]


def room_of(nbytes: int) -> Any:
    """Scratch memory that begins with a line of the cache."""
    block = np.empty(nbytes + 64, np.uint8)
    start = -block.ctypes.data % 64
    return block[start : start + nbytes]


class Launch:
    """One program's steps, for one thread at a time.

    Args:
      buffers: arrays whose address stays, None for the others. ``scratch``: the scratch memory, where its address stays.
      constants: arrays that stay as they are, by place. ``kept``: what was made of them, shared by instances.
    """

    def __init__(
        self, program: Program, buffers: Sequence[Any], scratch: Any, constants: Mapping[int, Any], kept: Kept
    ) -> None:
        lib = program.library
        self._library, self._threads = lib, program.threads
        self._stream = lib.made("dnnl_stream_t", lib.api.dnnl_stream_create, lib.engine, 1)
        self._set, self._execute, self._use = (
            lib.api.dnnl_memory_set_data_handle, lib.api.dnnl_primitive_execute, lib.api.omp_set_num_threads
        )  # fmt: skip
        self._buffers = list(buffers), scratch
        self._memories = [
            lib.made("dnnl_memory_t", lib.api.dnnl_memory_create, s.layout, lib.engine, lib.ffi.NULL)
            for s in program.slots
        ]
        once = program.of_constants(constants)
        made = {slot for number in once for _, slot in program.steps[number].args if program.slots[slot].is_room}
        self._moving: list[tuple[Any, int]] = []
        self._rooms: list[tuple[Any, int]] = []
        for number, (slot, memory) in enumerate(zip(program.slots, self._memories, strict=True)):
            if number in made:
                continue
            if slot.same is not None:
                self._place(memory, slot.same)
            elif slot.place is None:
                self._rooms.append((memory, slot.offset))
            elif buffers[slot.place] is None:
                self._moving.append((memory, slot.place))
            else:
                self._place(memory, buffers[slot.place])
        if scratch is not None:
            self._lay_out(scratch)
            self._rooms = []
        self._steps = [
            (step.primitive, len(step.args), self._arguments(step.args))
            for number, step in enumerate(program.steps)
            if number not in once
        ]
        self._kept = [self._keep(program, number, constants, kept) for number in once]

    def _arguments(self, args: Sequence[tuple[int, int]]) -> Any:
        rows = [{"arg": arg, "memory": self._memories[slot]} for arg, slot in args]
        return self._library.ffi.new("dnnl_exec_arg_t[]", rows)

    def _address(self, array: Any) -> Any:
        return self._library.ffi.cast("void *", array.ctypes.data)

    def _place(self, memory: Any, array: Any) -> None:
        self._library.check(self._set(memory, self._address(array)), "memory")

    def _lay_out(self, scratch: Any) -> None:
        base = scratch.ctypes.data
        for memory, offset in self._rooms:
            self._set(memory, self._library.ffi.cast("void *", base + offset))

    def _keep(self, program: Program, number: int, constants: Mapping[int, Any], kept: Kept) -> list[Any]:
        """Run a step over constants, unless another instance has; the memory that it works on."""
        step, arrays = program.steps[number], []
        for _, slot in step.args:
            of = program.slots[slot]
            key = program.threads, slot
            if of.is_room and key not in kept:
                kept[key] = room_of(of.nbytes)
            arrays.append(kept[key] if of.is_room else of.same if of.place is None else constants[of.place])
            self._place(self._memories[slot], arrays[-1])
        key = program.threads, -1 - number
        if key not in kept:
            self._use(self._threads)
            status = self._execute(step.primitive, self._stream, len(step.args), self._arguments(step.args))
            self._library.check(status, "a primitive")
            kept[key] = True
        return arrays

    def run(self, arrays: Sequence[Any], scratch: Any = None) -> None:
        """Compute: ``arrays`` are the inputs, then the outputs; ``scratch`` where its address does not stay."""
        place, ffi = self._set, self._library.ffi
        for memory, number in self._moving:
            place(memory, ffi.cast("void *", arrays[number].ctypes.data))
        if self._rooms:
            self._lay_out(scratch)
        self._use(self._threads)
        execute, stream = self._execute, self._stream
        for primitive, count, args in self._steps:
            status = execute(primitive, stream, count, args)
            if status:
                self._library.check(status, "a primitive")


class Shared:
    """A node on all threads, or on the calling one where others have the threads, or would not get a core.

    Args:
      make: gives the launch on so many threads; not the first one has scratch memory of its own.
      steady: it is always on all of them, so that every run gives the same bits.
    """

    def __init__(self, library: Library, make: Callable[[int, bool], Launch], threads: int, steady: bool) -> None:
        self._make, self._all = make, steady or threads == 1
        self._many = make(threads, True)
        self._alone: Launch | None = None
        self._pace = Pace(threads)
        use(library)

    def run(self, arrays: Sequence[Any], scratch: Any = None) -> None:
        me = get_ident()
        try:
            CLAIMS[me] = None
            if self._all:
                self._many.run(arrays, scratch)
                return
            if len(CLAIMS) > 1:  # others have the threads
                self._of_one().run(arrays, scratch)
                return
            launch = self._many if self._pace.several else self._of_one()
            start = perf_counter()
            launch.run(arrays, scratch)
            self._pace.took(perf_counter() - start)
        finally:
            CLAIMS.pop(me, None)

    def _of_one(self) -> Launch:
        if self._alone is None:
            self._alone = self._make(1, False)
        return self._alone
