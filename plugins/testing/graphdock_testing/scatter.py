"""Random tasks for the operations of a graph, for tests of sessions on several tasks."""

from __future__ import annotations

import random
from typing import Any

__all__ = ["scatter"]


def scatter(graph: Any, tasks: int, seed: int, job: str = "worker", free: float = 0.1) -> None:
    """Ask for a random task for each operation of a graph, the same one for those that can't be parted.

    Args:
      graph: whose operations' devices are set; those of bodies stay free.
      tasks: how many the job has. ``free``: share of the operations that ask for none.
    """
    draw = random.Random(seed)
    operations = graph.get_operations()
    names = {op.name: op for op in operations}
    group = {op: {op} for op in operations}

    def join(a: Any, b: Any) -> None:
        if group[a] is not group[b]:
            union = group[a] | group[b]
            for op in union:
                group[op] = union

    for op in operations:
        for tensor in op.inputs:
            if tensor.dtype.name in ("resource", "variant"):
                join(op, tensor.op)
        for name in op.colocation:
            if name in names:
                join(op, names[name])
    seen: set[int] = set()
    for op in operations:
        if id(group[op]) not in seen:
            seen.add(id(group[op]))
            if draw.random() >= free:
                op._set_device(f"/job:{job}/task:{draw.randrange(tasks)}")
