"""How many cores this process may use, and on how many threads a kernel computes by default."""

from __future__ import annotations

import os

__all__ = ["cores", "threads"]

_LIMIT = "OMP_NUM_THREADS"


def cores() -> int:
    """Cores that the system lets this process use; at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """One per core, and no more than the environment variable OMP_NUM_THREADS says, which numeric libraries go by too."""
    limit = os.environ.get(_LIMIT, "").split(",")[0].strip()  # one number per level of nesting; the first is meant here
    return min(cores(), int(limit)) if limit.isdecimal() and int(limit) > 0 else cores()
