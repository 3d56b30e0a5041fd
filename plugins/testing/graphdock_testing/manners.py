"""Manners of a kernel in its process: what a step leaves as it was, and what it keeps.

Kernels of devices with queues of their own are left to the adversary (:mod:`graphdock_testing.adversary`), and so are steps that
take long: what is asked here takes some dozen of them.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import time
import tracemalloc
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from graphdock.contracts import QueuedDevice
from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.kernel import KernelDef
from graphdock.session.session import Session

from graphdock_testing.bench import Bench, run_program
from graphdock_testing.case import ConformanceError
from graphdock_testing.programs import Program

__all__ = ["check_manners", "settings"]

#: Steps whose memory is counted, and bytes of each that are no matter of the host's own.
_STEPS, _BYTES = 16, 1024
#: Seconds that a step may take for this to be asked.
_LONGEST = 0.005


def check_manners(
    bench: Bench,
    kernel: KernelDef,
    session: Session,
    program: Program,
    arrays: Mapping[str, Any],
    given: Mapping[str, Any],
) -> None:
    """Raise ConformanceError for what else a step did than compute.

    Args:
      session: outside of debug mode; it has run the program. given: :func:`settings` before the kernel was first made.
    """
    if kernel.device != HOST_MEMORY and isinstance(bench.host.open_device(f"/device:{kernel.device}:0"), QueuedDevice):
        return
    with warnings.catch_warnings():
        np.random.random()  # noqa: NPY002 - whoever sets the generator again and again is seen, too
        random.random()  # noqa: S311 - likewise
        warnings.resetwarnings()
        collects = gc.isenabled()
        gc.enable()
        try:
            before, began = {**_state(), **given}, time.thread_time()
            run_program(session, program, arrays)
            took, after = time.thread_time() - began, {**_state(), **settings()}
        finally:
            (gc.enable if collects else gc.disable)()
    changed = [name for name, value in before.items() if after[name] != value]
    if changed:
        raise ConformanceError(f"a step changed {' and '.join(changed)}: that is the program's")
    if took > _LONGEST:
        return
    # what waits for the collector of cycles is not kept: a whole collection, which is dear, says so of what is suspected
    if _kept(session, program, arrays, 0) > _BYTES and (kept := _kept(session, program, arrays, 2)) > _BYTES:
        raise ConformanceError(f"each step keeps {kept} bytes that it never gives back")


def settings() -> dict[str, Any]:
    """Settings of the process that a program has made, by name."""
    return {"the environment": dict(os.environ), "the working directory": os.getcwd()}


def _state() -> dict[str, Any]:
    """State of the process that belongs to the program, by name."""
    numbers: Any = np.random.get_state(legacy=True)  # noqa: NPY002 - it is what is looked at
    return {
        "NumPy's global generator": (bytes(numbers[1].data), *numbers[2:]),
        "Python's global generator": random.getstate(),
        "filters of warnings": list(warnings.filters),
        "handlers of signals": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)],
        "the garbage collector": gc.isenabled(),
        "the limit of recursion": sys.getrecursionlimit(),
    }


def _kept(session: Session, program: Program, arrays: Mapping[str, Any], generation: int) -> int:
    """Bytes of Python's and NumPy's that each of some steps leaves allocated, once objects up to a generation are collected."""
    if tracemalloc.is_tracing():
        return 0
    tracemalloc.start()
    try:
        sizes = []
        for count in (_STEPS, _STEPS):  # what is filled once is filled by the first
            for _ in range(count):
                run_program(session, program, arrays)
            gc.collect(generation)
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return (sizes[1] - sizes[0]) // _STEPS
