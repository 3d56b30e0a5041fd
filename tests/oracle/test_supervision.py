"""Sessions that are watched over call, log, write and raise what TensorFlow's do: one program runs under both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

PYTHON = os.environ.get("TENSORFLOW_PYTHON", sys.executable)
PROGRAM = Path(__file__).with_name("supervision_program.py")

#: Fetches of ``loss:0`` beside an update of what it reads: TensorFlow says nothing of their order, graphdock takes the program's.
VALUES = "'after', {"


def lines_of(python: str, framework: str, folder: Path) -> list[str]:
    folder.mkdir()
    done = subprocess.run([python, PROGRAM, framework, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.partition(VALUES)[0] for line in done.stdout.splitlines()]


def test_one_program_under_both(tmp_path):
    if subprocess.run([PYTHON, "-c", "import tensorflow"], capture_output=True, check=False).returncode:
        pytest.skip("TensorFlow is not installed")
    theirs = lines_of(PYTHON, "tensorflow", tmp_path / "tensorflow")
    assert lines_of(sys.executable, "graphdock", tmp_path / "graphdock") == theirs
    assert len(theirs) > 230
