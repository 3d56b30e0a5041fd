"""Elementary functions over vectors of float32 and float64, in LLVM's text.

exp and log reduce their argument as W. J. Cody and W. Waite do ("Software Manual for the Elementary Functions", 1980); float32 then
takes the minimax polynomials of S. L. Moshier's Cephes library, float64 the series of the function over the reduced interval, with
as many terms as float64 can tell. tanh and erf of float32 are ratios of polynomials, fitted over the range in which they are not 1;
with AVX-512 erf is polynomials of 16 pieces (:mod:`graphdock_llvm.piecewise`).
The tests state their errors over the whole range, in units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from graphdock_llvm.emitter import Emitter
from graphdock_llvm.piecewise import BOUND, LANES, WIDTH, coefficients
from graphdock_llvm.target import permutes

__all__ = ["FUNCTIONS", "Numbers", "exp", "log"]

_LOG2E = math.log2(math.e)
#: Adding it rounds to an integer, which then stands in the low bits (float32, float64).
_ROUNDER = {"float": 1.5 * 2.0**23, "double": 1.5 * 2.0**52}
_BITS = {"float": 32, "double": 64}
_MANTISSA = {"float": 23, "double": 52}
_BIAS = {"float": 127, "double": 1023}

_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_TANH = (
    (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05,
     6.37261928875436e-04, 4.89352455891786e-03),
    (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03),
    7.99881172180175781,
)  # fmt: skip
_ERF = (
    (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
     -2.95459980854025e-03, -1.60960333262415e-02),
    (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02),
    4.0,
)  # fmt: skip
#: 1/13!, 1/12!, ..., 1/2!
_SERIES = tuple(1.0 / math.factorial(k) for k in range(13, 1, -1))
#: 2/23, 2/21, ..., 2/3: log((1 + s) / (1 - s)) = 2 s + s (s^2 (2/3 + s^2 (2/5 + ...)))
_ATANH = tuple(2.0 / k for k in range(23, 1, -2))
#: Bits of the root of 1/2 in float32.
_ROOT = 0x3F3504F3


class Numbers:
    """Arithmetic over vectors of one floating type."""

    def __init__(self, emitter: Emitter, scalar: str) -> None:
        self.e, self.scalar, self.type = emitter, scalar, emitter.vector(scalar)

    def number(self, value: float) -> str:
        return self.e.constant(self.scalar, value)

    def add(self, a: str, b: str) -> str:
        return self.e.binary("fadd", self.type, a, b)

    def sub(self, a: str, b: str) -> str:
        return self.e.binary("fsub", self.type, a, b)

    def mul(self, a: str, b: str) -> str:
        return self.e.binary("fmul", self.type, a, b)

    def div(self, a: str, b: str) -> str:
        return self.e.binary("fdiv", self.type, a, b)

    def neg(self, a: str) -> str:
        return self.e.value(f"fneg {self.type} {a}")

    def fma(self, a: str, b: str, c: str) -> str:
        return self.e.math("fmuladd", self.scalar, a, b, c)

    def compare(self, how: str, a: str, b: str) -> str:
        return self.e.value(f"fcmp {how} {self.type} {a}, {b}")

    def select(self, condition: str, a: str, b: str) -> str:
        return self.e.select(condition, self.type, a, b)

    def clamp(self, x: str, low: float, high: float) -> str:
        """Within bounds; NaN stays NaN."""
        x = self.select(self.compare("olt", x, self.number(low)), self.number(low), x)
        return self.select(self.compare("ogt", x, self.number(high)), self.number(high), x)

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """By Horner's rule, the highest power first."""
        value = self.number(coefficients[0])
        for c in coefficients[1:]:
            value = self.fma(value, x, self.number(c))
        return value

    # -- bits

    def integers(self) -> tuple[str, str]:
        scalar = f"i{_BITS[self.scalar]}"
        return scalar, self.e.vector(scalar)

    def whole(self, value: int) -> str:
        return self.e.constant(self.integers()[0], value)

    def bits(self, x: str) -> str:
        return self.e.convert("bitcast", self.type, x, self.integers()[1])

    def unbits(self, i: str) -> str:
        return self.e.convert("bitcast", self.integers()[1], i, self.type)

    def integer(self, instruction: str, a: str, b: str) -> str:
        return self.e.binary(instruction, self.integers()[1], a, b)

    def power_of_two(self, i: str) -> str:
        """2 to an integer that is no subnormal's."""
        biased = self.integer("add", i, self.whole(_BIAS[self.scalar]))
        return self.unbits(self.integer("shl", biased, self.whole(_MANTISSA[self.scalar])))


