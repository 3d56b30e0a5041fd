"""The process that runs one framework: `python -m benchmarks.worker SUBJECT`, driven by `benchmarks.process`.

Commands and answers are JSON over pipes, one per line. What frameworks print goes to standard error. An exception ends
the process; its traceback on standard error is the answer.

    {"do": "prepare", "module": M, "program": P}  -> {"versions": {...}, "seconds": float} or {"unavailable": reason}
    {"do": "check"}                               -> {"values": [float, ...], "seconds": float}
            values: after the program's check calls; seconds: of the first call, which is when most frameworks compile
    {"do": "burst", "seconds": S}                 -> {"median": s, "minimum": s, "calls": int, "parts": {...}}
            seconds per unit
    {"do": "stop"}                                -> the process ends
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks.program import AGAINST, Case, Program, Unavailable, framework_of

__all__ = ["burst", "digest", "main"]

_SAMPLE_SECONDS = 100e-6  # one sample is enough calls to make the clock's 50 ns vanish
_WARM_UP_SHARE = 0.2  # of a burst: caches, clock frequency and thread pools come back after the other workers' turns
_SMALL = 32  # arrays up to this size are compared element by element, larger ones by their moments


def digest(values: Sequence[object]) -> list[float]:
    """Condense arrays to a few numbers that differ where the arrays do: elements, or sum, weighted sum and norm."""
    import numpy as np

    numbers: list[float] = []
    for value in values:
        flat = np.asarray(value, dtype=np.float64).reshape(-1)
        if flat.size <= _SMALL:
            numbers += flat.tolist()
        else:
            ramp = np.linspace(0.5, 1.5, flat.size)
            numbers += [float(flat.sum()), float(flat @ ramp), float(np.sqrt(flat @ flat))]
    return numbers


def burst(case: Case, seconds: float, group: int, once: bool) -> dict[str, float]:
    """Call `case` for some `seconds`; the median and minimum of samples of `group` calls, in seconds per unit."""
    call, clock = case.call, case.clock
    case.before()
    if not once:
        until = clock() + seconds * _WARM_UP_SHARE
        while clock() < until:
            call()
    samples = []
    until = clock() + seconds
    while True:
        start = clock()
        for _ in range(group):
            call()
        stop = clock()
        samples.append((stop - start) / (group * case.per_call))
        if once or stop >= until:
            break
    return {"median": statistics.median(samples), "minimum": min(samples), "calls": len(samples) * group}


def _group(call: Callable[[], object]) -> int:
    start = time.perf_counter()
    call()
    return max(1, math.ceil(_SAMPLE_SECONDS / max(time.perf_counter() - start, 1e-7)))


def _versions(subject: str) -> dict[str, str]:
    found = {"python": platform.python_version()}
    for module in (framework_of(subject), "numpy"):
        version = getattr(sys.modules.get(module), "__version__", None)
        if version is None:
            try:
                version = importlib.metadata.version(module)
            except importlib.metadata.PackageNotFoundError:
                continue
        found[module] = version
    return found


def _program(module: str, name: str) -> Program:
    return {program.name: program for program in importlib.import_module(module).PROGRAMS}[name]


def main(subject: str) -> None:
    """Serve commands until `stop` or the end of standard input."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    program: Program
    case: Case
    group = 0
    for line in sys.stdin:
        command = json.loads(line)
        answer: dict[str, object] = {}
        if command["do"] == "stop":
            return
        if command["do"] == "prepare":
            program = _program(command["module"], command["program"])
            start = time.perf_counter()
            try:
                case = program.builders["graphdock" if subject == AGAINST else subject]()
            except Unavailable as reason:
                answer = {"unavailable": str(reason)}
            else:
                answer = {"seconds": time.perf_counter() - start, "versions": _versions(subject)}
        elif command["do"] == "check":
            start = time.perf_counter()
            case.call()
            first = time.perf_counter() - start
            for _ in range(program.check_calls - 1):
                case.call()
            answer = {"values": digest(case.values()), "seconds": first}
            group = 1 if program.once else _group(case.call)
        elif command["do"] == "burst":
            answer = {**burst(case, command["seconds"], group, program.once), "parts": dict(case.parts())}
        else:
            raise ValueError(f"unknown command {command['do']!r}")
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
