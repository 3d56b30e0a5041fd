"""Calls of native code: Python's way in, and runs of calls that are one.

A run is a built-in function of Python, made of compiled code: what it is given are arrays, and it reads where their elements lie
in the objects themselves, as NumPy's C interface does. Going through cffi instead, call by call and buffer by buffer, would cost
as much as several small kernels; that is done where this Python's objects are laid out another way.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import NativeCall

__all__ = ["chain", "interface"]

#: What a run is told, in words of eight bytes: how many calls, how many places, how many buffers it is given, whether Python's lock
#: is kept, then the calls (function, buffers, numbers, status) and the places (where to write, which of the given).
_HEAD = 4
_RUN = """
define internal i64 @calls(ptr %records, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %made ]
  %call = getelementptr [4 x ptr], ptr %records, i64 %i
  %function = load ptr, ptr %call
  %second = getelementptr ptr, ptr %call, i64 1
  %buffers = load ptr, ptr %second
  %third = getelementptr ptr, ptr %call, i64 2
  %numbers = load ptr, ptr %third
  %fourth = getelementptr ptr, ptr %call, i64 3
  %status = load ptr, ptr %fourth
  call void %function(ptr %buffers, ptr %numbers)
  %left = load i64, ptr %status
  %failed = icmp ne i64 %left, 0
  br i1 %failed, label %stop, label %made
made:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
stop:
  store i64 0, ptr %status
  ret i64 %i
end:
  ret i64 -1
}
"""
#: A method of Python's own kind (METH_FASTCALL), whose ``self`` is the array of those words.
_METHOD = (
    _RUN
    + """
define ptr @region(ptr %self, ptr %args, i64 %count) {
entry:
  %words.at = getelementptr i8, ptr %self, i64 INSIDE
  %words = load ptr, ptr %words.at
  %calls = load i64, ptr %words
  %places.at = getelementptr i64, ptr %words, i64 1
  %places = load i64, ptr %places.at
  %given.at = getelementptr i64, ptr %words, i64 2
  %given = load i64, ptr %given.at
  %kept.at = getelementptr i64, ptr %words, i64 3
  %kept = load i64, ptr %kept.at
  %records = getelementptr i64, ptr %words, i64 4
  %length = mul i64 %calls, 4
  %first = getelementptr i64, ptr %records, i64 %length
  %too.few = icmp ult i64 %count, %given
  br i1 %too.few, label %refuse, label %begin
begin:
  %some = icmp ugt i64 %places, 0
  br i1 %some, label %place, label %run
place:
  %p = phi i64 [ 0, %begin ], [ %p.next, %write ]
  %where = getelementptr [2 x ptr], ptr %first, i64 %p
  %slot = load ptr, ptr %where
  %which.at = getelementptr ptr, ptr %where, i64 1
  %which = load i64, ptr %which.at
  %object.at = getelementptr ptr, ptr %args, i64 %which
  %object = load ptr, ptr %object.at
  %data = getelementptr i8, ptr %object, i64 INSIDE
  %type.at = getelementptr i8, ptr %data, i64 -8
  %type = load ptr, ptr %type.at
  %type.number = ptrtoint ptr %type to i64
  %array = icmp eq i64 %type.number, ARRAY
  br i1 %array, label %write, label %other
other:
  %derives = call i32 inttoptr (i64 SUBTYPE to ptr)(ptr %type, ptr inttoptr (i64 ARRAY to ptr))
  %derived = icmp ne i32 %derives, 0
  br i1 %derived, label %write, label %refuse
refuse:
  call void inttoptr (i64 RAISE to ptr)(ptr inttoptr (i64 ERROR to ptr), ptr inttoptr (i64 MESSAGE to ptr))
  ret ptr null
write:
  %elements = load ptr, ptr %data
  store ptr %elements, ptr %slot
  %p.next = add i64 %p, 1
  %p.more = icmp ult i64 %p.next, %places
  br i1 %p.more, label %place, label %run
run:
  %keep = icmp ne i64 %kept, 0
  br i1 %keep, label %brief, label %long
brief:
  %at.once = call i64 @calls(ptr %records, i64 %calls)
  br label %end
long:
  %thread = call ptr inttoptr (i64 SAVE to ptr)()
  %meanwhile = call i64 @calls(ptr %records, i64 %calls)
  call void inttoptr (i64 RESTORE to ptr)(ptr %thread)
  br label %end
end:
  %stopped = phi i64 [ %at.once, %brief ], [ %meanwhile, %long ]
  %all = icmp slt i64 %stopped, 0
  br i1 %all, label %none, label %number
number:
  %made = call ptr inttoptr (i64 INTEGER to ptr)(i64 %stopped)
  ret ptr %made
none:
  call void inttoptr (i64 HOLD to ptr)(ptr inttoptr (i64 NONE to ptr))
  ret ptr inttoptr (i64 NONE to ptr)
}
"""
)
_WRONG = ctypes.create_string_buffer(b"native code is given one array for each of its buffers")


@functools.cache
def interface() -> Any:
    """cffi's FFI, made once."""
    import cffi

    return cffi.FFI()


