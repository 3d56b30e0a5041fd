"""Steps of all other benchmarks with devices by simulation beside those by rules, turn by turn: none may take 1.05 of its time.

    python -m benchmarks.placers                     # of two virtual cpus
    PLACERS_CPUS=1 python -m benchmarks.placers      # of one, which is no choice: plans are the same, and times tell the noise
    python -m benchmarks.placers --programs seed_step.softmax,networks.alexnet
    python -m benchmarks.placers --devices           # no times: of how many nodes the simulation chooses another device than rules

A program is graphdock's own of another module, with the settings that it has there. What plans within its timed call is left out,
as planning is no part of a step; so are single convolutions.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from graphdock.contracts import PlacementProblem

from benchmarks.cli import benchmark_main
from benchmarks.program import Bar, Case, Program

__all__ = ["PROGRAMS"]

#: Modules whose programs run steps.
_MODULES = (
    "null_step",
    "seed_step",
    "chain",
    "fused",
    "while_loop",
    "dataflow",
    "input",
    "native_kernel",
    "networks",
    "peoples_networks",
    "peoples_generators",
    "memory",
    "checkpoint",
)


def _under(placer: str, cpus: str, builder: Callable[[], Case]) -> Case:
    """The program's case in a process whose sessions have the placer where they name none."""
    handle, name = tempfile.mkstemp(suffix=".toml", text=True)
    text = f'[session]\nplacer = "{placer}"\ndevice_count = {{cpu = {cpus}}}\n'
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.environ["GRAPHDOCK_CONFIG"] = name
    try:
        return builder()
    finally:
        del os.environ["GRAPHDOCK_CONFIG"]
        Path(name).unlink()


def _programs() -> Iterator[Program]:
    cpus = os.environ.get("PLACERS_CPUS", "2")
    for module in _MODULES:
        for program in importlib.import_module(f"benchmarks.{module}").PROGRAMS:
            builder = program.builders.get("graphdock")
            if builder is None or program.once:
                continue
            yield replace(
                program,
                name=f"{module}.{program.name}",
                builders={
                    "graphdock": partial(_under, "simulated", cpus, builder),
                    "graphdock/rules": partial(_under, "rules", cpus, builder),
                },
                bars=(Bar("26.2", ("graphdock/rules",), 1.05, note="by simulation"),),
                reference="graphdock/rules",
            )


PROGRAMS = tuple(_programs())


def _moved() -> int:
    """Print per program how many of its nodes the simulation puts elsewhere than the rules. 1 where there are some: times tell."""
    from graphdock_planner.simulated import Simulated

    place, tasks = Simulated.place, [0, 0]

    def counted(self: Simulated, problem: PlacementProblem) -> Mapping[int, str]:
        answer = place(self, problem)
        tasks[0] += len(problem.tasks)
        tasks[1] += sum(answer[t.group] != problem.rules[t.group] for t in problem.tasks)
        return answer

    Simulated.place = counted  # type: ignore[method-assign]
    found = 0
    for program in PROGRAMS:
        tasks[:] = 0, 0
        case = program.builders["graphdock"]()
        case.before()
        case.call()
        found += tasks[1]
        print(f"{program.name}: {tasks[1]} of {tasks[0]} nodes that were placed", flush=True)
    return int(found > 0)


if __name__ == "__main__":
    if "--devices" in sys.argv:
        sys.exit(_moved())
    sys.exit(benchmark_main("placers", PROGRAMS, rounds=5))
