"""The command line every benchmark module shares."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.environments import packages_of
from benchmarks.harness import PAUSE_SECONDS, Outcome, run_program
from benchmarks.machine import load_average, machine_facts
from benchmarks.process import Workers
from benchmarks.program import AGAINST, Program, framework_of, side_by_side
from benchmarks.report import as_json, as_table

__all__ = ["BENCHMARKS", "benchmark_main", "parse", "publish", "wanted"]

BENCHMARKS = (
    "memory",
    "import_time",
    "null_step",
    "seed_step",
    "chain",
    "fused",
    "while_loop",
    "dataflow",
    "distributed",
    "cutting",
    "input",
    "large_graph",
    "planning",
    "native_kernel",
    "convolution",
    "products",
    "summaries",
    "networks",
    "peoples_networks",
    "peoples_generators",
    "tutorials",
    "checkpoint",
    "compilation",
)

#: What a bar allows beside a process that keeps a core busy, which its peers have beside them, too.
BUSY = 1.5

#: Instruction set -> what holds frameworks, and the libraries that they compute with, to it.
ISAS = {
    "avx2": {
        "LLVM_MAX_CPU_ISA": "avx2",
        "OPENBLAS_CORETYPE": "Haswell",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        # XLA's library of products asks the CPU what it has, and no one else
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2 --xla_cpu_experimental_ynn_fusion_type=",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    }
}


def parse(
    benchmark: str, names: Sequence[str], arguments: list[str] | None, rounds: int, seconds: float | None
) -> argparse.Namespace:
    """Read the options; `names` are the programs that --programs may choose from.

    seconds: the default length of a burst; None where there are no workers, and so no bursts.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{benchmark}")
    parser.add_argument("--rounds", type=int, default=rounds, help="turns per worker (default %(default)s)")
    if seconds is not None:
        parser.add_argument("--seconds", type=float, default=seconds, help="length of one burst (default %(default)s)")
        parser.add_argument(
            "--pause",
            type=float,
            default=PAUSE_SECONDS,
            help="rest before each burst, in seconds (default %(default)s)",
        )
        parser.add_argument("--sittings", type=int, default=1, help="times all that with fresh processes (default 1)")
        parser.add_argument(
            "--busy",
            action="store_true",
            help=f"beside a process that keeps a core busy; bars are {BUSY:g} times as wide",
        )
        parser.add_argument("--isa", choices=list(ISAS), help="hold all frameworks to an instruction set")
    parser.add_argument(
        "--peers", help="only these frameworks or subjects, with commas; of graphdock's all stay unless one is named"
    )
    parser.add_argument(
        "--against", type=Path, metavar="PATH", help="run graphdock of another checkout too, turn by turn with this one"
    )
    parser.add_argument("--programs", help=f"only these of {', '.join(names)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE")
    parser.add_argument("--strict", action="store_true", help="exit 1 also where a bar is missed")
    options = parser.parse_args(arguments)
    options.seconds = getattr(options, "seconds", None)
    options.sittings = getattr(options, "sittings", 1)
    options.pause = getattr(options, "pause", None)
    if min(options.rounds, options.sittings) < 1 or (options.seconds is not None and options.seconds <= 0):
        parser.error("--rounds, --seconds and --sittings must be positive")
    if options.pause is not None and options.pause < 0:
        parser.error("--pause must not be negative")
    options.peers = None if options.peers is None else frozenset(options.peers.split(","))
    try:
        options.packages = () if options.against is None else packages_of(options.against.resolve())
    except FileNotFoundError as error:
        parser.error(f"--against: {error}")
    options.programs = tuple(names) if options.programs is None else tuple(options.programs.split(","))
    unknown = [name for name in options.programs if name not in names]
    if unknown:
        parser.error(f"no such program: {', '.join(unknown)}; there are {', '.join(names)}")
    return options


def wanted(peers: frozenset[str] | None) -> Callable[[str], bool]:
    """Return which subjects `--peers` leaves in: of graphdock's, of both checkouts, all, or those that it names."""
    own = ("graphdock", AGAINST)
    named = peers is not None and any(framework_of(peer) in own for peer in peers)

    def wants(subject: str) -> bool:
        if peers is None or subject in peers:
            return True
        return not named if framework_of(subject) in own else framework_of(subject) in peers

    return wants


