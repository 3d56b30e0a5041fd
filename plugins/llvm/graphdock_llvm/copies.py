"""Copies of parts of buffers: loops over what lies apart, around a copy of what lies side by side."""

from __future__ import annotations

from graphdock.contracts import LoopCopy

from graphdock_llvm.emitter import Emitter

__all__ = ["WORDS", "print_copy"]

#: dtypes whose elements are copied as words, whatever they mean.
WORDS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip


def print_copy(e: Emitter, copy: LoopCopy, size: int) -> None:
    """Lines that copy elements of so many bytes from ``%from`` to ``%to``, in the block ``entry`` and others."""
    dims = _merged(copy)
    together = size
    if dims and dims[-1][1:] == (1, 1):
        together *= dims.pop()[0]
    read, written = (
        e.value(f"getelementptr i8, ptr %{name}, i64 {first * size}")
        for name, first in (("from", copy.offset), ("to", copy.at))
    )
    block = "entry"
    for k, (_, stride, into) in enumerate(dims):
        e.line(f"br label %loop{k}")
        e.label(f"loop{k}")
        e.line(f"%i{k} = phi i64 [ 0, %{block} ], [ %next{k}, %end{k} ]")
        block = f"loop{k}"
        offsets = [e.binary("mul", "i64", f"%i{k}", str(step * size)) for step in (stride, into)]
        read, written = (
            e.value(f"getelementptr i8, ptr {base}, i64 {offset}")
            for base, offset in zip((read, written), offsets, strict=True)
        )
    e.run("llvm.memcpy.p0.p0.i64", ("ptr", written), ("ptr", read), ("i64", str(together)), ("i1", "false"))
    for k, (count, _, _) in reversed(list(enumerate(dims))):
        e.line(f"br label %end{k}")
        e.label(f"end{k}")
        e.line(f"%next{k} = add i64 %i{k}, 1")
        e.line(f"br i1 {e.value(f'icmp ult i64 %next{k}, {count}')}, label %loop{k}, label %done{k}")
        e.label(f"done{k}")


def _merged(copy: LoopCopy) -> list[tuple[int, int, int]]:
    """Dims as extent and both strides, those that lie behind one another as one."""
    dims: list[tuple[int, int, int]] = []
    for count, stride, into in zip(copy.shape, copy.strides, copy.into, strict=True):
        if count == 1:
            continue
        if dims and dims[-1][1:] == (count * stride, count * into):
            dims[-1] = dims[-1][0] * count, stride, into
        else:
            dims.append((count, stride, into))
    return dims
