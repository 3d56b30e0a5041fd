"""The numerics of the kernels, interpreted: in a process of its own, which settles for that before triton is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
FOLDER = Path(__file__).parent / "interpreted"


@pytest.mark.parametrize("which", ["not exhaustive", pytest.param("exhaustive", marks=pytest.mark.exhaustive)])
def test_kernels_compute_what_numpy_does(which):
    sampled = ["-p", "tests.conftest", "--import-mode=importlib", "-m", which]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *sampled, str(FOLDER)],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        cwd=FOLDER.parents[4],
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert " passed" in run.stdout
