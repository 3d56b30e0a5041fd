"""The scripts of ``examples/scripts`` under an installed TensorFlow: what scripts.json says of it, and at what cost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.test_scripts import SCRIPTS, TENSORFLOWS, same
from tests.oracle.peer_programs import PYTHON

pytestmark = pytest.mark.oracle
UNDER = """
import runpy, sys
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
sys.modules["tensorflow"] = tf
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
#: TensorFlow 2.21 has no tf.estimator: the same model_fn in a loop by hand.
BY_HAND = {"estimator": Path(__file__).with_name("estimator_program.py")}


@pytest.fixture(scope="module", autouse=True)
def tensorflow():
    if subprocess.run([PYTHON, "-c", "import tensorflow"], capture_output=True, check=False).returncode:
        pytest.skip("TensorFlow is not installed")


def timed(words, folder):
    """Run a command; return its lines and the CPU seconds that it took, imports and all."""
    env = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "TMPDIR": str(folder)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("name", TENSORFLOWS)
def test_tensorflow_prints_these_lines(name, tmp_path, capsys):
    script = SCRIPTS / f"{name}.py"
    begin = [BY_HAND[name]] if name in BY_HAND else ["-c", UNDER]
    lines, theirs = timed([PYTHON, *begin, script], tmp_path)
    same(lines, TENSORFLOWS[name])
    ours = timed([Path(sys.executable).parent / "graphdock", "run", script], tmp_path)[1]
    with capsys.disabled():
        print(f"\n{name}: {ours:.2f} s of CPU, TensorFlow {theirs:.2f} s, ratio {ours / theirs:.2f}")