def exp(n: Numbers, x: str) -> str:
    """2^k e^r, |r| <= log(2)/2; the power in two factors, so that results underflow by degrees and overflow to infinity."""
    wide = n.scalar == "double"
    near, whole = _reduced(n, n.clamp(x, *((-746.0, 710.0) if wide else (-104.0, 89.0))))
    half = n.integer("ashr", whole, n.whole(1))
    value = n.add(near, n.number(1.0))
    return n.mul(n.mul(value, n.power_of_two(half)), n.power_of_two(n.integer("sub", whole, half)))


def _reduced(n: Numbers, x: str) -> tuple[str, str]:
    """e^r - 1 and k, where x is k log 2 + r and |r| <= log(2)/2."""
    wide = n.scalar == "double"
    rounder = _ROUNDER[n.scalar]
    shifted = n.fma(x, n.number(_LOG2E), n.number(rounder))
    k = n.sub(shifted, n.number(rounder))
    high, low = (6.93145751953125e-1, 1.42860682030941723212e-6) if wide else (0.693359375, -2.12194440e-4)
    r = n.fma(k, n.number(-low), n.fma(k, n.number(-high), x))
    inner = n.polynomial(r, _SERIES if wide else _EXP)
    return n.fma(inner, n.mul(r, r), r), n.integer("sub", n.bits(shifted), _rounder_bits(n))


def _rounder_bits(n: Numbers) -> str:
    exponent = _BIAS[n.scalar] + _MANTISSA[n.scalar]
    return n.whole((exponent << _MANTISSA[n.scalar]) + (1 << (_MANTISSA[n.scalar] - 1)))


def log(n: Numbers, x: str) -> str:
    """k log 2 + log m, m within a factor of the root of 2 of 1; subnormals are scaled up first."""
    wide = n.scalar == "double"
    mantissa = _MANTISSA[n.scalar]
    least = 2.0 ** (1 - _BIAS[n.scalar])
    tiny = n.compare("olt", x, n.number(least))
    scaled = n.select(tiny, n.mul(x, n.number(2.0 ** (mantissa + 2))), x)
    bits = n.bits(scaled)
    root = 0x3FE6A09E667F3BCD if wide else _ROOT
    k = n.integer("ashr", n.integer("sub", bits, n.whole(root)), n.whole(mantissa))
    m = n.unbits(n.integer("sub", bits, n.integer("shl", k, n.whole(mantissa))))
    k = n.e.convert("sitofp", n.integers()[1], k, n.type)
    k = n.sub(k, n.select(tiny, n.number(float(mantissa + 2)), n.number(0.0)))
    f = n.sub(m, n.number(1.0))
    if wide:
        s = n.div(f, n.add(f, n.number(2.0)))
        z = n.mul(s, s)
        rest = n.mul(s, n.mul(z, n.polynomial(z, _ATANH)))
        near = n.fma(s, n.number(2.0), rest)
        value = n.fma(k, n.number(6.93147180369123816490e-1), n.fma(k, n.number(1.90821492927058770002e-10), near))
    else:
        value = _log_of(n, k, f)
    infinite = n.number(math.inf)
    value = n.select(n.compare("oeq", x, infinite), infinite, value)
    value = n.select(n.compare("oeq", x, n.number(0.0)), n.number(-math.inf), value)
    return n.select(n.compare("uge", x, n.number(0.0)), n.select(n.compare("uno", x, x), x, value), n.number(math.nan))


def _log_of(n: Numbers, k: str, f: str) -> str:
    """k log 2 + log(1 + f) of float32."""
    z = n.mul(f, f)
    p = n.mul(n.mul(n.polynomial(f, _LOG), z), f)
    p = n.fma(k, n.number(-2.12194440e-4), p)
    p = n.fma(z, n.number(-0.5), p)
    return n.fma(k, n.number(0.693359375), n.add(f, p))


def _expm1(n: Numbers, x: str) -> str:
    if n.scalar == "double":
        near = n.fma(n.polynomial(x, _SERIES), n.mul(x, x), x)
        close = n.compare("olt", n.e.math("fabs", n.scalar, x), n.number(0.35))
        return n.select(close, near, n.sub(exp(n, x), n.number(1.0)))
    near, whole = _reduced(n, n.clamp(x, -18.0, 89.0))
    over = n.integer("ashr", whole, n.whole(7))  # of the largest power, which float32 has no number for
    power = n.power_of_two(n.integer("sub", whole, over))
    less = n.sub(power, n.power_of_two(n.integer("sub", n.whole(0), over)))
    return n.mul(n.fma(near, power, less), n.power_of_two(over))


