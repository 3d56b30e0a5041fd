"""Programs on several machines, as TensorFlow's guides write them, print under ``graphdock run`` what they print under TensorFlow
2.21, whose lines these are; ``tests/oracle`` asks an installed one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "examples" / "cluster_scripts"
#: Script -> what it prints.
LINES = {
    "between_graph": ["worker 0: 1.00 -2.00 0.50", "worker 1: 1.00 -2.00 0.50"],
    "servers_in_one_process": ["weights 3.000 -1.000"],
    "in_graph": [
        "step 0 losses 0.769794 0.771676",
        "step 1 losses 0.646222 0.662861",
        "step 2 losses 0.483847 0.510062",
        "step 3 losses 0.355987 0.375726",
        "step 4 losses 0.273844 0.279149",
        "step 5 losses 0.222754 0.213774",
        "step 6 losses 0.189409 0.169433",
        "step 7 losses 0.165784 0.138651",
        "step 8 losses 0.147554 0.116703",
        "step 9 losses 0.132513 0.100696",
    ],
}


def test_each_script_has_lines_of_tensorflow():
    assert {path.stem for path in SCRIPTS.glob("*.py")} == set(LINES)


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LINES)
def test_a_script_prints_what_it_prints_under_tensorflow(name, tmp_path):
    command = [Path(sys.executable).parent / "graphdock", "run", SCRIPTS / f"{name}.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == LINES[name]


@pytest.mark.exhaustive
def test_a_script_of_flags_is_run_once_per_task(tmp_path):
    """``graphdock cluster run`` starts the tasks with the flags that the script reads."""
    command = [sys.executable, "-m", "graphdock", "cluster", "run", "--on", "processes", "--ps", "1", "--workers", "2"]
    done = subprocess.run(
        [*command, SCRIPTS / "between_graph.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line for line in done.stdout.splitlines() if "at step" in line]
    assert sorted(line.partition("at step")[0] for line in said) == [
        "[/job:worker/task:0] worker 0 ",
        "[/job:worker/task:1] worker 1 ",
    ]
    assert all(line.endswith("[ 1.  -2.   0.5]") for line in said)
