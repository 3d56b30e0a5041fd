"""Runs the tests of tests/interpreted in a process that interprets Triton kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
HERE = Path(__file__).parent


def check_passes(*arguments):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "tests.conftest",  # knows what is sampled
            "--import-mode=importlib",
            HERE / "interpreted",
            *arguments,
        ],
        env={**os.environ, "TRITON_INTERPRET": "1", "GRAPHDOCK_DEBUG": ""},
        capture_output=True,
        text=True,
        cwd=HERE.parents[2],
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def test_kernels_in_the_interpreter():
    check_passes("-m", "not exhaustive")


@pytest.mark.exhaustive
def test_kernels_in_the_interpreter_exhaustively():
    check_passes("-m", "exhaustive")
