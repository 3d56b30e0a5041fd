"""Programs of tutorials, as they stand, print under ``graphdock run`` what they print under TensorFlow.

``scripts.json`` has the lines of TensorFlow 2.21 (``tensorflow.compat.v1``, without the behaviour of 2); ``tests/oracle`` asks an
installed one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[2] / "examples" / "scripts"
TENSORFLOWS = json.loads(Path(__file__).with_name("scripts.json").read_text())


def numbers(lines):
    return np.array([float(word) for line in lines for word in re.findall(r"-?\d+\.\d+", line)])


def words(lines):
    return [re.sub(r"-?\d+\.\d+", "#", line) for line in lines]


def same(got, want):
    """The same lines, their numbers within 1e-4."""
    assert words(got) == words(want)
    np.testing.assert_allclose(numbers(got), numbers(want), rtol=1e-4, atol=2e-6)


def test_each_script_has_lines_of_tensorflow():
    assert {path.stem for path in SCRIPTS.glob("*.py")} == set(TENSORFLOWS)


@pytest.mark.parametrize("name", TENSORFLOWS)
@pytest.mark.sampled(2)
def test_a_script_prints_what_it_prints_under_tensorflow(name, tmp_path):
    command = [Path(sys.executable).parent / "graphdock", "run", SCRIPTS / f"{name}.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    same(done.stdout.splitlines(), TENSORFLOWS[name])


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", TENSORFLOWS)
def test_they_run_with_graphdock_imported_instead(name, tmp_path):
    """``graphdock compat --rewrite`` writes the import; then no command is needed."""
    script = tmp_path / f"{name}.py"
    script.write_text((SCRIPTS / f"{name}.py").read_text())
    here = Path(sys.executable).parent
    subprocess.run([here / "graphdock", "compat", "--rewrite", "--yes", script], check=True, capture_output=True)
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, script], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    same(done.stdout.splitlines(), TENSORFLOWS[name])
