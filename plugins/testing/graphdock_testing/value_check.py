"""A ``value`` or ``error`` case of conformance: one kernel in every mode a plan may run it in, or briefly in one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from graphdock.contracts.opdef import OpDef, resolve
from graphdock.dtypes import as_dtype
from graphdock.errors import GraphdockError, InternalError, KernelNotFoundError
from graphdock.graph.graph import Graph
from graphdock_opgen.samples import make_arrays

from graphdock_testing.bench import Bench, Results, agree, run_program
from graphdock_testing.case import Case, ConformanceError
from graphdock_testing.manners import check_manners, settings
from graphdock_testing.numeric import same_bits
from graphdock_testing.programs import Program

__all__ = ["check_error", "check_value", "check_with"]

#: Ops whose results are numbers drawn at random.
_RANDOM = "random"
#: Of an op without the trait, whose oracle already contradicts itself.
_UNSTEADY = (
    "equal inputs gave different bits: the function draws or remembers something that is not among its arguments; "
    "say stateful=True to tf.custom_op, or `traits: {stateful: true}` in the op's spec"
)


def check_value(bench: Bench, case: Case) -> None:
    """Raises ConformanceError, Missing, or what graphdock raises."""
    first = make_arrays(case.data, case.sample, case.types, f"{case.op} {case.index} {case.dtype} a")
    second = make_arrays(case.data, case.sample, case.types, f"{case.op} {case.index} {case.dtype} b")
    check_with(bench, case, first, second)


def check_with(bench: Bench, case: Case, first: Mapping[str, Any], second: Mapping[str, Any]) -> Results | None:
    """As :func:`check_value`, with these arrays; ``second``: others of the same shapes and dtypes.

    Returns what ``first`` gives; None for a stateful op of which nothing says what that is.
    """
    opdef, given = bench.host.ops.get(case.op), settings()
    graph = Graph(bench.host)
    program = bench.build(graph, opdef, first, case.attrs)
    session = bench.open(graph)
    kernel = bench.own_kernel(session, program, first, case)
    exact = kernel is None or kernel.deterministic
    results: list[Results] = []
    right: list[Results | None] = [bench.expected(case, opdef, program, a, i) for i, a in enumerate((first, second))]
    drawn = _RANDOM in opdef.effects
    varies = opdef.is_stateful and not drawn and not program.variables and right[0] is not None
    if varies and not _steady(bench, case, opdef, program, first, right[0]):
        right = [None, None]
    seeds = program.op.node_attrs.get("seed", 0), program.op.node_attrs.get("seed2", 0)
    repeats = seeds != (0, 0) if drawn else not opdef.is_stateful or bool(program.variables)
    try:
        for ordinal, arrays in enumerate((first, second, first)):
            got = bench.step(session, program, arrays, "planned")
            agree(case, got, right[ordinal] if ordinal < 2 else None, f"planned, step {ordinal + 1}")
            results.append(got)
        if repeats and drawn:
            again = bench.step(bench.open(graph), program, first, "again")
            _equal(case, results[0], again, exact, "a new session with the same seeds draws other numbers")
        elif repeats:
            _equal(case, results[0], results[2], exact, "the same inputs give other bits the second time")
        if repeats:
            plain = bench.open(graph, plain=True)
            for ordinal, arrays in enumerate((first, second, first)):
                got = bench.step(plain, program, arrays, "plain")
                _equal(case, results[ordinal], got, exact, f"outside of debug mode step {ordinal + 1} gives other bits")
            if kernel is not None and exact and case.index == 0 and not (bench.brief or drawn or program.variables):
                check_manners(bench, kernel, plain, program, first, given)
    except ConformanceError:
        if opdef.is_stateful or _steady(bench, case, opdef, program, first, right[0]):
            raise
        raise ConformanceError(_UNSTEADY) from None
    if repeats and not drawn:  # where nothing says what is right, all ways must give what the first one gave
        right = [r if want is None else want for want, r in zip(right, results, strict=False)]
    if not bench.brief:
        _other_modes(bench, case, opdef, graph, (first, second), results[0], right)
    if opdef.decomposition is not None and not program.variables:
        _decomposition(bench, case, opdef, graph, first, results[0] if right[0] is None else right[0])
    return None if varies and right[0] is None else results[0]


def _steady(
    bench: Bench, case: Case, opdef: OpDef, program: Program, arrays: Mapping[str, Any], before: Results | None
) -> bool:
    """Return whether the oracle gives for these arrays the bits that it gave before, as far as there is one."""
    again = bench.expected(case, opdef, program, arrays, 0)
    return before is None or all(same_bits(a, b) for a, b in zip(before, again, strict=True))


def _other_modes(
    bench: Bench,
    case: Case,
    opdef: OpDef,
    graph: Graph,
    rounds: Sequence[Mapping[str, Any]],
    facts: Results,
    right: Sequence[Results | None],
) -> None:
    """With dims or ranks unknown, over strided inputs, over buffers of the plan's own."""
    for how in ("fresh", "unranked", "strided", "computed"):
        if how == "strided" and not _can_stride(bench, rounds[0], opdef):
            continue
        program = bench.build(graph, opdef, rounds[0], case.attrs, how)
        around = how in ("strided", "computed")
        session = bench.open(graph, "exact" if around else "generic")
        for ordinal, arrays in enumerate(rounds if how == "computed" else rounds[:1]):
            try:
                got = bench.step(session, program, arrays, how)
            except KernelNotFoundError:
                if not around:
                    raise
                break  # the backend lacks the op that makes the input
            if right[ordinal] is None:
                _same_facts(got, facts, how)
            agree(case, got, right[ordinal], how)


