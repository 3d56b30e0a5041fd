"""Copies of tensors in another layout, each made once for all regions that read it so."""

from __future__ import annotations

import functools
import weakref
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from graphdock.contracts import (
    ArgDef,
    Arrangement,
    Candidate,
    Decision,
    OpDef,
    PlanContext,
    PlanGraph,
    PlanNode,
    Region,
    RegisteredCompiler,
    Replacement,
    Rewriter,
    Value,
)
from graphdock.contracts.ir import make_node

from graphdock_fusion.regions.answers import broken

__all__ = ["ARRANGED", "arrange"]

#: The op type of such a copy; it never stands in a user's graph.
ARRANGED = "Arranged"
#: Weights that one line names.
_NAMED = 4
#: (id of an array that never changes, full name of a compiler, key of an arrangement) -> that array and its elements in that
#: order, while both are there: plans share them.
_KEPT: dict[tuple[int, str, Hashable], tuple[weakref.ref[Any], weakref.ref[Any]]] = {}


@functools.lru_cache(maxsize=32)
def _opdef(dtype: str) -> OpDef:
    return OpDef(
        ARRANGED,
        summary="Elements of a tensor in the order in which kernels of regions read them.",
        inputs=(ArgDef("x", dtype),),
        outputs=(ArgDef("y", dtype),),
        traits=frozenset({"pure"}),
        cost={"flops": "0"},
    )


@dataclass
class _Wanted:
    """An arrangement of a value, and who would read it: regions with their nodes, and which inputs.

    Attributes:
      whole: what stays was filled once, and every element written.
    """

    arrangement: Arrangement
    readers: list[tuple[PlanNode, Region, int]] = field(default_factory=list)
    whole: bool = False


def arrange(
    level: PlanGraph, made: Iterable[tuple[PlanNode, Region]], asked: RegisteredCompiler, context: PlanContext
) -> None:
    """Make the arrangements that pay, and let the regions read them in the place of the values."""
    wanted: dict[tuple[Value, Hashable], _Wanted] = {}
    left: dict[Value, str] = {}  # what regions read as it lies, and why
    for node, region in made:
        for index, arrangement in _asked(asked, node, region):
            value = node.inputs[index]
            if isinstance(arrangement, str):
                left.setdefault(value, arrangement)
                continue
            found = wanted.setdefault((value, arrangement.key), _Wanted(arrangement))
            found.readers.append((node, region, index))
    orders = Counter(value for value, _ in wanted)
    left |= {value: reason for value in orders if (reason := _left(value, orders[value], wanted, context))}
    _note(left, asked, context)
    if not wanted:
        return
    place = {node: i for i, node in enumerate(level.nodes)}
    inputs: dict[PlanNode, list[Value]] = {}
    with Rewriter(level) as change:
        for (value, key), found in wanted.items():
            nodes = _nodes(value, found, asked, context)
            first = min([n for n, _, _ in found.readers], key=place.__getitem__)
            for node in nodes:
                change.insert(change.number(node), before=first)
            for reader, region, index in found.readers if nodes else ():
                inputs.setdefault(reader, list(reader.inputs))[index] = nodes[-1].outputs[0]
                region.arranged[index] = key
        for reader, values in inputs.items():
            change.rebind(reader, inputs=values)


def _left(value: Value, orders: int, wanted: Mapping[tuple[Value, Hashable], _Wanted], context: PlanContext) -> str:
    """Return why what is made of a variable's value does not stay; empty where it does, and of any other value."""
    reason = context.transient(value)
    alone = all(len(found.readers) < 2 for (of, _), found in wanted.items() if of is value)
    return f"{reason}, and each of {orders} regions reads it in an order of its own" * (orders > 1 and alone) or reason


def _note(left: Mapping[Value, str], asked: RegisteredCompiler, context: PlanContext) -> None:
    """Say which weights are not kept in another order, a line for each reason."""
    said: dict[str, dict[str, None]] = {}
    for value, reason in left.items():
        if value.node is not None and value.node.verb in ("read", "constant"):
            named = value.node.inputs[0] if value.node.verb == "read" else value
            said.setdefault(reason, {})[named.name.removesuffix(":0")] = None
    for reason, names in said.items():
        first, more = [*names][:_NAMED], len(names) - _NAMED
        listed = ", ".join(first) + (f" and {more} more" if more > 0 else "")
        context.notes.append(f"{asked.full_name} keeps {listed} in no other order from step to step: {reason}")


