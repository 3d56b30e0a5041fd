"""Functions of vectors that are functions of the module too: those that branch, and those that call the C library lane by lane.

sin and cos reduce their argument by the multiples of pi / 2, in three parts (Cody and Waite), while it is small enough for that; a
vector with a larger one, an infinity or NaN is the library's. float32 is computed in float64. pow of float32 is exp(y log x) in
float64; that of float64, and erf of float64 and erfc, are the library's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.functions import Numbers, exp, log

__all__ = ["LIBRARY", "pow_"]

#: Emits a function's body, of an emitter of its own, LLVM's type and the operands; and a call of it.
Make: TypeAlias = Callable[..., str]
Emit: TypeAlias = Callable[[Emitter, str, str], str]
#: pi / 2 in three parts; products of the first two, of 33 bits, with a number of 17 bits are exact (FreeBSD's msun has them).
_HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
#: Beyond it the parts do not suffice.
_LARGEST = 1e5
_SIN = tuple((-1) ** (k // 2) / math.factorial(k) for k in range(17, 2, -2))
_COS = tuple((-1) ** (k // 2) / math.factorial(k) for k in range(16, 1, -2))


def _lanes(e: Emitter, name: str, scalar: str, *args: str) -> str:
    """The C library's function of each lane."""
    result = "poison"
    for lane in range(e.width):
        given = [(scalar, e.value(f"extractelement {e.vector(scalar)} {a}, i64 {lane}")) for a in args]
        value = e.call(name, scalar, *given)
        result = e.value(f"insertelement {e.vector(scalar)} {result}, {scalar} {value}, i64 {lane}")
    return result


def _of_library(name: str, scalar: str, arity: int = 1) -> str:
    return name if scalar == "double" else f"{name}f"


def _apart(e: Emitter, name: str, scalar: str, make: Make, *args: str) -> str:
    """A call of a function of the module, which is emitted once."""
    full = f"{name}.{e.overload(scalar)}"
    if full not in e.functions:
        e.functions[full] = ""
        inner = Emitter(e.width)
        names = [f"%x{i}" for i in range(len(args))]
        inner.label("entry")
        result = make(inner, scalar, *names)
        type_ = e.vector(scalar)
        head = f"define internal {type_} @{full}({', '.join(f'{type_} {n}' for n in names)}) {{"
        e.functions[full] = "\n".join([head, *inner.lines, f"  ret {type_} {result}", "}", ""])
        e.declarations |= inner.declarations
    type_ = e.vector(scalar)
    return e.value(f"call {type_} @{full}({', '.join(f'{type_} {a}' for a in args)})")


