"""Tensors joined along an axis, and cut along one, by one native function.

The cpu's kernels cut into views, which cost nothing themselves: but whoever reads them with gaps between their rows, as regions do,
gets a copy of each, made from Python. Where a part has no gaps it stays a view.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from graphdock.contracts import KernelDef, KernelRefused, PlanNode, PrepareContext, Prepared

from graphdock_llvm.joins_text import TEXT
from graphdock_llvm.launch import called
from graphdock_llvm.pool import pool_address

__all__ = ["KERNELS"]

_TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
#: Bytes of a part, at least; parts per thread.
_LEAST, _PARTS = 1 << 18, 4


def _known(node: PlanNode, place: int) -> Any:
    """The array that an input always is, or None."""
    source = node.inputs[place].node
    return source.attrs["value"] if source is not None and source.verb == "constant" else None


def _of_input(place: Callable[[PlanNode], int], node: PlanNode) -> int | None:
    value = _known(node, place(node))
    return None if value is None else int(value)


def _kernel(
    op: str, cut: bool, pieces: Callable[[PlanNode], range], axis: Callable[[PlanNode], int | None]
) -> KernelDef:
    """Args:
    cut: the whole is an input, and the pieces are the outputs. ``pieces``: their places among the inputs or
        outputs. ``axis``: of the whole.
    """

    def facts(node: PlanNode) -> tuple[list[int], list[tuple[int, ...]], int] | str:
        """Shape of the whole, those of the pieces, and the axis; or why it is not computed here."""
        parts = [(node.outputs if cut else node.inputs)[i].shape for i in pieces(node)]
        whole = (node.inputs[1 if op == "Split" else 0] if cut else node.outputs[0]).shape
        along = axis(node)
        if whole is None or None in whole or any(s is None or None in s for s in parts):
            return "its shapes are not known"
        if along is None:
            return "its axis is not known"
        sizes = [d or 0 for d in whole]
        along %= max(len(sizes), 1)
        if 0 in sizes:
            return "it has no elements"
        if cut and math.prod(sizes[:along]) == 1:
            return "its parts have no gaps: they are views"
        return sizes, [tuple([d or 0 for d in s or ()]) for s in parts], along

    def check(node: PlanNode) -> str | None:
        found = facts(node)
        return found if isinstance(found, str) else None

    def prepare(ctx: PrepareContext) -> Prepared:
        node, found = ctx.node, facts(ctx.node)
        if isinstance(found, str):
            raise KernelRefused(found)
        whole, parts, along = found
        size, rows = ctx.outputs[0].dtype.size, math.prod(whole[:along])
        shared = max(1, min(_PARTS * ctx.threads, rows, math.prod(whole) * size // _LEAST)) if ctx.threads > 1 else 1
        threads = ctx.threads if shared > 1 else 1
        slot = (1 if op == "Split" else 0) if cut else len(node.inputs)
        first = len(node.inputs) if cut else 0
        numbers = [
            threads,
            pool_address() if threads > 1 else 0,
            shared,
            rows,
            math.prod(whole[along:]) * size,
            slot,
            int(cut),
        ]
        table, place = list[int](), 0
        for i, shape in zip(pieces(node), parts, strict=True):
            wide = math.prod(shape[along:]) * size
            if wide and not (cut and not ctx.outputs[i].used):
                table += [first + i, wide, place]
            place += wide
        return called(ctx, TEXT, (*numbers, len(table) // 3, *table))

    return KernelDef(op, "cpu", prepare=prepare, types={"T": _TYPES}, check=check)


def _outputs(node: PlanNode) -> range:
    return range(len(node.outputs))


def _values(node: PlanNode) -> range:
    return range(node.attrs["N"])


def _attr(node: PlanNode) -> int:
    return int(node.attrs["axis"])


KERNELS = [
    _kernel("Concat", False, _values, partial(_of_input, lambda node: node.attrs["N"])),
    _kernel("Pack", False, _values, _attr),
    _kernel("Split", True, _outputs, partial(_of_input, lambda _: 0)),
    _kernel("SplitV", True, _outputs, partial(_of_input, lambda _: 2)),
    _kernel("Unpack", True, _outputs, _attr),
]
