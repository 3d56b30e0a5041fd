"""The global step: one int64 Variable per graph that counts updates."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock.errors import AlreadyExistsError, DTypeError, FailedPreconditionError

__all__ = ["create_global_step", "get_global_step", "get_or_create_global_step", "global_step"]


def _within(graph: Any) -> Any:
    return graph if graph is not None else _tf.get_default_graph()


def get_global_step(graph: _tf.Graph | None = None) -> _tf.Variable | _tf.Tensor | None:
    """The global step of ``graph`` (default: the default graph), or None: what its collection holds, else a variable
    of the name ``global_step``.

    Raises:
      FailedPreconditionError: the graph has several. DTypeError: it is not an integer.
    """
    with _within(graph).as_default():
        found = _tf.get_collection(_tf.GraphKeys.GLOBAL_STEP)
        found = found or [v for v in _tf.global_variables() if v.name == "global_step:0"][:1]
    if len(found) > 1:
        raise FailedPreconditionError(
            "the graph has more than one global step",
            got=", ".join(v.name for v in found),
            hint="look into the collection GraphKeys.GLOBAL_STEP",
        )
    if found and not found[0].dtype.is_integer:
        raise DTypeError(f"the global step {found[0].name} must be an integer", got=found[0].dtype.name)
    return found[0] if found else None


def create_global_step(graph: _tf.Graph | None = None) -> _tf.Variable:
    """Make the global step: an int64 Variable ``global_step``, initially 0.

    Raises:
      AlreadyExistsError: the graph has one.
    """
    before = get_global_step(graph)
    if before is not None:
        raise AlreadyExistsError(
            f"the graph has a global step, {before.name}", hint="call tf.train.get_or_create_global_step()"
        )
    with _within(graph).as_default(), _tf.name_scope(None):
        return _tf.Variable(
            0,
            trainable=False,
            collections=[_tf.GraphKeys.GLOBAL_VARIABLES, _tf.GraphKeys.GLOBAL_STEP],
            name="global_step",
            dtype=_tf.int64,
        )


def get_or_create_global_step(graph: _tf.Graph | None = None) -> _tf.Variable | _tf.Tensor:
    """The global step of ``graph``, made if there is none."""
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def global_step(sess: _tf.Session, global_step_tensor: _tf.Variable | _tf.Tensor) -> int:
    """The value of a global step in a session, as a Python int."""
    return int(sess.run(global_step_tensor))