def _trigonometric(name: str, shift: int) -> Make:
    """sin, or cos, which is sin a quarter further on."""

    def near(e: Emitter, scalar: str, x: str) -> str:
        n = Numbers(e, "double")
        wide = x if scalar == "double" else e.convert("fpext", e.vector(scalar), x, n.type)
        k = e.math("rint", "double", n.mul(wide, n.number(2 / math.pi)))
        first = n.fma(k, n.number(-_HALF_PI[0]), wide)
        second = n.mul(k, n.number(_HALF_PI[1]))
        both = n.sub(first, second)
        lost = n.sub(n.sub(first, both), second)
        third = n.sub(n.mul(k, n.number(_HALF_PI[2])), lost)
        reduced = n.sub(both, third)
        rest = n.sub(n.sub(both, reduced), third)
        z = n.mul(reduced, reduced)
        sine = n.add(n.fma(n.mul(n.polynomial(z, _SIN), z), reduced, rest), reduced)
        half = n.fma(z, n.number(-0.5), n.number(1.0))
        low = n.fma(z, n.number(-0.5), n.sub(n.number(1.0), half))
        tail = n.fma(n.mul(n.polynomial(z, _COS[:-1]), z), z, n.sub(low, n.mul(reduced, rest)))
        cosine = n.add(half, tail)
        quarter = e.convert("fptosi", n.type, k, e.vector("i64"))
        if shift:
            quarter = n.integer("add", quarter, n.whole(1))
        odd = e.value(f"icmp ne {e.vector('i64')} {n.integer('and', quarter, n.whole(1))}, zeroinitializer")
        sign = n.integer("shl", n.integer("and", quarter, n.whole(2)), n.whole(62))
        value = n.unbits(n.integer("xor", n.bits(n.select(odd, cosine, sine)), sign))
        if not shift:  # the sign of a zero
            value = n.select(n.compare("oeq", wide, n.number(0.0)), wide, value)
        return value if scalar == "double" else e.convert("fptrunc", n.type, value, e.vector(scalar))

    def make(e: Emitter, scalar: str, x: str) -> str:
        n = Numbers(e, scalar)
        large = n.compare("uge", e.math("fabs", scalar, x), n.number(_LARGEST))
        bits = (e.vector("i1"), large)
        e.line(f"br i1 {e.call(f'llvm.vector.reduce.or.v{e.width}i1', 'i1', bits)}, label %far, label %near")
        e.label("near")
        close = near(e, scalar, x)
        e.line("br label %end")
        e.label("far")
        distant = _lanes(e, _of_library(name, scalar), scalar, x)
        e.line("br label %end")
        e.label("end")
        return e.value(f"phi {n.type} [ {close}, %near ], [ {distant}, %far ]")

    return make


def _pow(e: Emitter, scalar: str, x: str, y: str) -> str:
    if scalar == "double":
        return _lanes(e, "pow", scalar, x, y)
    n, type_ = Numbers(e, "double"), e.vector(scalar)
    a, b = (e.convert("fpext", type_, v, n.type) for v in (x, y))
    size = e.math("fabs", "double", a)
    one = n.number(1.0)
    value = exp(n, n.mul(b, log(n, size)))
    value = n.select(n.compare("oeq", size, one), one, value)
    whole = n.compare("oeq", e.math("trunc", "double", b), b)
    half = n.mul(b, n.number(0.5))
    even = n.compare("oeq", e.math("trunc", "double", half), half)
    odd = e.binary("and", e.vector("i1"), whole, e.binary("xor", e.vector("i1"), even, e.constant("i1", True)))
    signed = e.value(f"icmp slt {e.vector('i64')} {n.bits(a)}, zeroinitializer")
    value = n.select(e.binary("and", e.vector("i1"), odd, signed), n.neg(value), value)
    finite = n.compare("olt", size, n.number(math.inf))
    below = e.binary("and", e.vector("i1"), n.compare("olt", a, n.number(0.0)), finite)
    between = e.binary("xor", e.vector("i1"), whole, e.constant("i1", True))
    value = n.select(e.binary("and", e.vector("i1"), below, between), n.number(math.nan), value)
    value = n.select(n.compare("uno", b, a), n.number(math.nan), value)
    value = n.select(n.compare("oeq", b, n.number(0.0)), one, value)
    value = n.select(n.compare("oeq", a, one), one, value)
    return e.convert("fptrunc", n.type, value, type_)


def pow_(e: Emitter, scalar: str, x: str, y: str) -> str:
    """x to the power of y."""
    return _apart(e, "pow", scalar, _pow, x, y)


def _function(name: str, make: Make) -> Emit:
    return lambda e, scalar, x: _apart(e, name, scalar, make, x)


def _by_lanes(name: str) -> Emit:
    return _function(name, lambda e, scalar, x: _lanes(e, _of_library(name, scalar), scalar, x))


#: LLVM's type -> primitive of one operand -> what emits it.
LIBRARY: Mapping[str, Mapping[str, Emit]] = {
    scalar: {
        "sin": _function("sin", _trigonometric("sin", 0)),
        "cos": _function("cos", _trigonometric("cos", 1)),
        "erfc": _by_lanes("erfc"),
        **({"erf": _by_lanes("erf")} if scalar == "double" else {}),
    }
    for scalar in ("float", "double")
}
