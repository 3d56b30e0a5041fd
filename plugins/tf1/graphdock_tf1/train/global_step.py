"""The global step: one int64 Variable per graph that counts updates."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock.errors import AlreadyExistsError, ArgumentTypeError, DTypeError, FailedPreconditionError


def _within(graph: Any) -> Any:
    return graph if graph is not None else _tf.get_default_graph()


def get_global_step(graph: _tf.Graph | None = None) -> _tf.Variable | _tf.Tensor | None:
    """The global step of ``graph`` (default: the default graph): what the collection ``GLOBAL_STEP`` holds, else the variable
    ``global_step``, else None.

    Raises:
      FailedPreconditionError: the graph has several. DTypeError: it is not an integer.
    """
    with _within(graph).as_default():
        found = _tf.get_collection(_tf.GraphKeys.GLOBAL_STEP)
        if not found:
            found = [v for v in _tf.global_variables() if v.op.name == "global_step"]
    if len(found) > 1:
        raise FailedPreconditionError(
            "the graph has more than one global step",
            got=", ".join(v.name for v in found),
            hint="look into the collection GraphKeys.GLOBAL_STEP",
        )
    if found:
        assert_global_step(found[0])
    return found[0] if found else None


def assert_global_step(global_step_tensor: _tf.Variable | _tf.Tensor) -> None:
    """Refuse what can be no global step.

    Raises:
      DTypeError: it is not an integer. ArgumentTypeError: it is no scalar, or no Variable and no Tensor.
    """
    if not isinstance(global_step_tensor, _tf.Variable | _tf.Tensor):
        raise ArgumentTypeError("the global step must be a Variable or a Tensor", got=repr(global_step_tensor))
    name = global_step_tensor.name
    if not global_step_tensor.dtype.is_integer:
        raise DTypeError(f"the global step {name} must be an integer", got=global_step_tensor.dtype.name)
    if global_step_tensor.shape.rank not in (None, 0):
        raise ArgumentTypeError(f"the global step {name} must be a scalar", got=str(global_step_tensor.shape))


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
