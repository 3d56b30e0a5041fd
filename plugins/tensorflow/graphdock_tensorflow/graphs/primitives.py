"""Dataflow's primitives as graphdock's own ops, where they are neither a branch of ``tf.cond`` nor a loop of ``tf.while_loop``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphdock_tensorflow.graphs.branches import NOT_A_COND
from graphdock_tensorflow.graphs.loops import NOT_A_LOOP
from graphdock_tensorflow.graphs.nodes import Level, Node, op_of

__all__ = ["is_other", "keep_primitives", "restore", "snapshot", "values_alone"]

_PRIMITIVES = frozenset("Switch Merge Enter Exit NextIteration LoopCond ControlTrigger".split())
#: Reasons for which a loop or a branch is none of ours although its ops are here.
_OTHER = (NOT_A_COND, NOT_A_LOOP)


def values_alone(level: Level) -> None:
    """Make primitives of references, which here are values, those of values."""
    for node in level.values():
        if node.raw is not None and node.op.removeprefix("Ref") in _PRIMITIVES:
            node.op = node.op.removeprefix("Ref")


def snapshot(level: Level) -> dict[str, Node]:
    """Copies of a level's nodes, as they are."""
    return {
        name: replace(n, inputs=list(n.inputs), controls=list(n.controls), attrs=dict(n.attrs))
        for name, n in level.items()
    }


def restore(level: Level, nodes: Mapping[str, Node]) -> None:
    """Give a level the nodes again that it had."""
    level.clear()
    level.update(nodes)
    level.lost.clear()
    level.dropped.clear()


def is_other(level: Level) -> bool:
    """Return whether some control flow was not read for what it is, and not for an op that graphdock lacks."""
    whys = {n.why for n in level.values()} | {why for _, why, _ in level.lost}
    return any(why.endswith(" in it would run twice") or why in _OTHER for why in whys)


def keep_primitives(level: Level) -> None:
    """Make the primitives of a level graphdock's ops of the same names; an input of a Merge that comes later stands last.

    One that can't be imported says why.
    """
    for node in level.values():
        if node.raw is None or node.why:
            continue
        op, raw = node.op, node.raw.attr
        if op not in _PRIMITIVES:
            node.why = "op"
            continue
        if op == "Merge":
            _merge(level, node)
        elif op == "Enter":
            node.attrs["frame_name"] = {"string": raw["frame_name"].s.decode("utf-8", "replace")}
            node.attrs["is_constant"] = {"bool": raw["is_constant"].b}
            node.attrs["parallel_iterations"] = {"int": max(int(raw["parallel_iterations"].i), 1)}
        elif op in ("LoopCond", "ControlTrigger"):
            node.attrs = {}
        if not node.why:
            node.raw = None


def _merge(level: Level, node: Node) -> None:
    later = [level[op_of(t)].op.endswith("NextIteration") if op_of(t) in level else False for t in node.inputs]
    count = sum(later)
    if count == len(later) or later != sorted(later):
        node.why = "what enters stands behind what a NextIteration gives"
        return
    node.attrs |= {"N": {"int": len(later) - count}, "later": {"int": count}}
