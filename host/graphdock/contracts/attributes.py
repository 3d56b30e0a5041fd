"""Attributes of nodes as keys: what tells one node from another of its op."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphdock.dtypes import DType

__all__ = ["attr_key"]


def attr_key(value: Any) -> Any:
    """A hashable key of an attribute's value. Raises TypeError where it has none."""
    if isinstance(value, DType):
        return value.name
    if isinstance(value, np.ndarray):
        if value.nbytes > 4096 or value.dtype.hasobject:
            return id(value)
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float):
        return repr(value)
    hash(value)
    return type(value).__name__, value
