"""A ``compiler`` case of conformance: random graphs whose regions a compiler is offered, against the same node by node.

Graphs are of ops that stand in regions (:mod:`graphdock_testing.facts.compiler_graphs`): elementwise ones, choices, casts, and,
where the compiler prints programs, reductions and what broadcasts, and draws; and of each kind that it asks for: products, updates,
parts of tensors, loops. Each is run over small numbers, over more than a block of them, and over NaN and infinities. A compiler of
few ops, which takes hardly any, is shown graphs of the ops that it takes alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.contracts.region import RegisteredCompiler
from graphdock.errors import DeviceUnavailable, GraphdockError, InvalidArgumentError, format_error

from graphdock_testing.bench import Bench
from graphdock_testing.case import ConformanceError, Missing, Untested
from graphdock_testing.facts.compiler_graphs import GRAPHS, WORDS, DrawnGraph, alone, random_graph
from graphdock_testing.facts.settings import named_error

__all__ = ["check_compiler"]


def check_compiler(bench: Bench, registered: RegisteredCompiler, kind: str = "regions") -> None:
    """Raise ConformanceError where a graph gives something else; Untested where the compiler took nothing that was asked for.

    Args:
      kind: of graphs, one of :func:`~graphdock_testing.facts.compiler_graphs.kinds_of`.
    """
    compiler = registered.compiler
    try:
        bench.host.device_infos(compiler.device_type)
    except DeviceUnavailable as error:
        raise Missing(f"no {compiler.device_type}: {error.reason}") from error
    claimed, reasons = _check_graphs(bench, registered, kind, WORDS)
    if kind == "regions" and claimed < GRAPHS[kind] // (8 if bench.brief else 2):
        claimed += _check_graphs(bench, registered, kind, _taken(bench, registered))[0]
    if not claimed:
        raise Untested(
            f"{'' if kind == 'regions' else f'{kind}: '}{registered.full_name} claimed none of the random regions"
            + (f": {reasons[0]}" if reasons else ": none was offered")
        )


def _check_graphs(
    bench: Bench, registered: RegisteredCompiler, kind: str, words: Mapping[str, Sequence[Any]]
) -> tuple[int, list[str]]:
    """Number of regions asked for that the compiler took, and why not. Raises ConformanceError where a result differs."""
    claimed = 0
    reasons: list[str] = []
    if not any(words.values()):
        return claimed, reasons
    for seed in range(GRAPHS[kind] // (4 if bench.brief else 1)):
        drawn = random_graph(bench, seed, registered.compiler, kind, words)
        plain, _, _ = _run(bench, drawn, ("cpu",), False)
        fused, notes, kernels = _run_with(bench, registered, drawn, f"graph {seed}")
        mine = [n for n in notes if n.compiler == registered.full_name]
        asked = [n for n in mine if any(drawn.holds(bench.host.ops.get(op)) for op in n.ops if op in bench.host.ops)]
        if drawn.shows(kernels):
            claimed += sum(n.claimed > 0 for n in asked)
        reasons += [n.what for n in asked if not n.claimed]
        for number, (got, want) in enumerate(zip(fused, plain, strict=True)):
            problem = _differs(got, want)
            if problem:
                ops = next((", ".join(n.ops) for n in (*asked, *mine) if n.claimed), "none")
                raise ConformanceError(f"graph {seed}, result {number}: {problem}; a region of it: {ops}")
    return claimed, reasons


def _taken(bench: Bench, registered: RegisteredCompiler) -> dict[str, list[Any]]:
    """The words of which the compiler takes a graph that holds nothing else."""
    taken: dict[str, list[Any]] = {}
    for kind, words in WORDS.items():
        for word in words:
            if kind == "rows" and not registered.compiler.programs:
                continue
            _, notes, _ = _run_with(
                bench, registered, alone(bench, registered.compiler, kind, word), "a graph of one op"
            )
            if any(n.compiler == registered.full_name and n.claimed for n in notes):
                taken.setdefault(kind, []).append(word)
    return taken


def _run_with(
    bench: Bench, registered: RegisteredCompiler, drawn: DrawnGraph, what: str
) -> tuple[list[Any], list[Any], set[str]]:
    try:
        return _run(bench, drawn, (registered.plugin, *bench.wide_order), True)
    except ConformanceError as error:
        raise ConformanceError(f"{what}: {error}") from error
    except GraphdockError as error:
        raise ConformanceError(f"{what}: {format_error(error)}") from error
    except Exception as error:
        raise ConformanceError(named_error(error, f"the region compiler {registered.full_name}")) from error


def _run(
    bench: Bench, drawn: DrawnGraph, backends: Sequence[str], fusion: bool
) -> tuple[list[Any], list[Any], set[str]]:
    """Results of each step, then what is read; what compilers said of the steps' plan, and the ops of its kernels."""
    policy: Any = "generic" if drawn.any_shape else "auto"
    order = tuple(dict.fromkeys(backends))
    config = tf.SessionConfig(backends=order, fallback="allow", fusion=fusion, shape_policy=policy)
    metadata = tf.RunMetadata()
    got: list[Any] = []
    with tf.Session(graph=drawn.graph, config=config, host=bench.host) as session, np.errstate(all="ignore"):
        if drawn.before:
            session.run(drawn.before)
        for feeds in drawn.feeds:
            got += session.run(drawn.fetches, feeds, run_metadata=metadata)
        for feeds in drawn.wrong:
            _is_refused(session, drawn.fetches, feeds)
            got += session.run(drawn.fetches, drawn.feeds[0])  # nothing is left of it
        got += session.run(drawn.after) if drawn.after else []
    placement = metadata.plan.placement
    notes = [n for n in placement.notes if hasattr(n, "compiler")]
    return [np.asarray(v) for v in got if v is not None], notes, {n.op for n in placement.kernels}


def _is_refused(session: Any, fetches: Sequence[Any], feeds: Mapping[Any, np.ndarray]) -> None:
    """Raise ConformanceError where a step with an index that is out of range is none that fails of it."""
    try:
        session.run(fetches, feeds)
    except InvalidArgumentError:
        return
    raise ConformanceError("a step with an index that is out of range gives results, and is an InvalidArgumentError")


def _differs(got: np.ndarray, want: np.ndarray) -> str | None:
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
    if want.dtype.kind in "iu":
        wrong = got != want
    else:
        largest = float(np.max(np.abs(want[np.isfinite(want)]), initial=1.0))
        wrong = ~np.isclose(got, want, 1e-4, 1e-5 * largest, equal_nan=True)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ; at {list(at)} got {got[at]!r}, node by node {want[at]!r}"
    )
