"""Count of the cores that this process may use, and of the threads on which a kernel computes by default."""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Iterator

__all__ = ["cores", "threads"]

_LIMIT = "OMP_NUM_THREADS"


def cores() -> int:
    """Cores that the system lets this process use; at least 1.

    On Linux those that it may run on, and no more than the time that its control groups are given, rounded up: what
    ``docker run --cpus 2`` says.
    """
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(there, _share())))


def threads() -> int:
    """One per core, and no more than the environment variable OMP_NUM_THREADS says, which numeric libraries go by too."""
    limit = os.environ.get(_LIMIT, "").split(",")[0].strip()  # one number per level of nesting; the first is meant here
    return min(cores(), int(limit)) if limit.isdecimal() and int(limit) > 0 else cores()


@functools.lru_cache(4)
def _share(root: str = "/") -> float:
    """Seconds of processors that all threads together are given per second, by the tightest of the control groups around."""
    found = [math.inf]
    with contextlib.suppress(OSError):  # no Linux, or nothing that may be read
        lines = _text(root, "proc/self/cgroup").splitlines()
        for group in (line.split(":", 2) for line in lines):
            if len(group) == 3:
                found += _quotas(os.path.join(root, "sys/fs/cgroup"), group[1].split(","), group[2])
    return min(found)


def _text(*path: str) -> str:
    with open(os.path.join(*path), encoding="utf-8") as opened:
        return opened.read()


def _quotas(mounted: str, controllers: list[str], path: str) -> Iterator[float]:
    """Of one line of /proc/self/cgroup: what the group and those around it say. Within a container its path may not be there."""
    files: tuple[str, ...] = ("cpu.max",)
    if controllers == [""]:  # version 2
        top = mounted
    elif "cpu" in controllers:
        top, files = os.path.join(mounted, "cpu"), ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    else:
        return
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    for depth in range(len(parts), -1, -1):
        with contextlib.suppress(OSError):
            words = " ".join([_text(top, *parts[:depth], file) for file in files]).split()
            if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal() and int(words[1]):
                yield int(words[0]) / int(words[1])
