"""States of cells that hold TensorArrays, such as histories of attention: loops carry their lists beside the tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import nest


def parted(structure: Any) -> tuple[list[Any], list[Any]]:
    """The leaves of a state: its tensors, and its TensorArrays."""
    flat = nest.flatten(structure)
    return [x for x in flat if not isinstance(x, _tf.TensorArray)], [x for x in flat if isinstance(x, _tf.TensorArray)]


def joined(structure: Any, tensors: Sequence[Any], arrays: Sequence[Any]) -> Any:
    """A state like ``structure`` of other tensors and arrays, each in the order of :func:`parted`."""
    rest, others = iter(tensors), iter(arrays)
    return nest.pack_sequence_as(
        structure, [next(others if isinstance(x, _tf.TensorArray) else rest) for x in nest.flatten(structure)]
    )


def flows(arrays: Sequence[Any]) -> list[Any]:
    """The lists of arrays, as a loop carries them."""
    return [a.flow for a in arrays]


def behind(arrays: Sequence[Any], lists: Sequence[Any]) -> list[Any]:
    """The arrays that go on with other lists."""
    return [type(a._split())(flow)._joined() for a, flow in zip(arrays, lists, strict=True)]
