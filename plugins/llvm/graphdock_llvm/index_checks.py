"""Checks of indices before a program's function is called: one that is out of range leaves a status, and nothing is written."""

from __future__ import annotations

from collections.abc import Sequence

from graphdock.contracts import RegionProgram

from graphdock_llvm.emitter import SCALARS

__all__ = ["checked_text"]

_CHECK = """
  %slot.N = getelementptr ptr, ptr %table, i64 SOURCE
  %indices.N = load ptr, ptr %slot.N
COUNT
  %some.N = icmp ugt i64 %count.N, 0
  br i1 %some.N, label %each.N, label %right.N
each.N:
  %i.N = phi i64 [ 0, %right.BEFORE ], [ %next.N, %each.N ]
  %bad.N = phi i1 [ 0, %right.BEFORE ], [ %worse.N, %each.N ]
  %at.N = getelementptr INDEX, ptr %indices.N, i64 %i.N
  %index.N = load INDEX, ptr %at.N
  %out.N = icmp uge INDEX %index.N, BOUND
  %worse.N = or i1 %bad.N, %out.N
  %next.N = add i64 %i.N, 1
  %more.N = icmp ult i64 %next.N, %count.N
  br i1 %more.N, label %each.N, label %all.N
all.N:
  br i1 %worse.N, label %fail, label %right.N
right.N:"""
_TEXT = """
define void @region(ptr %table, ptr %numbers) {
entry:
  br label %right.0
right.0:CHECKS
  call void @NAME(ptr %table, ptr %numbers)
  ret void
fail:
  %status.at = getelementptr ptr, ptr %table, i64 STATUS
  %status = load ptr, ptr %status.at
  store i64 1, ptr %status
  ret void
}
"""
#: Numbers of a call before the extents that the text does not say.
_BEFORE = 3


def checked_text(program: RegionProgram, name: str, status: int) -> str:
    """The function ``region``, which checks the indices of all gathers of a program, and calls that of the program.

    Args:
      name: of that function. ``status``: slot of the address of the status.
    """
    open_axes = [a for a, axis in enumerate(program.axes) if axis.extent is None]
    bounds = {i.indices: i.shape[0] for i in program.inputs if i.indices is not None}
    for gathered in program.inputs:  # of several tensors that one input of indices says rows of, the smallest
        if gathered.indices is not None:
            bounds[gathered.indices] = min(bounds[gathered.indices] or 0, gathered.shape[0] or 0)
    text = ""
    for number, (indices, bound) in enumerate(sorted(bounds.items()), 1):
        source = program.inputs[indices]
        words = {
            "SOURCE": str(source.source),
            "COUNT": _count(
                number,
                [None if d in open_axes else n for n, d in zip(source.shape, source.dims, strict=True)],
                [open_axes.index(d) for d in source.dims if d in open_axes],
            ),
            "BEFORE": str(number - 1),
            "INDEX": SCALARS[source.dtype.name],
            "BOUND": str(bound),
            ".N": f".{number}",
        }
        check = _CHECK
        for word, value in words.items():
            check = check.replace(word, value)
        text += check
    return _TEXT.replace("CHECKS", text).replace("NAME", name).replace("STATUS", str(status))


def _count(number: int, sizes: Sequence[int | None], places: Sequence[int]) -> str:
    """Lines that multiply the sizes of indices; of those that are not known the numbers say which they are."""
    known = 1
    for size in sizes:
        known *= 1 if size is None else size
    lines, product = [], str(known)
    for k, place in enumerate(places):
        lines += [
            f"  %size.at.{number}.{k} = getelementptr i64, ptr %numbers, i64 {_BEFORE + place}",
            f"  %size.{number}.{k} = load i64, ptr %size.at.{number}.{k}",
            f"  %product.{number}.{k} = mul i64 {product}, %size.{number}.{k}",
        ]
        product = f"%product.{number}.{k}"
    return "\n".join([*lines, f"  %count.N = add i64 {product}, 0"])
