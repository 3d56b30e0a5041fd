"""Calls of native code: Python's way in, and runs of calls that are one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from graphdock.contracts import NativeCall

__all__ = ["chain", "interface"]

#: A call is three words: the function, its buffers, its numbers.
_CHAIN = """
define void @region(ptr %calls, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %call = getelementptr [3 x ptr], ptr %calls, i64 %i
  %function = load ptr, ptr %call
  %second = getelementptr ptr, ptr %call, i64 1
  %buffers = load ptr, ptr %second
  %third = getelementptr ptr, ptr %call, i64 2
  %numbers = load ptr, ptr %third
  call void %function(ptr %buffers, ptr %numbers)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


@functools.cache
def interface() -> Any:
    """cffi's FFI, made once."""
    import cffi

    return cffi.FFI()


def chain(calls: Sequence[NativeCall], count: int) -> Callable[..., None]:
    """A function of ``count`` buffers that makes the calls, one behind the other; see :class:`graphdock.contracts.Native`.

    What stays is written into one table of addresses now, the others at each call.
    """
    from graphdock_llvm.target import compiled

    ffi = interface()
    table = ffi.new("void *[]", max(sum(len(c.buffers) for c in calls), 1))
    records = ffi.new("void *[]", 3 * len(calls))
    moving: list[list[int]] = [[] for _ in range(count)]
    kept: list[Any] = [table, records]
    at = 0
    for number, call in enumerate(calls):
        numbers = ffi.new("int64_t[]", list(call.numbers) or [0])
        places = ffi.cast("void *", call.address), ffi.cast("void *", table + at), ffi.cast("void *", numbers)
        records[3 * number : 3 * number + 3] = places
        kept.append(numbers)
        for buffer in call.buffers:
            if isinstance(buffer, int):
                moving[buffer].append(at)
            else:
                kept.append(buffer)
                table[at] = ffi.cast("void *", buffer.ctypes.data)
            at += 1
    run, total, view = ffi.cast("void (*)(void **, int64_t)", compiled(_CHAIN)), len(calls), ffi.from_buffer
    slots = tuple([(i, slot) for i, places in enumerate(moving) for slot in places])

    def compute(*buffers: Any) -> None:
        for i, slot in slots:
            table[slot] = view(buffers[i])
        run(records, total)

    if slots:
        compute.kept = kept  # type: ignore[attr-defined]
        return compute
    return lambda *_, kept=kept: run(records, total)
