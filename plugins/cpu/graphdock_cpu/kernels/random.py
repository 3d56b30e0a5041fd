"""Kernels of random ops: Philox4x64-10 bits by ``numpy.random.Philox``, made into values as each op's spec says.

Each kernel keeps one bit generator and sets its state at every call: less than a microsecond, and nothing of an earlier
call is left in it. ``Generator.random`` makes exactly the uniform numbers of the spec: the top 53 bits of a word times
2**-53, or the top 24 bits of each half of a word, low half first, times 2**-24.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, Scratch, dtypes, errors

__all__ = ["KERNELS", "Philox", "bounded", "sizes"]

#: Bits that a uniform number of a narrow type keeps; those of float32 are 24 and of float64 53.
NARROW_BITS = {"float16": 11, "bfloat16": 8}


class Philox:
    """A Philox generator that is set to the start of an execution's stream."""

    def __init__(self) -> None:
        self._bits = np.random.Philox(key=0)
        self._generator = np.random.Generator(self._bits)
        self._counter = np.zeros(4, np.uint64)
        self._key = np.zeros(2, np.uint64)
        self._state = {
            "bit_generator": "Philox",
            "state": {"counter": self._counter, "key": self._key},
            "buffer": np.zeros(4, np.uint64),
            "buffer_pos": 4,
            "has_uint32": 0,
            "uinteger": 0,
        }
        self.words = self._bits.random_raw
        self.uniform = self._generator.random

    def start(self, stream: Any) -> None:
        self._key[:] = stream.key
        self._counter[3], self._counter[2], self._counter[1] = stream.counter()
        self._counter[0] = 0
        self._bits.state = self._state

    def seed(self, seed: Any) -> None:
        """Start the stream of the first step with this key, two signed integers."""
        self._key[:] = seed.astype(np.int64).view(np.uint64)
        self._counter[:] = 0
        self._bits.state = self._state

    def follow(self, words: Any) -> None:
        """Start the stream of these words, as RandomStream gives them."""
        self._key[:] = words[:2]
        self._counter[0], self._counter[1:] = 0, words[2:]
        self._bits.state = self._state

    def skip_to(self, block: int) -> None:
        """Go on at a block of four words of the stream that was started; the first has number 0."""
        self._counter[0] = block
        self._bits.state = self._state

    def starter(self, ctx: BuildContext) -> Callable[[Any], None]:
        """What starts it: from an op's last input where that is its seed or a stream, else from its own stream."""
        return {"seed": self.seed, "stream": self.follow}.get(ctx.inputs[-1].name, self.start)


#: Draws into ``out``, given a started generator: ``draw(philox, out, *scratch)``.
Draw = Callable[..., None]


def sizes(shape: Any) -> tuple[int, ...]:
    """The shape that a host input holds."""
    dims = tuple(int(d) for d in shape)
    if any(d < 0 for d in dims):
        raise errors.InvalidArgumentError(f"shape {list(dims)} has a negative size")
    return dims


def _sized(ctx: BuildContext) -> tuple[int, ...] | None:
    """The output's shape where the plan knows it."""
    return None if ctx.fresh else tuple(ctx.outputs[0].shape or ())


def _bound(ctx: BuildContext, make: Callable[[tuple[int, ...]], tuple[Draw, tuple[Scratch, ...]]]) -> Bound:
    """The kernel of an op whose only input is a shape, and perhaps a seed."""
    philox, shape, dtype = Philox(), _sized(ctx), ctx.outputs[0].dtype.np
    start = philox.starter(ctx)
    if shape is not None:
        draw, scratch = make(shape)

        def planned(_: Any, stream: Any, out: Any, *rest: Any) -> None:
            start(stream)
            draw(philox, out, *rest)

        return Bound(planned, scratch=scratch)

    def fresh(shape: Any, stream: Any) -> np.ndarray:
        size = sizes(shape)
        draw, scratch = make(size)
        start(stream)
        out = np.empty(size, dtype)
        draw(philox, out, *(np.empty(s.shape, s.dtype.np) for s in scratch))
        return out

    return Bound(fresh)


def _truncate(out: Any, u: Any, bits: int) -> None:
    """The first ``bits`` bits of uniform numbers, in place in ``u``, then into ``out``."""
    np.multiply(u, np.float32(2.0**bits), u)
    np.floor(u, u)
    np.multiply(u, np.float32(2.0**-bits), u)
    np.copyto(out, u, "same_kind")


def _uniform(ctx: BuildContext) -> Bound:
    dtype = ctx.outputs[0].dtype

    def make(shape: tuple[int, ...]) -> tuple[Draw, tuple[Scratch, ...]]:
        if dtype.name in NARROW_BITS:
            bits = NARROW_BITS[dtype.name]

            def narrow(philox: Philox, out: Any, u: Any) -> None:
                philox.uniform(None, np.float32, u)
                _truncate(out, u, bits)

            return narrow, (Scratch(dtypes.float32, shape),)
        kind = dtype.np
        return lambda philox, out: philox.uniform(None, kind, out), ()

    return _bound(ctx, make)