def _widened(program: Program) -> Program:
    """The same program, whose bars leave room for a busy core."""
    bars = [
        replace(bar, at_most=BUSY * bar.at_most, note=", ".join(filter(None, [bar.note, "busy"])))
        for bar in program.bars
    ]
    return replace(program, bars=tuple(bars))


@contextlib.contextmanager
def _busy_core() -> Iterator[None]:
    """A process beside all others that computes without an end."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def publish(
    benchmark: str, outcomes: Sequence[Outcome], options: argparse.Namespace, loads: Sequence[Sequence[float]]
) -> int:
    """Print versions, load and faults after the tables, write the JSON; the exit status."""
    facts = {**machine_facts(), "load_before": loads[0], "load_after": loads[1]}
    facts |= {"rounds": options.rounds, "burst_seconds": options.seconds, "pause_seconds": options.pause}
    facts |= {"sittings": options.sittings, "isa": getattr(options, "isa", None)}
    versions: dict[str, str] = {}
    for outcome in outcomes:
        for subject, found in outcome.versions.items():
            own = framework_of(subject)
            versions |= {own: found.get(own, "?"), "python": found["python"], "numpy": found.get("numpy", "?")}
    settings = facts["thread_settings"] or "defaults"
    print(f"machine: {facts['cpu']}, {facts['cores']} cores, {facts['system']}, {facts['libc']}")
    print(f"thread settings: {settings}; load average: {loads[0]} before, {loads[1]} after")
    if loads[0] and max(loads[0][0], loads[1][0]) > float(str(facts["cores"])):
        print("warning: the machine was busy; steps with several threads (torch, BLAS) may have waited for a CPU")
    length = f" of {options.seconds:g} s" if options.seconds else ""
    print(f"rounds: {options.rounds}{length}; sittings: {options.sittings}")
    if versions:
        print("versions: " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())))
    faults = [
        (f"{outcome.program.name}, {subject}", text, text)
        for outcome in outcomes
        for subject, text in outcome.wrong.items()
    ]
    for outcome in outcomes:
        faults += [(f"{outcome.program.name}, {subject}", f.reason, f.detail) for subject, f in outcome.failed.items()]
    shown: set[str] = set()
    for where, reason, detail in faults:  # one cause often fails several programs: its traceback is shown once
        print(f"\n{where}: {reason if reason in shown else detail}", file=sys.stderr)
        shown.add(reason)
    if options.json:
        data = as_json(benchmark, outcomes, {**facts, "versions": versions})
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    missed = any(verdict.word == "MISS" for outcome in outcomes for verdict in outcome.verdicts)
    return 1 if faults or (options.strict and missed) else 0


def benchmark_main(
    benchmark: str,
    programs: Sequence[Program],
    arguments: list[str] | None = None,
    rounds: int = 15,
    seconds: float = 0.1,
) -> int:
    """Run the programs of the module `benchmarks.<benchmark>`. Exit 1 on a wrong result or a failed worker."""
    by_name = {program.name: program for program in programs}
    options = parse(benchmark, list(by_name), arguments, rounds, seconds)
    chosen = [by_name[name] for name in options.programs]
    if options.against is not None:
        chosen = [side_by_side(program) for program in chosen]
    if options.busy:
        chosen = [_widened(program) for program in chosen]
    os.environ.update(ISAS.get(options.isa, {}))  # workers inherit it
    subjects = dict.fromkeys(subject for program in chosen for subject in program.builders)
    before = load_average()
    outcomes = []
    with (
        Workers(subjects, wanted(options.peers), against=options.packages) as workers,
        _busy_core() if options.busy else contextlib.nullcontext(),
    ):
        for program in chosen:
            outcomes.append(
                run_program(
                    program,
                    f"benchmarks.{benchmark}",
                    workers,
                    options.rounds,
                    options.seconds,
                    options.sittings,
                    options.pause,
                )
            )
            print(as_table(outcomes[-1]), end="\n\n", flush=True)
    return publish(benchmark, outcomes, options, (before, load_average()))
