"""Synchronous replicas compute what TensorFlow's do, and their parts are on the same devices: one program runs under both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

PYTHON = os.environ.get("TENSORFLOW_PYTHON", sys.executable)
PROGRAM = Path(__file__).with_name("replicas_program.py")


def lines_of(python: str, framework: str) -> list[str]:
    done = subprocess.run([python, PROGRAM, framework], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("##")]


def test_one_program_under_both():
    if subprocess.run([PYTHON, "-c", "import tensorflow"], capture_output=True, check=False).returncode:
        pytest.skip("TensorFlow is not installed")
    theirs = lines_of(PYTHON, "tensorflow")
    assert lines_of(sys.executable, "graphdock") == theirs
    assert len(theirs) >= 60
