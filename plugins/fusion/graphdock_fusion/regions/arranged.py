"""Copies of tensors in another layout, each made once for all regions that read it so."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

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
from graphdock.errors import PluginError

__all__ = ["ARRANGED", "arrange", "broken"]

#: The op type of such a copy; it never stands in a user's graph.
ARRANGED = "Arranged"


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
    """An arrangement of a value, and who would read it: regions with their nodes, and which inputs."""

    arrangement: Arrangement
    readers: list[tuple[PlanNode, Region, int]] = field(default_factory=list)


def arrange(
    level: PlanGraph, made: Iterable[tuple[PlanNode, Region]], asked: RegisteredCompiler, context: PlanContext
) -> None:
    """Make the arrangements that pay, and let the regions read them in the place of the values."""
    wanted: dict[tuple[Value, Hashable], _Wanted] = {}
    for node, region in made:
        for index, arrangement in _asked(asked, node, region):
            found = wanted.setdefault((node.inputs[index], arrangement.key), _Wanted(arrangement))
            found.readers.append((node, region, index))
    if not any(_pays(value, found) for (value, _), found in wanted.items()):
        return
    place = {node: i for i, node in enumerate(level.nodes)}
    inputs: dict[PlanNode, list[Value]] = {}
    with Rewriter(level) as change:
        for (value, key), found in wanted.items():
            failed = asked.full_name, ARRANGED, value.name, key
            if not _pays(value, found) or failed in context.failed:
                continue
            maker = value.node
            if maker is not None and maker.verb == "constant":
                node = context.constant(maker, value, _made(asked, found, maker.attrs["value"]))
                node.name = node.outputs[0].name = f"{value.name}/arranged"
                node.device = maker.device
            else:
                node = _node(value, found, asked)
                context.give(node, found.arrangement.kernel, asked)
                context.replacements[node] = Replacement(failed)
            change.insert(change.number(node), before=min([n for n, _, _ in found.readers], key=place.__getitem__))
            for reader, region, index in found.readers:
                inputs.setdefault(reader, list(reader.inputs))[index] = node.outputs[0]
                region.arranged[index] = key
        for reader, values in inputs.items():
            change.rebind(reader, inputs=values)


def _asked(asked: RegisteredCompiler, node: PlanNode, region: Region) -> list[tuple[int, Arrangement]]:
    """Return what the compiler wants of a region's inputs. Raises PluginError where it can't be had, which names it."""
    try:
        wanted = list(asked.compiler.arranged(region).items())
    except Exception as error:
        raise broken(
            asked, f"raises {type(error).__name__} when it is asked for arrangements: {error}", node
        ) from error
    for index, arrangement in wanted:
        if not isinstance(arrangement, Arrangement) or index not in range(len(node.inputs)):
            raise broken(
                asked, "wants an arrangement of what is no input of the region", node, f"{index}: {arrangement!r}"
            )
    return wanted


def _made(asked: RegisteredCompiler, found: _Wanted, value: np.ndarray) -> np.ndarray:
    """Return a constant as it is arranged. Raises PluginError where that is not of the shape that was said."""
    node, arrangement = found.readers[0][0], found.arrangement
    try:
        made = arrangement.of(value)
    except Exception as error:
        raise broken(asked, f"raises {type(error).__name__} when it arranges a constant: {error}", node) from error
    if not isinstance(made, np.ndarray) or made.shape != arrangement.shape or made.dtype != value.dtype:
        got = f"{made.dtype}{list(made.shape)}" if isinstance(made, np.ndarray) else repr(made)
        what = f"arranges a constant as something else than {value.dtype}{list(arrangement.shape)}"
        raise broken(asked, what, node, got)
    return made


def broken(compiler: RegisteredCompiler, what: str, node: PlanNode, got: str | None = None) -> PluginError:
    """Return the error of a compiler that does what none may do; it names the compiler."""
    return PluginError(
        f"the region compiler {compiler.full_name} (of {compiler.package}) {what}",
        op=node.origin,
        site=node.site,
        got=got,
        hint="fusion = false under [session] does without it",
    )


def _pays(value: Value, found: _Wanted) -> bool:
    """Return whether it is read more often than it is made."""
    return len(found.readers) > 1 or value.node is not None and value.node.verb == "constant"


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
