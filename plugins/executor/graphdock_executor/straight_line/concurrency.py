"""Concurrency that a plan offers: what a step would save if kernels of several nodes ran at once, by simulation.

List scheduling on the threads that the session asks for: what is dear is handed to the one that is free first, all else runs on
the step's own (R. L. Graham: Bounds on multiprocessing timing anomalies, 1969).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from math import prod

from graphdock.contracts import PlacedGraph, PlanNode, QueuedDevice, Value
from graphdock.units import in_seconds

__all__ = ["pays_to_run_at_once"]

#: Elements that a node reads and makes at least which may be dear.
_LARGE = 1 << 15
#: Seconds that a kernel takes at least which is handed over, that handing it over takes, and that a node takes beside its kernel.
_DEAR, _HAND_OFF, _NODE = 200e-6, 100e-6, 2e-6
#: Part of a step that has to be saved, and seconds.
_PART, _SECONDS = 0.3, 200e-6


def pays_to_run_at_once(placed: PlacedGraph) -> str | None:
    """Saving of threads in a step of a plan, in words; None where that is not worth it, or not known.

    Where a kernel may compute on several threads, those that are dear have them all already.
    """
    if placed.threads > 1 or placed.debug or placed.check_numerics or placed.steps_in_flight > 1 or not placed.holds:
        return None
    large = [n for n in placed.graph.nodes if _elements(n) >= _LARGE and n.opdef.verb.kernel]
    if len(large) < 2 or any(n.bodies and _elements(n) >= _LARGE for n in placed.graph.nodes):
        return None
    if any(isinstance(placed.device_of(n), QueuedDevice) for n in placed.kernels):
        return None
    seconds = {n: s for n in large if (s := placed.seconds(n) or 0.0) >= _DEAR}
    alone = sum(seconds.values())
    if len(seconds) < 2 or alone * _PART < _SECONDS:
        return None
    alone += _NODE * (len(placed.graph.nodes) - len(seconds))
    together = _makespan(placed.graph.nodes, seconds, placed.workers)
    if alone - together < max(_SECONDS, _PART * alone):
        return None
    return f"{placed.workers} threads save about {in_seconds(alone - together)} of {in_seconds(alone)}"


def _makespan(nodes: Sequence[PlanNode], seconds: dict[PlanNode, float], workers: int) -> float:
    """Seconds until the last node has ended."""
    after: dict[PlanNode, list[PlanNode]] = {n: [] for n in nodes}
    waits: dict[PlanNode, int] = {}
    ready: list[tuple[float, int, PlanNode]] = []
    for i, node in enumerate(nodes):
        first = {*(v.node for v in node.inputs if v.node is not None), *node.control, *node.order}
        waits[node] = len(first)
        for other in first:
            after[other].append(node)
        if not first:
            ready.append((0.0, i, node))
    place = {node: i for i, node in enumerate(nodes)}
    there = dict.fromkeys(nodes, 0.0)  # when all is there that a node reads, or waits for
    free, own, last = [0.0] * workers, 0.0, 0.0
    while ready:
        at, _, node = heappop(ready)
        if node not in seconds:
            own = ended = max(at, own) + _NODE
        else:
            own += _NODE
            ended = max(at, own, heappop(free)) + _HAND_OFF + seconds[node]
            heappush(free, ended)
        last = max(last, ended)
        for behind in after[node]:
            waits[behind] -= 1
            there[behind] = max(there[behind], ended)
            if not waits[behind]:
                heappush(ready, (there[behind], place[behind], behind))
    return last


def _elements(node: PlanNode) -> int:
    return sum(map(_size, node.inputs)) + sum(map(_size, node.outputs))


def _size(value: Value) -> int:
    return 0 if value.shape is None or None in value.shape else prod(d for d in value.shape if d is not None)
