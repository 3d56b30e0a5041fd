"""Calls of whole loops: how a step is asked whether to go on, and what is given of histories."""

from __future__ import annotations

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
)

from graphdock_llvm.history_calls import HistoryCall, different, rows_of
from graphdock_llvm.launch import address_of, bound, results_of, single_threaded
from graphdock_llvm.ledgers import ledgers_of, needs_counts
from graphdock_llvm.loops import print_loop
from graphdock_llvm.native import chain, interface
from graphdock_llvm.pool import pool_address
from graphdock_llvm.printer import ALONE
from graphdock_llvm.target import width

__all__ = ["prepared_loop"]

#: Rows for which there is room in a history at first, where nothing is known of how many there will be.
_FIRST = 64


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
    rows: dict[int, HistoryCall] = {}
    counted = needs_counts(loop)
    if counted:

        def grow(counts: Any, ledger: int) -> int:
            rows[int(ffi.cast("intptr_t", counts))].grow(ledger)
            return 0

        callbacks.append(ffi.callback("int64_t(int64_t *, int64_t)", grow, error=1, onerror=failed))
    asked = replace(native, numbers=(*native.numbers, *(int(ffi.cast("intptr_t", c)) for c in callbacks)))
    if counted:
        run: Callable[..., Any] = _Histories(ctx, asked, loop, shapes, rows).call
    else:
        run = bound(ctx, asked, len(ctx.inputs), shapes)

    def call(*buffers: Any, kept: Any = callbacks) -> Any:
        made = run(*buffers)
        if raised:
            raise raised.pop()
        return made

    return call


class _Histories:
    """Calls of one instance's loop with histories. They may overlap."""

    def __init__(
        self, ctx: BindContext, native: Native, loop: LoopProgram, shapes: Sequence[Any], calls: dict[int, HistoryCall]
    ) -> None:
        self._loop, self._shapes, self._calls = loop, shapes, calls
        self._inputs = len(ctx.inputs)
        self._made = [i for i in range(len(shapes)) if ctx.outputs[i].mode.kind not in ("planned", "inplace")]
        self._read = [
            (i, scanned, buffer, buffer.depth + scanned)
            for i, number in enumerate(loop.given)
            if (scanned := number in loop.scans) or loop.buffers[number].depth
            for buffer in (loop.buffers[number],)
        ]
        self._ledgers = ledgers_of(loop)
        self._rooms = [0 for _ in self._ledgers]
        self._keeps = any(ledger.kept for ledger in self._ledgers)
        self._idle: list[HistoryCall] = []
        # given are inputs, planned results and memory; then what is made here: results, where histories begin, rows, counts
        given, first = len(ctx.buffers), self._inputs + len(shapes)
        buffers: list[Any] = [i if b is None else b for i, b in enumerate(ctx.buffers)]
        for i, *_ in self._read:
            buffers[i] = i
        for place, i in enumerate(self._made):
            buffers.insert(self._inputs + i, given + place)
        more = sum(depth - 1 for *_, depth in self._read) + sum(len(x.kept) for x in self._ledgers) + 1
        total = given + len(self._made) + more
        buffers[first:first] = range(total - more, total)
        self._run = chain([NativeCall(native.address, tuple(buffers), native.numbers, native.brief)], total)

    def call(self, *given: Any) -> Any:
        arrays, length, begins = list(given), -1, list[Any]()
        told: list[int] = []
        for i, scanned, buffer, depth in self._read:
            history = given[i]
            if depth == 1 and type(history) is RowHistory:
                count, tensors = len(history), history.array
            else:
                rows = rows_of(history, depth, buffer.shape, buffer.dtype)
                count, tensors = rows.count, rows.tensors
                begins += rows.begins
            if scanned and count != length:
                if length != -1:
                    raise different(length, count)
                length = count
            arrays[i] = tensors
            told += (count, tensors.strides[0])
        try:
            call = self._idle.pop()
        except IndexError:
            call = HistoryCall(self._ledgers, len(told))
        call.begin(told, [self._room(k, length) for k in range(len(self._ledgers))] if self._keeps else ())
        self._calls[call.address] = call
        try:
            results = [np.empty(*self._shapes[i]) for i in self._made]
            self._run(*arrays, *results, *begins, *call.arrays, call.counts)
        finally:
            del self._calls[call.address]
        histories = call.end()
        if self._keeps:
            self._rooms = [max(n, room * 7 // 8) for n, room in zip(call.totals, self._rooms, strict=True)]
        self._idle.append(call)
        return results_of([*results, *histories])

    def _room(self, ledger: int, length: int) -> int:
        """For how many rows a ledger has room at first."""
        room = max(self._rooms[ledger], _FIRST)
        if ledger:
            return room
        room = room if length < 0 else length
        return max(room if self._loop.limit is None else min(room, self._loop.limit), 1)
