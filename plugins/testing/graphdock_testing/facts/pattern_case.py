"""A ``pattern`` case of conformance: what a pattern looks for, and what stands for it, on samples of the pattern's own constraints.

Both sides are built by the pattern's own functions and run without patterns, values and gradients; they differ by rounding alone,
and where inputs that are changed in their last bits change the pattern's results by more, by some times that. Of numbers that are
drawn both sides get one stream: the pattern what is drawn of it, the replacement the stream itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.contracts.pattern import Pattern, RegisteredPattern
from graphdock.dtypes import as_dtype
from graphdock.errors import GraphdockError, format_error
from graphdock.graph.graph import Graph
from graphdock.plugin.host import Host
from graphdock_opgen.facts import spacing

from graphdock_testing.bench import Bench
from graphdock_testing.case import ConformanceError, Missing, Untested
from graphdock_testing.facts.pattern_sample import DRAWS, PatternSample, placed, samples_of
from graphdock_testing.facts.settings import named_error

__all__ = ["SAMPLES", "check_pattern", "registered_patterns"]

#: Samples of each pattern.
SAMPLES = 8
#: Times what a change in the last bits of its inputs makes of a pattern's results its replacement may differ by.
_MARGIN = 8.0


def registered_patterns(host: Host, plugin: str) -> list[RegisteredPattern]:
    """The patterns that a plugin brings."""
    return [r for r in host.load_patterns().all() if r.plugin == plugin]


def check_pattern(bench: Bench, registered: RegisteredPattern) -> None:
    """Raise ConformanceError where the sides differ; Untested where no draw fits the pattern, or none that does can be run."""
    count = 3 if bench.brief else SAMPLES
    tried: list[str] = []
    checked, applies = 0, False
    for sample in samples_of(bench.host, registered, tried):
        try:
            problem = _compare(bench, registered, sample)
        except Missing as error:
            tried.append(str(error))
            if len(tried) > DRAWS // 4:
                break
            continue
        if problem:
            shown = {**sample.found.shapes, **{n: c.tolist() for n, c in sample.found.constants.items() if c.size < 3}}
            raise ConformanceError(f"{problem} (of {shown}, {sample.found.dtype})")
        checked += 1
        applies = applies or _applies(bench, registered, sample)
        if checked == count:
            break
    if checked and not applies:
        raise Untested(
            f"{registered.full_name} changed none of the {checked} samples: in no plan of what it looks for it is found"
        )
    if not checked:
        raise Untested(
            f"{registered.full_name}: none of {DRAWS} draws of shapes and constants fits the pattern and runs here, and it "
            f"states no `sample` that does; the last one: {tried[-1] if tried else 'none'}"
        )


def _compare(bench: Bench, registered: RegisteredPattern, sample: PatternSample) -> str | None:
    pattern = registered.pattern
    try:
        wants, names = _run(bench, pattern, sample, pattern.pattern)
    except GraphdockError as error:
        raise Missing(f"the pattern does not run here: {error.message}") from error
    try:
        gots, _ = _run(bench, pattern, sample, pattern.replacement)
    except GraphdockError as error:
        return f"the replacement can't be built or run: {format_error(error)}"
    except Exception as error:
        raise ConformanceError(named_error(error, f"the replacement of {registered.full_name}")) from error
    if len(gots) != len(wants):
        return f"the replacement gives {len(gots)} results and gradients, the pattern {len(wants)}"
    problem = _difference(gots, wants, names, [0.0] * len(wants))
    if problem is None:
        return None
    nudged, _ = _run(bench, pattern, _nudged(sample), pattern.pattern)
    return _difference(gots, wants, names, [_MARGIN * _largest(n - w) for n, w in zip(nudged, wants, strict=True)])


def _applies(bench: Bench, registered: RegisteredPattern, sample: PatternSample) -> bool:
    """Return whether a plan of the pattern has what stands for it, or says why not; true on a device that the pattern is not for.

    Another pattern of the plugin, which was found first, may stand for it too.
    """
    pattern, graph = registered.pattern, Graph(bench.host)
    with graph.as_default():
        entered = {n: placed(n, o, sample.found) for n, o in pattern.inputs.items()}
        made = pattern.pattern(**entered, **sample.found.attrs)
    order = tuple(dict.fromkeys((registered.plugin, *bench.wide_order)))
    config = tf.SessionConfig(backends=order, fallback="allow", passes={"patterns": True})
    with tf.Session(graph=graph, config=config, host=bench.host) as session:
        told = session.explain(made)
    mine = f"{registered.plugin}."
    notes = [n for n in told.plan.placement.notes if getattr(n, "pattern", False) and n.compiler.startswith(mine)]
    return bool(notes) or not {row.device.partition(":")[0] for row in told.rows}.isdisjoint(pattern.not_on)


def _difference(gots: list[Any], wants: list[Any], names: list[str], margins: list[float]) -> str | None:
    """The first difference that is more than rounding, and more than the margin; None where there is none."""
    largest = max((_largest(w) for w in wants), default=0.0)
    for name, got, want, margin in zip(names, gots, wants, margins, strict=True):
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"{name}: {got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
        eps = spacing(want.dtype) or 2.0**-23
        a, b = got.astype(np.float64), want.astype(np.float64)
        wrong = ~np.isclose(a, b, 256 * eps, 64 * eps * max(largest, 1.0) + margin, equal_nan=True)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(np.atleast_1d(wrong))[0][: got.ndim])
            return f"{name} at {list(at)}: the replacement gives {got[at]!r}, the pattern {want[at]!r}"
    return None


def _largest(array: Any) -> float:
    wide = np.abs(np.asarray(array).astype(np.float64))
    return float(np.max(wide[np.isfinite(wide)], initial=0.0))


def _nudged(sample: PatternSample) -> PatternSample:
    """With the floating numbers that are fed one or two spacings larger or smaller."""
    rng = np.random.default_rng(0)

    def other(a: Any) -> Any:
        if not as_dtype(a.dtype).is_floating:
            return a
        return (a * (1 + rng.integers(-2, 3, a.shape) * (spacing(a.dtype) or 0.0))).astype(a.dtype)

    return replace(sample, fed={n: other(a) for n, a in sample.fed.items()})


def _run(bench: Bench, pattern: Pattern, sample: PatternSample, side: Any) -> tuple[list[Any], list[str]]:
    """Values, and the gradients by what is fed, of one side; and what each is called."""
    found, graph = sample.found, Graph(bench.host)
    replaces = side is pattern.replacement
    with graph.as_default():
        entered = {n: placed(n, o, found, stands=replaces) for n, o in pattern.inputs.items()}
        given = {n: found.constants[n] if replaces and n in found.constants else t for n, t in entered.items()}
        made = side(**given, **found.attrs)
        values = list(made) if isinstance(made, tuple | list) else [made]
        sources = [entered[n] for n, a in sample.fed.items() if as_dtype(a.dtype).is_floating]
        real = [v for v in values if v.dtype.is_floating]
        slopes: list[Any] = []
        if real and sources and not pattern.late:
            slopes = tf.gradients([tf.sin(v) for v in real], sources)
        names = [f"output {i}" for i in range(len(values))]
        names += [f"gradient by {t.op.name}" for t, g in zip(sources, slopes, strict=False) if g is not None]
        fetched = [*values, *(tf.convert_to_tensor(g) for g in slopes if g is not None)]
        config = tf.SessionConfig(backends=bench.wide_order, fallback="allow", fusion=False)
        with tf.Session(graph=graph, config=config, host=bench.host) as session, np.errstate(all="ignore"):
            feeds = {entered[n]: a for n, a in sample.fed.items() if n in entered}
            return [np.asarray(v) for v in session.run(fetched, feeds)], names
