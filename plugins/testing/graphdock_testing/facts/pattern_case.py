"""A ``pattern`` case of conformance: what a pattern looks for, and what stands for it, on samples of the pattern's own constraints.

Both sides are built by the pattern's own functions and run without patterns, values and gradients; they differ by rounding alone. A
pattern of drawn numbers is looked for in a plan: only there does its replacement get their stream.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.contracts.pattern import Found, Operand, Pattern, RegisteredPattern
from graphdock.dtypes import as_dtype
from graphdock.errors import GraphdockError, format_error
from graphdock.graph.graph import Graph
from graphdock.plugin.host import Host
from graphdock_opgen.facts import spacing

from graphdock_testing.bench import Bench
from graphdock_testing.case import ConformanceError, Missing, Untested
from graphdock_testing.facts.settings import named_error

__all__ = ["SAMPLES", "check_pattern", "registered_patterns"]

#: Samples of each pattern, and draws for which there may be none.
SAMPLES, _DRAWS = 8, 400
_NUMBERS = (1.0, 0.5, 1e-5, 2.0, 0.0, -1.0, -1e9, 1e-3)


@dataclass(frozen=True)
class _Sample:
    """Arrays and constants that fit a pattern; ``drawn``: name -> shape. ``found`` is what its ``check`` accepted."""

    fed: Mapping[str, np.ndarray]
    found: Found
    drawn: Mapping[str, tuple[int, ...]]


def registered_patterns(host: Host, plugin: str) -> list[RegisteredPattern]:
    """The patterns that a plugin brings."""
    return [r for r in host.load_patterns().all() if r.plugin == plugin]


def check_pattern(bench: Bench, registered: RegisteredPattern) -> None:
    """Raise ConformanceError where the sides differ, where both can run; Missing where they can't, Untested where no draw fits."""
    count = 3 if bench.brief else SAMPLES
    tried: list[str] = []
    checked = 0
    for sample in _samples(bench.host, registered, tried):
        problem = _compare(bench, registered, sample)
        if problem:
            shown = {**sample.found.shapes, **{n: c.tolist() for n, c in sample.found.constants.items() if c.size < 3}}
            raise ConformanceError(f"{problem} (of {shown}, {sample.found.dtype})")
        checked += 1
        if checked == count:
            return
    if not checked:
        raise Untested(
            f"{registered.full_name}: none of {_DRAWS} draws of shapes and constants fits the pattern; "
            f"the last one: {tried[-1] if tried else 'none'}"
        )


def _samples(host: Host, registered: RegisteredPattern, tried: list[str]) -> Iterator[_Sample]:
    rng = np.random.default_rng(zlib.crc32(registered.full_name.encode()))
    pattern = registered.pattern
    anchor = host.ops.get(pattern.anchor)
    for _ in range(_DRAWS):
        dtype = str(rng.choice([d for d in pattern.dtypes if d in ("float32", "float64")] or list(pattern.dtypes)))
        attrs = {n: _attribute(anchor, n, rng) for n in pattern.attrs}
        pool = [int(n) for n in rng.integers(1, 7, 3)]
        shapes = {
            n: tuple(int(rng.choice(pool)) if d is None else d for d in o.shape or ())
            for n, o in pattern.inputs.items()
        }
        arrays = {n: _array(o, shapes[n], dtype, attrs, rng) for n, o in pattern.inputs.items()}
        constants = {n: arrays[n] for n, o in pattern.inputs.items() if o.constant}
        found = Found(dtype, shapes, constants, "cpu", attrs)
        try:
            reason = None if pattern.check is None else pattern.check(found)
            if reason is None:
                _shapes_of(host, registered, found)
        except GraphdockError as error:
            reason = error.message
        except Exception as error:
            raise ConformanceError(named_error(error, f"check of {registered.full_name}")) from error
        if reason is not None:
            tried.append(reason)
            continue
        drawn = {n: shapes[n] for n, o in pattern.inputs.items() if o.drawn}
        fed = {n: a for n, a in arrays.items() if n not in constants and n not in drawn}
        yield _Sample(fed, found, drawn)


def _shapes_of(host: Host, registered: RegisteredPattern, found: Found) -> None:
    """Build the pattern; raises what inference says against the shapes."""
    with Graph(host).as_default():
        given = {n: _placed(n, o, found) for n, o in registered.pattern.inputs.items()}
        registered.pattern.pattern(**given, **found.attrs)


