"""Training steps on a GPU beside PyTorch and JAX, launch overhead, copies, products and single kernels.

    python -m benchmarks.gpu [--programs vgg,transformer] [--precisions tf32,bfloat16] [--budget 240] [--out FILE]

Each framework is a process of its own, one after the other, with a share of the budget; what one leaves is for those behind it. A
framework that fails, hangs or runs out of its share costs its own rows alone, which say so. ``graphdock`` convolves by cuDNN
where it is installed (``graphdock doctor`` says so), ``graphdock/own`` by its own kernels. Dense layers are cuBLASLt's for
``graphdock``, for ``graphdock/persistent`` and ``graphdock/tiles`` Triton's, of the one kind of programs and of the other. Rows are
medians of steps after warm-up; "x" is how many times what graphdock takes, so that less than 1 is quicker than graphdock. Kernels
are beside the best that this card did in the same run: a copy's bytes per second, or a product's operations.

``--device emulated --tiny`` tries all of it out on a machine without a GPU; its times mean nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu_kernels import CASES
from benchmarks.gpu_steps import COPY, FRAMEWORKS, FUSING, NETWORKS, ONLY, PLAIN, PRECISIONS, Asked, make

__all__ = ["SHARES", "main", "run_all", "table", "work"]

#: Framework -> its share of the budget; compilers take long for a network.
SHARES = {
    "graphdock": 3.0,
    "torch": 1.5,
    "torch/compile": 2.5,
    "torch/graphs": 2.5,
    "jax": 2.0,
    "graphdock/triton": 2.0,
    "graphdock/persistent": 0.5,
    "graphdock/tiles": 0.5,
    "graphdock/own": 1.0,
}
#: Calls before anything is timed, and the fewest that are.
WARM, LEAST = 4, 5

#: What a framework found: program, precision, framework, and seconds with loss, or why not.
Row = dict[str, Any]


# -- one framework's process


def measure(framework: str, asked: Asked, seconds: float) -> Row:
    """The median of steps; or the error in one line."""
    row: Row = {"program": asked.program, "precision": asked.precision, "framework": framework}
    try:
        step = make(framework, asked)
        losses = [step() for _ in range(WARM)]
        times: list[float] = []
        until = time.perf_counter() + seconds
        while len(times) < LEAST or time.perf_counter() < until:
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
    except Exception as error:  # noqa: BLE001 - what can't run is a row that says so
        return row | {"error": f"{type(error).__name__}: {str(error).partition(chr(10))[0][:100]}"}
    row["seconds"] = statistics.median(times)
    return row | ({"loss": float(losses[-1])} if asked.program in NETWORKS else {})


def work(framework: str, every: Sequence[Asked], seconds: float) -> Iterator[Row]:
    """All measurements of one framework, each as soon as it is there."""
    for asked in every:
        if (asked.program in CASES or asked.program == COPY) and framework not in FUSING:
            continue
        if asked.program not in ONLY.get(framework, (asked.program,)):
            continue
        yield measure(framework, asked, seconds)


# -- all frameworks


def run_all(commands: Mapping[str, Sequence[str]], budget: float, tell: Callable[[Row], None]) -> None:
    """Run a process per framework, and tell every row that each writes as a line of JSON.

    A process that takes more than its share of what is left is ended, with all that it started; of one that fails the last line
    of its errors is told.
    """
    end, left = time.monotonic() + budget, sum(SHARES.get(name, 1.0) for name in commands)
    for framework, command in commands.items():
        share = SHARES.get(framework, 1.0)
        allowed, left = max(0.0, end - time.monotonic()) * share / left, left - share
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True, cwd=_ROOT)
            try:
                ended: int | None = process.wait(allowed)
            except subprocess.TimeoutExpired:
                ended = None
            finally:
                with contextlib.suppress(ProcessLookupError):  # compilers that it left behind, too
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            out.seek(0)
            for line in out:
                if line.startswith("{") and line.endswith("}\n"):
                    tell(json.loads(line))
            if ended is None:
                tell({"framework": framework, "error": f"ended after {allowed:.0f} s, its share of the budget"})
            elif ended:
                err.seek(0)
                last = (err.read().strip() or "no message").splitlines()[-1]
                tell({"framework": framework, "error": f"exit status {ended}: {last[:100]}"})


_ROOT = Path(__file__).resolve().parent.parent


def table(rows: Sequence[Row], every: Sequence[Asked]) -> list[str]:
    """The rows, program by program; errors behind them, those of whole frameworks last."""
    lines = []
    for asked in every:
        mine = [r for r in rows if (r.get("program"), r.get("precision")) == (asked.program, asked.precision)]
        own = next((r.get("seconds") for r in mine if r["framework"] == "graphdock"), None)
        unit, most = asked.unit, _most(rows, asked)
        name = f"{asked.program:28}" + f"{asked.precision if _rounds(asked.program) else '':9}"
        for row in sorted(mine, key=lambda r: "error" in r):
            if "error" in row:
                lines.append(f"{name} {row['framework']:17} {row['error']}")
                continue
            times = f"x {row['seconds'] / own:6.2f}" if own else ""
            loss = f"  loss {row['loss']:.4g}" if "loss" in row else ""
            number = asked.per_second(row["seconds"])
            share = f"  {number / most:.2f} of the card's" if most else ""
            lines.append(f"{name} {row['framework']:17} {number:12.1f} {unit:7} {times}{loss}{share}")
    lines += [f"{r['framework']}: {r['error']}" for r in rows if "program" not in r]
    return lines


def _most(rows: Sequence[Row], asked: Asked) -> float:
    """Return what the card did at most in this run of what a kernel does: bytes copied, or operations of products; 0 where
    neither ran.
    """
    if asked.program not in CASES:
        return 0.0
    seen = [(asked._replace(program=r["program"]), r) for r in rows if "seconds" in r]
    if asked.unit == "GB/s":
        found = [a.per_second(r["seconds"]) for a, r in seen if a.program == COPY]
    else:
        rounded = [(a, r) for a, r in seen if a.program.startswith("product") and r["precision"] == asked.precision]
        found = [a.per_second(r["seconds"]) for a, r in rounded]
    return max(found, default=0.0)


def _rounds(program: str) -> bool:
    """Return whether a program has products, so that precisions differ."""
    return program in NETWORKS or program.startswith("product")


def _asked(given: argparse.Namespace) -> list[Asked]:
    """Return what is measured, small things first: they take little, and say most of what a step costs."""
    wanted = _named(given.programs) if given.programs else [*PLAIN, *NETWORKS, *CASES]
    for name, known in ((wanted, {**PLAIN, **NETWORKS, **CASES}), (given.precisions.split(","), PRECISIONS)):
        if missing := [x for x in name if x not in known]:
            raise SystemExit(f"no such thing: {', '.join(missing)}; there are {', '.join(known)}")
    found = []
    for program in wanted:
        every = given.precisions.split(",") if _rounds(program) else ["bfloat16" if program in CASES else "float32"]
        found += [Asked(program, precision, given.device, given.tiny) for precision in every]
    return found


def _named(programs: str) -> list[str]:
    groups: Mapping[str, Sequence[str]] = {"kernels": [*CASES], "networks": [*NETWORKS], "plain": [*PLAIN]}
    return [name for word in programs.split(",") for name in groups.get(word, [word])]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", help="some, with commas between; plain, networks and kernels are all of those")
    parser.add_argument("--frameworks", default=",".join(FRAMEWORKS))
    parser.add_argument("--precisions", default="tf32,bfloat16")
    parser.add_argument("--seconds", type=float, default=1.0, help="that each measurement takes after its warm-up")
    parser.add_argument("--budget", type=float, default=1200.0, help="seconds for all frameworks")
    parser.add_argument("--device", choices=("cuda", "emulated", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="sizes to try it out with")
    parser.add_argument("--out", type=Path, help="file for the table")
    parser.add_argument("--python", action="append", default=[], metavar="FRAMEWORK=INTERPRETER", help="for peers")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    return parser


def main(args: list[str] | None = None) -> int:
    words = sys.argv[1:] if args is None else args
    given = _parser().parse_args(words)
    every = _asked(given)
    if given.work:
        for row in work(given.work, every, given.seconds):
            print(json.dumps(row), flush=True)
        return 0
    if given.device == "cuda" and (reason := _no_gpu()):
        print(f"nothing to measure: {reason}", file=sys.stderr)
        return 1
    interpreters = dict(text.split("=", 1) for text in given.python)
    commands = {}
    for framework in given.frameworks.split(","):
        python = interpreters.get(framework.partition("/")[0], sys.executable)
        commands[framework] = [python, "-m", "benchmarks.gpu", *words, "--work", framework]
    rows: list[Row] = []

    def tell(row: Row) -> None:
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        if given.out:
            given.out.write_text("\n".join(table(rows, every)) + "\n")

    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a process that runs is ended too
    try:
        run_all(commands, given.budget, tell)
    finally:
        print("\n".join(table(rows, every)), flush=True)
    return 0 if any(r["framework"] == "graphdock" and "seconds" in r for r in rows) else 1


def _no_gpu() -> str:
    """Return why graphdock has no GPU here; empty where it has one."""
    from graphdock.errors import GraphdockError
    from graphdock.plugin.host import default_host

    try:
        default_host().open_device("/device:cuda:0")
    except GraphdockError as error:
        return error.message
    return ""


if __name__ == "__main__":
    sys.exit(main())
