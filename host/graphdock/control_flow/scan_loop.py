"""``scan_loop``: a loop over the rows of tensors, whose iterations keep values that become the rows of others.

What an iteration keeps goes into a history, and a row is taken off one, so that an iteration costs the same however many there are;
so does one of its gradient. Op packages build recurrent networks and decoders on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdock.control_flow.trace import add_while, body_scope, to_tensor, user_site
from graphdock.control_flow.while_loop import check_next, invariants_of, labels_of, trace_cond
from graphdock.dtypes import int32
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import get_default_graph
from graphdock.graph.tensor import Tensor
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import constant, convert_to_tensor
from graphdock.ops.core import apply_operator
from graphdock.ops.core import shape as shape_of

__all__ = ["scan_loop", "zeros_behind"]

#: The shape of what an iteration keeps: for each dim a number, an int32 scalar, or None where only the step knows.
ElementShape = Sequence[Any]


def scan_loop(
    body: Callable[[list[Tensor], list[Tensor]], tuple[Sequence[Any], Sequence[Any]]],
    loop_vars: Sequence[Any],
    rows: Sequence[Any] = (),
    cond: Callable[..., Any] | None = None,
    element_shapes: Callable[[list[Tensor]], Sequence[ElementShape]] | None = None,
    shape_invariants: Sequence[Any] | None = None,
    count: Any = None,
    parallel_iterations: int = 10,
    name: str | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """Repeat ``body`` for each row of ``rows``, or while ``cond`` holds, and stack what it keeps.

    Args:
      body: called once, now, with the loop variables and with one row of each tensor of ``rows``; returns the loop variables' next
        values and a list of tensors to keep. Both are flat lists.
      loop_vars: tensors or values that convert.
      rows: tensors of rank 1 or more and of one first dim; iteration i is given row i. Without any the loop needs ``cond``.
      cond: takes the loop variables, returns a bool scalar; the loop ends when it is false or the rows are exhausted.
      element_shapes: takes the tensors that an iteration keeps, as they are inside of the loop, and returns for each of them the
        dims that all iterations have, as outside of the loop: numbers, int32 scalars or None. By default what is known of them
        statically.
      shape_invariants: per loop variable the shape that lasts; by default the one that it enters with.
      count: an int32 scalar, at most the number of rows: the loop ends behind so many, and what it keeps of the others is zeros.
        A device that records its work runs them, too, so there an iteration has to keep zeros and its variables.
      parallel_iterations: how many iterations a dataflow executor may overlap.

    Returns:
      The last values of the loop variables, and for each kept tensor of shape ``[*S]`` one of ``[iterations, *S]``; with ``count``
      of ``[rows, *S]``.

    Raises:
      InvalidArgumentError: neither rows nor a condition, or another number of next values than of loop variables.
      ShapeError: rows of a scalar, or first dims that are known to differ. DTypeError, ShapeError: a loop variable would change.
    """
    graph = get_default_graph()
    if not rows and cond is None:
        raise InvalidArgumentError("scan_loop needs rows or a condition", site=user_site())
    with graph.name_scope(name or "while") as scope:
        tensors = [convert_to_tensor(r, name=f"rows_{i}") for i, r in enumerate(rows)]
        fewer = count is not None
        count = convert_to_tensor(count, int32) if fewer else _count(tensors)
        start = [convert_to_tensor(v, name=f"loop_var_{i}") for i, v in enumerate(loop_vars)]
        given = len(start)
        invariants = invariants_of(start, shape_invariants, start)
        if cond is not None:  # the rows do not say how many iterations there are
            start.append(constant(0, int32, name="iterations"))
            invariants.append(())
        partial = fewer or cond is not None
        histories = [
            apply_op("HistoryUnstack", value=t, count=count, reverse=True, partial=partial, name="rows")
            for t in tensors
        ]
        test = trace_cond(
            BodyGraph(scope + "cond", graph),
            (lambda *_: True) if cond is None else lambda *variables: cond(*variables[:given]),
            start,
            start,
            invariants,
        )
        step = BodyGraph(scope + "body", graph)
        with body_scope(step):
            variables = [
                step.add_parameter(t.op.name.rpartition("/")[2], t.dtype, d)
                for t, d in zip(start, invariants, strict=True)
            ]
            elements = [step.add_parameter("row", t.dtype, None if t._dims is None else t._dims[1:]) for t in tensors]
            following, kept = body(variables[:given], elements)
            if len(following) != given:
                raise InvalidArgumentError(
                    "scan_loop: the body returned another number of next values than there are loop variables",
                    expected=str(given),
                    got=str(len(following)),
                    site=user_site(),
                )
            outputs = [
                to_tensor(step, v, f"scan_loop: loop variable {i}", t.dtype)
                for i, (v, t) in enumerate(zip(following, start, strict=False))
            ]
            if cond is not None:
                outputs.append(apply_operator("__add__", variables[given], 1))
            for label, before, after, invariant in zip(
                labels_of(start, start), start, outputs, invariants, strict=True
            ):
                check_next(label, before, after, invariant)
            keeping = [to_tensor(step, v, f"scan_loop: kept value {i}") for i, v in enumerate(kept)]
        step.outputs = [*outputs, *keeping]
        node = add_while(graph, scope, test, step, start, invariants, parallel_iterations, histories)
        if cond is not None:
            count = node.outputs[given]
        shapes = [t._dims for t in keeping] if element_shapes is None else element_shapes(keeping)
        stacked = [
            _stacked(history, count, shape, like)
            for history, shape, like in zip(node.outputs[len(start) :], shapes, keeping, strict=True)
        ]
        if fewer:
            stacked = [zeros_behind(rows, tensors[0]) for rows in stacked]
    return list(node.outputs[:given]), stacked


def _count(rows: Sequence[Tensor]) -> Any:
    """The number of rows, an int32 scalar; None without any."""
    known: int | None = None
    for i, tensor in enumerate(rows):
        if tensor._dims == ():
            raise ShapeError(f"scan_loop: rows[{i}] is a scalar, which has no rows", got=tensor.name, site=user_site())
        size = None if tensor._dims is None else tensor._dims[0]
        if None not in (size, known) and size != known:
            raise ShapeError(
                f"scan_loop: rows[{i}] has another number of rows", expected=str(known), got=str(size), site=user_site()
            )
        known = size if known is None else known
    if known is not None:
        return constant(known, int32)
    return apply_operator("__getitem__", shape_of(rows[0]), 0) if rows else None


def _stacked(history: Tensor, count: Tensor, shape: ElementShape | None, like: Tensor) -> Tensor:
    """A history as a tensor, of whose elements ``shape`` is what is known outside of the loop."""
    import graphdock as tf

    if shape is None:
        raise InvalidArgumentError(
            "scan_loop: what an iteration keeps has an unknown rank",
            op=like.op.name,
            site=like.op.site,
            hint="call set_shape",
        )
    dims = tf.stack([count, *[-1 if d is None else d for d in shape]], name="dims")
    made: Tensor = apply_op("HistoryStack", history=history, dims=dims, T=like.dtype, name="stack")
    if like._dims is not None:
        made.set_shape([None, *like._dims])
    return made


def zeros_behind(rows: Tensor, like: Tensor) -> Tensor:
    """The rows of a tensor, and zeros behind them, as many as ``like`` has more."""
    import graphdock as tf

    known, dims = rows._dims or (None,), shape_of(rows)
    total: Any = like._dims[0] if like._dims else None
    if total is None:
        total = shape_of(like)[0]
    whole = tf.pad(rows, [[0, total - dims[0]], *[[0, 0] for _ in known[1:]]])
    # its first dim is known where that of ``like`` is
    made: Tensor = tf.reshape(whole, tf.stack([total, *[dims[i] if d is None else d for i, d in enumerate(known)][1:]]))
    return made
