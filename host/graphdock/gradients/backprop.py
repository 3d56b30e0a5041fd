"""``gradients``: extends the graph by the ops that compute derivatives, in reverse topological order.

Three linear passes without recursion. Back from the ``ys`` over the inputs that gradients may flow to; forward again,
to see what depends on an ``xs``; back once more, to check that every op on the way has a gradient, before anything is
added. Only then the ops are built. Creation order is a topological order, for an operation's inputs are there before
it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Literal

from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.gradients.flow import Flow, Wanted
from graphdock.gradients.indexed_slices import IndexedSlices, concatenated, dense
from graphdock.gradients.parts import Parts
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import convert_to_tensor
from graphdock.ops.core import ones_like, tuple_, zeros_like
from graphdock.shape import compatible, show

__all__ = ["gradients"]

#: Verbs whose gradient hands IndexedSlices on as they are; all others get the whole tensor.
_SPARSE = frozenset({"read", "alias"})


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Literal["none", "zero"] = "none",
) -> list[Tensor | Any]:
    """Symbolic derivatives of the sum of ``ys`` by each of ``xs``.

    Args:
      ys: a floating tensor, or a list of them.
      xs: a floating tensor or a Variable, or a list. A Variable stands for all its reads, a tensor for itself alone.
      grad_ys: the gradient that arrives at each ``ys``, of its shape and dtype; default: ones.
      name: name scope of the ops that are added.
      colocate_gradients_with_ops: put each op's gradient on that op's device.
      gate_gradients: let the gradients of an op's inputs be used only when all of them are there.
      aggregation_method: taken for TensorFlow's sake; gradients are always summed by AddN.
      stop_gradients: tensors to take for constants: nothing flows on through them.
      unconnected_gradients: ``"none"`` returns None for an ``xs`` that the ``ys`` do not depend on, ``"zero"`` zeros.

    Returns:
      One entry per ``xs``, of its shape and dtype: a Tensor, IndexedSlices where all of its uses are gathers, or None.

    Raises:
      GradientError: an op between ``ys`` and ``xs`` has no gradient; the message has the whole path; nothing was added.
      DTypeError: ``ys`` or ``xs`` are not floating. InvalidArgumentError: they are of several graphs, or a gradient
        function
      returned something that does not fit its op.
    """
    mode = str(getattr(unconnected_gradients, "value", unconnected_gradients))
    if mode not in ("none", "zero"):
        raise InvalidArgumentError(
            "gradients: unconnected_gradients is wrong", expected="'none' or 'zero'", got=repr(mode)
        )
    outputs = [_tensor(y, f"ys[{i}]") for i, y in enumerate(_as_list(ys))]
    if not outputs:
        raise InvalidArgumentError("gradients needs at least one y")
    graph = outputs[0].graph
    for i, y in enumerate(outputs):
        if y.graph is not graph:
            raise InvalidArgumentError(f"gradients: ys[0] and ys[{i}] ({y.name}) are of different graphs")
        if not y.dtype.is_floating:
            raise DTypeError(
                f"gradients: ys[{i}] ({y.name}) must be floating", op=y.op.name, site=y.op.site, got=y.dtype.name
            )
    given = _as_list(xs)
    wanted = [_wanted(x, i, graph) for i, x in enumerate(given)]
    stops = {_stop(t, graph) for t in _as_list(stop_gradients) if t is not None}
    flow = Flow(outputs, {w.tensor for w in wanted if w.tensor is not None}, {t for t in stops if t is not None})
    flow.check_all()
    with graph.as_default(), graph.name_scope(name):
        build = _Build(graph, flow, colocate_gradients_with_ops, gate_gradients)
        build.seed(outputs, _as_list(grad_ys) if grad_ys is not None else [None] * len(outputs))
        build.run()
        result = []
        for x, want in zip(given, wanted, strict=True):
            found = None if want.tensor is None else build.total(want.tensor)
            if found is None and mode == "zero":
                found = zeros_like(convert_to_tensor(x))
            result.append(found)
    return result


def continue_gradients(
    graph: Graph, ys: Sequence[Tensor], xs: Sequence[Tensor], grads: Sequence[Tensor]
) -> list[Tensor | IndexedSlices | Parts | None]:
    """Gradients of ``ys`` by ``xs``, tensors of one body, built in another ``graph`` that captures what it needs of it.

    ``grads`` are tensors of ``graph``; ``xs`` may hold handles and variants. The gradient by a variant is of type Parts.
    The bodies have been looked into already. Raises GradientError as :func:`gradients`.
    """
    flow = Flow(ys, set(xs), set())
    flow.check()
    build = _Build(graph, flow, False, False)
    build.seed(ys, grads)
    build.run()
    return [build.total(x) for x in xs]


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _tensor(value: Any, what: str) -> Tensor:
    if value is None or isinstance(value, (Operation, IndexedSlices)):
        raise InvalidArgumentError(f"gradients: {what} must be a tensor", got=repr(value))
    return convert_to_tensor(value)


def _wanted(x: Any, index: int, graph: Graph) -> Wanted:
    handle = getattr(x, "handle", None)
    if isinstance(handle, Tensor):
        attrs = (handle.op._original or handle.op).node_attrs
        dtype, dims, label = attrs["dtype"], attrs["shape"], f"Variable {handle.op.name}"
        tensor = handle
    else:
        if not isinstance(x, Tensor):
            raise InvalidArgumentError(f"gradients: xs[{index}] must be a tensor or a Variable", got=repr(x))
        tensor, dtype, dims, label = x, x.dtype, x._dims, x.name
    if not dtype.is_floating:
        raise DTypeError(
            f"gradients: xs[{index}] ({label}) must be floating",
            op=tensor.op.name,
            site=tensor.op.site,
            got=dtype.name,
            hint="leave it out of xs; for a variable, make it with trainable=False",
        )
    return Wanted(_local(tensor, graph, f"xs[{index}]"), dtype, dims, label)


def _stop(value: Any, graph: Graph) -> Tensor | None:
    handle = getattr(value, "handle", None)
    tensor = handle if isinstance(handle, Tensor) else _tensor(value, "stop_gradients")
    return _local(tensor, graph, "stop_gradients")


def _local(tensor: Tensor, graph: Graph, what: str) -> Tensor | None:
    """What stands for ``tensor`` in ``graph``: itself, or in a body the placeholder that captured it, None when none
    did.
    """
    if tensor.graph is graph:
        return tensor
    chain: list[BodyGraph] = []
    at: Graph = graph
    while at is not tensor.graph:
        if not isinstance(at, BodyGraph):
            raise InvalidArgumentError(
                f"gradients: {what} ({tensor.name}) is of another graph than ys", op=tensor.op.name, site=tensor.op.site
            )
        chain.append(at)
        at = at.outer
    found: Tensor | None = tensor
    for body in reversed(chain):
        found = None if found is None else body.captures.get(found)
    return found


class _Build:
    """Adds the ops. ``sums`` holds what has arrived at each tensor so far; ``totals`` what it came to."""

    def __init__(self, graph: Graph, flow: Flow, colocate: bool, gate: bool) -> None:
        self.graph = graph
        self.flow = flow
        self.colocate = colocate
        self.gate = gate
        self.first = graph.version
        self.sums: dict[Tensor, list[Any]] = {}
        self.totals: dict[Tensor, Any] = {}

    def seed(self, ys: Sequence[Tensor], given: Sequence[Any]) -> None:
        if len(given) != len(ys):
            raise InvalidArgumentError("gradients: grad_ys does not fit ys", expected=str(len(ys)), got=str(len(given)))
        for i, (y, grad) in enumerate(zip(ys, given, strict=True)):
            if grad is None:
                grad = ones_like(y, name=f"grad_ys_{i}")
            else:
                grad = convert_to_tensor(grad, y.dtype, f"grad_ys_{i}")
                if not compatible(grad._dims, y._dims):
                    raise ShapeError(
                        f"gradients: grad_ys[{i}] does not have the shape of ys[{i}] ({y.name})",
                        expected=show(y._dims),
                        got=show(grad._dims),
                    )
            self.sums.setdefault(y, []).append(grad)

    def total(self, tensor: Tensor) -> Any:
        """The sum of the gradients that arrived at a tensor, of a variant its Parts; None when none did."""
        if tensor in self.totals:
            return self.totals[tensor]
        parts = self.sums.pop(tensor, None)
        if not parts:
            return None
        if tensor.dtype.kind == "V":
            found: Any = Parts(tuple([t for p in parts for t in (p.parts if isinstance(p, Parts) else (p,))]))
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
            arrived = [zeros_like(t) if g is None and t.dtype.is_floating else g for t, g in pairs]
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
        if isinstance(grad, Parts):
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
        got = grad.shape._dims
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
            self.graph._learn(grad, dims)
        return grad
