"""Variables that have no value yet."""

from __future__ import annotations

from collections.abc import Sequence

import graphdock as _tf
from graphdock import ops as _ops


def report_uninitialized_variables(
    var_list: Sequence[_tf.Variable] | None = None, name: str = "report_uninitialized_variables"
) -> _ops.Tensor:
    """A 1-D string tensor with the names of those that have no value yet; default: all global and local variables."""
    variables = [*_tf.global_variables(), *_tf.local_variables()] if var_list is None else list(var_list)
    with _tf.name_scope(name):
        flags = [_tf.is_variable_initialized(v) for v in variables]
        with _tf.device("/cpu:0"):  # devices have no strings
            names = _tf.constant([v.op.name for v in variables], _tf.string, [len(variables)])
            if not flags:
                return names
            return _tf.boolean_mask(names, _tf.logical_not(_tf.stack(flags)))
