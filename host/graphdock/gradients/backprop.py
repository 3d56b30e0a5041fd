"""``gradients``: extends the graph by the ops that compute derivatives, in reverse topological order.

Three linear passes without recursion. Back from the ``ys`` over the inputs that gradients may flow to; forward again,
to see what depends on an ``xs``; back once more, to check that every op on the way has a gradient, before anything is
added. Only then the ops are built. Creation order is a topological order, for an operation's inputs are there before
it is.

Where the ``ys`` stand in a body, gradients leave it level by level, out to where the ``xs`` stand. A body sees outer tensors
through its captures. Where an ``xs`` lies outside, or is reached through operations outside, the gradient by such a capture goes on
in the graph around, and what it needs of that is captured in turn: all ops are built where the caller stands.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.gradients.flow import Build, Flow, UnsummedGradient, Wanted
from graphdock.gradients.indexed_slices import IndexedSlices, dense
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor
from graphdock.ops.core import ones_like, zeros_like
from graphdock.shape import as_dims, compatible, show

__all__ = ["AggregationMethod", "Levels", "UnconnectedGradients", "enclosing_graph", "gradients", "graphs_around"]


def enclosing_graph(tensors: Sequence[Tensor]) -> Graph:
    """The graph in which gradients of these tensors are built: the default graph if it is a body that sees them, else the innermost
    of theirs.

    Raises:
      InvalidArgumentError: no graph sees all of them.
    """
    inner = get_default_graph()
    bodies = [inner] if isinstance(inner, BodyGraph) else []
    for graph in dict.fromkeys([*bodies, *[t.graph for t in tensors]]):
        around = graphs_around(graph)
        if all(t.graph in around for t in tensors):
            return graph
    first, other = tensors[0], next(t for t in tensors if t.graph not in graphs_around(tensors[0].graph))
    raise InvalidArgumentError(
        f"gradients: ys[0] ({first.name}) and ys[{list(tensors).index(other)}] ({other.name}) are of different graphs",
        op=other.op.name,
        site=other.op.site,
    )


def graphs_around(graph: Graph) -> list[Graph]:
    """A graph and those around it."""
    found = [graph]
    while isinstance(graph, BodyGraph):
        graph = graph.outer
        found.append(graph)
    return found


class Levels:
    """The flows from ``ys`` to ``xs`` through the graphs around ``graph``, innermost first.

    Args:
      graph: where the ops are built.
      ys: tensors of it or of graphs around it.
      xs, stops: tensors; what is of a graph that is not seen from ``graph`` is in no flow.

    Raises:
      GradientError: an op on the way has no gradient.
    """

    def __init__(self, graph: Graph, ys: Sequence[Tensor], xs: set[Tensor], stops: set[Tensor]) -> None:
        self.graph = graph
        self._chain = graphs_around(graph)
        if all(x.graph is graph for x in xs):
            del self._chain[1:]
        wanted = self._wanted(ys, xs, stops)
        self.flows: list[Flow] = []
        cotangents: list[Tensor] = []
        for level, around in enumerate(self._chain):
            here = [y for y in ys if y.graph is around]
            flow = Flow([*cotangents, *here], wanted[level], {t for t in stops if t.graph is around})
            flow.check_all()
            self.flows.append(flow)
            received = flow.received()
            cotangents = [outer for outer, inner in self._captures(level).items() if inner in received]

    def _wanted(self, ys: Sequence[Tensor], xs: set[Tensor], stops: set[Tensor]) -> list[set[Tensor]]:
        """For each level the ``xs`` of it, and the captures through which others are reached."""
        found: list[set[Tensor]] = []
        reached: set[Tensor] = set()
        for level in reversed(range(len(self._chain))):
            here = {x for x in xs if x.graph is self._chain[level]} | reached
            found.insert(0, here)
            if level:
                captures = self._captures(level - 1)
                flow = Flow(list(captures), here, {t for t in stops if t.graph is self._chain[level]})
                reached = {inner for outer, inner in captures.items() if flow.is_active(outer)}
        return found

    def _captures(self, level: int) -> Mapping[Tensor, Tensor]:
        body = self._chain[level]
        return body.captures if isinstance(body, BodyGraph) and level + 1 < len(self._chain) else {}

    def build(
        self, ys: Sequence[Tensor], grads: Sequence[Any], xs: set[Tensor], colocate: bool, gate: bool
    ) -> dict[Tensor, Any]:
        """Add the ops to the default graph, ``graph``. The gradient by each of ``xs`` that has one."""
        found: dict[Tensor, Any] = {}
        cotangents: dict[Tensor, Any] = {}
        for level, (around, flow) in enumerate(zip(self._chain, self.flows, strict=True)):
            build = Build(self.graph, flow, colocate, gate)
            build.arrive(cotangents, cotangents.values())
            here = [(y, grad) for y, grad in zip(ys, grads, strict=True) if y.graph is around]
            build.arrive([y for y, _ in here], [grad for _, grad in here])
            build.run()
            totals = {x: build.total(x) for x in xs if x.graph is around}
            found.update((x, total) for x, total in totals.items() if total is not None)
            captures = {outer: build.total(inner) for outer, inner in self._captures(level).items() if inner in flow.xs}
            cotangents = {outer: total for outer, total in captures.items() if total is not None}
        return found


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
        raise InvalidArgumentError(f"Unknown value for unconnected_gradients: {mode!r}", expected="'none' or 'zero'")
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
        cotangents = [_seed(outputs[i], grads[i], i) for i in smooth]
        totals = levels.build(sources, cotangents, ends, colocate_gradients_with_ops, gate_gradients)
        result = []
        for x, want in zip(given, wanted, strict=True):
            found = totals.get(want.tensor)
            if found is None and mode == "zero":
                found = zeros_like(convert_to_tensor(x))
            result.append(found)
    return result


def _seed(y: Tensor, grad: Any, index: int) -> Any:
    """Return what arrives at ``ys[index]``."""
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
    """Stand-in for the gradient by a tensor that nothing depends on: None, or zeros."""

    NONE = "none"
    ZERO = "zero"
