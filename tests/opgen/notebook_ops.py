"""Ops of Python functions, as somebody wrote them in a script; test_from_python.py makes a package of them."""

from __future__ import annotations

import enum
import math as m
from collections.abc import Sequence
from typing import Literal, TypeVar

import graphdock as tf
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", np.float32, np.float64)
NOBODY_ASKS = 3


class Unit(enum.Enum):
    KM = 1.0
    MILE = 1.609


def scale_of(unit: Unit) -> float:
    return unit.value * m.cos(0.0)


@tf.custom_op("geo::cube", shapes={"x": "[*S]", "y": "[*S]"})
def cube(factor: float, x: NDArray[F], unit: Unit = Unit.KM) -> NDArray[F]:
    """The cube, times a factor.

    More: "it's" {x} \\ C:\\new & <b>, 'a"b', ''' and '''.
    """
    return (x**3 * factor * scale_of(unit)).astype(x.dtype)


@cube.register_gradient
def cube_gradient(op, grad):
    return 3.0 * op.get_attr("factor") * scale_of(Unit[op.get_attr("unit")]) * grad * tf.square(op.inputs[0])


@tf.custom_op("geo::wave", shapes={"x": "[*S]", "n": "[*S]", "y": "[*S]"}, version=2)
def wave(x: NDArray[np.float64], n: NDArray[np.int32], phase: float = 0.5) -> NDArray[np.float64]:
    return np.sin(x * 0.3 + phase + n)


@wave.register_gradient
def wave_gradient(op, grad):
    x, n = op.inputs
    return [grad * 0.3 * tf.cos(x * 0.3 + op.get_attr("phase") + tf.cast(n, tf.float64)), None]


@tf.custom_op("geo::pairs")
def pairs(n: int, x: NDArray[F], mode: Literal["a", "b"] = "a") -> tuple[NDArray[F], NDArray[np.int32]]:
    return np.stack([x] * n), np.arange(n, dtype=np.int32)


@pairs.register_shape
def pairs_shape(ctx):
    dims = ctx.shape("x")
    return [None if dims is None else (ctx.attrs["n"], *dims), (ctx.attrs["n"],)]


@tf.custom_op("geo::halve", differentiable=False)
def halve(x: NDArray[F]) -> NDArray[F]:
    return x / x.dtype.type(2)


@halve.register_shape
def halve_shape(ctx):
    return [ctx.shape("x")]


@halve.register_kernel("cpu")
def halve_quickly(x):
    return x * x.dtype.type(0.5)


@halve.register_kernel("mychip", build=True, name="far")
def halve_far(ctx):
    return np.multiply


@tf.custom_op("geo::total", shapes={"xs": "[*S]", "bias": "[*S]", "y": "[*S]"}, differentiable=False)
def total(xs: Sequence[NDArray[F]], bias: NDArray[F] | None = None, dtype: tf.DType = tf.float32) -> NDArray[F]:
    return sum(xs) if bias is None else sum(xs) + bias


@tf.custom_op("geo::tick", effects=("io",), stateful=True)
def tick(x: NDArray[np.int64]) -> None:
    return None


@tf.custom_op("geo::nameless")
def nameless(x: NDArray[F]) -> NDArray[F]:
    return x


nameless.register_shape(lambda ctx: ctx.shape("x"))


def plain(x: NDArray[F]) -> NDArray[F]:
    return x


def _inside():
    @tf.custom_op("geo::inside", shapes={"x": "[]", "y": "[]"})
    def inside(x: NDArray[F]) -> NDArray[F]:
        return x

    return inside


inside = _inside()
