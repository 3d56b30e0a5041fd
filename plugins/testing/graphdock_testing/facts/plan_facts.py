"""Facts that only planning can say: regions as compilers get them, known integers, sums, products that are joined, decompositions.

Each takes what declares the fact through the code that reads it, and compares with the op's own results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from graphdock.contracts import DeviceSpec, cut_region
from graphdock.contracts.opdef import OpDef, resolve
from graphdock.dtypes import as_dtype
from graphdock.graph.graph import Graph
from graphdock.opdef.shape_values import plan_integers, without_symbols
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import constant
from graphdock.planning.translate import translate
from graphdock_fusion.regions.forms import form_of
from graphdock_fusion.regions.lowering import lower_region
from graphdock_fusion.regions.typed import NotInRegion
from graphdock_opgen.facts import spacing, unlike

from graphdock_testing.bench import Bench
from graphdock_testing.case import Case
from graphdock_testing.facts.settings import computed
from graphdock_testing.region_reference import evaluate

__all__ = ["PLAN_FACTS", "broken_plan_facts"]

Rounds = Sequence[Mapping[str, Any]]


def broken_plan_facts(bench: Bench, case: Case, rounds: Rounds, kind: str) -> Iterator[str]:
    """What is wrong: ``"sum: ..."``. ``rounds``: two sets of arrays; ``kind``: of the variant, or ``sample``."""
    opdef = bench.host.ops.get(case.op)
    for name, (declared, check) in PLAN_FACTS.items():
        if declared(opdef) and not (kind == "extreme" and (name in _FINITE or name == "decompose" and _is_half(case))):
            with np.errstate(all="ignore"):
                yield from (f"{name}: {problem}" for problem in check(bench, case, rounds))


def _is_half(case: Case) -> bool:
    """Return whether results between overflow where the op's own do not."""
    return bool({"float16", "bfloat16"} & set(case.types.values()))


def _tolerance(case: Case) -> Mapping[str, float] | None:
    found: Mapping[str, float] | None = case.data["tolerances"].get(case.types.get("T", case.dtype))
    return found


def _compared(case: Case, mine: Sequence[Any], right: Sequence[Any], terms: int = 1) -> Iterator[str]:
    """Problems of results that were rounded in another order; ``terms``: how many were added up."""
    for number, (a, b) in enumerate(zip(mine, right, strict=True)):
        tolerance = _tolerance(case) or {"rtol": 64 * spacing(b.dtype), "atol": 8 * spacing(b.dtype)}
        size = _largest(b) if terms > 1 else 1.0
        problem = unlike(a, b, False, {"rtol": tolerance["rtol"], "atol": tolerance["atol"] * terms * size})
        if problem:
            yield f"output {number}: {problem}" if len(right) > 1 else problem


def _largest(array: Any) -> float:
    """The largest magnitude of the finite elements; 1 where there is none larger."""
    if array.dtype.hasobject:
        return 1.0
    sizes = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return float(np.max(sizes[np.isfinite(sizes)], initial=1.0))


def _region(bench: Bench, case: Case, rounds: Rounds) -> Iterator[str]:
    """The op as a region of one node, as lowering says it."""
    opdef, graph = bench.host.ops.get(case.op), Graph(bench.host)
    program = bench.build(graph, opdef, rounds[0], case.attrs)
    feeds = program.feed(rounds[0])
    plan = translate(program.outputs, [], [(t, v.shape) for t, v in feeds.items()])
    node = next((n for n in plan.nodes if n.op == case.op), None)
    if node is None:
        return
    region = cut_region(plan, [node], DeviceSpec.parse("/device:cpu:0"))
    try:
        lowered = lower_region(region)
    except NotInRegion:
        return
    fed = {t.name: v for t, v in feeds.items()}
    inputs = [
        np.asarray(v.node.attrs["value"] if v.node is not None else fed[v.name]).astype(v.dtype.np)
        for v in region.entering
    ]
    want = computed(bench, case, rounds[0])
    yield from _compared(case, evaluate(lowered, inputs), [want[v.index] for v in region.leaving], 2)


