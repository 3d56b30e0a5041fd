"""A ``compiler`` case of conformance: random graphs whose regions a compiler is offered, against the same node by node.

Graphs are of ops that stand in regions: elementwise ones, choices, casts, and, where the compiler prints programs, reductions
and what
broadcasts. Each is run over small numbers, over more than a block of them, and over NaN and infinities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.contracts.region import RegisteredCompiler
from graphdock.errors import DeviceUnavailable, GraphdockError, format_error
from graphdock.graph.graph import Graph

from graphdock_testing.bench import Bench
from graphdock_testing.case import ConformanceError, Missing, Untested
from graphdock_testing.facts.settings import named_error

__all__ = ["GRAPHS", "check_compiler"]

#: Random graphs of each compiler. Each eighth has an extent beyond a block.
GRAPHS, _NODES = 24, 14
_UNARY: tuple[Callable[[Any], Any], ...] = (
    *(tf.abs, tf.tanh, tf.sigmoid, tf.negative, tf.square, tf.sin, tf.nn.relu),
    *(lambda x: tf.sqrt(tf.abs(x)), lambda x: tf.exp(tf.minimum(x, 2.0))),
)
#: They jump: of what is fed only, which all see alike.
_STEPS: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda a, x, y: tf.where(a > 0.25, x, y * 0.5),
    lambda a, x, y: tf.cast(tf.less(a, 0.5), tf.float32) + x,
    lambda a, x, y: tf.floor(a) * tf.tanh(y),
)
_BINARY: tuple[Callable[[Any, Any], Any], ...] = (
    *(tf.add, tf.subtract, tf.maximum, tf.minimum, lambda x, y: tf.tanh(x) * y, lambda x, y: x / (1.0 + y * y)),
)
_INTEGERS: tuple[Callable[[Any, Any], Any], ...] = (tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum)
_ROWS: tuple[Callable[[Any], Any], ...] = (
    lambda x: tf.reduce_mean(x, -1, keepdims=True),
    lambda x: tf.reduce_max(x, -1, keepdims=True),
    lambda x: tf.reduce_sum(x, 0, keepdims=True) * 0.1,
)


def check_compiler(bench: Bench, registered: RegisteredCompiler) -> None:
    """Raise ConformanceError where a graph gives something else; Untested where no graph had a region of the compiler."""
    compiler = registered.compiler
    try:
        bench.host.device_infos(compiler.device_type)
    except DeviceUnavailable as error:
        raise Missing(f"no {compiler.device_type}: {error.reason}") from error
    claimed = 0
    reasons: list[str] = []
    for seed in range(GRAPHS // 4 if bench.brief else GRAPHS):
        graph, fetches, feeds = random_graph(bench, seed, compiler.programs, compiler.device_type)
        plain = _run(bench, graph, fetches, feeds, ("cpu",), False)
        try:
            fused, notes = _fused(bench, registered, graph, fetches, feeds)
        except GraphdockError as error:
            raise ConformanceError(f"graph {seed}: {format_error(error)}") from error
        except Exception as error:
            raise ConformanceError(named_error(error, f"the region compiler {registered.full_name}")) from error
        mine = [n for n in notes if n.compiler == registered.full_name]
        claimed += sum(n.claimed > 0 for n in mine)
        reasons += [n.what for n in mine if not n.claimed]
        for number, (got, want) in enumerate(zip(fused, plain, strict=True)):
            problem = _differs(got, want)
            if problem:
                ops = next((", ".join(n.ops) for n in mine if n.claimed), "none")
                raise ConformanceError(f"graph {seed}, result {number}: {problem}; a region of it: {ops}")
    if not claimed:
        raise Untested(
            f"{registered.full_name} claimed none of the random regions"
            + (f": {reasons[0]}" if reasons else ": none was offered")
        )


def random_graph(
    bench: Bench, seed: int, programs: bool, device: str
) -> tuple[Graph, list[Any], dict[Any, np.ndarray]]:
    """A graph on a device, what is fetched of it, and what it is fed with. The same for the same arguments.

    Every third is fed with NaN, infinities and -0 among its numbers.
    """
    rng = np.random.default_rng([seed, 21])
    graph = Graph(bench.host)
    shape = (int(rng.integers(2, 6)), 1031 if seed % 8 == 7 else int(rng.integers(2, 9)))
    with graph.as_default(), graph.device(device):
        entered = [tf.placeholder(tf.float32, shape) for _ in range(3)]
        made = [*entered]
        if programs:
            entered.append(tf.placeholder(tf.float32, shape[1:]))
            made.append(entered[-1] + made[0])
        whole = [tf.placeholder(tf.int32, shape) for _ in range(2)]
        integers = [*whole]
        for _ in range(_NODES):
            x, y = (made[-1 - int(rng.integers(min(4, len(made))))] for _ in range(2))
            roll = rng.random()
            if programs and roll < 0.2:
                made.append(x - _pick(rng, _ROWS)(x))
            elif roll < 0.5:
                made.append(_pick(rng, _UNARY)(x))
            elif roll < 0.6:
                integers.append(_pick(rng, _INTEGERS)(integers[-1], integers[-2]))
            elif roll < 0.7:
                made.append(_pick(rng, _STEPS)(_pick(rng, entered[:3]), x, y))
            else:
                made.append(_pick(rng, _BINARY)(x, y))
        fetches = [made[-1], made[-4], integers[-1]]
    feeds = {t: rng.uniform(-2, 2, tuple(d or 0 for d in t.shape.as_list())).astype(np.float32) for t in entered}
    if seed % 3 == 2:
        for array in feeds.values():
            places = rng.random(array.shape) < 0.1
            array[places] = rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0], np.float32), int(places.sum()))
    return graph, fetches, feeds | {t: rng.integers(-9, 9, shape).astype(np.int32) for t in whole}


def _pick(rng: np.random.Generator, options: Sequence[Any]) -> Any:
    return options[int(rng.integers(len(options)))]


def _config(backends: Sequence[str], fusion: bool) -> Any:
    return tf.SessionConfig(backends=tuple(dict.fromkeys(backends)), fallback="allow", fusion=fusion)


def _run(bench: Bench, graph: Graph, fetches: Any, feeds: Any, backends: Sequence[str], fusion: bool) -> list[Any]:
    with (
        tf.Session(graph=graph, config=_config(backends, fusion), host=bench.host) as session,
        np.errstate(all="ignore"),
    ):
        return [np.asarray(v) for v in session.run(fetches, feeds)]


def _fused(bench: Bench, registered: RegisteredCompiler, graph: Graph, fetches: Any, feeds: Any) -> tuple[Any, Any]:
    config = _config((registered.plugin, *bench.wide_order), True)
    with tf.Session(graph=graph, config=config, host=bench.host) as session, np.errstate(all="ignore"):
        metadata = tf.RunMetadata()
        got = [np.asarray(v) for v in session.run(fetches, feeds, run_metadata=metadata)]
        return got, [n for n in metadata.plan.placement.notes if hasattr(n, "compiler")]


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
