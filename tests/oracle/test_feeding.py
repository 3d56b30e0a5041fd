"""Queues, readers, tables, records and accumulators give what TensorFlow's give: one program runs under both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

PYTHON = os.environ.get("TENSORFLOW_PYTHON", sys.executable)
PROGRAM = Path(__file__).with_name("feeding_program.py")


def lines_of(python: str, framework: str, folder: Path) -> list[str]:
    done = subprocess.run([python, PROGRAM, framework, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_one_program_under_both(tmp_path):
    if subprocess.run([PYTHON, "-c", "import tensorflow"], capture_output=True, check=False).returncode:
        pytest.skip("TensorFlow is not installed")
    theirs = lines_of(PYTHON, "tensorflow", tmp_path)
    assert lines_of(sys.executable, "graphdock", tmp_path) == theirs
    assert len(theirs) > 70
