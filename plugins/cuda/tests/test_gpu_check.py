"""``scripts/gpu_check.sh`` on an emulated GPU: parts run, what has passed is not run again, and a table says how each went."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from graphdock_cuda.testing import find_compiler

ROOT = Path(__file__).parents[3]


def check(out: Path, parts: str, seconds: int = 470) -> tuple[int, dict[str, str]]:
    """The exit status, and the state of each part."""
    environment = {**os.environ, "PYTHON": sys.executable, "EMULATED_GPU": "1"}
    command = ["bash", str(ROOT / "scripts" / "gpu_check.sh"), "-", str(out), parts, str(seconds)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    rows = [line.split() for line in (out / "table.txt").read_text().splitlines()[1:]]
    return run.returncode, {row[0]: row[1] for row in rows}


@pytest.mark.slow
@pytest.mark.plain
@pytest.mark.skipif(find_compiler() is None or shutil.which("bash") is None, reason="needs g++ and bash")
def test_parts_run_once_and_go_on_where_they_were_cut_off(tmp_path: Path) -> None:
    status, states = check(tmp_path, "shared,memcheck", seconds=0)  # no part begins
    assert status == 1 and (states["shared"], states["lost"]) == ("left", "not-run")
    status, states = check(tmp_path, "shared,racecheck")
    assert states["shared"] == "passed" and len(states) > 30
    assert status == 1 and states["racecheck"] == ("passed" if shutil.which("compute-sanitizer") else "not-installed")
    written = tmp_path / "shared.txt"
    assert "5 passed" in written.read_text()
    written.write_text("as it was")
    assert check(tmp_path, "shared")[1]["shared"] == "passed"
    assert written.read_text() == "as it was"
