"""Ops at random shapes, beside TensorFlow: where a kernel is far from what is possible. The worst ratio is printed first.

Shapes are drawn from their number, of a bounded size. Of small times, and on a busy machine, ratios say nothing; minima do.

    python -m benchmarks.cliffs --programs conv2d_input,top_k --first 0 --shapes 5
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.cliff_shapes import FAMILIES, draw
from benchmarks.frameworks import session_builders
from benchmarks.harness import run_program
from benchmarks.machine import load_average
from benchmarks.process import Workers
from benchmarks.program import Case, Program
from benchmarks.report import duration

__all__ = ["PROGRAMS", "main"]

#: Shapes that each family has.
SHAPES = 100


def in_session(tf: ModuleType, open_session: Callable[[], Any], family: str, number: int) -> Case:
    """The op of variables; its results are computed and not fetched."""
    drawn = draw(family, number)
    arrays = drawn.arrays()
    holders = [tf.placeholder(a.dtype, a.shape) for a in arrays]
    made = drawn.op(tf, *[tf.Variable(holder, trainable=False) for holder in holders])
    results = list(made) if isinstance(made, (list, tuple)) else [made]
    session = open_session()
    session.run(tf.global_variables_initializer(), dict(zip(holders, arrays, strict=True)))
    # the ops themselves: what only a group waits for is pruned
    ops = [r.op for r in results]
    return Case(lambda: session.run(ops), lambda: session.run(results) if drawn.checked else [])


def _program(family: str, number: int) -> Program:
    builders = session_builders(partial(in_session, family=family, number=number))
    return Program(f"{family}/{number}", family, builders, reference="tensorflow", rtol=5e-3, atol=5e-2)


PROGRAMS = tuple(_program(family, number) for family in FAMILIES for number in range(SHAPES))


def main(arguments: list[str] | None = None) -> int:
    """Print a line per shape, worst ratio first. Exit 1 where results differ or a worker fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cliffs")
    parser.add_argument("--programs", default=",".join(FAMILIES), help="families, with commas")
    parser.add_argument("--first", type=int, default=0, help="number of the first shape")
    parser.add_argument("--shapes", type=int, default=4, help="shapes of each family")
    parser.add_argument("--seconds", type=float, default=0.02, help="length of a burst")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args(arguments)
    numbers = range(options.first, min(SHAPES, options.first + options.shapes))
    chosen = [_program(family, number) for family in options.programs.split(",") for number in numbers]
    before, found, faults = load_average(), [], []
    with Workers(["graphdock", "tensorflow"]) as workers:
        for program in chosen:
            outcome = run_program(program, "benchmarks.cliffs", workers, options.rounds, options.seconds, pause=0.02)
            times = {subject: timing.minimum for subject, timing in outcome.timings.items()}
            family, _, number = program.name.partition("/")
            shown = f"{program.name} {draw(family, int(number)).shown}"
            faults += [f"{shown}: {subject}: {why}" for subject, why in outcome.wrong.items()]
            faults += [f"{shown}: {failure}" for failure in outcome.failed.values()]
            if len(times) == 2:
                found.append((times["graphdock"] / times["tensorflow"], times, shown))
    for ratio, times, shown in sorted(found, key=lambda each: -each[0]):
        print(f"{ratio:8.2f}  {duration(times['graphdock']):>8}  {duration(times['tensorflow']):>8}  {shown}")
    for limit in (1, 2, 4, 10):
        slower = sum(ratio > limit for ratio, _, _ in found)
        print(f"{slower} of {len(found)} shapes take more than {limit} times TensorFlow's time")
    print(f"load average: {before} before, {load_average()} after")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
