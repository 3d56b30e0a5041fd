"""An ``edge`` case of conformance: a kernel without elements, beyond a block, for other shapes, and of NaN and infinities.

NaN and infinities are asked of elementwise ops, and of reductions that say what they compute in a region; what a kernel makes
of them
elsewhere is its own affair. Of ArgMax and of segments it depends in TensorFlow on the order in which it looks at the elements.

``drawn`` cases hold it to the shapes of :func:`graphdock_testing.facts.edges.sizes`, ops on variables too, and elementwise ops and
views to the numbers of :func:`graphdock_testing.facts.edges.ends`. A plan for one shape and one for any refuse the same.
"""

from __future__ import annotations

import ast
import math
import zlib
from typing import Any

import numpy as np
from graphdock.contracts.opdef import OpDef
from graphdock.contracts.scalar_formula import parse_formula
from graphdock.dtypes import as_dtype
from graphdock.errors import (
    ConfigError,
    GraphdockError,
    InvalidArgumentError,
    KernelNotFoundError,
    OutOfRangeError,
    ShapeError,
    format_error,
)
from graphdock.graph.graph import Graph
from graphdock_opgen.samples import bindings
from graphdock_opgen.variants import RESIZED

from graphdock_testing.bench import Bench, Results, agree, run_program
from graphdock_testing.case import Case, ConformanceError
from graphdock_testing.facts.edges import Arrays, ends, free, sizes
from graphdock_testing.facts.settings import arrays_of, varied
from graphdock_testing.numeric import same_bits
from graphdock_testing.programs import Program

__all__ = ["check_drawn", "check_edges", "has_drawn", "has_edges", "kinds_of"]

#: Of the edges that are drawn for a sample a brief case takes one in so many; so does another dtype than the first, of shapes.
_ONE_IN = 8


def has_edges(opdef: OpDef) -> bool:
    """Return whether a kernel of the op is asked for them: it computes from inputs, and nothing else."""
    return bool(opdef.verb.kernel and not opdef.is_stateful and opdef.inputs)


def kinds_of(opdef: OpDef) -> tuple[str, ...]:
    """The variants that the op is asked for, in order."""
    said = "elementwise" in opdef.traits or "reduction" in opdef.traits and opdef.region is not None
    return ("extreme", *RESIZED) if said else RESIZED


def check_edges(bench: Bench, case: Case) -> None:
    """Raise ConformanceError at the first variant for which the kernel gives what the oracle does not; Missing as a value case."""
    kinds = kinds_of(bench.host.ops.get(case.op))
    if bench.brief:
        kinds = (kinds[(case.index + len(case.dtype)) % len(kinds)],)
    opdef = bench.host.ops.get(case.op)
    if "reduction" in opdef.traits and {"float16", "bfloat16"} & set(case.types.values()):
        kinds = tuple(k for k in kinds if k != "large")  # a sum of thousands of halves may be added up in halves
    for kind, variant, rounds in varied(bench, case, kinds):
        shapes = {n: list(a.shape) for n, a in rounds[0].items() if hasattr(a, "shape")}
        try:
            for how in ("planned", "fresh"):
                _check(bench, variant, rounds[0], kind, how)
        except ConformanceError as error:
            raise ConformanceError(f"{error} (of {shapes})") from error


def _check(bench: Bench, case: Case, arrays: Any, kind: str, how: str) -> None:
    graph = Graph(bench.host)
    opdef = bench.host.ops.get(case.op)
    program = bench.build(graph, opdef, arrays, case.attrs, how)
    session = bench.open(graph, "exact" if how == "planned" else "generic")
    kernel = bench.own_kernel(session, program, arrays, case)
    got = bench.step(session, program, arrays, kind)
    agree(case, got, bench.expected(case, opdef, program, arrays, 0), kind, _rounding(bench, case, program, arrays))
    if kernel is None or kernel.deterministic:
        again = run_program(session, program, arrays)
        if not all(same_bits(a, b) for a, b in zip(got, again, strict=True)):
            raise ConformanceError(f"{kind}: the same inputs give other bits the second time")


