"""Steps of all other benchmarks with devices by simulation beside those by rules, turn by turn: none may take 1.05 of its time.

    python -m benchmarks.placers                     # of two virtual cpus
    PLACERS_CPUS=1 python -m benchmarks.placers      # of one, which is no choice: plans are the same, and times tell the noise
    python -m benchmarks.placers --programs seed_step.softmax,networks.alexnet

A program is graphdock's own of another module, with the settings that it has there. What plans within its timed call is left out,
as planning is no part of a step; so are single convolutions.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

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

if __name__ == "__main__":
    sys.exit(benchmark_main("placers", PROGRAMS, rounds=5))
