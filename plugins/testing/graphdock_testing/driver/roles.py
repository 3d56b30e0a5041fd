"""Roles of the arguments of a kernel's ``compute``: those that it reads, and those that it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphdock.contracts import ArgInfo, Bound, BuildContext, In, Lit, PlanNode, streams_of

__all__ = ["Role", "roles"]


@dataclass(frozen=True, slots=True)
class Role:
    """One positional argument. ``on_device``: it is a buffer of the kernel's device."""

    reads: bool = False
    writes: bool = False
    on_device: bool = False


def roles(ctx: BuildContext, bound: Bound) -> list[Role]:
    """One per positional argument of ``bound.compute``: inputs, random streams, outputs that are given, scratch."""
    space = ctx.device.memory_space
    inputs = [Role(True, info.variable and _updates(ctx.node, info), info.memory_space == space) for info in ctx.inputs]
    inputs += [Role()] * len(streams_of(ctx.node))
    given = [o for o in ctx.outputs if o.mode.kind in ("planned", "inplace")]
    outputs = [Role(False, True, o.memory_space == space) for o in given] + [Role(False, True, True)] * len(
        bound.scratch
    )
    if bound.args is None:
        return [*inputs, *outputs]
    return [_of(arg, inputs, outputs) for arg in bound.args]


def _of(arg: object, inputs: Sequence[Role], outputs: Sequence[Role]) -> Role:
    if isinstance(arg, Lit):
        return Role()
    return inputs[arg.index] if isinstance(arg, In) else outputs[arg.index]  # type: ignore[attr-defined]


def _updates(node: PlanNode, info: ArgInfo) -> bool:
    """Return whether the op writes through this handle."""
    arg = node.opdef.input(info.name)
    return arg is None or arg.mutates