def _wide(ctx: BuildContext) -> dtypes.DType:
    """float64 for float64, float32 for the rest."""
    return ctx.outputs[0].dtype.accumulator


def _normal(ctx: BuildContext) -> Bound:
    """Box and Muller, "A note on the generation of random normal deviates", 1958."""
    dtype, wide = ctx.outputs[0].dtype, _wide(ctx)
    one, two_pi, minus_two = (wide.np.type(v) for v in (1.0, 2 * math.pi, -2.0))

    def make(shape: tuple[int, ...]) -> tuple[Draw, tuple[Scratch, ...]]:
        size = math.prod(shape)
        pairs = (size + 1) // 2
        whole = dtype is wide and size % 2 == 0

        def draw(philox: Philox, out: Any, u: Any, r: Any, angle: Any, z: Any = None) -> None:
            philox.uniform(None, wide.np, u)
            np.subtract(one, u[:, 0], r)
            np.log(r, r)
            np.multiply(r, minus_two, r)
            np.sqrt(r, r)
            np.multiply(u[:, 1], two_pi, angle)
            values = out.reshape(pairs, 2) if whole else z
            np.cos(angle, values[:, 0])
            np.multiply(values[:, 0], r, values[:, 0])
            np.sin(angle, angle)
            np.multiply(angle, r, values[:, 1])
            if not whole:
                np.copyto(out, z.reshape(-1)[:size].reshape(shape), "same_kind")

        matrix, column = Scratch(wide, (pairs, 2)), Scratch(wide, (pairs,))
        return draw, (matrix, column, column) + (() if whole else (matrix,))

    return _bound(ctx, make)


# Wichura, "Algorithm AS 241: The percentage points of the normal distribution", 1988, PPND16; highest power first.
_CENTRE_P = (
    2.5090809287301226727e3,
    3.3430575583588128105e4,
    6.7265770927008700853e4,
    4.5921953931549871457e4,
    1.3731693765509461125e4,
    1.9715909503065514427e3,
    1.3314166789178437745e2,
    3.3871328727963666080e0,
)
_CENTRE_Q = (
    5.2264952788528545610e3,
    2.8729085735721942674e4,
    3.9307895800092710610e4,
    2.1213794301586595867e4,
    5.3941960214247511077e3,
    6.8718700749205790830e2,
    4.2313330701600911252e1,
    1.0,
)
_TAIL_P = (
    7.74545014278341407640e-4,
    2.27238449892691845833e-2,
    2.41780725177450611770e-1,
    1.27045825245236838258e0,
    3.64784832476320460504e0,
    5.76949722146069140550e0,
    4.63033784615654529590e0,
    1.42343711074968357734e0,
)
_TAIL_Q = (
    1.05075007164441684324e-9,
    5.47593808499534494600e-4,
    1.51986665636164571966e-2,
    1.48103976427480074590e-1,
    6.89767334985100004550e-1,
    1.67638483018380384940e0,
    2.05319162663775882187e0,
    1.0,
)
#: Probability that a standard normal number lies within two standard deviations: erf(sqrt(2)).
WITHIN_TWO = math.erf(math.sqrt(2.0))


def _polynomial(coefficients: tuple[float, ...], x: Any, out: Any) -> None:
    """Horner's rule."""
    np.multiply(x, coefficients[0], out)
    for c in coefficients[1:-1]:
        np.add(out, c, out)
        np.multiply(out, x, out)
    np.add(out, coefficients[-1], out)


def _percentage_points(q: Any, r: Any, p: Any, d: Any) -> None:
    """In place in ``q``: a probability less a half, ``|q| < 0.4999``, becomes the normal number it belongs to.

    AS 241 without its far tail, which no number within two standard deviations reaches. ``r``, ``p``, ``d`` are
    scratch.
    """
    np.multiply(q, q, r)
    np.subtract(0.180625, r, r)
    _polynomial(_CENTRE_P, r, p)
    _polynomial(_CENTRE_Q, r, d)
    np.divide(p, d, p)
    np.multiply(p, q, p)
    np.absolute(q, r)
    tail = np.flatnonzero(r > 0.425)
    if tail.size:
        x = np.sqrt(-np.log(0.5 - r[tail])) - 1.6
        top, bottom = np.empty_like(x), np.empty_like(x)
        _polynomial(_TAIL_P, x, top)
        _polynomial(_TAIL_Q, x, bottom)
        p[tail] = np.copysign(top / bottom, q[tail])
    np.copyto(q, p)


