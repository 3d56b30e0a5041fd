"""Updates of some rows of a variable: scatter, and optimizers' steps for the rows that a gradient names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from graphdock.contracts import (
    KernelDef,
    KernelRefused,
    Native,
    NativeShapes,
    PlanNode,
    PrepareContext,
    Prepared,
    errors,
)
from graphdock.contracts.ir import arg_of

from graphdock_llvm.emitter import SCALARS
from graphdock_llvm.extents import bind_any
from graphdock_llvm.launch import address_of
from graphdock_llvm.native import chain
from graphdock_llvm.row_updates_text import RULES, Rule, text
from graphdock_llvm.target import width

__all__ = ["KERNELS"]

#: Places of the table for one row.
_PLACES = 2


def _rule(node: PlanNode) -> Rule:
    return RULES[node.op, bool(node.attrs.get("use_nesterov", False))]


def _check(node: PlanNode) -> str | None:
    rule = _rule(node)
    given, indices = node.inputs[rule.given], node.inputs[rule.indices]
    if given.shape is None or indices.shape is None:
        return "its rank is not known"
    if given.shape == ():
        return "one number is for all rows"
    return None


class _Rows(NativeShapes):
    """Numbers of a node's calls, and the memory in which rows are summed."""

    def __init__(self, node: PlanNode, rule: Rule) -> None:
        self._node, self._rule = node, rule
        self._optimizes = not node.op.startswith("ResourceScatter")
        self.numbers = np.zeros(6, np.int64)
        self._memory = np.empty(0, np.int64)

    def read(self, shapes: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        node, rule = self._node, self._rule
        var, given, indices = (shapes[i] for i in (rule.held[0], rule.given, rule.indices))
        names = [arg.name for arg in arg_of(node)]
        for slot in rule.held:
            if shapes[slot] != var:
                what = f"{names[slot]} has not the shape of var"
                raise errors.ShapeError(what, expected=str(var), got=str(shapes[slot]))
        if self._optimizes and not math.prod(indices):
            self.numbers[:3] = 0
            return []
        if not var:
            raise errors.ShapeError("the variable is a scalar and has no rows")
        if self._optimizes and given[1:] != var[1:]:
            what = f"{names[rule.given]} has not the row shape of var"
            raise errors.ShapeError(what, expected=str(var[1:]), got=str(given[1:]))
        if given != (*indices, *var[1:]):
            rows = str([*indices, *var[1:]])
            raise errors.ShapeError(f"{names[rule.given]} have shape {list(given)}", expected=f"{rows}, or a scalar")
        count, wide = math.prod(indices), math.prod(var[1:])
        self.numbers[:3] = var[0], count, wide
        if rule.sums:
            bits = max(1, (_PLACES * count - 1).bit_length())
            size = -(-count * wide * node.inputs[rule.given].dtype.size // 8)
            if self._memory.size < (1 << bits) + count + size:
                self._memory = np.empty((1 << bits) + count + size, np.int64)
            self.numbers[3:] = self._memory.ctypes.data, 64 - bits, (1 << bits) - 1
        return []

    def make(self, output: int) -> Any:
        raise AssertionError("a row update makes nothing")


def _prepare(ctx: PrepareContext) -> Prepared:
    node, rule = ctx.node, _rule(ctx.node)
    if why := _check(node):
        raise KernelRefused(why)
    dtype = node.inputs[rule.given].dtype
    if wrong := [i.name for i in ctx.inputs if i.variable and i.dtype is not dtype]:
        raise KernelRefused(f"{wrong[0]} is of another dtype than its update")
    index = SCALARS[node.inputs[rule.indices].dtype.name]
    number = SCALARS[node.inputs[rule.scalars[0]].dtype.name if rule.scalars else dtype.name]
    source = text(node.op, bool(node.attrs.get("use_nesterov", False)), dtype.name, index, number, width())
    native = Native(address_of(ctx, source), chain, sized=partial(_Rows, node, rule), status=True)
    bind = partial(
        bind_any, len(node.inputs), 0, native, refuse=partial(_refuse, rule, node.op.startswith("ResourceScatter"))
    )
    return Prepared(bind, native=native, source=lambda: source)


def _refuse(rule: Rule, scatters: bool, *args: Any) -> None:
    indices, high = args[rule.indices].copy(), args[rule.held[0]].shape[0]
    bad = next(iter(np.argwhere((indices < 0) | (indices >= high))), None)
    if bad is None:
        raise errors.InvalidArgumentError("indices were written meanwhile", expected=f"from 0 to {high - 1}")
    if scatters:
        at = "".join(f"[{i}]" for i in bad)
        raise errors.InvalidArgumentError(
            f"indices{at} is {int(indices[tuple(bad)])}, which is out of bounds for axis 0 of size {high}",
            expected=f"from 0 to {high - 1}",
        )
    low, most = int(indices.min()), int(indices.max())
    raise errors.InvalidArgumentError(
        "a row to update is not there", expected=f"rows from 0 to {high - 1}", got=str(low if low < 0 else most)
    )


KERNELS = [
    KernelDef(op, "cpu", prepare=_prepare, types={"T": ("float32", "float64")}, check=_check)
    for op in dict.fromkeys(op for op, _ in RULES)
]
