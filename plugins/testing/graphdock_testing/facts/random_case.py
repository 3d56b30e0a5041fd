"""A ``random`` case of conformance: a kernel that draws is held to distribution, seed, steps and iterations, and width.

Kernels of ops with a reference are held to its bits by the ``value`` cases. Here a kernel is asked what any of its op owes,
reference or
none: other seeds, steps, iterations and dtypes give other numbers of the same distribution, which, where there is an oracle, is the
oracle's; and no part of a wide result repeats another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.dtypes import as_dtype
from graphdock.errors import GraphdockError
from graphdock.graph.graph import Graph
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import constant

from graphdock_testing.bench import Bench
from graphdock_testing.case import Case, ConformanceError
from graphdock_testing.facts.settings import arrays_of

__all__ = ["DRAWS", "check_random", "distance", "too_far"]

#: Numbers that are drawn to look at their distribution: beyond the block of a kernel, and no multiple of one.
DRAWS = 8209
#: By chance a distance is beyond :func:`too_far` less often than once in 10^9 cases.
_RARE = 1e-9


def check_random(bench: Bench, case: Case) -> None:
    """Raise ConformanceError where the kernel's numbers are not what random numbers are; nothing for an op without seeds."""
    opdef = bench.host.ops.get(case.op)
    if opdef.attr("seed") is None or opdef.attr("seed2") is None or not opdef.outputs:
        return
    wide = _widened(bench, case)
    if wide is None:
        return
    arrays = arrays_of(wide, "a")
    first, second = _drawn(bench, wide, arrays, (7, 11), 2)
    if first.dtype.kind not in "iufc" and as_dtype(first.dtype).name != "bfloat16" or first.size < 100:
        return
    (other,) = _drawn(bench, wide, arrays, (8, 11), 1)
    (third,) = _drawn(bench, wide, arrays, (7, 12), 1)
    for what, numbers in (("another step", second), ("another seed", other), ("another seed2", third)):
        if np.array_equal(first, numbers):
            raise ConformanceError(f"{what} draws the same numbers")
        _alike(f"numbers of {what}", numbers, first)
    _repeats(first)
    iterated = _in_a_loop(bench, wide, arrays)
    if iterated is not None and np.array_equal(*iterated):
        raise ConformanceError("another iteration of a loop draws the same numbers")
    want = bench_numbers(bench, wide, arrays)
    if want is not None:
        _alike("the numbers", first, want)


def bench_numbers(bench: Bench, case: Case, arrays: Mapping[str, Any]) -> np.ndarray | None:
    """As many numbers of the op's oracle, of other seeds; None where there is none."""
    opdef, graph = bench.host.ops.get(case.op), Graph(bench.host)
    program = bench.build(graph, opdef, arrays, {**case.attrs, "seed": 5, "seed2": 3})
    found = bench.expected(case, opdef, program, arrays, 0)
    return None if found is None else np.asarray(found[0])


def _widened(bench: Bench, case: Case) -> Case | None:
    """The case, to draw :data:`DRAWS` numbers of one distribution; None where the sample's shape is not the draw's."""
    sample, inputs = case.sample, dict(case.sample["inputs"])
    opdef = bench.host.ops.get(case.op)
    steering = [a.name for a in opdef.inputs if a.memory == "host" and isinstance(inputs.get(a.name), Mapping)]
    if (
        len(steering) != 1
        or "value" not in inputs[steering[0]]
        or any(
            isinstance(t, Mapping) and n != steering[0] and np.size(t.get("value", np.zeros(t.get("shape", ())))) != 1
            for n, t in inputs.items()
        )
    ):
        return None
    inputs[steering[0]] = {**inputs[steering[0]], "value": (DRAWS,)}
    other = replace(case, data={**case.data, "samples": ({**sample, "inputs": inputs},)}, index=0)
    try:
        bench.build(Graph(bench.host), opdef, arrays_of(other, "a"), {**other.attrs, "seed": 7, "seed2": 11})
    except GraphdockError:
        return None
    return other


def _drawn(bench: Bench, case: Case, arrays: Mapping[str, Any], seeds: tuple[int, int], steps: int) -> list[np.ndarray]:
    graph = Graph(bench.host)
    attrs = {**case.attrs, "seed": seeds[0], "seed2": seeds[1]}
    program = bench.build(graph, bench.host.ops.get(case.op), arrays, attrs)
    session = bench.open(graph, plain=True)
    return [np.asarray(session.run(program.outputs[0], program.feed(arrays))) for _ in range(steps)]


def _in_a_loop(bench: Bench, case: Case, arrays: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray] | None:
    """The numbers of two iterations of one step."""
    graph = Graph(bench.host)
    with graph.as_default(), graph.device(bench.device):
        given: dict[str, Any] = {n: None if a is None else constant(a) for n, a in arrays.items()}

        def draw() -> Any:
            made = apply_op(case.op, **given, **{**case.attrs, "seed": 7, "seed2": 11})
            return made[0] if isinstance(made, (list, tuple)) else made

        like = draw()
        start = tf.zeros(like.shape, like.dtype)
        loop = tf.while_loop(lambda k, a, b: k < 2, lambda k, a, b: (k + 1, b, draw()), [0, start, start])
        first, second = bench.open(graph, plain=True, wide=True).run(loop[1:])
        return np.asarray(first), np.asarray(second)


def _repeats(numbers: np.ndarray) -> None:
    """Raise where one part of the numbers is another part once more."""
    flat = np.asarray(numbers).reshape(-1)
    if len(np.unique(flat[:256])) < 16:
        return  # too few values to tell
    for width in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096):
        equal = int((flat[width:] == flat[:-width]).sum())
        if 4 * equal > flat.size - width:
            raise ConformanceError(f"element {width} and those after it are the first ones again: {equal} are equal")


def distance(a: Any, b: Any) -> float:
    """Kolmogorov and Smirnov's: the largest difference of two samples' distribution functions."""
    x, y = (np.sort(np.asarray(v).astype(np.float64).reshape(-1)) for v in (a, b))
    both = np.concatenate([x, y])
    rank = [np.searchsorted(v, both, side="right") / v.size for v in (x, y)]
    return float(np.max(np.abs(rank[0] - rank[1])))


def too_far(n: int, m: int) -> float:
    """The distance of two samples of n and m numbers of one distribution that is as rare as :data:`_RARE`."""
    return math.sqrt(-0.5 * math.log(_RARE / 2) * (n + m) / (n * m))


def _alike(what: str, got: np.ndarray, want: np.ndarray) -> None:
    for part in _parts(got, want):
        found, most = distance(*part), too_far(part[0].size, part[1].size)
        if found > most or np.isnan(np.asarray(part[0]).astype(np.float64)).any():
            raise ConformanceError(
                f"{what} are of another distribution: the distance is {found:.3g}, by chance at most {most:.3g}; "
                f"means {_mean(part[0])} and {_mean(part[1])}"
            )


def _parts(got: np.ndarray, want: np.ndarray) -> Iterator[Sequence[np.ndarray]]:
    """All numbers, and the last tenth of them, which a kernel's last block has."""
    a, b = got.reshape(-1), want.reshape(-1)
    yield a, b
    yield a[-a.size // 10 :], b


def _mean(numbers: np.ndarray) -> str:
    return f"{float(np.mean(numbers.astype(np.float64))):.4g}"
