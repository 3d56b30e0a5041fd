"""Input part of a step: what waits for its inputs runs before the rest, holds nothing, and gives what enters the rest as feeds do.

A step that waits locks nothing while it runs, so that each of its reads is a copy and each update locks for itself. Where only its
inputs wait, the rest is an ordinary step: planned for the shapes of this time, under one set of locks.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdock.arguments import check_type
from graphdock.contracts.effects import talks
from graphdock.contracts.runtime.resources import ResourceClosed
from graphdock.contracts.step import TraceLevel
from graphdock.errors import GraphdockError
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.planning.translate import needed_operations
from graphdock.session.fetches import FetchPlan, convert_feed
from graphdock.session.plan_cache import Signature
from graphdock.session.run_options import RunMetadata, name_operation, traced

if TYPE_CHECKING:
    from graphdock.session.session import Session

__all__ = ["InputPart", "input_part", "run_in_parts"]


@dataclass(frozen=True, slots=True)
class InputPart:
    """A part of a step that runs first.

    Attributes:
      tensors: what the rest needs of it. ``operations``: what it runs.
      done: operations that the rest must not run again: those that wait, those that draw, and what is computed from them in here.
        What else it computes, such as a constant, both parts compute.
    """

    tensors: tuple[Tensor, ...]
    operations: tuple[Operation, ...]
    done: frozenset[Operation]


@dataclass(frozen=True, slots=True)
class _Facts:
    """Effects of an operation, its bodies included."""

    waits: bool
    talks: bool
    claims: bool
    draws: bool


def input_part(graph: Graph, fetch: FetchPlan, fed: Collection[Tensor]) -> InputPart | None:
    """The input part of a step; None where nothing would be won.

    In it are the operations that wait, or call Python, where nothing before them (by data, control or the order of what talks to
    the world) holds a resource, talks to the world by itself or is one of dataflow's primitives; and what they need. There is none
    where nothing waits, where the rest holds no resource, or waits too, and where it would need what is no array.
    """
    if not graph.waits:
        return None
    given = dict.fromkeys(fed)
    roots = [t.op for t in fetch.tensors if t not in given] + fetch.operations
    needed = needed_operations(roots, given)
    facts = {op: _facts(op) for op in needed}
    first = _early_waits(needed, facts)
    if not first:
        return None
    before = needed_operations(first, given)
    done: dict[Operation, None] = {}
    for op in before:
        if facts[op].waits or facts[op].draws or any(i in done for i in _inputs(op)):
            done[op] = None
    rest = [op for op in needed if op not in done]
    if not any(facts[op].claims for op in rest) or any(facts[op].waits for op in rest):
        return None
    read = [t for op in rest for t in op.inputs if t.op in done and t not in given]
    crossing = tuple(dict.fromkeys([*read, *(t for t in fetch.tensors if t.op in done and t not in given)]))
    if any(t.dtype.kind in "RV" for t in crossing):
        return None
    return InputPart(crossing, tuple(first), frozenset(done))


def _early_waits(needed: Iterable[Operation], facts: dict[Operation, _Facts]) -> list[Operation]:
    """The operations that wait and may run before all that holds a resource."""
    late: set[Operation] = set()
    found: list[Operation] = []
    silent = True  # nothing that talks to the world has been left for the rest yet
    for op in needed:
        fact = facts[op]
        early = not (fact.claims or op.op_def.verb.primitive or any(i in late for i in _inputs(op)))
        if fact.talks:
            early = silent = early and silent and fact.waits
        if not early:
            late.add(op)
        elif fact.waits:
            found.append(op)
    return found


def _inputs(op: Operation) -> list[Operation]:
    return [*(t.op for t in op.inputs), *op._control]


def _facts(op: Operation) -> _Facts:
    waits = speaks = claims = draws = False
    stack = [op]
    while stack:
        one = stack.pop()
        effects = one.op_def.effects
        waits = waits or "waits" in effects
        draws = draws or "random" in effects
        speaks = speaks or talks(one.op_def)
        claims = claims or not one.op_def.accesses <= {"uses"}
        stack.extend([inner for body in one.bodies for inner in body.get_operations()])
    return _Facts(waits, speaks, claims, draws)


def run_in_parts(
    session: Session,
    signature: Signature,
    feed_dict: Mapping[Any, Any] | None,
    limit: float | None,
    level: TraceLevel | None,
    run_metadata: RunMetadata | None,
) -> Any:
    """Run a step whose inputs wait: first what gives them, then the rest, which they are fed to.

    Arguments, results and errors are those of ``Session.run``, after its look-up.
    """
    first = signature.first
    assert first is not None
    started = 0.0 if limit is None else time.monotonic()
    values: list[Any] = []
    if feed_dict:
        values = [convert_feed(f, v) for f, v in zip(first.feeds, feed_dict.values(), strict=True)]
    inputs = _run_part(session, signature, first, values, limit, level, run_metadata)
    before = () if run_metadata is None else run_metadata.events
    if limit is not None:
        limit = max(0.0, limit - (time.monotonic() - started))
    for value in inputs[: len(signature.feeds) - len(values)]:  # behind those of tensors are those of operations
        values.append(value if type(value) is np.ndarray else np.asarray(value))
    results = _run_part(session, signature, signature, values, limit, level, run_metadata)
    if session._overlap is None:
        session._recent = signature.recent
    if run_metadata is not None:
        run_metadata.events = (*before, *run_metadata.events)
    return results[0] if signature.single else signature.fetch.pack(results)


def _run_part(
    session: Session,
    whole: Signature,
    part: Signature,
    values: list[Any],
    limit: float | None,
    level: TraceLevel | None,
    run_metadata: RunMetadata | None,
) -> Sequence[Any]:
    """Results of a part of a step, given arrays that fit."""
    shapes = tuple([v.shape for v in values])
    plan = part.plans.get(shapes)
    same = plan is not None
    if plan is None:
        plan = session._plan(part, shapes)
    if part.recent is not plan or session._recent is not whole.recent:
        session._plans.touch(plan)
        session._recent, part.recent = None, plan
    if session._overlap is not None and part.first is not None:
        return session._overlap.run(part, plan, same, values, limit, level, run_metadata)
    while True:
        if run_metadata is not None:
            check_type(run_metadata, RunMetadata, "run_metadata", "tf.RunMetadata()")
            run_metadata.plan, run_metadata.cached = plan, same
        leased, step = plan, plan.lease()
        try:
            if step.used:
                step.reset()
            if limit is not None:
                step.limit(limit)
            results: Sequence[Any] = (
                plan.run(step, values) if not level else traced(plan, step, values, level, run_metadata)
            )
            return results
        except ResourceClosed:
            plan, same = session._remake(part, plan, shapes), False
        except GraphdockError as error:
            name_operation(error, session.graph)
            raise
        finally:
            if run_metadata is not None:
                run_metadata.events = step.reported()
            leased.give_back(step)
