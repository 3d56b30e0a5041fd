"""Calls of whole loops: how a step is asked whether to go on, and where the rows of histories lie."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from graphdock.contracts import (
    BindContext,
    LoopProgram,
    Native,
    NativeCall,
    PrepareContext,
    Prepared,
    RowHistory,
    Scratch,
    dtypes,
    errors,
)

from graphdock_llvm.histories import ITERATIONS, ROOM, ROWS, STRIDES
from graphdock_llvm.launch import address_of, bound, results_of, single_threaded
from graphdock_llvm.loops import print_loop
from graphdock_llvm.native import chain, interface
from graphdock_llvm.pool import pool_address
from graphdock_llvm.printer import ALONE
from graphdock_llvm.target import width

__all__ = ["prepared_loop"]

#: Rows for which there is room in a history at first, where nothing is known of how many there will be.
_FIRST = 64
#: Bytes of rows from which on their memory is used again. Whether this Python counts references, and under a lock; and what it says
#: of an array that is known here alone: the list, a variable, and its argument.
_RECYCLED = 1 << 17
_COUNTS = hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()
_MINE = 3


def prepared_loop(loop: LoopProgram, ctx: PrepareContext) -> Prepared:
    """The kernel of a loop."""
    printed = print_loop(loop, width())
    shared = printed.shared and ctx.threads > 1
    numbers = (ctx.threads, pool_address()) if shared else ALONE
    native = Native(address_of(ctx, printed.text, optimized=True), chain, numbers)
    within = single_threaded(ctx.device) if shared else None
    return Prepared(
        lambda bind: _bound(bind, native, loop),
        scratch=(Scratch(dtypes.uint8, (printed.room,)),) if printed.room else (),
        within=within,
        source=lambda: f"{loop}\n\n{print_loop(loop, width()).text}",
    )


def _bound(ctx: BindContext, native: Native, loop: LoopProgram) -> Callable[..., Any]:
    """The function of a loop, which asks now and then whether to go on: Python sees interrupts then, and the step says."""
    ffi, raised = interface(), list[BaseException]()

    def poll() -> int:
        ctx.check()
        return 0

    def failed(kind: Any, error: BaseException, trace: Any) -> None:
        raised.append(error)

    callbacks = [ffi.callback("int64_t(void)", poll, error=1, onerror=failed)]
    shapes = [(loop.buffers[v].shape, loop.buffers[v].dtype.np) for v in (loop.variables[r] for r in loop.results)]
    rows: dict[int, _Call] = {}
    if loop.scans or loop.kept:

        def grow(counts: Any) -> int:
            rows[int(ffi.cast("intptr_t", counts))].grow()
            return 0

        callbacks.append(ffi.callback("int64_t(int64_t *)", grow, error=1, onerror=failed))
    asked = replace(native, numbers=(*native.numbers, *(int(ffi.cast("intptr_t", c)) for c in callbacks)))
    if loop.scans or loop.kept:
        run: Callable[..., Any] = _Histories(ctx, asked, loop, shapes, rows).call
    else:
        run = bound(ctx, asked, len(ctx.inputs), shapes)

    def call(*buffers: Any, kept: Any = callbacks) -> Any:
        made = run(*buffers)
        if raised:
            raise raised.pop()
        return made

    return call


class _Call:
    """One call of a loop with histories.

    Attributes:
      counts: what the function is told and says. ``rows``: of each history that it makes, with room for some more.
    """

    def __init__(self, loop: LoopProgram) -> None:
        self._loop = loop
        self.counts = np.zeros(STRIDES + len(loop.scans) + len(loop.kept), np.int64)
        self.address = self.counts.ctypes.data
        self.rows: list[Any] = []
        self._before: list[Any] = []  # in which loop variables may still lie
        self._last: list[Any] = [None] * len(loop.kept)

    def begin(self, count: int, strides: Sequence[int], room: int) -> None:
        """Room for some rows, and what is known of those that are read."""
        self.counts[ROWS], self.counts[ROOM] = count, room
        self.counts[STRIDES : STRIDES + len(strides)] = strides
        self.rows = [self._empty(i, room) for i in range(len(self._loop.kept))]

    def _empty(self, history: int, room: int) -> Any:
        """Memory for so many rows: that of the last call, if it is not far too large and nobody knows of it any more. A new one
        would be zeroed by the system, page by page."""
        last = self._last[history]
        if (
            last is None
            or not room <= len(last) <= 2 * room
            or not _COUNTS
            or sys.getrefcount(last) > _MINE
            or weakref.getweakrefcount(last)
        ):
            number, shape = self._loop.kept[history]
            dtype = self._loop.buffers[number].dtype
            last = np.empty((room, *shape), np.uint8 if dtype.kind == "V" else dtype.np)
            self._last[history] = last if last.nbytes >= _RECYCLED else None
        return last[:room]

    def grow(self) -> None:
        """Room for twice as many rows."""
        room = int(self.counts[ROOM])
        more = [self._empty(i, 2 * room) for i in range(len(self._loop.kept))]
        for rows, larger in zip(self.rows, more, strict=True):
            larger[:room] = rows
        self._before.append(self.rows)
        self.rows = more
        self.counts[ROOM] = 2 * room
        self.counts[STRIDES + len(self._loop.scans) :] = [rows.ctypes.data for rows in more]

    def end(self) -> list[RowHistory]:
        """The histories that were made."""
        count = int(self.counts[ITERATIONS])
        made = [RowHistory(rows, count) for rows in self.rows]
        self.rows = []
        self._before.clear()
        return made


class _Histories:
    """Calls of one instance's loop with histories. They may overlap."""

    def __init__(
        self, ctx: BindContext, native: Native, loop: LoopProgram, shapes: Sequence[Any], rows: dict[int, _Call]
    ) -> None:
        self._loop, self._shapes, self._calls = loop, shapes, rows
        self._inputs = len(ctx.inputs)
        self._made = [i for i in range(len(shapes)) if ctx.outputs[i].mode.kind not in ("planned", "inplace")]
        self._read = [
            (i, *((b := loop.buffers[number]).shape, b.dtype))
            for i, number in enumerate(loop.given)
            if number in loop.scans
        ]
        self._room = _FIRST
        self._idle: list[_Call] = []
        # given are inputs, planned results and memory; then what is made here: results, first rows, counts
        given = len(ctx.buffers)
        buffers: list[Any] = [i if b is None else b for i, b in enumerate(ctx.buffers)]
        for i, _, _ in self._read:
            buffers[i] = i
        for place, i in enumerate(self._made):
            buffers.insert(self._inputs + i, given + place)
        total = given + len(self._made) + len(loop.kept) + 1
        memory = buffers[self._inputs + len(shapes) :]
        buffers[self._inputs + len(shapes) :] = [*range(given + len(self._made), total), *memory]
        self._run = chain([NativeCall(native.address, tuple(buffers), native.numbers, native.brief)], total)

    def call(self, *given: Any) -> Any:
        arrays, count, strides = list(given), -1, []
        for i, shape, dtype in self._read:
            rows = _rows(given[i], shape, dtype)
            if count not in (-1, len(rows)):
                raise errors.InvalidArgumentError(
                    "a loop reads histories of different lengths", got=f"{count} and {len(rows)}"
                )
            arrays[i], count = rows, len(rows)
            strides.append(rows.strides[0])
        room = self._room if count < 0 else count
        if self._loop.limit is not None:
            room = min(room, self._loop.limit)
        try:
            call = self._idle.pop()
        except IndexError:
            call = _Call(self._loop)
        call.begin(count, strides, max(room, 1))
        self._calls[call.address] = call
        try:
            results = [np.empty(*self._shapes[i]) for i in self._made]
            self._run(*arrays, *results, *call.rows, call.counts)
        finally:
            del self._calls[call.address]
        histories = call.end()
        if histories:
            self._room = max(len(histories[0]), self._room * 7 // 8, _FIRST)
        self._idle.append(call)
        return results_of([*results, *histories])


def _rows(history: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The elements of a history as one array, of whose rows each is contiguous."""
    if isinstance(history, RowHistory):
        return history.rows
    if dtype.kind == "V":
        return np.empty((len(history), 0), np.uint8)
    rows = np.empty((len(history), *shape), dtype.np)
    for place, element in enumerate(history):
        if np.shape(element) != shape:
            raise errors.ShapeError(
                "an element of a history has another shape", expected=str(shape), got=str(np.shape(element))
            )
        rows[place] = element
    return rows
