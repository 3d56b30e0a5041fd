"""Large constants of the parts of one session on a task: one array for all parts, however many signatures have it."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
from graphdock.graph.operation import Operation

__all__ = ["Constants"]

#: Bytes up to which a constant stands in the text of a graph.
SMALL = 1024


class Constants:
    """Arrays by their digests. Each is kept as long as a graph here has it: nobody need send it for another one meanwhile."""

    def __init__(self) -> None:
        self._kept: weakref.WeakValueDictionary[str, np.ndarray[Any, Any]] = weakref.WeakValueDictionary()

    def find(self, digests: Collection[str]) -> dict[str, np.ndarray[Any, Any]]:
        """Those of the arrays that are here, which stay as long as the result does."""
        return {digest: found for digest in digests if (found := self._kept.get(digest)) is not None}

    def share(self, graph: Any, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Let a graph that was made of these arrays have those that are here in the place of its own; keep the others of it."""
        for op in _operations(graph):
            for name, value in op.node_attrs.items():
                if isinstance(value, np.ndarray) and value.nbytes > SMALL and value.dtype.kind != "O":
                    digest = next((d for d, array in arrays.items() if _same(array, value)), None)
                    if digest is not None:
                        op.node_attrs = {**op.node_attrs, name: self._kept.setdefault(digest, value)}


def _operations(graph: Any) -> Iterator[Operation]:
    stack = [graph]
    while stack:
        for op in stack.pop().get_operations():
            yield op
            stack.extend(op.bodies)


def _same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    return (a.dtype, a.shape) == (b.dtype, b.shape) and bool((_bytes(a) == _bytes(b)).all())


def _bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