def _asked(asked: RegisteredCompiler, node: PlanNode, region: Region) -> list[tuple[int, Arrangement | str]]:
    """Return what the compiler wants of a region's inputs. Raises PluginError where it can't be had, which names it."""
    try:
        wanted = list(asked.compiler.arranged(region).items())
    except Exception as error:
        raise broken(
            asked, f"raises {type(error).__name__} when it is asked for arrangements: {error}", node
        ) from error
    for index, arrangement in wanted:
        if not isinstance(arrangement, Arrangement | str) or index not in range(len(node.inputs)):
            raise broken(
                asked, "wants an arrangement of what is no input of the region", node, f"{index}: {arrangement!r}"
            )
    return wanted


def _nodes(value: Value, found: _Wanted, asked: RegisteredCompiler, context: PlanContext) -> Sequence[PlanNode]:
    """The nodes that make an arrangement, or read what stays from step to step; none where that pays nothing."""
    wish, maker = found.arrangement, value.node
    if maker is not None and maker.verb == "constant":
        node = context.constant(maker, value, _filled(maker.attrs["value"], asked, found))
        node.name = node.outputs[0].name = f"{value.name}/arranged"
        node.device = maker.device
        return [node]
    kept = context.derive(value, f"{asked.full_name}, {wish.key}", wish.shape, functools.partial(_fill, asked, found))
    if kept is not None:
        handle = kept.inputs[0].node
        assert handle is not None
        what = f"kept from step to step in the order of {asked.plugin}.{wish.kernel.short_name}, until the variable is written"
        kept.decision = Decision("host", "host", what)
        return [handle, kept]
    failed = asked.full_name, ARRANGED, value.name, wish.key
    if len(found.readers) < 2 or failed in context.failed:  # it is read no more often than it is made
        return []
    node = _node(value, found, asked)
    context.give(node, wish.kernel, asked)
    context.replacements[node] = Replacement(failed)
    return [node]


def _filled(array: Any, asked: RegisteredCompiler, found: _Wanted) -> Any:
    """The arrangement of an array that never changes."""
    key = id(array), asked.full_name, found.arrangement.key
    known = _KEPT.get(key)
    room = known[1]() if known is not None and known[0]() is array else None
    if room is None:
        room = np.empty(found.arrangement.shape, array.dtype)
        _fill(asked, found, array, room)
        _KEPT[key] = weakref.ref(array), weakref.ref(room, lambda _: _KEPT.pop(key, None))
    return room


def _fill(asked: RegisteredCompiler, found: _Wanted, array: Any, room: Any) -> None:
    """Arrange an array. The first time each element is held to be written. Raises PluginError, which names the compiler."""
    told = not found.whole and room.dtype.kind == "f" and not np.isnan(array).any()
    if told:
        room.fill(np.nan)
    try:
        found.arrangement.fill(array, room)
    except Exception as error:
        what = f"raises {type(error).__name__} when it arranges what stays: {error}"
        raise broken(asked, what, found.readers[0][0]) from error
    if told and (left := int(np.isnan(room).sum())):
        what = "leaves elements as they were when it arranges what stays: the memory held something else before"
        raise broken(asked, what, found.readers[0][0], f"{left} of {room.size}")
    found.whole = True


def _node(value: Value, found: _Wanted, asked: RegisteredCompiler) -> PlanNode:
    first = found.readers[0][0]
    node = make_node(
        _opdef(value.dtype.name),
        f"{value.name.removesuffix(':0')}/arranged",
        [value],
        {},
        [(value.dtype, found.arrangement.shape)],
        site_of=first.site_of,
        origins=first.origins,
    )
    node.device = first.device
    name = f"{asked.plugin}.{found.arrangement.kernel.short_name}"
    why = f"{len(found.readers)} regions read it in this order"
    assert first.device is not None
    node.decision = Decision(name, "region", why, (Candidate(name, asked.compiler.device_type),))
    return node
