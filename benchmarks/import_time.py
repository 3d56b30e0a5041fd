"""P7: what starting costs.

`import graphdock` beside `import numpy`, and `graphdock plugins` beside a process that imports NumPy. Every sample is a
fresh process, in turns. Also lists the heavy modules found in `sys.modules` afterwards; there must be
none, and `graphdock plugins` must import neither NumPy nor a plugin.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cli import parse, publish, wanted
from benchmarks.environments import KEEP_BYTE_CODE
from benchmarks.harness import Outcome, Timing
from benchmarks.machine import load_average
from benchmarks.process import WorkerFailure
from benchmarks.program import AGAINST, Bar, Program, side_by_side
from benchmarks.report import as_table

__all__ = ["heavy_modules", "main"]

# Never loaded by `import graphdock`: frameworks, compilers, the generator's libraries, the command line's.
HEAVY = frozenset(
    ["torch", "tensorflow", "jax", "cupy", "triton", "numba", "llvmlite", "ray", "onnx", "scipy", "pandas", "sklearn"]
    + ["matplotlib", "jinja2", "pydantic", "yaml", "rich", "click", "pytest", "asyncio"]
)
PLUGIN_PACKAGES = frozenset(["graphdock_std", "graphdock_cpu"])

PLUGINS_COMMAND = "import sys; sys.argv = ['graphdock', 'plugins']; from graphdock.cli import main; sys.exit(main())"


@dataclass(frozen=True)
class Start:
    """A statement that a fresh interpreter runs; `inside` times the statement alone, else the whole process."""

    code: str
    inside: bool = True

    def seconds(self, paths: Sequence[Path] = ()) -> float:
        """Run it once, with these folders first on the path.

        Raises subprocess.CalledProcessError, with its standard error, where it fails.
        """
        if not self.inside:
            start = time.perf_counter()
            _python(self.code, paths)
            return time.perf_counter() - start
        timed = f"import time; start = time.perf_counter(); {self.code}; print(time.perf_counter() - start)"
        return float(_python(timed, paths).splitlines()[-1])


def _python(code: str, paths: Sequence[Path] = ()) -> str:
    search = {"PYTHONPATH": os.pathsep.join(map(str, paths))} if paths else {}
    with tempfile.TemporaryDirectory() as neutral:  # not the repository: nothing is to be found by accident
        return subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            cwd=neutral,
            env={**os.environ, **KEEP_BYTE_CODE, **search},
        ).stdout


def heavy_modules(code: str, forbidden: frozenset[str]) -> list[str]:
    """Top-level packages of `forbidden` that a fresh interpreter has loaded after `code`."""
    listing = f"import atexit, sys; atexit.register(lambda: print('MODULES', *sys.modules)); {code}"
    last = _python(listing).splitlines()[-1].split()
    return sorted({name.partition(".")[0] for name in last[1:]} & forbidden)


def _measure(program: Program, starts: Mapping[str, Start], rounds: int, against: Sequence[Path]) -> Outcome:
    outcome = Outcome(program)
    samples: dict[str, list[float]] = {subject: [] for subject in starts}
    for turn in range(rounds + 1):
        for subject, start in starts.items():
            if subject in outcome.failed:
                continue
            try:
                seconds = start.seconds(against if subject == AGAINST else ())
            except subprocess.CalledProcessError as error:
                lines = error.stderr.strip().splitlines() or ["no output"]
                outcome.failed[subject] = WorkerFailure(subject, lines[-1], error.stderr)
                continue
            if turn > 0:  # the first turn writes byte code and fills the file cache
                samples[subject].append(seconds)
    outcome.timings |= {name: Timing(tuple(taken), tuple(taken)) for name, taken in samples.items() if taken}
    return outcome


def _program(name: str, summary: str, *bars: Bar) -> Program:
    return Program(name, summary, {}, bars, unit="process")


_BAR = Bar("P7", ("numpy",), 1.5)

# Program, its subjects, and the packages that graphdock's statement must not load.
STARTS: dict[str, tuple[Program, dict[str, Start], frozenset[str]]] = {
    "import": (
        _program("import", "the import statement alone, in a fresh process", _BAR),
        {"graphdock": Start("import graphdock"), "numpy": Start("import numpy")},
        HEAVY | PLUGIN_PACKAGES,
    ),
    "plugins": (
        _program("plugins", "`graphdock plugins` beside `python -c 'import numpy'`, whole processes", _BAR),
        {
            "graphdock": Start(PLUGINS_COMMAND, inside=False),
            "numpy": Start("import numpy", inside=False),
            "python": Start("pass", inside=False),
        },
        HEAVY - {"click"} | PLUGIN_PACKAGES | {"numpy"},
    ),
    "ready": (
        _program("ready", "from the import to the first result of x + 1, in a fresh process"),
        {
            "graphdock": Start("import graphdock as tf; tf.Session().run(tf.constant(1.0) + 1.0)"),
            "numpy": Start("import numpy as np; np.ones(()) + 1.0"),
        },
        HEAVY,
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Print the ratios; exit 1 where a heavy module is found or a process fails."""
    options = parse("import_time", list(STARTS), arguments, rounds=15, seconds=None)
    before = load_average()
    outcomes = []
    for name in options.programs:
        program, starts, forbidden = STARTS[name]
        if options.packages:
            program, starts = side_by_side(program), {**starts, AGAINST: starts["graphdock"]}
        starts = {subject: start for subject, start in starts.items() if wanted(options.peers)(subject)}
        outcome = _measure(program, starts, options.rounds, options.packages)
        if "graphdock" not in outcome.failed:
            heavy = heavy_modules(starts["graphdock"].code, forbidden)
            if heavy:
                outcome.wrong["graphdock"] = f"heavy modules loaded: {', '.join(heavy)}"
        outcomes.append(outcome)
        print(as_table(outcome), end="\n\n", flush=True)
    return publish("import_time", outcomes, options, (before, load_average()))


if __name__ == "__main__":
    sys.exit(main())