def _log1p(n: Numbers, x: str) -> str:
    u = n.add(x, n.number(1.0))
    if n.scalar == "double":
        exact = n.compare("oeq", u, n.number(1.0))
        away = n.select(exact, n.number(1.0), n.sub(u, n.number(1.0)))
        value = n.mul(log(n, u), n.div(x, away))
        value = n.select(n.compare("oeq", x, n.number(math.inf)), x, value)
        return n.select(exact, x, value)
    one, bits = n.whole(0x3F800000), n.bits(u)
    k = n.integer("ashr", n.integer("sub", bits, n.whole(_ROOT)), n.whole(23))
    m = n.unbits(n.integer("sub", bits, n.integer("shl", k, n.whole(23))))
    some = n.e.math("smin", "i32", k, n.whole(64))  # beyond, nothing of x is lost
    scale = n.unbits(n.integer("sub", one, n.integer("shl", some, n.whole(23))))
    lost = n.sub(x, n.sub(u, n.number(1.0)))
    f = n.fma(lost, scale, n.sub(m, n.number(1.0)))
    value = n.e.math("copysign", n.scalar, _log_of(n, n.e.convert("sitofp", n.integers()[1], k, n.type), f), x)
    value = n.select(n.compare("oeq", x, n.number(math.inf)), x, value)
    value = n.select(n.compare("oeq", x, n.number(-1.0)), n.number(-math.inf), value)
    return n.select(n.compare("uge", x, n.number(-1.0)), n.select(n.compare("uno", x, x), x, value), n.number(math.nan))


def _ratio(n: Numbers, x: str, fit: tuple[Sequence[float], Sequence[float], float]) -> str:
    above, below, bound = fit
    x = n.clamp(x, -bound, bound)
    z = n.mul(x, x)
    return n.mul(x, n.div(n.polynomial(z, above), n.polynomial(z, below)))  # x last: it may be subnormal


def _tanh(n: Numbers, x: str) -> str:
    if n.scalar == "float":
        return _ratio(n, x, _TANH)
    y = _expm1(n, n.mul(n.clamp(x, -20.0, 20.0), n.number(2.0)))
    return n.div(y, n.add(y, n.number(2.0)))


def _erf(n: Numbers, x: str) -> str:
    if n.e.width != LANES or not permutes():
        return n.clamp(_ratio(n, x, _ERF), -1.0, 1.0)
    size = n.e.math("fabs", n.scalar, x)
    size = n.select(n.compare("ogt", size, n.number(BOUND)), n.number(BOUND), size)  # NaN stays NaN
    rounder = n.number(_ROUNDER[n.scalar] * WIDTH)
    shifted = n.add(size, rounder)
    t = n.sub(size, n.sub(shifted, rounder))
    piece, whole = n.bits(shifted), n.integers()[1]
    value, *others = [
        n.e.call("llvm.x86.avx512.permvar.sf.512", n.type, (n.type, c), (whole, piece)) for c in coefficients()
    ]
    for coefficient in others:
        value = n.fma(value, t, coefficient)
    return n.e.math("copysign", n.scalar, value, x)


def _sigmoid(n: Numbers, x: str) -> str:
    z = exp(n, n.neg(n.e.math("fabs", n.scalar, x)))
    above = n.select(n.compare("olt", x, n.number(0.0)), z, n.number(1.0))
    return n.div(above, n.add(z, n.number(1.0)))


def _sqrt(n: Numbers, x: str) -> str:
    return n.e.math("sqrt", n.scalar, x)


def _rsqrt(n: Numbers, x: str) -> str:
    return n.div(n.number(1.0), _sqrt(n, x))


def _intrinsic(name: str) -> Callable[[Numbers, str], str]:
    return lambda n, x: n.e.math(name, n.scalar, x)


def _sign(n: Numbers, x: str) -> str:
    one = n.select(n.compare("ogt", x, n.number(0.0)), n.number(1.0), x)  # 0, -0 and NaN stay
    return n.select(n.compare("olt", x, n.number(0.0)), n.number(-1.0), one)


_BOTH: Mapping[str, Callable[[Numbers, str], str]] = {
    "abs": _intrinsic("fabs"),
    "ceil": _intrinsic("ceil"),
    "exp": exp,
    "expm1": _expm1,
    "floor": _intrinsic("floor"),
    "log": log,
    "log1p": _log1p,
    "neg": lambda n, x: n.neg(x),
    "rint": _intrinsic("rint"),
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "sign": _sign,
    "sqrt": _sqrt,
    "tanh": _tanh,
}


def _of(scalar: str, function: Callable[[Numbers, str], str]) -> Callable[[Emitter, str], str]:
    return lambda e, x: function(Numbers(e, scalar), x)


#: dtype -> primitive of one operand -> what emits it, of an emitter and a value.
FUNCTIONS: Mapping[str, Mapping[str, Callable[[Emitter, str], str]]] = {
    "float32": {name: _of("float", function) for name, function in {**_BOTH, "erf": _erf}.items()},
    "float64": {name: _of("double", function) for name, function in _BOTH.items()},
}
