"""Nodes that stand beside a loop of a plan: numbers, and what is made of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import PassContext, PlanGraph, PlanNode, Value, dtypes
from graphdock.contracts.ir import make_node
from graphdock.dtypes import DType
from graphdock.shape import Dims

from graphdock_data.passes.affine import Affine, Scopes
from graphdock_data.passes.trips import NotKnown

__all__ = ["NodeMaker"]

_LIST = (dtypes.variant, ())


class NodeMaker:
    """Makes nodes of a level in the name of one that is there.

    Attributes:
      made: in the order in which they need each other; in no graph yet.
    """

    def __init__(self, like: PlanNode, level: PlanGraph, context: PassContext, scopes: Scopes) -> None:
        self._like, self._level, self._context, self._scopes = like, level, context, scopes
        self.made: list[PlanNode] = []

    def node(
        self, op: str, inputs: Sequence[Value], attrs: dict[str, Any], output: tuple[DType, Dims], name: str
    ) -> Value:
        like = self._like
        node = make_node(
            self._context.opdef(op),
            f"{like.name}/{name}",
            inputs,
            attrs,
            [output],
            requested=like.requested,
            site_of=like.site_of,
            origins=like.origins,
        )
        self.made.append(node)
        return node.outputs[0]

    def constant(self, array: Any, dtype: DType) -> Value:
        array = np.asarray(array, dtype.np)
        named = Value(f"{self._like.name}/number", dtype, array.shape)
        node = self._context.constant(self._like, named, array)
        self.made.append(node)
        return node.outputs[0]

    def integers(self, numbers: Any) -> Value:
        return self.constant(numbers, dtypes.int32)

    def binary(self, op: str, x: Value, y: Value) -> Value:
        """Of two scalars of int32."""
        return self.node(op, [x, y], {"T": dtypes.int32}, (dtypes.int32, ()), op.lower())

    def scalar(self, form: Affine, clamped: bool = False) -> Value:
        """The scalar that a form is. ``clamped``: zero where that is negative.

        Raises:
          NotKnown: the level has none of what it is made of.
        """
        if form.known is not None:
            return self.integers(max(form.known, 0) if clamped else form.known)
        total: Value | None = None
        for base, factor in sorted(form.terms, key=lambda term: -term[1]):
            own = isinstance(base, Value) and base.node in self.made
            value = base if own else self._scopes.scalar(base, self._level)
            if not isinstance(value, Value) or factor not in (1, -1):
                raise NotKnown("the number of its iterations is not known where the loop stands")
            if total is None and factor == 1:
                total = value
            else:
                total = self.binary("Add" if factor == 1 else "Sub", total or self.integers(0), value)
        assert total is not None
        if form.number:
            total = self.binary("Add", total, self.integers(form.number))
        if clamped and not form.at_least_zero():
            total = self.binary("Maximum", total, self.integers(0))
        return total

    def vector(self, scalars: Sequence[Value]) -> Value:
        attrs = {"T": dtypes.int32, "N": len(scalars), "axis": 0}
        return self.node("Pack", scalars, attrs, (dtypes.int32, (len(scalars),)), "vector")

    def indices(self, low: Affine, end: Affine) -> Value:
        """Those from ``low`` to before ``end``."""
        if low.known is not None and end.known is not None:
            return self.integers(np.arange(low.known, end.known))
        return self.span(self.scalar(low), self.scalar(end))

    def span(self, start: Value, limit: Value, step: int = 1) -> Value:
        attrs = {"Tidx": dtypes.int32}
        return self.node("Range", [start, limit, self.integers(step)], attrs, (dtypes.int32, (None,)), "indices")

    def part(self, rows: Value, low: Affine) -> Value:
        """The rows from one on; none where there are not so many."""
        shape = rows.shape or ()
        begin = self.integers([low.known]) if low.known is not None else self.vector([self.scalar(low)])
        one = self.integers([1])
        masks = ("begin_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
        attrs = {"T": rows.dtype, "Index": dtypes.int32, **dict.fromkeys(masks, 0), "end_mask": 1}
        known = low.known is not None and shape[0] is not None
        left = max(int(shape[0] or 0) - int(low.known or 0), 0) if known else None
        return self.node("StridedSlice", [rows, begin, one, one], attrs, (rows.dtype, (left, *shape[1:])), "part")

    def padded(self, rows: Value, before: Affine, behind: Affine, size: int | None) -> Value:
        """The rows with zeros before and behind them."""
        dims = (rows.shape or ())[1:]
        if before.known is not None and behind.known is not None:
            by = self.integers([[before.known, behind.known], *[[0, 0]] * len(dims)])
        else:
            pairs = [self.vector([self.scalar(before), self.scalar(behind, True)])]
            pairs += [self.integers([0, 0]) for _ in dims]
            attrs: dict[str, Any] = {"T": dtypes.int32, "N": len(pairs), "axis": 0}
            by = self.node("Pack", pairs, attrs, (dtypes.int32, (len(pairs), 2)), "paddings")
        attrs = {"T": rows.dtype, "Tpaddings": dtypes.int32, "mode": "constant"}
        zero = self.constant(0, rows.dtype)
        return self.node("Pad", [rows, by, zero], attrs, (rows.dtype, (size, *dims)), "padded")

    # lists

    def length(self, array: Value) -> Value:
        return self.node("TensorListLength", [array], {}, (dtypes.int32, ()), "length")

    def scattered(self, array: Value, rows: Value, indices: Value) -> Value:
        attrs = {"element_dtype": rows.dtype, "add": False}
        return self.node("TensorListScatterIntoExistingList", [array, rows, indices], attrs, _LIST, "list")

    def gathered(self, array: Value, indices: Value, dtype: DType, dims: Sequence[int], count: int | None) -> Value:
        inputs = [array, indices, self.integers(np.array(dims, np.int32))]
        return self.node("TensorListGather", inputs, {"element_dtype": dtype}, (dtype, (count, *dims)), "elements")

    def nothing(self) -> Value:
        """The list of a gradient that nobody has."""
        return self.node("OptionalNone", [], {}, _LIST, "nothing")

    def added(self, arrays: Sequence[Value]) -> Value:
        return self.node("AddLists", arrays, {"N": len(arrays)}, _LIST, "sum")

    # histories

    def unstacked(self, rows: Value, count: Value, reverse: bool, partial: bool) -> Value:
        attrs = {"T": rows.dtype, "reverse": reverse, "partial": partial}
        return self.node("HistoryUnstack", [rows, count], attrs, _LIST, "rows")

    def stacked(self, history: Value, count: int | None, like: Value, reverse: bool) -> Value:
        dims = like.shape or ()
        shape = self.integers([-1 if count is None else count, *dims])
        attrs = {"T": like.dtype, "reverse": reverse, "padded": False}
        return self.node("HistoryStack", [history, shape], attrs, (like.dtype, (count, *dims)), "stack")

    def elements_of(self, history: Value) -> Value:
        """The number of elements of a history of scalars of int32."""
        rows = self.stacked(history, None, Value("number", dtypes.int32, ()), False)
        shape = self.node("Shape", [rows], {"T": dtypes.int32, "out_type": dtypes.int32}, (dtypes.int32, (1,)), "shape")
        begin, end = self.integers([0]), self.integers([1])
        masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask")
        attrs = {"T": dtypes.int32, "Index": dtypes.int32, **dict.fromkeys(masks, 0), "shrink_axis_mask": 1}
        return self.node("StridedSlice", [shape, begin, end, end], attrs, (dtypes.int32, ()), "count")
