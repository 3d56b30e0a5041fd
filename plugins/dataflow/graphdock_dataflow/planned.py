"""Kernels that are given memory for their outputs: blocks that are used again, taken at each call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

from graphdock.contracts import HOST_MEMORY, PLANNED, Bound, BuildContext, PlacedGraph, PlanNode
from graphdock.contracts.runtime.return_check import argument_positions
from graphdock.shape import concrete

from graphdock_dataflow.blocks import LARGE, Blocks, can_count

__all__ = ["can_recycle", "planned", "writing"]


def can_recycle(placed: PlacedGraph, node: PlanNode) -> bool:
    """Return whether a node's kernel writes into given memory, and its outputs are large, of known shapes, and the host's."""
    kernel, prepared = placed.kernels[node], placed.prepared.get(node)
    modes = kernel.modes if prepared is None or prepared.modes is None else prepared.modes
    if "planned" not in modes or "all_or_nothing" in modes or kernel.views or "waits" in node.opdef.effects:
        return False
    if placed.debug or (node.guard is not None and node.guard.promised):
        return False
    nbytes = 0
    for value in node.outputs:
        dims = concrete(value.shape)
        if dims is None or not value.dtype.size or placed.home[value] != HOST_MEMORY:
            return False
        nbytes += prod(dims) * value.dtype.size
    return nbytes >= LARGE and can_count()


def planned(told: BuildContext, dear: bool) -> BuildContext:
    """Facts of a kernel that is given memory. One that may be handed over computes on one thread: others have theirs."""
    outputs = tuple([replace(out, mode=PLANNED) for out in told.outputs])
    return replace(told, outputs=outputs, threads=1 if dear else told.threads)


def writing(bound: Bound, told: BuildContext, blocks: Blocks) -> Callable[..., Any]:
    """``compute`` of a kernel that is given memory, as one that returns what it made; whatever stands in its place is not read."""
    compute = bound.compute
    makers = [blocks.maker(out.dtype.np, concrete(out.shape) or ()) for out in told.outputs]
    written = [(at, i) for at, i in argument_positions(bound, told)[1] if i < len(makers)]
    if len(written) == len(makers) == 1:
        ((at, _),), (make,) = written, makers

        def one(*args: Any) -> Any:
            made = make()
            compute(*args[:at], made, *args[at + 1 :])
            return made

        return one

    def several(*args: Any) -> Any:
        made = tuple([make() for make in makers])
        given = list(args)
        for at, i in written:
            given[at] = made[i]
        compute(*given)
        return made if len(made) > 1 else made[0]

    return several
