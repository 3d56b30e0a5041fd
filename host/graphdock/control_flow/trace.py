"""Running a user's function inside a body graph, and what Cond and While share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graphdock.dtypes import DType
from graphdock.errors import GraphdockError
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.site import capture, describe
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor

__all__ = [
    "add_node",
    "body_scope",
    "check_callable",
    "name_of",
    "shared_captures",
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
        raise type(error)(
            f"{what}: {error.message}",
            op=error.op,
            site=error.site,
            expected=error.expected,
            got=error.got,
            hint=error.hint,
        ) from None


def shared_captures(bodies: Sequence[BodyGraph]) -> list[Tensor]:
    """The outer tensors that any of ``bodies`` uses, in order of first use; afterwards every body has all, in that
    order.
    """
    union = list(dict.fromkeys(t for body in bodies for t in body.captures))
    for body in bodies:
        body.captures = {t: body.capture(t) for t in union}
    return union


def add_node(
    graph: Graph,
    op_type: str,
    inputs: Sequence[Tensor],
    attrs: dict[str, Any],
    name: str,
    lengths: tuple[int, ...],
    bodies: tuple[BodyGraph, ...],
) -> Operation:
    """The Cond or While node itself; outer control inputs of what runs in the bodies become its own."""
    lifted = list(dict.fromkeys(op for body in bodies for op in body.lifted()))
    with graph.control_dependencies(lifted):
        return graph.add_op(graph.host.ops.get(op_type), inputs, attrs, name, lengths, bodies)


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
