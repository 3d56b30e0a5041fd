"""Dependence, what is computed from what: which losses and updates of a layer belong to a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import graphdock as _tf
from graphdock import nest
from graphdock import ops as _ops


def depends(made: Any, inputs: Any) -> bool:
    """Return whether a tensor or operation is computed from one of the tensors ``inputs``."""
    ends = {_ops.convert_to_tensor(x) for x in nest.flatten(inputs) if isinstance(x, _tf.Tensor | _tf.Variable)}
    seen: set[Any] = set()
    waiting = list(_sources(made))
    while waiting:
        tensor = waiting.pop()
        if tensor in ends:
            return True
        if tensor.op not in seen:
            seen.add(tensor.op)
            waiting.extend(_sources(tensor))
    return False


def _sources(made: Any) -> Iterator[Any]:
    op = made if isinstance(made, _ops.Operation) else _ops.convert_to_tensor(made).op
    yield from op.inputs
    for control in op.control_inputs:  # a read after an update
        yield from control.inputs