def _evaluate(bench: Bench, case: Case, rounds: Rounds) -> Iterator[str]:
    """Integers that are known of a plan, of inputs that stand in it and of those that are fed."""
    opdef = bench.host.ops.get(case.op)
    want = computed(bench, case, rounds[0])
    for stands in (True, False):
        graph = Graph(bench.host)
        program = bench.build(graph, opdef, rounds[0], case.attrs, "constant" if stands else "planned")
        plan = translate(program.outputs, [], [(t, v.shape) for t, v in program.feed(rounds[0]).items()])
        integers = plan_integers()
        for value, right in zip(plan.outputs, want, strict=True):
            known = without_symbols(integers.value(value))
            problem = None if known is None else _known(known, right.tolist())
            if problem:
                yield f"{problem}, of inputs that {'stand in the graph' if stands else 'are fed'}"


def _known(known: Any, right: Any) -> str | None:
    if isinstance(known, tuple):
        if not isinstance(right, list) or len(known) != len(right):
            return f"it knows {known} of {right}"
        return next((p for p in map(_known, known, right) if p), None)
    return f"it says {known}, and the result is {right}" if known is not None and known != right else None


def _sum(bench: Bench, case: Case, rounds: Rounds) -> Iterator[str]:
    opdef = bench.host.ops.get(case.op)
    addends = [computed(bench, case, a)[0] for a in rounds]
    assert opdef.sum is not None
    summing = bench.host.ops.get(opdef.sum)
    graph, arrays = Graph(bench.host), [a.name for a in opdef.inputs]
    with graph.as_default(), graph.device(bench.device):
        given: dict[str, Any] = {
            arg.name: [constant(a[mine]) for a in rounds] for arg, mine in zip(summing.inputs, arrays, strict=True)
        }
        got = bench.open(graph, wide=True).run(apply_op(summing.name, **given, **_passed(case, summing)))
    yield from _compared(case, [np.asarray(got)], [np.asarray(sum(addends)).astype(addends[0].dtype)], 8)


def _made(bench: Bench, op: str, *inputs: Any, **attrs: Any) -> Any:
    """An op of these inputs, in order, in the default graph."""
    names = [a.name for a in bench.host.ops.get(op).inputs]
    return apply_op(op, **dict(zip(names, inputs, strict=True)), **attrs)


def _passed(case: Case, other: OpDef) -> dict[str, Any]:
    """The case's attributes that another op has too."""
    return {n: v for n, v in case.attrs.items() if other.attr(n) is not None}


def _joint(bench: Bench, case: Case, rounds: Rounds) -> Iterator[str]:
    """Products by one matrix as one product of rows, and a product of what is joined as the sum of products."""
    opdef = bench.host.ops.get(case.op)
    (a, b), ops = [x.name for x in opdef.inputs][:2], opdef.joint
    first, matrix = rounds[0][a], rounds[0][b]
    if first.ndim != 2 or case.attrs.get("transpose_a") or case.attrs.get("transpose_b") or not first.size:
        return
    second = rounds[1][a][:1]
    wants = [computed(bench, case, {**rounds[0], a: x})[0] for x in (first, second)]
    half = first.shape[1] // 2
    with (graph := Graph(bench.host)).as_default(), graph.device(bench.device):

        def product(x: Any, y: Any) -> Any:
            return apply_op(case.op, **{a: x, b: y}, **case.attrs)

        rows = product(_made(bench, ops["join"], [constant(first), constant(second)], constant(0)), constant(matrix))
        sizes = constant(np.array([len(first), len(second)], np.int32))
        parts = list(_made(bench, ops["cut"], rows, sizes, constant(0), num_split=2))
        pieces = [product(constant(first[:, s]), constant(matrix[s])) for s in (slice(0, half), slice(half, None))]
        fetched = bench.open(graph, wide=True).run([*parts, _made(bench, ops["add"], *pieces)])
    yield from _compared(case, [np.asarray(f) for f in fetched], [*wants, wants[0]], 8)


