"""A program bound to the arrays of one instance of a plan: memory objects that are made once, and told where arrays lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import get_ident
from time import perf_counter
from typing import Any

import numpy as np
from graphdock.locks import new_lock

from graphdock_onednn.library import Library
from graphdock_onednn.program import Program
from graphdock_onednn.threads import CLAIMS, Pace, use

__all__ = ["Kept", "Lasting", "Launch", "Shared", "room_of"]


@dataclass(frozen=True, slots=True)
class Lasting:
    """Arrays of which copies in another layout are kept, by place: of constants, and of variables with what tells of writing."""

    constants: Mapping[int, Any] = field(default_factory=dict)
    variables: Mapping[int, Any] = field(default_factory=dict)
    versions: tuple[Callable[[], int], ...] = ()


class Kept:
    """Results of steps over lasting arrays, shared by the instances of a plan, by number of threads.

    Attributes:
      rooms: and slot -> memory. ``versions``: of the variables that it was made of; None until it was made.
      lock: who makes it holds that. Whoever reads the variables is kept from their being written by the step that it is in.
    """

    def __init__(self) -> None:
        self.lock = new_lock()
        self.rooms: dict[tuple[int, int], Any] = {}
        self.versions: dict[tuple[int, bool], list[int]] = {}


def room_of(nbytes: int) -> Any:
    """Scratch memory that begins with a line of the cache."""
    block = np.empty(nbytes + 64, np.uint8)
    start = -block.ctypes.data % 64
    return block[start : start + nbytes]


class Launch:
    """One program's steps, for one thread at a time.

    Args:
      buffers: arrays whose address stays, None for the others. ``scratch``: the scratch memory, where its address stays.
      lasting: arrays that stay as they are for a while. ``kept``: what was made of them.
    """

    def __init__(self, program: Program, buffers: Sequence[Any], scratch: Any, lasting: Lasting, kept: Kept) -> None:
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
        once = program.of_constants(lasting.constants)
        again = [n for n in program.of_constants({*lasting.constants, *lasting.variables}) if n not in once]
        earlier = {*once, *again}
        made = {slot for number in earlier for _, slot in program.steps[number].args if program.slots[slot].is_room}
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
        self._steps = [self._prepared(program, n) for n in range(len(program.steps)) if n not in earlier]
        self._kept, self._versions = kept, lasting.versions if again else ()
        self._seen: list[int] | None = None
        arrays = {**lasting.constants, **lasting.variables}
        self._held = [self._hold(program, number, arrays) for number in (*once, *again)]
        self._again = [self._prepared(program, number) for number in again]
        if once:
            self._make(False, [], [self._prepared(program, number) for number in once])

    def _prepared(self, program: Program, number: int) -> tuple[Any, int, Any]:
        step = program.steps[number]
        return step.primitive, len(step.args), self._arguments(step.args)

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

    def _hold(self, program: Program, number: int, arrays: Mapping[int, Any]) -> list[Any]:
        """The memory that a step over lasting arrays works on, which is shared by instances."""
        rooms, held = self._kept.rooms, []
        for _, slot in program.steps[number].args:
            of = program.slots[slot]
            if of.is_room:
                with self._kept.lock:
                    found = rooms.get((program.threads, slot))
                    if found is None:
                        found = rooms[program.threads, slot] = room_of(of.nbytes)
            else:
                found = of.same if of.place is None else arrays[of.place]
            held.append(found)
            self._place(self._memories[slot], found)
        return held

    def _make(self, variable: bool, versions: list[int], steps: Sequence[tuple[Any, int, Any]]) -> None:
        """Run the steps over lasting arrays, unless another instance has since these had the versions."""
        kept, key = self._kept, (self._threads, variable)
        with kept.lock:
            if kept.versions.get(key) != versions:
                self._use(self._threads)
                for primitive, count, args in steps:
                    self._library.check(self._execute(primitive, self._stream, count, args), "a primitive")
                kept.versions[key] = versions

    def run(self, arrays: Sequence[Any], scratch: Any = None) -> None:
        """Compute: ``arrays`` are the inputs, then the outputs; ``scratch`` where its address does not stay."""
        place, ffi = self._set, self._library.ffi
        for memory, number in self._moving:
            place(memory, ffi.cast("void *", arrays[number].ctypes.data))
        if self._rooms:
            self._lay_out(scratch)
        if self._versions:
            versions = [version() for version in self._versions]
            if versions != self._seen:
                self._make(True, versions, self._again)
                self._seen = versions
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
