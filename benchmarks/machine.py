"""The machine a figure was measured on: a ratio travels, a time without its machine does not."""

from __future__ import annotations

import os
import platform
from pathlib import Path

__all__ = ["load_average", "machine_facts"]

# Read, never set: every framework keeps its own defaults.
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_CORETYPE",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "XLA_FLAGS",
)


def _cpu_model() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def machine_facts() -> dict[str, object]:
    """CPU model, usable cores, system, and the thread settings found in the environment."""
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "cpu": _cpu_model(),
        "cores": len(affinity(0)) if affinity else os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
        "thread_settings": {name: os.environ[name] for name in _THREAD_VARIABLES if name in os.environ},
    }


def load_average() -> tuple[float, ...]:
    """Load over 1, 5 and 15 minutes; empty where the system does not tell."""
    return tuple(round(load, 2) for load in os.getloadavg()) if hasattr(os, "getloadavg") else ()
