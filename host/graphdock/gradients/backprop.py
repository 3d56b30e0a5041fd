"""``gradients``: extends the graph by the ops that compute derivatives, in reverse topological order.

Three linear passes without recursion. Back from the ``ys`` over the inputs that gradients may flow to; forward again,
to see what depends on an ``xs``; back once more, to check that every op on the way has a gradient, before anything is
added. Only then the ops are built. Creation order is a topological order, for an operation's inputs are there before
it is.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, Literal

from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.gradients.build import Build, UnsummedGradient
from graphdock.gradients.flow import Flow, Wanted
from graphdock.gradients.indexed_slices import IndexedSlices, dense
from graphdock.gradients.levels import Levels, enclosing_graph, graphs_around
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor
from graphdock.ops.core import ones_like, zeros_like
from graphdock.shape import as_dims, compatible, show

__all__ = ["AggregationMethod", "UnconnectedGradients", "gradients"]


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

    Inside the function of a branch or a loop the ``ys`` and ``xs`` may be tensors of the graph around it, and lie on a path through
    that: the ops are added to the body.

    Args:
      ys: a tensor, or a list of them. One that is not floating adds nothing.
      xs: a tensor or a Variable, or a list. A Variable stands for all its reads, a tensor for itself alone.
      grad_ys: the gradient that arrives at each ``ys``, of its shape and dtype; default: ones.
      name: name scope of the ops that are added.
      colocate_gradients_with_ops: put each op's gradient on that op's device.
      gate_gradients: let the gradients of an op's inputs be used only when all of them are there.
      aggregation_method: of AggregationMethod; gradients are summed by AddN whatever it says.
      stop_gradients: tensors to take for constants: nothing flows on through them.
      unconnected_gradients: ``"none"`` returns None for an ``xs`` that the ``ys`` do not depend on, ``"zero"`` zeros.

    Returns:
      One entry per ``xs``, of its shape and dtype: a Tensor, IndexedSlices where all of its uses are gathers, or None. An
      ``xs`` that is neither floating nor complex has none.

    Raises:
      GradientError: an op between ``ys`` and ``xs`` has no gradient; the message has the whole path; nothing was added.
      DTypeError: a gradient of another dtype than its ``ys``, or a complex ``ys`` has no ``grad_ys``.
      InvalidArgumentError: they are of several graphs, or a gradient function returned something that does not fit its op.
    """
    mode = str(getattr(unconnected_gradients, "value", unconnected_gradients))
    if mode not in ("none", "zero"):
        raise InvalidArgumentError(
            "gradients: unconnected_gradients is wrong", expected="'none' or 'zero'", got=repr(mode)
        )
    AggregationMethod.check(aggregation_method)
    outputs = [_tensor(y, f"ys[{i}]") for i, y in enumerate(_as_list(ys))]
    if not outputs:
        raise InvalidArgumentError("gradients needs at least one y")
    graph = enclosing_graph(outputs)
    given = _as_list(xs)
    wanted = [_wanted(x, i, graph) for i, x in enumerate(given)]
    stops = {_stop(t, graph) for t in _as_list(stop_gradients) if t is not None}
    grads = _as_list(grad_ys) if grad_ys is not None else [None] * len(outputs)
    if len(grads) != len(outputs):
        raise InvalidArgumentError(
            "gradients: grad_ys does not fit ys", expected=str(len(outputs)), got=str(len(grads))
        )
    smooth = [i for i, y in enumerate(outputs) if y.dtype.is_differentiable]
    sources, ends = [outputs[i] for i in smooth], {w.tensor for w in wanted if w.dtype.is_differentiable}
    levels = Levels(graph, sources, ends, stops)
    with graph.as_default(), graph.name_scope(name):
        arriving = [_seed(outputs[i], grads[i], i) for i in smooth]
        totals = levels.build(sources, arriving, ends, colocate_gradients_with_ops, gate_gradients)
        result = []
        for x, want in zip(given, wanted, strict=True):
            found = totals.get(want.tensor)
            if found is None and mode == "zero":
                found = zeros_like(convert_to_tensor(x))
            result.append(found)
    return result