def _placed(name: str, operand: Operand, found: Found) -> Any:
    if operand.constant:
        return tf.constant(found.constants[name])
    if operand.drawn:
        return tf.random_uniform(found.shapes[name], dtype=_dtype(operand, found.dtype, found.attrs), seed=5)
    return tf.placeholder(_dtype(operand, found.dtype, found.attrs), found.shapes[name], name=name)


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


def _array(
    operand: Operand, shape: tuple[int, ...], dtype: str, attrs: Mapping[str, Any], rng: np.random.Generator
) -> Any:
    kind = _dtype(operand, dtype, attrs)
    if kind.is_bool:
        flags = np.tri(shape[-2], shape[-1]) > 0 if len(shape) > 1 and rng.random() < 0.5 else rng.random(shape) < 0.6
        return np.array(np.broadcast_to(flags, shape))
    if kind.is_integer:
        return np.asarray(rng.integers(0, 2, shape)).astype(kind.np)
    if operand.constant and math.prod(shape) == 1:
        return np.full(shape, float(rng.choice(_NUMBERS)), kind.np)
    return np.asarray(rng.standard_normal(shape) * float(rng.choice([1.0, 1.0, 3.0]))).astype(kind.np)


def _compare(bench: Bench, registered: RegisteredPattern, sample: _Sample) -> str | None:
    pattern = registered.pattern
    try:
        wants, names = _run(bench, pattern, sample, pattern.pattern, False)
    except GraphdockError as error:
        raise Missing(f"the pattern does not run here: {error.message}") from error
    try:
        gots, _ = _run(
            bench, pattern, sample, pattern.pattern if sample.drawn else pattern.replacement, bool(sample.drawn)
        )
    except GraphdockError as error:
        return f"the replacement can't be built or run: {format_error(error)}"
    except Exception as error:
        raise ConformanceError(named_error(error, f"the replacement of {registered.full_name}")) from error
    if len(gots) != len(wants):
        return f"the replacement gives {len(gots)} results and gradients, the pattern {len(wants)}"
    largest = max((float(np.max(np.abs(w[np.isfinite(w)]), initial=1.0)) for w in wants), default=1.0)
    for name, got, want in zip(names, gots, wants, strict=True):
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"{name}: {got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
        eps = spacing(want.dtype) or 2.0**-23
        wrong = ~np.isclose(
            got.astype(np.float64), want.astype(np.float64), 256 * eps, 64 * eps * largest, equal_nan=True
        )
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(np.atleast_1d(wrong))[0][: got.ndim])
            return f"{name} at {list(at)}: the replacement gives {got[at]!r}, the pattern {want[at]!r}"
    return None


def _run(bench: Bench, pattern: Pattern, sample: _Sample, side: Any, fusion: bool) -> tuple[list[Any], list[str]]:
    """Values, and the gradients by what is fed, of one side; and what each is called."""
    found, graph = sample.found, Graph(bench.host)
    replaces = side is pattern.replacement
    with graph.as_default():
        placed = {n: _placed(n, o, found) for n, o in pattern.inputs.items()}
        given = {n: found.constants[n] if replaces and n in found.constants else t for n, t in placed.items()}
        made = side(**given, **found.attrs)
        values = list(made) if isinstance(made, tuple | list) else [made]
        sources = [placed[n] for n, a in sample.fed.items() if as_dtype(a.dtype).is_floating]
        real = [v for v in values if v.dtype.is_floating]
        slopes: list[Any] = []
        if real and sources and not pattern.late:
            slopes = tf.gradients([tf.sin(v) for v in real], sources)
        names = [f"output {i}" for i in range(len(values))]
        names += [f"gradient by {t.op.name}" for t, g in zip(sources, slopes, strict=False) if g is not None]
        fetched = [*values, *(tf.convert_to_tensor(g) for g in slopes if g is not None)]
        config = tf.SessionConfig(backends=bench.wide_order, fallback="allow", fusion=fusion)
        with tf.Session(graph=graph, config=config, host=bench.host) as session, np.errstate(all="ignore"):
            feeds = {placed[n]: a for n, a in sample.fed.items() if n in placed}
            return [np.asarray(v) for v in session.run(fetched, feeds)], names
