"""Samples of a pattern: shapes, arrays and constants that its own constraints allow.

What the pattern's ``sample`` gives is taken. The rest is drawn: few sizes, so that some are equal, and by the place from the left
or from the right, because equal dims stand at equal places. Inference, then ``check``, say whether a draw fits.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.contracts.pattern import Found, Operand, RegisteredPattern
from graphdock.dtypes import as_dtype
from graphdock.errors import GraphdockError, UnimplementedError
from graphdock.graph.graph import Graph
from graphdock.ops.apply import apply_op
from graphdock.plugin.host import Host

from graphdock_testing.case import ConformanceError
from graphdock_testing.facts.settings import named_error

__all__ = ["DRAWS", "PatternSample", "placed", "samples_of"]

#: Draws for which there may be no sample.
DRAWS = 400
_NUMBERS = (1.0, 0.5, 1e-5, 2.0, 0.0, -1.0, -1e9, 1e-3)
_MOST_DIMS = 8
#: Random op -> the op that draws the same of a stream; and a stream.
_OF_STREAM = {"RandomUniform": "StreamUniform"}
_STREAM = [7, 11, 0, 0, 3]


@dataclass(frozen=True)
class PatternSample:
    """Arrays and constants that fit a pattern; ``drawn``: name -> shape. ``found`` is what its ``check`` accepted."""

    fed: Mapping[str, np.ndarray]
    found: Found
    drawn: Mapping[str, tuple[int, ...]]


def samples_of(host: Host, registered: RegisteredPattern, tried: list[str]) -> Iterator[PatternSample]:
    """Samples that fit, of :data:`DRAWS` draws, the same in every run; ``tried`` gets the reasons of the others.

    Raises:
      ConformanceError: ``check`` or ``sample`` of the pattern raises.
    """
    rng = np.random.default_rng(zlib.crc32(registered.full_name.encode()))
    pattern = registered.pattern
    anchor = host.ops.get(pattern.anchor)
    for _ in range(DRAWS):
        dtype = str(rng.choice([d for d in pattern.dtypes if d in ("float32", "float64")] or list(pattern.dtypes)))
        attrs = {n: _attribute(anchor, n, rng) for n in pattern.attrs}
        try:
            told = {} if pattern.sample is None else dict(pattern.sample(rng))
        except Exception as error:
            raise ConformanceError(named_error(error, f"sample of {registered.full_name}")) from error
        arrays = {n: np.asarray(v) for n, v in told.items() if isinstance(v, np.ndarray)}
        dims = _Dims(rng)
        shapes = {n: tuple(told.get(n, dims(o))) for n, o in pattern.inputs.items() if n not in arrays}
        shapes |= {n: a.shape for n, a in arrays.items()}
        for n, o in pattern.inputs.items():
            kind = _dtype(o, dtype, attrs)
            arrays[n] = arrays[n].astype(kind.np) if n in arrays else _array(o, shapes[n], kind, dims, rng)
        constants = {n: arrays[n] for n, o in pattern.inputs.items() if o.constant}
        found = Found(dtype, shapes, constants, "cpu", attrs)
        try:
            _infer(host, registered, found)
            reason = None if pattern.check is None else pattern.check(found)
        except GraphdockError as error:
            reason = error.message
        except Exception as error:
            raise ConformanceError(named_error(error, f"check of {registered.full_name}")) from error
        if reason is not None:
            tried.append(reason)
            continue
        drawn = {n: shapes[n] for n, o in pattern.inputs.items() if o.drawn}
        fed = {n: a for n, a in arrays.items() if n not in constants and n not in drawn}
        yield PatternSample(fed, found, drawn)


class _Dims:
    """Dims of one draw: sizes by their place from the left, from the right, or any."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.pool = [int(n) for n in rng.integers(1, 7, int(rng.integers(2, 5)))]
        self._left, self._right = ([self.any() for _ in range(_MOST_DIMS)] for _ in "lr")

    def any(self) -> int:
        return self.pool[int(self._rng.integers(len(self.pool)))]

    def __call__(self, operand: Operand) -> tuple[int, ...]:
        given = operand.shape or ()
        return tuple(self._at(i, len(given)) if d is None else d for i, d in enumerate(given))

    def _at(self, place: int, rank: int) -> int:
        roll = self._rng.random()
        if roll < 0.8:
            return self._left[place] if roll < 0.4 else self._right[rank - 1 - place]
        return self.any()


def _infer(host: Host, registered: RegisteredPattern, found: Found) -> None:
    """Build the pattern; raises what inference says against the shapes."""
    with Graph(host).as_default():
        given = {n: placed(n, o, found) for n, o in registered.pattern.inputs.items()}
        registered.pattern.pattern(**given, **found.attrs)


def placed(name: str, operand: Operand, found: Found, stands: bool = False) -> Any:
    """The tensor of the default graph that enters the pattern for an operand, or the replacement where ``stands`` says so."""
    kind = _dtype(operand, found.dtype, found.attrs)
    if operand.constant:
        return tf.constant(found.constants[name])
    if operand.drawn:
        if operand.drawn not in _OF_STREAM:
            raise UnimplementedError(f"nothing draws what {operand.drawn} draws of a stream that is given")
        stream = tf.constant(_STREAM, tf.uint64)
        shape = tf.constant(found.shapes[name], tf.int32)
        return stream if stands else apply_op(_OF_STREAM[operand.drawn], shape=shape, stream=stream, dtype=kind)
    return tf.placeholder(kind, found.shapes[name], name=name)


def _dtype(operand: Operand, dtype: str, attrs: Mapping[str, Any]) -> Any:
    named = operand.dtype or dtype
    return as_dtype(attrs.get(named, named))


def _attribute(anchor: Any, name: str, rng: np.random.Generator) -> Any:
    attr = anchor.attr(name)
    if attr is None:
        var = next((t for t in anchor.types if t.name == name), None)
        return as_dtype((var.allow if var is not None and var.allow else ("int32",))[0])
    if attr.allowed:
        return attr.allowed[int(rng.integers(len(attr.allowed)))]
    if attr.type == "bool":
        return bool(rng.random() < 0.5)
    if isinstance(attr.default, (int, float, str, list, tuple)):
        return tuple(attr.default) if isinstance(attr.default, list) else attr.default
    return (1, 1, 1, 1)  # windows of images


def _array(operand: Operand, shape: tuple[int, ...], kind: Any, dims: _Dims, rng: np.random.Generator) -> Any:
    if kind.is_bool:
        flags = np.tri(shape[-2], shape[-1]) > 0 if len(shape) > 1 and rng.random() < 0.5 else rng.random(shape) < 0.6
        return np.array(np.broadcast_to(flags, shape))
    if kind.is_integer and operand.constant and len(shape) == 1 and rng.random() < 0.7:  # a shape, maybe
        sizes = [1 if rng.random() < 0.5 else dims.any() for _ in range(shape[0])]
        if sizes:
            sizes[int(rng.integers(len(sizes)))] = -1
        return np.array(sizes, kind.np)
    if kind.is_integer:
        return np.asarray(rng.integers(0, 2, shape)).astype(kind.np)
    if operand.constant and math.prod(shape) == 1:
        return np.full(shape, float(rng.choice(_NUMBERS)), kind.np)
    return np.asarray(rng.standard_normal(shape) * float(rng.choice([1.0, 1.0, 3.0]))).astype(kind.np)