def _seed(y: Tensor, grad: Any, index: int) -> Any:
    """What arrives at ``ys[index]``."""
    if grad is None and y.dtype.is_complex:
        raise DTypeError(
            f"gradients: ys[{index}] ({y.name}) is complex, so grad_ys must say what arrives at it",
            op=y.op.name,
            site=y.op.site,
            got=y.dtype.name,
        )
    if grad is None:
        return ones_like(y, name=f"grad_ys_{index}")
    if not isinstance(grad, IndexedSlices):
        grad = convert_to_tensor(grad, y.dtype, f"grad_ys_{index}")
    elif grad.dtype is not y.dtype:
        raise DTypeError(f"gradients: grad_ys[{index}]", expected=y.dtype.name, got=grad.dtype.name)
    if not compatible(as_dims(grad.shape), y._dims):
        raise ShapeError(
            f"gradients: grad_ys[{index}] does not have the shape of ys[{index}] ({y.name})",
            expected=show(y._dims),
            got=show(as_dims(grad.shape)),
        )
    return grad


def continue_gradients(
    graph: Graph, ys: Sequence[Tensor], xs: Sequence[Tensor], grads: Sequence[Tensor]
) -> list[Tensor | IndexedSlices | UnsummedGradient | None]:
    """Gradients of ``ys`` by ``xs``, tensors of one body, built in another ``graph`` that captures what it needs of it.

    ``grads`` are tensors of ``graph``; ``xs`` may hold handles and variants. The gradient by a variant is an UnsummedGradient.
    The bodies have been looked into already. Raises GradientError as :func:`gradients`.
    """
    flow = Flow(ys, set(xs), set())
    flow.check()
    build = Build(graph, flow, False, False)
    build.arrive(ys, grads)
    build.run()
    return [build.total(x) for x in xs]


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _tensor(value: Any, what: str) -> Tensor:
    if value is None or isinstance(value, Operation):
        raise InvalidArgumentError(f"gradients: {what} must be a tensor", got=repr(value))
    return dense(value) if isinstance(value, IndexedSlices) else convert_to_tensor(value)


def _wanted(x: Any, index: int, graph: Graph) -> Wanted:
    handle = getattr(x, "handle", None)
    if isinstance(handle, Tensor):
        attrs = (handle.op._original or handle.op).node_attrs
        return Wanted(_seen(handle, graph, f"xs[{index}]"), attrs["dtype"])
    if not isinstance(x, Tensor):
        raise InvalidArgumentError(f"gradients: xs[{index}] must be a tensor or a Variable", got=repr(x))
    return Wanted(_seen(x, graph, f"xs[{index}]"), x.dtype)


def _stop(value: Any, graph: Graph) -> Tensor:
    handle = getattr(value, "handle", None)
    tensor = handle if isinstance(handle, Tensor) else _tensor(value, "stop_gradients")
    return _seen(tensor, graph, "stop_gradients")


def _seen(tensor: Tensor, graph: Graph, what: str) -> Tensor:
    """The tensor itself. Raises InvalidArgumentError unless it is of ``graph`` or of one around it."""
    if tensor.graph not in graphs_around(graph):
        raise InvalidArgumentError(
            f"gradients: {what} ({tensor.name}) is of another graph than ys", op=tensor.op.name, site=tensor.op.site
        )
    return tensor


class AggregationMethod:
    """Taken for TensorFlow's sake: gradients that arrive at one tensor are summed by one AddN, whatever is asked for."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2

    @classmethod
    def check(cls, method: Any) -> None:
        """Raise InvalidArgumentError for what is no aggregation method and not None."""
        known = (None, cls.ADD_N, cls.EXPERIMENTAL_TREE, cls.EXPERIMENTAL_ACCUMULATE_N)
        if method not in known:
            raise InvalidArgumentError(
                "aggregation_method is wrong", expected="one of tf.AggregationMethod", got=repr(method)
            )


class UnconnectedGradients(enum.Enum):
    """What stands for the gradient by a tensor that nothing depends on: None, or zeros."""

    NONE = "none"
    ZERO = "zero"