def _decomposition(
    bench: Bench, case: Case, opdef: OpDef, graph: Graph, arrays: Mapping[str, Any], expected: Any
) -> None:
    assert opdef.decomposition is not None
    make = resolve(opdef.decomposition)
    types = {n: as_dtype(v) for n, v in case.types.items() if n not in case.attrs}
    defaults = {a.name: a.default for a in opdef.attrs}
    program = bench.build(graph, opdef, arrays, {**defaults, **types, **case.attrs}, "planned", make)
    got = bench.step(bench.open(graph, wide=True), program, arrays, "decomposition")
    agree(case, got, expected, "decomposition")


def check_error(bench: Bench, case: Case) -> None:
    """The message of the spec is raised, whatever is known of the shapes."""
    opdef = bench.host.ops.get(case.op)
    arrays = make_arrays(case.data, case.sample, case.types, f"{case.op} {case.index} error")
    match = case.sample["match"]
    for how in ("planned", "fresh"):
        graph = Graph(bench.host)
        try:
            program = bench.build(graph, opdef, arrays, case.attrs, how)
            run_program(bench.open(graph), program, arrays)
        except KernelNotFoundError:
            raise
        except GraphdockError as error:
            if isinstance(error, InternalError) and re.search(match, str(error)):
                raise ConformanceError(
                    f"{how}: the message matches {match!r}, but the error is an InternalError: a kernel that refuses what it is "
                    "given raises graphdock.contracts.errors.InvalidArgumentError"
                ) from error
            # what only a kernel can see it may say in its own words
            if isinstance(error, InternalError) or (how == "planned" and not re.search(match, str(error))):
                raise ConformanceError(
                    f"{how}: expected an error that matches {match!r}, got {type(error).__name__}: {error}"
                ) from error
            kind = case.sample.get("error", "")
            if kind and kind not in [c.__name__ for c in type(error).__mro__]:
                raise ConformanceError(
                    f"{how}: expected an error of class {kind}, got {type(error).__name__}: {error}"
                ) from error
        else:
            raise ConformanceError(f"{how}: nothing was raised; expected an error that matches {match!r}")


def _can_stride(bench: Bench, arrays: Mapping[str, Any], opdef: OpDef) -> bool:
    ranked = [
        a.ndim
        for arg in opdef.inputs
        if arg.memory != "host" and arg.dtype != "resource" and arrays.get(arg.name) is not None
        for a in (arrays[arg.name] if isinstance(arrays[arg.name], tuple) else (arrays[arg.name],))
    ]
    needed = {"StridedSlice" for r in ranked if r == 1} | {"Transpose" for r in ranked if r > 1}
    mine = [any(r.plugin in bench.order for r in bench.host.kernels.for_op(op)) for op in needed]
    return any(r > 0 for r in ranked) and all(mine)


def _equal(case: Case, a: Results, b: Results, exact: bool, what: str) -> None:
    """Equal bit by bit; within the tolerances where a kernel says that it is not deterministic."""
    if not exact:
        agree(case, b, a, what)
        return
    for x, y in zip(a, b, strict=True):
        if not same_bits(x, y):
            raise ConformanceError(what)


def _same_facts(got: Sequence[Any], known: Sequence[Any], how: str) -> None:
    for a, b in zip(got, known, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ConformanceError(f"{how}: {a.dtype}{list(a.shape)}, planned {b.dtype}{list(b.shape)}")