class _MethodDef(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@functools.cache
def _method() -> Any:
    """The PyMethodDef of a run; None where arrays of this Python are laid out in another way than native code would read them."""
    from graphdock_llvm.target import compiled_here

    probe, inside = np.empty(3), object.__basicsize__
    words = ctypes.cast(id(probe), ctypes.POINTER(ctypes.c_size_t))
    python = getattr(ctypes, "pythonapi", None)
    if python is None or words[inside // 8 - 1] != id(np.ndarray) or words[inside // 8] != probe.ctypes.data:
        return None
    text = _METHOD
    functions = {
        "SUBTYPE": "PyType_IsSubtype",
        "RAISE": "PyErr_SetString",
        "HOLD": "Py_IncRef",
        "INTEGER": "PyLong_FromLongLong",
    }
    functions |= {"SAVE": "PyEval_SaveThread", "RESTORE": "PyEval_RestoreThread"}
    places = {word: ctypes.cast(python[name], ctypes.c_void_p).value for word, name in functions.items()}
    places |= {"INSIDE": inside, "ARRAY": id(np.ndarray), "ERROR": id(TypeError), "NONE": id(None)}
    places["MESSAGE"] = ctypes.cast(_WRONG, ctypes.c_void_p).value or 0
    for word, place in places.items():
        text = text.replace(word, str(place))
    return _MethodDef(b"run", compiled_here(text), 0x80, b"Run native kernels.")


def chain(calls: Sequence[NativeCall], count: int) -> Callable[..., int | None]:
    """A function of ``count`` buffers that makes the calls, one behind the other; see :class:`graphdock.contracts.Native`.

    What stays is written into one table of addresses now, the others at each call.
    """
    buffers = sum(len(c.buffers) + c.status for c in calls)
    cells = np.zeros(len(calls) + 1, np.int64)  # a status each; the last one is of all that can't fail
    table = np.zeros(max(buffers, 1), np.int64)
    numbers = [c.numbers if isinstance(c.numbers, np.ndarray) else np.array(c.numbers or [0], np.int64) for c in calls]
    records: list[int] = []
    places: list[int] = []
    at = table.ctypes.data
    for index, (call, its) in enumerate(zip(calls, numbers, strict=True)):
        status = cells.ctypes.data + 8 * (index if call.status else len(calls))
        records += [call.address, at, its.ctypes.data, status]
        for number, buffer in enumerate(call.buffers):
            if isinstance(buffer, int):
                places += [at + 8 * number, buffer]
            else:
                table[(at - table.ctypes.data) // 8 + number] = buffer.ctypes.data
        at += 8 * len(call.buffers)
        if call.status:
            table[(at - table.ctypes.data) // 8] = status
            at += 8
    given = 1 + max(places[1::2], default=-1)
    head = [len(calls), len(places) // 2, given, all(c.brief for c in calls)]
    words = np.array([*head, *records, *places], np.int64)
    method = _method()
    # what stays must live as long as what points at it; of two threads that ask first, one's method is not the one that is kept
    kept = (method, table, cells, numbers, [b for c in calls for b in c.buffers if not isinstance(b, int)])
    if method is None:
        return _through_cffi(words, table, kept, count)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    made: Callable[..., int | None] = make(ctypes.addressof(method), words, kept)
    return made


def _through_cffi(words: Any, table: Any, kept: Any, count: int) -> Callable[..., int | None]:
    """The same by cffi."""
    from graphdock_llvm.target import compiled

    ffi, (calls, places, *_) = interface(), words[:_HEAD].tolist()
    run = ffi.cast("int64_t (*)(void **, int64_t)", compiled(_RUN.replace("internal i64 @calls", "i64 @region")))
    records = ffi.cast("void **", words.ctypes.data + 8 * _HEAD)
    pairs = words[_HEAD + 4 * calls :].reshape(places, 2)
    slots = [((at - table.ctypes.data) // 8, which) for at, which in pairs.tolist()]

    def compute(*buffers: Any) -> int | None:
        for slot, which in slots:
            table[slot] = int(ffi.cast("intptr_t", ffi.from_buffer(buffers[which])))
        stopped: int = run(records, calls)
        return None if stopped < 0 else stopped

    compute.kept = words, kept  # type: ignore[attr-defined]
    return compute
