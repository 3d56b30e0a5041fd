"""The value of the global step after a step's updates, which most hooks fetch."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock.errors import FailedPreconditionError

from graphdock_tf1.train.global_step import get_global_step

#: The collection that keeps the read; TensorFlow's name of it.
_KEY = "global_step_read_op_cache"


def step_read(who: str) -> Any:
    """A Tensor with the global step of the default graph, read after all updates that are in the graph by now.

    Args:
      who: the hook that needs it, for the error.

    Raises:
      FailedPreconditionError: the graph has no global step.
    """
    graph = _tf.get_default_graph()
    made = _tf.get_collection(_KEY)
    if made and (graph.finalized or graph.get_operations()[-1] is made[-1].op):
        return made[-1]
    step = get_global_step()
    if step is None:
        raise FailedPreconditionError(
            f"Global step should be created to use {who}.", hint="call tf.train.get_or_create_global_step()"
        )
    with _tf.control_dependencies(None), _tf.name_scope(None), _tf.name_scope(step.op.name + "/"):
        read = _tf.identity(step.read_value() if isinstance(step, _tf.Variable) else step, name="read_after_updates")
    _tf.add_to_collection(_KEY, read)
    return read
