"""Cost of kernels: which of them are dear enough to be handed to another thread.

A kernel's time is estimated from the operations and bytes of its op's spec, over what this machine did when it was asked once.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from math import prod

import numpy as np
from graphdock.contracts import PlacedGraph, PlanNode
from graphdock.shape import concrete

__all__ = ["HAND_OFF", "dear_nodes", "seconds_of"]

#: Seconds that a kernel must take to be handed over: a hand-off costs some 15 us on each side.
HAND_OFF = 50e-6
#: Rows of the matrices, and elements of the arrays, that are timed.
_ROWS, _ELEMENTS = 96, 1 << 17
#: Elements of each input and output of a kernel that is not looked at.
_SMALL = 256


@functools.cache
def _rates() -> tuple[float, float]:
    """Operations, and bytes, per second of one kernel; measured once per process, in about a millisecond."""
    a = np.ones((_ROWS, _ROWS), np.float32)
    x = np.ones(_ELEMENTS, np.float32)
    out, y = np.empty_like(a), np.empty_like(x)
    flops = 2.0 * _ROWS**3 / _quickest(lambda: np.matmul(a, a, out))
    return flops, 2.0 * x.nbytes / _quickest(lambda: np.copyto(y, x))


def _quickest(function: Callable[[], object]) -> float:
    best = 1.0
    for _ in range(5):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return max(best, 1e-7)


def _is_small(node: PlanNode) -> bool:
    """Whether it has so few elements that no op takes long over them: most nodes need no more than this."""
    shapes = [concrete(v.shape) for v in (*node.inputs, *node.outputs)]
    return all(dims is not None and prod(dims) <= _SMALL for dims in shapes)


def seconds_of(placed: PlacedGraph, node: PlanNode) -> float:
    """About how long a node's kernel takes; 0 where nobody knows."""
    if _is_small(node):
        return 0.0
    flops, nbytes = placed.cost(node)
    if flops is None or nbytes is None:
        return 0.0
    per_second, bytes_per_second = _rates()
    return max(flops / per_second, nbytes / bytes_per_second)


def dear_nodes(placed: PlacedGraph, least: float, overlapping: frozenset[PlanNode]) -> frozenset[PlanNode]:
    """Nodes whose kernels may be handed over: they take ``least`` seconds, and neither wait nor lock for themselves.

    Args:
      overlapping: nodes of which several executions may be at work at once; of these none that draws, for its stream is one.
    """
    found = []
    for level in placed.graph.all_graphs():
        for node in level.nodes:
            if node not in placed.kernels or "waits" in node.opdef.effects:
                continue
            if node.opdef.accesses and not placed.holds:
                continue
            if node in overlapping and "random" in node.opdef.effects:
                continue
            if not least or seconds_of(placed, node) >= least:
                found.append(node)
    return frozenset(found)
