"""Random numbers of a region: Philox4x64-10 as scalar code, whose blocks become the lanes of a vector.

A vector takes neighbouring numbers of a stream, from any of them on; a block makes eight of float32 and four of float64.
Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphdock_llvm.emitter import SCALARS, Emitter, scalar_constant

__all__ = ["emit_draw"]

_MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
_ROUNDS = 10
#: dtype -> numbers of a block, LLVM's type of the bits of one, and how many of these count.
_SHAPES = {"float32": (8, "i32", 24), "float64": (4, "i64", 53)}


def emit_draw(e: Emitter, dtype: str, args: Sequence[str]) -> str:
    """The numbers of a stream, a lane each; ``args``: vectors of the words of the stream, and of the numbers' places in it."""
    type_, whole = e.of(dtype), e.vector("i64")
    name = f"draw.{dtype}"
    e.functions.setdefault(name, _function(name, dtype, e.width))
    scalars = [e.value(f"extractelement {whole} {a}, i64 0") for a in args]
    return e.value(f"call {type_} @{name}({', '.join(f'i64 {s}' for s in scalars)})")


def _function(name: str, dtype: str, width: int) -> str:
    """``numbers name(key, key2, outer, iteration, ordinal, first)``: as many as a vector has lanes."""
    e = Emitter(width)
    count, bits, digits = _SHAPES[dtype]
    scalar, size = SCALARS[dtype], count.bit_length() - 1
    blocks = (count + width - 2) // count + 1
    room = e.value(f"alloca [{blocks} x <{count} x {scalar}>], align 64")
    begin = e.binary("lshr", "i64", "%first", str(size))
    last = e.binary("lshr", "i64", e.binary("add", "i64", "%first", str(width - 1)), str(size))
    e.line("br label %block")
    e.label("block")
    e.line(f"%at = phi i64 [ {begin}, %entry ], [ %next, %block ]")
    e.line("%next = add i64 %at, 1")
    counter, keys = ["%next", "%outer", "%iteration", "%ordinal"], ["%key", "%key2"]
    for number in range(_ROUNDS):
        if number:
            keys = [e.binary("add", "i64", k, scalar_constant("i64", s)) for k, s in zip(keys, _STEPS, strict=True)]
        counter = _round(e, counter, keys)
    words = "poison"
    for lane, word in enumerate(counter):
        words = e.value(f"insertelement <4 x i64> {words}, i64 {word}, i64 {lane}")
    type_, real = f"<{count} x {bits}>", f"<{count} x {scalar}>"
    if bits != "i64":
        words = e.convert("bitcast", "<4 x i64>", words, type_)
    places = int(bits[1:]) - digits
    top = e.binary("lshr", type_, words, f"splat ({bits} {places})")
    unit = f"splat ({scalar} {scalar_constant(scalar, 0.5**digits)})"
    made = e.binary("fmul", real, e.convert("sitofp", type_, top, real), unit)
    offset = e.binary("sub", "i64", "%at", begin)
    e.line(f"store {real} {made}, ptr {e.value(f'getelementptr {real}, ptr {room}, i64 {offset}')}")
    e.line(f"br i1 {e.value(f'icmp ult i64 %at, {last}')}, label %block, label %done")
    e.label("done")
    at = e.binary("and", "i64", "%first", str(count - 1))
    where = e.value(f"getelementptr {scalar}, ptr {room}, i64 {at}")
    result = e.value(f"load {e.vector(scalar)}, ptr {where}, align {4 if scalar == 'float' else 8}")
    head = "i64 %key, i64 %key2, i64 %outer, i64 %iteration, i64 %ordinal, i64 %first"
    body = "\n".join([*e.lines, f"  ret {e.vector(scalar)} {result}"])
    return f"define internal {e.vector(scalar)} @{name}({head}) {{\nentry:\n{body}\n}}\n"


def _round(e: Emitter, counter: Sequence[str], keys: Sequence[str]) -> list[str]:
    (high, low), (high2, low2) = (_halves(e, word, by) for word, by in zip(counter[::2], _MULTIPLIERS, strict=True))
    return [_mixed(e, high2, counter[1], keys[0]), low2, _mixed(e, high, counter[3], keys[1]), low]


def _halves(e: Emitter, word: str, by: int) -> tuple[str, str]:
    """The upper and the lower word of a product."""
    wide = e.binary("mul", "i128", e.convert("zext", "i64", word, "i128"), str(by))
    high = e.convert("trunc", "i128", e.binary("lshr", "i128", wide, "64"), "i64")
    return high, e.convert("trunc", "i128", wide, "i64")


def _mixed(e: Emitter, *words: str) -> str:
    first, second, third = words
    return e.binary("xor", "i64", e.binary("xor", "i64", first, second), third)
