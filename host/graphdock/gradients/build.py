"""The ops of a gradient: what each op's gradient function makes of the gradients that arrived, summed per tensor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.gradients.flow import Flow
from graphdock.gradients.indexed_slices import IndexedSlices, concatenated, dense
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import convert_to_tensor
from graphdock.ops.core import tuple_, zeros_like
from graphdock.shape import as_dims, compatible, show

__all__ = ["Build", "UnsummedGradient"]

#: Verbs whose gradient hands IndexedSlices on as they are; all others get the whole tensor.
_SPARSE = frozenset({"read", "alias"})


class Build:
    """Adds the ops. ``sums`` holds what has arrived at each tensor so far; ``totals`` what it came to."""

    def __init__(self, graph: Graph, flow: Flow, colocate: bool, gate: bool) -> None:
        self.graph = graph
        self.flow = flow
        self.colocate = colocate
        self.gate = gate
        self.first = graph.version
        self.sums: dict[Tensor, list[Any]] = {}
        self.totals: dict[Tensor, Any] = {}

    def arrive(self, tensors: Iterable[Tensor], grads: Iterable[Any]) -> None:
        """Gradients that come from outside: of the ``ys``."""
        for tensor, grad in zip(tensors, grads, strict=True):
            self.sums.setdefault(tensor, []).append(grad)

    def total(self, tensor: Tensor) -> Any:
        """The sum of the gradients that arrived at a tensor, of a variant an UnsummedGradient; None when none did."""
        if tensor in self.totals:
            return self.totals[tensor]
        parts = self.sums.pop(tensor, None)
        if not parts:
            return None
        if tensor.dtype.kind == "V":
            found: Any = UnsummedGradient(
                tuple([t for p in parts for t in (p.parts if isinstance(p, UnsummedGradient) else (p,))])
            )
        elif len(parts) == 1:
            found = parts[0]
        elif all(isinstance(p, IndexedSlices) for p in parts):
            found = concatenated(parts)
        else:
            whole = [dense(p) if isinstance(p, IndexedSlices) else p for p in parts]
            found = apply_op("AddN", inputs=whole)
        self.totals[tensor] = found
        return found

    def run(self) -> None:
        for step in self.flow.steps:
            op = step.op
            arrived = [self.total(t) for t in op.outputs]
            if all(g is None for g in arrived):
                continue
            near = self.graph.colocate_with(op, ignore_existing=True) if self.colocate else contextlib.nullcontext()
            with near, self.graph.name_scope(op.name + "_grad"):
                self._apply(step.op, step.inputs, arrived, step.source)
            for tensor in op.outputs:
                if tensor not in self.flow.xs:
                    self.totals.pop(tensor, None)

    def _apply(self, op: Operation, active: Sequence[int], arrived: list[Any], source: Any) -> None:
        if op.verb not in _SPARSE:
            arrived = [dense(g) if isinstance(g, IndexedSlices) else g for g in arrived]
        if source.by_user:
            pairs = zip(op.outputs, arrived, strict=True)
            arrived = [zeros_like(t) if g is None and t.dtype.is_differentiable else g for t, g in pairs]
        try:
            result = source.function(op, *arrived)
        except Exception as error:
            error.add_note(f"while {source.label} built the gradient of {op.name} ({op.type}), made at {op.site}")
            raise
        found = list(result) if isinstance(result, (list, tuple)) else [result]
        if len(found) != len(op.inputs):
            raise InvalidArgumentError(
                f"the gradient function of {op.type} ({source.label}) returned a wrong number of gradients",
                op=op.name,
                site=op.site,
                expected=f"{len(op.inputs)}, one per input",
                got=str(len(found)),
            )
        taken = [(i, found[i]) for i in active if found[i] is not None]
        checked = [(i, self._checked(op, i, g, source)) for i, g in taken]
        if self.gate and len(checked) > 1 and all(isinstance(g, Tensor) for _, g in checked):
            gated = tuple_([g for _, g in checked])
            checked = [(i, g) for (i, _), g in zip(checked, gated, strict=True)]
        for i, grad in checked:
            self.sums.setdefault(op.inputs[i], []).append(grad)

    def _checked(self, op: Operation, index: int, grad: Any, source: Any) -> Any:
        tensor = op.inputs[index]
        if isinstance(grad, UnsummedGradient):
            return grad
        dtype, dims = tensor.dtype, tensor._dims
        if dtype.name == "resource":
            attrs = self.flow.handle_attrs(tensor)
            dtype, dims = (grad.dtype, None) if attrs is None else (attrs["dtype"], attrs["shape"])
        if not isinstance(grad, (Tensor, IndexedSlices)):
            grad = convert_to_tensor(grad, dtype)
        what = f"the gradient function of {op.type} ({source.label}) returned a gradient of another"
        if grad.dtype is not dtype:
            raise DTypeError(
                f"{what} dtype than input {index} ({tensor.name})",
                op=op.name,
                site=op.site,
                expected=dtype.name,
                got=grad.dtype.name,
            )
        got = as_dims(grad.shape)
        if not compatible(got, dims):
            raise ShapeError(
                f"{what} shape than input {index} ({tensor.name})",
                op=op.name,
                site=op.site,
                expected=show(dims),
                got=show(got),
                hint="sum over the dims that were broadcast",
            )
        if isinstance(grad, Tensor) and got != dims and grad.graph is self.graph and grad.op._id >= self.first:
            self.graph.learn_shape(grad, dims)
        return grad


@dataclass(frozen=True, slots=True)
class UnsummedGradient:
    """The addends of the gradient by a tensor of dtype variant; each is such a tensor, with as many elements."""

    parts: tuple[Tensor, ...]
