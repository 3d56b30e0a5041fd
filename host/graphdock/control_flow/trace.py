"""Running a user's function inside a body graph, and what Cond and While share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graphdock.dtypes import DType, variant
from graphdock.errors import GraphdockError, prefixed
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.site import capture, describe
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor
from graphdock.shape import Dims

__all__ = [
    "add_cond",
    "add_while",
    "body_scope",
    "check_callable",
    "name_of",
    "site_of",
    "to_tensor",
    "user_site",
]


@contextlib.contextmanager
def body_scope(body: BodyGraph) -> Iterator[None]:
    """Build in ``body``: it becomes the default graph, names begin with its own, gradients are overridden as around it."""
    scopes = body._scopes
    before = scopes.gradient_maps
    scopes.override_gradients(body.outer._scopes.gradient_maps)
    try:
        with body.as_default(), body.name_scope(body.name + "/"):
            yield
    finally:
        scopes.override_gradients(before)


def to_tensor(body: BodyGraph, value: Any, what: str, dtype: DType | None = None) -> Tensor:
    """A tensor of ``body`` for what a user's function returned; one of an outer graph is captured.

    Raises:
      InvalidArgumentError: the value cannot become a tensor; the message begins with ``what``.
    """
    try:
        return body.capture(convert_to_tensor(value, None if isinstance(value, Tensor) else dtype))
    except GraphdockError as error:
        raise prefixed(what, error) from None


def _shared_captures(bodies: Sequence[BodyGraph]) -> list[Tensor]:
    """The outer tensors that any of ``bodies`` uses, in order of first use; afterwards every body has all, in that
    order.
    """
    union = list(dict.fromkeys(t for body in bodies for t in body.captures))
    for body in bodies:
        body.captures = {t: body.capture(t) for t in union}
    return union


def _add_node(
    graph: Graph,
    op_type: str,
    inputs: Sequence[Tensor],
    attrs: dict[str, Any],
    name: str,
    lengths: tuple[int, ...],
    bodies: tuple[BodyGraph, ...],
) -> Operation:
    """The node itself; outer control inputs of what runs in the bodies become its own."""
    lifted = list(dict.fromkeys(op for body in bodies for op in body.lifted()))
    with graph.control_dependencies(lifted):
        return graph.add_op(graph.host.ops.get(op_type), inputs, attrs, name, lengths, bodies)


def add_cond(graph: Graph, name: str, pred: Tensor, then: BodyGraph, other: BodyGraph) -> Operation:
    """The Cond node of two bodies, whose outputs are set."""
    captures = _shared_captures([then, other])
    attrs = {
        "Tin": tuple(t.dtype for t in captures),
        "Tout": tuple(t.dtype for t in then.outputs),
        "then_branch": then,
        "else_branch": other,
    }
    return _add_node(graph, "Cond", [pred, *captures], attrs, name, (1, len(captures)), (then, other))


def add_while(
    graph: Graph,
    name: str,
    test: BodyGraph,
    step: BodyGraph,
    start: Sequence[Tensor],
    invariants: Sequence[Dims],
    parallel_iterations: int,
    histories: Sequence[Tensor] = (),
    maximum_iterations: int = -1,
) -> Operation:
    """The While node of a condition and a body, whose outputs are set: the next values of the loop variables, then what it keeps.

    Args:
      start: first values of the loop variables. ``invariants``: their shapes. ``histories``: what the loop scans.
    """
    inputs = [*start, *histories, *_shared_captures([test, step])]
    attrs = {
        "Tin": tuple(t.dtype for t in inputs),
        "Tout": (*(t.dtype for t in start), *[variant] * (len(step.outputs) - len(start))),
        "cond": test,
        "body": step,
        "output_shapes": tuple(invariants),
        "scanned": len(histories),
        "maximum_iterations": maximum_iterations,
        "parallel_iterations": parallel_iterations,
    }
    return _add_node(graph, "While", inputs, attrs, name, (len(inputs),), (test, step))


def check_callable(function: Callable[..., Any] | None, what: str) -> Callable[..., Any]:
    """The function itself. Raises TypeError, as TensorFlow does, when it can't be called."""
    if not callable(function):
        raise TypeError(f"{what} must be callable, but it is {function!r} (a {type(function).__name__})")
    return function


def user_site() -> str | None:
    """The user's own line that is running now."""
    return describe(capture())


def site_of(tensor: Tensor) -> str:
    """``"cond/Add:0, made at train.py:14"``, for error messages."""
    site = tensor.op.site
    return f"{tensor.name}" + (f", made at {site}" if site else "")


def name_of(tensor: Tensor) -> str:
    """The last part of its operation's name, as the name of a placeholder for it."""
    return tensor.op.name.rpartition("/")[2]
