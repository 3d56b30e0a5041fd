"""Programs as tutorials of TensorFlow 1 teach them, whole: ``graphdock run SCRIPT`` beside TensorFlow's own process.

The scripts of ``examples/scripts``, which draw initial values and data from NumPy with a fixed seed, so that both print the same
lines. Every sample is a fresh process, in turns; times are processor time of all its threads, from the interpreter's start to its
end. What the import alone takes is measured too, and told apart: these programs take some 20 steps.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.cli import parse, publish, wanted
from benchmarks.environments import REPOSITORY, VARIABLES, interpreter_of
from benchmarks.harness import Outcome, Timing
from benchmarks.machine import load_average
from benchmarks.process import WorkerFailure
from benchmarks.program import AGAINST, Program, side_by_side
from benchmarks.report import as_table, duration

__all__ = ["BY_HAND", "PROGRAMS", "SCRIPTS", "UNDER_TENSORFLOW", "begin", "difference", "main", "run"]

SCRIPTS = REPOSITORY / "examples" / "scripts"
#: Runs the script that it is given with TensorFlow's interface of version 1 under the name of 2017.
UNDER_TENSORFLOW = """
import runpy, sys
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
sys.modules["tensorflow"] = tf
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
#: TensorFlow 2.21 has no tf.estimator: the same model_fn in a loop by hand.
BY_HAND = {"estimator": REPOSITORY / "tests" / "oracle" / "estimator_program.py"}
RUN = "import sys; sys.argv[:1] = ['graphdock', 'run']; from graphdock.cli import main; sys.exit(main())"
#: The script of the program ``import``.
IMPORT = "import tensorflow as tf\n"
SUBJECTS = ("graphdock", "tensorflow")
#: What two numbers of a line may differ by, in parts of the larger, and at all.
RTOL, ATOL = 1e-4, 2e-6

PROGRAMS = (
    Program("import", "the import alone, in a fresh process", {}, unit="process", reference="tensorflow"),
    *(
        Program(path.stem, f"{path.name}, the whole process", {}, unit="process", reference="tensorflow")
        for path in sorted(SCRIPTS.glob("*.py"))
    ),
)
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def begin(subject: str, name: str) -> list[str | Path]:
    """The command that runs a script, which is to follow, under graphdock or TensorFlow."""
    python = interpreter_of(subject)
    if python is None:
        raise FileNotFoundError(subject)
    if subject == "tensorflow":
        return [python, BY_HAND[name]] if name in BY_HAND else [python, "-c", UNDER_TENSORFLOW]
    return [python, "-c", RUN]


def run(
    words: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None
) -> tuple[list[str], float]:
    """The lines that a command prints in a folder of its own, and the processor seconds of its process.

    Raises subprocess.CalledProcessError, with its standard error, where it fails.
    """
    env = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **VARIABLES["tensorflow"],
        "TMPDIR": str(folder),
        **(variables or {}),
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout.splitlines(), seconds


def difference(lines: Sequence[str], others: Sequence[str]) -> tuple[float, str | None]:
    """The greatest difference of two numbers that stand in the same place, and what is wrong, if anything is."""
    if [_NUMBER.sub("#", line) for line in lines] != [_NUMBER.sub("#", line) for line in others]:
        return float("inf"), "wrong result: it prints other lines"
    pairs = [(float(a), float(b)) for a, b in zip(*map(_numbers, (lines, others)), strict=True)]
    greatest = max((abs(a - b) for a, b in pairs), default=0.0)
    apart = next(((a, b) for a, b in pairs if not abs(a - b) <= ATOL + RTOL * max(abs(a), abs(b))), None)
    return greatest, None if apart is None else f"wrong result: {apart[0]:g} for {apart[1]:g}"


def _numbers(lines: Sequence[str]) -> list[str]:
    return [number for line in lines for number in _NUMBER.findall(line)]


def _measure(program: Program, subjects: Sequence[str], rounds: int, against: Sequence[Path]) -> tuple[Outcome, float]:
    """Run all in turns; the outcome, and the greatest difference from the reference's numbers."""
    outcome, samples, printed = Outcome(program), {}, {}
    for turn in range(rounds + 1):
        for subject in subjects:
            if subject in outcome.failed or subject in outcome.absent:
                continue
            with tempfile.TemporaryDirectory() as folder:
                script = SCRIPTS / f"{program.name}.py"
                if program.name == "import":
                    script = Path(folder, "import_alone.py")
                    script.write_text(IMPORT, encoding="utf-8")
                paths = {"PYTHONPATH": os.pathsep.join(map(str, against))} if subject == AGAINST else None
                try:
                    lines, seconds = run([*begin(subject, program.name), script], Path(folder), paths)
                except FileNotFoundError:
                    outcome.absent[subject] = "missing: python -m benchmarks.setup tensorflow"
                    continue
                except subprocess.CalledProcessError as error:
                    last = (error.stderr.strip().splitlines() or ["no output"])[-1]
                    outcome.failed[subject] = WorkerFailure(subject, last, error.stderr)
                    continue
            printed[subject] = lines
            if turn > 0:  # the first turn writes byte code and fills the file cache
                samples.setdefault(subject, []).append(seconds)
    reference = program.reference if program.reference in printed else next(iter(printed), None)
    greatest = 0.0
    for subject, lines in printed.items():
        found, wrong = difference(lines, printed[str(reference)])
        greatest = max(greatest, found)
        if wrong is not None:
            outcome.wrong[subject] = f"{wrong}, {reference} is the reference"
    outcome.timings |= {name: Timing(tuple(taken), tuple(taken)) for name, taken in samples.items()}
    return outcome, greatest


def _beyond(outcome: Outcome, alone: Outcome | None) -> str | None:
    """A line of what minima leave when the import's are taken away; None where there are not both."""
    if alone is None or not {*SUBJECTS} <= outcome.timings.keys() & alone.timings.keys():
        return None
    mine, theirs = (outcome.timings[s].minimum - alone.timings[s].minimum for s in SUBJECTS)
    if min(mine, theirs) <= 0:
        return None
    return f"  beyond the import: {duration(mine)}, tensorflow {duration(theirs)}, ratio {mine / theirs:.3f}"


def main(arguments: list[str] | None = None) -> int:
    """Print differences and ratios; exit 1 where lines differ or a process fails."""
    by_name = {program.name: program for program in PROGRAMS}
    options = parse("tutorials", list(by_name), arguments, rounds=3, seconds=None)
    before = load_average()
    outcomes: dict[str, Outcome] = {}
    for name in options.programs:
        program = side_by_side(by_name[name]) if options.packages else by_name[name]
        subjects = [s for s in (*SUBJECTS, *[AGAINST] * bool(options.packages)) if wanted(options.peers)(s)]
        outcome, greatest = _measure(program, subjects, options.rounds, options.packages)
        outcomes[name] = outcome
        print(as_table(outcome))
        print(f"  greatest difference of numbers that are printed: {greatest:.1e}")
        beyond = None if name == "import" else _beyond(outcome, outcomes.get("import"))
        print(beyond or "", end="\n\n" if beyond else "\n", flush=True)
    return publish("tutorials", list(outcomes.values()), options, (before, load_average()))


if __name__ == "__main__":
    sys.exit(main())