def _truncated_normal(ctx: BuildContext) -> Bound:
    wide = _wide(ctx)
    half_step = 2.0**-54 if wide is dtypes.float64 else 2.0**-25

    def make(shape: tuple[int, ...]) -> tuple[Draw, tuple[Scratch, ...]]:
        size = math.prod(shape)

        def draw(philox: Philox, out: Any, u: Any, q: Any, r: Any, p: Any, d: Any) -> None:
            philox.uniform(None, wide.np, u)
            # middle of the interval that the bits stand for; exact but for the last bit of float64
            np.add(u, half_step - 0.5, q)
            np.multiply(q, WITHIN_TWO, q)
            _percentage_points(q, r, p, d)
            np.copyto(out, q.reshape(shape), "same_kind")

        flat = Scratch(dtypes.float64, (size,))
        return draw, (Scratch(wide, (size,)), flat, flat, flat, flat)

    return _bound(ctx, make)


#: Ranges of up to this many integers take one word for each.
_ONE_WORD = 1 << 32
_HALF, _WORD = (1 << 32) - 1, (1 << 64) - 1


def _high(words: np.ndarray, factor: int) -> np.ndarray:
    """The upper 64 bits of each word's product with ``factor``."""
    low, high = words & np.uint64(_HALF), words >> np.uint64(32)
    low_factor, high_factor = np.uint64(factor & _HALF), np.uint64(factor >> 32)
    middle = high * low_factor + (low * low_factor >> np.uint64(32))
    carried = low * high_factor + (middle & np.uint64(_HALF))
    return high * high_factor + (middle >> np.uint64(32)) + (carried >> np.uint64(32))


def bounded(philox: Philox, count: int, span: int) -> np.ndarray:
    """``count`` numbers evenly distributed over ``[0, span)``, as uint64, of a started generator."""
    if span <= _ONE_WORD:
        words = philox.words(count)
        return np.remainder(words, np.uint64(span), words)
    # floor(span * w / 2**128) of 128-bit numbers w, the first of two words the upper one
    pairs = philox.words(2 * count).reshape(count, 2)
    upper, lower = pairs[:, 0], pairs[:, 1]
    sums = upper * np.uint64(span)
    high = _high(lower, span)
    np.add(sums, high, sums)
    return _high(upper, span) + (sums < high)


def _uniform_int(ctx: BuildContext) -> Bound:
    philox, shape, dtype = Philox(), _sized(ctx), ctx.outputs[0].dtype.np
    start = philox.starter(ctx)

    def draw(shape: Any, low: Any, high: Any, stream: Any) -> np.ndarray:
        first, span = int(low), int(high) - int(low)
        if span <= 0:
            raise errors.InvalidArgumentError(
                "the range to draw from is empty", expected="minval < maxval", got=f"minval {first}, maxval {int(high)}"
            )
        size = sizes(shape)
        start(stream)
        words = bounded(philox, math.prod(size), span)
        np.add(words, np.uint64(first & _WORD), words)
        return words.view(np.int64).reshape(size)

    if shape is not None:
        return Bound(lambda _, low, high, stream, out: np.copyto(out, draw(shape, low, high, stream), "same_kind"))
    return Bound(lambda shape, low, high, stream: draw(shape, low, high, stream).astype(dtype, copy=False))


def _shuffle(ctx: BuildContext) -> Bound:
    philox, fresh = Philox(), ctx.fresh

    def order(value: Any, stream: Any) -> np.ndarray:
        philox.start(stream)
        return np.argsort(philox.words(len(value)), kind="stable")

    if fresh:
        return Bound(lambda value, stream: value[order(value, stream)] if value.ndim else value.copy())

    def planned(value: Any, stream: Any, out: Any) -> None:
        if value.ndim:
            np.take(value, order(value, stream), 0, out, "clip")
        else:
            np.copyto(out, value)

    return Bound(planned)


def _stream(ctx: BuildContext) -> Bound:
    def words(stream: Any) -> np.ndarray:
        ordinal, iteration, outer = stream.counter()
        return np.array([*stream.key, outer, iteration, ordinal], np.uint64)

    if ctx.fresh:
        return Bound(words)
    return Bound(lambda stream, out: np.copyto(out, words(stream)))


KERNELS = [
    KernelDef("RandomUniform", "cpu", _uniform, host=("shape",)),
    KernelDef("RandomStream", "cpu", _stream),
    KernelDef("StreamUniform", "cpu", _uniform, host=("shape",)),
    KernelDef("RandomUniformInt", "cpu", _uniform_int, host=("shape",)),
    KernelDef("RandomStandardNormal", "cpu", _normal, host=("shape",)),
    KernelDef("TruncatedNormal", "cpu", _truncated_normal, host=("shape",)),
    KernelDef("RandomShuffle", "cpu", _shuffle),
    KernelDef("StatelessRandomUniform", "cpu", _uniform, host=("shape", "seed")),
    KernelDef("StatelessRandomUniformInt", "cpu", _uniform_int, host=("shape", "minval", "maxval", "seed")),
    KernelDef("StatelessRandomNormal", "cpu", _normal, host=("shape", "seed")),
    KernelDef("StatelessTruncatedNormal", "cpu", _truncated_normal, host=("shape", "seed")),
]
