"""Kernels between numbers and text: numbers in C's formats, tensors as people read them, and text as numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, dtypes, errors

from graphdock_cpu.kernels.text import decoded, elementwise

__all__ = ["KERNELS", "parsed"]


def _as_string(ctx: BuildContext) -> Callable[[Any], bytes]:
    dtype, width = ctx.inputs[0].dtype, ctx.attr("width")
    if dtype.is_bool:
        return lambda v: b"true" if v else b"false"
    precision, fill = ctx.attr("precision"), ctx.attr("fill")
    size = (str(width) if width > 0 else "") + (f".{precision}" if precision >= 0 else "")
    if dtype is dtypes.string:
        return lambda v: b"%*s" % (width if fill != "-" else -width, v) if width > 0 else v
    if dtype.is_integer:
        pattern = f"%{'' if fill == '+' and dtype.min == 0 else fill}{size}d"  # C's %u has no sign
        return lambda v: (pattern % v).encode()
    pattern = f"%{fill}{size}" + ("e" if ctx.attr("scientific") else "g" if ctx.attr("shortest") else "f")
    spaced = pattern.replace("%0", "%", 1)  # as C has it: no zeros before what is no number

    def real(v: Any) -> str:
        return (pattern if math.isfinite(v) else spaced) % v  # type: ignore[no-any-return]

    if dtype.is_complex:
        return lambda v: f"({real(v.real)},{real(v.imag)})".encode()
    return lambda v: real(v).encode()


def _number(value: Any, dtype: dtypes.DType) -> str:
    """As few digits as tell a number from its neighbours, of two lengths."""
    if dtype.is_bool:
        return str(int(value))
    if not dtype.is_floating:
        return str(value)
    wide = np.float64 if dtype is dtypes.float64 else np.float32
    short, long_ = (15, 17) if dtype is dtypes.float64 else (6, 9)
    text = f"{value:.{short}g}"
    return text if math.isnan(value) or wide(text) == wide(value) else f"{value:.{long_}g}"


def _element(value: Any, dtype: dtypes.DType) -> str:
    return f'"{decoded(value)}"' if dtype is dtypes.string else _number(value, dtype)


def _shown(array: np.ndarray, dtype: dtypes.DType, edge: int, rank: int) -> str:
    """A tensor in brackets, ``edge`` elements of each end of a dim (all, below 0), a line per row."""
    if array.ndim == 0:
        return _element(array.item(), dtype)
    size = len(array)
    whole = edge < 0 or size <= 2 * edge
    rows = [*range(size)] if whole else [*range(edge), -1, *range(size - edge, size)]
    parts = ["..." if i < 0 else _shown(array[i, ...], dtype, edge, rank) for i in rows]
    between = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * (rank - array.ndim + 1)
    return f"[{'' if edge else between}{between.join(parts)}]" if size else "[]"


def _format(ctx: BuildContext) -> Bound:
    template, placeholder = ctx.attr("template"), ctx.attr("placeholder")
    pieces = template.split(placeholder)
    kinds, edge = [i.dtype for i in ctx.inputs], ctx.attr("summarize")

    def text(*args: Any) -> np.ndarray:
        shown = [_shown(a, kind, edge if a.size else 0, a.ndim) for a, kind in zip(args, kinds, strict=True)]
        joined = "".join(p for pair in zip(pieces, [*shown, ""], strict=True) for p in pair)
        return np.array(joined.encode("utf-8", "surrogateescape"), object)

    if ctx.fresh:
        return Bound(text)
    return Bound(lambda *args: np.copyto(args[-1], text(*args[:-1])))


_INTEGER = re.compile(rb"[+-]?[0-9]+\Z")
_FLOAT = re.compile(rb"[+-]?([0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?|inf|infinity|nan)\Z", re.I)
#: Of an integer of 64 bits, and one more.
_MOST_DIGITS = 21
_HEX = re.compile(rb"[+-]?0x[0-9a-f]+(\.[0-9a-f]*)?(p[+-]?[0-9]+)?\Z", re.I)


def parsed(text: bytes, dtype: dtypes.DType) -> Any:
    """The number that a string holds, with space around it; None where it holds none that fits."""
    text = text.strip()
    if dtype.is_integer:
        digits = text.lstrip(b"+-0") or b"0"
        if not _INTEGER.match(text) or len(digits) > _MOST_DIGITS:
            return None
        value = -int(digits) if text.startswith(b"-") else int(digits)
        return value if dtype.min <= value <= dtype.max else None
    if _FLOAT.match(text):
        return float(text)
    return float.fromhex(text.decode()) if _HEX.match(text) else None


def _to_number(ctx: BuildContext) -> Callable[[bytes], Any]:
    dtype = ctx.outputs[0].dtype

    def number(text: bytes) -> Any:
        value = parsed(text, dtype)
        if value is None:
            raise errors.InvalidArgumentError(f"{text!r} is no {dtype.name}")
        return value

    return number


KERNELS = [
    KernelDef("AsString", "cpu", elementwise(_as_string)),
    KernelDef("StringFormat", "cpu", _format),
    KernelDef("StringToNumber", "cpu", elementwise(_to_number)),
]
