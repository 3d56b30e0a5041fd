"""Profile of a step's microseconds: `python -m benchmarks.profile_step [null_step.scalar]`.

A timer interrupts the running step some thousand times a second and notes which line was running; a line's share of the
samples times the step's own time, measured without the timer, is what it costs. Python notices the interrupt after the
call or jump it is in, so the time of a NumPy call stands at the line that makes it. Call counts come from a cProfile of
some steps, whose times (inflated several times for steps this short) are not used.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib
import linecache
import os
import pstats
import signal
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType

from benchmarks.cli import BENCHMARKS
from benchmarks.program import Case
from benchmarks.worker import burst

__all__ = ["calls_per_step", "main", "sample_lines"]

_INTERVAL = 0.0003
_MARKERS = (f"{os.sep}host{os.sep}", f"{os.sep}plugins{os.sep}")

Place = tuple[str, int, str]  # file, line, function


def sample_lines(case: Case, seconds: float) -> Counter[Place]:
    """Run the case for some `seconds` and count where the timer found it. Main thread only; takes over SIGALRM."""
    found: Counter[Place] = Counter()

    def note(_: int, frame: FrameType | None) -> None:
        if frame is not None:
            found[frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_qualname] += 1

    before = signal.signal(signal.SIGALRM, note)
    signal.setitimer(signal.ITIMER_REAL, _INTERVAL, _INTERVAL)
    try:
        burst(case, seconds, group=10, once=False)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return found


def calls_per_step(call: Callable[[], object], steps: int = 100) -> list[tuple[float, str]]:
    """(calls per step, function), the most called first; Python functions and C functions alike."""
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(steps):
        call()
    profile.disable()
    rows = []
    for (path, line, name), (_, count, *_rest) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        rows.append((count / steps, name if path == "~" else f"{name}  {_short(path)}:{line}"))
    return sorted((row for row in rows if row[0] >= 1), reverse=True)


def _short(path: str) -> str:
    for marker in _MARKERS:
        if marker in path:
            return path.rpartition(marker)[2]
    return path.rpartition(os.sep)[2]


def _print_shares(title: str, shares: dict[str, float], step: float, top: int) -> None:
    print(f"\n{title}")
    for text, share in sorted(shares.items(), key=lambda item: -item[1])[:top]:
        print(f"  {share * step * 1e6:8.2f} us  {share:6.1%}  {text}")


def main(arguments: list[str] | None = None) -> int:
    """Profile one program's graphdock (or numpy) subject in this process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile_step")
    parser.add_argument(
        "program", nargs="?", default="null_step.scalar", help=f"MODULE.PROGRAM; of {', '.join(BENCHMARKS[1:])}"
    )
    parser.add_argument("--subject", default="graphdock", help="graphdock, graphdock/no_passes, numpy ...")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--top", type=int, default=25, help="lines per table")
    options = parser.parse_args(arguments)
    module, _, name = options.program.partition(".")
    programs = {program.name: program for program in importlib.import_module(f"benchmarks.{module}").PROGRAMS}
    if name not in programs or options.subject not in programs[name].builders:
        parser.error(f"no {options.subject} in {options.program}; {module} has {', '.join(programs)}")
    case = programs[name].builders[options.subject]()
    for _ in range(programs[name].check_calls + 5):
        case.call()
    bursts = [burst(case, 0.1, group=10, once=False) for _ in range(5)]
    timed = min(bursts, key=lambda taken: taken["median"])
    step = timed["median"] * case.per_call
    least = min(taken["minimum"] for taken in bursts) * case.per_call
    print(f"{options.program}, {options.subject}: {step * 1e6:.2f} us per step, minimum {least * 1e6:.2f} us")
    found = sample_lines(case, options.seconds)
    total = sum(found.values())
    functions: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for (path, line, function), count in found.items():
        functions[f"{function}  {_short(path)}"] += count
        lines[f"{_short(path)}:{line}  {linecache.getline(path, line).strip()[:90]}"] += count
    _print_shares(
        "by function (its own lines, with the C calls they make)",
        {k: v / total for k, v in functions.items()},
        step,
        options.top,
    )
    _print_shares("by line", {k: v / total for k, v in lines.items()}, step, options.top)
    print("\ncalls per step")
    for count, text in calls_per_step(case.call)[: options.top]:
        print(f"  {count:8.1f}  {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