def _stacked(bench: Bench, case: Case, rounds: Rounds) -> Iterator[str]:
    opdef, graph = bench.host.ops.get(case.op), Graph(bench.host)
    assert opdef.stacked is not None
    function = resolve(opdef.stacked)
    program = bench.build(graph, opdef, rounds[0], case.attrs)
    if not function(program.op):
        return
    with graph.as_default(), graph.device(bench.device):
        made = function(program.op, *[constant(np.stack([r[a.name] for r in rounds])) for a in opdef.inputs])
        got = bench.open(graph, wide=True).run(made, program.feed(rounds[0]))
    addends = [computed(bench, case, a)[0] for a in rounds]
    yield from _compared(case, [np.asarray(got)], [np.asarray(sum(addends)).astype(addends[0].dtype)], 8)


def _decompose(bench: Bench, case: Case, rounds: Rounds) -> Iterator[str]:
    opdef, graph = bench.host.ops.get(case.op), Graph(bench.host)
    assert opdef.decomposition is not None
    types = {n: as_dtype(v) for n, v in case.types.items() if n not in case.attrs}
    attrs = {**{a.name: a.default for a in opdef.attrs}, **types, **case.attrs}
    program = bench.build(graph, opdef, rounds[0], attrs, "planned", resolve(opdef.decomposition))
    got = bench.step(bench.open(graph, wide=True), program, rounds[0], "decomposition")
    yield from _compared(case, got, computed(bench, case, rounds[0]), 2)


def _constants(bench: Bench, case: Case, rounds: Rounds) -> Iterator[str]:
    """Of positive numbers: elsewhere the ops that stand for it are what TensorFlow computes."""
    opdef = bench.host.ops.get(case.op)
    names = [a.name for a in opdef.inputs]
    for name, values in opdef.constants.items():
        other = names[1 - names.index(name)]
        x = rounds[0][other]
        x = np.asarray(np.abs(x) + x.dtype.type(0.5), x.dtype)
        for value, chain in values.items():
            if x.dtype.kind in "iu" and (value != int(value) or value < 0):
                continue
            want = computed(bench, case, {**rounds[0], other: x, name: np.full(x.shape, value, x.dtype)})
            graph = Graph(bench.host)
            with graph.as_default(), graph.device(bench.device):
                made = start = constant(x)
                for op in chain:
                    made = _made(bench, op, *([made, start] if len(bench.host.ops.get(op).inputs) == 2 else [made]))
                got = bench.open(graph, wide=True).run(made)
            for problem in _compared(case, [np.asarray(got)], want, 4):
                yield f"{name} = {value}: {', '.join(chain)}: {problem}"


#: What is not to be asked of NaN and infinities: they are added up in another order, or are no integers.
_FINITE = frozenset({"evaluate", "sum", "joint", "stacked", "constants"})
#: Fact -> whether an op declares it, and what finds how it is broken.
PLAN_FACTS: Mapping[str, tuple[Callable[[OpDef], bool], Callable[[Bench, Case, Rounds], Iterator[str]]]] = (
    MappingProxyType(
        {
            "region": (lambda d: form_of(d) is not None and "random" not in d.effects, _region),
            "evaluate": (lambda d: d.evaluate is not None, _evaluate),
            "sum": (lambda d: d.sum is not None, _sum),
            "joint": (lambda d: bool(d.joint), _joint),
            "stacked": (lambda d: d.stacked is not None, _stacked),
            "decompose": (lambda d: d.decomposition is not None and not d.is_stateful, _decompose),
            "constants": (lambda d: bool(d.constants), _constants),
        }
    )
)