def _rounding(bench: Bench, case: Case, program: Program, arrays: Arrays) -> Any:
    """Most that rounding alone may change of each element of a sum or a mean, in whatever order it is added up; 0.0 of other ops.

    That is the unit roundoff times the sum of absolute values times the root of how many they are (Higham and Mary, "A new approach
    to probabilistic rounding error analysis", 2019): where numbers cancel, it may be more than any part of the result.
    """
    opdef = bench.host.ops.get(case.op)
    name = _summed(opdef)
    if name is None or not as_dtype(arrays[name].dtype).is_floating:
        return 0.0
    x, kind = arrays[name], as_dtype(arrays[name].dtype).accumulator.np
    found = bench.expected(case, opdef, program, {**arrays, name: np.abs(x)}, 0)
    if found is None:
        return 0.0
    sizes = np.asarray(found[0], np.float64)
    bound = 0.5 * np.finfo(kind).eps * math.sqrt(x.size / max(1, sizes.size)) * sizes
    return np.where(np.isfinite(bound), bound, 0.0)


def _summed(opdef: OpDef) -> str | None:
    """The input whose elements an op adds up, or means, as it says of its one output in a region; None of other ops."""
    if opdef.region is None or len(opdef.outputs) != 1:
        return None
    tree = parse_formula(opdef.region.outputs[opdef.outputs[0].name])
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Div) and _called(tree.right) == "count":
        tree = tree.left
    if not isinstance(tree, ast.Call) or _called(tree) != "sum" or not isinstance(tree.args[0], ast.Name):
        return None
    return tree.args[0].id if tree.args[0].id in [a.name for a in opdef.inputs] else None


def _called(tree: ast.expr) -> str | None:
    return tree.func.id if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) else None


def has_drawn(opdef: OpDef) -> bool:
    """Return whether edges are drawn for an op: its inputs alone decide what it computes."""
    return bool(opdef.verb.kernel and opdef.inputs and "random" not in opdef.effects)


def check_drawn(bench: Bench, case: Case) -> None:
    """Raise ConformanceError at the first edge of the sample where two plans or the oracle disagree; Missing as a value case."""
    opdef, arrays = bench.host.ops.get(case.op), arrays_of(case, "a")
    seed = zlib.crc32(f"{case.op} {case.index} {case.dtype}".encode())
    bench.own_kernel(
        bench.open(graph := Graph(bench.host)), bench.build(graph, opdef, arrays, case.attrs), arrays, case
    )
    drawn = list(sizes(opdef, arrays))
    if case.types != next(bindings(opdef, case.data, case.sample)):  # shapes matter little to dtypes
        drawn = drawn[seed % _ONE_IN :: _ONE_IN]
    if opdef.traits & {"elementwise", "view"}:
        drawn += ends(opdef, arrays, free(case.sample), seed)
    for what, edge in drawn[seed % _ONE_IN :: _ONE_IN] if bench.brief else drawn:
        try:
            _check_drawn(bench, case, opdef, edge)
        except ConformanceError as error:
            shapes = {
                n: [x.shape for x in a] if isinstance(a, tuple) else a.shape for n, a in edge.items() if a is not None
            }
            raise ConformanceError(f"{what}: {error} (of {shapes})") from error


def _check_drawn(bench: Bench, case: Case, opdef: OpDef, arrays: Arrays) -> None:
    refusals: list[str] = []
    for how in ("planned", "fresh"):
        try:
            program, got = _run(bench, case, opdef, arrays, how)
        except KernelNotFoundError:
            raise
        except (InvalidArgumentError, OutOfRangeError) as error:
            if isinstance(error, ConfigError) and error.op is not None:
                return  # the pinned kernel is not for these shapes
            refusals.append(f"{how} refuses it: {error.message}")
            continue
        except GraphdockError as error:
            raise ConformanceError(f"{how}: {format_error(error)}") from error
        try:
            right = bench.expected(case, opdef, program, arrays, 0)
        except Exception as error:
            raise ConformanceError(
                f"{how} gives a result, and the oracle raises {type(error).__name__}: {error}"
            ) from error
        agree(case, got, right, how)
    if len(refusals) == 1:
        raise ConformanceError(f"one plan gives a result, and {refusals[0]}")


def _run(bench: Bench, case: Case, opdef: OpDef, arrays: Arrays, how: str) -> tuple[Program, Results]:
    """Outputs of a plan for these shapes, in debug mode, or for any. Shapes that no graph is made of a step may come upon."""
    planned = how == "planned"
    try:
        program = bench.build(graph := Graph(bench.host), opdef, arrays, case.attrs, how)
    except ShapeError:
        program = bench.build(graph := Graph(bench.host), opdef, arrays, case.attrs, "unranked")
    session = bench.open(graph, "exact" if planned else "generic", plain=not planned)
    return program, bench.step(session, program, arrays, how)
