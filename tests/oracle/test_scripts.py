"""The scripts of ``examples/scripts`` under an installed TensorFlow: what ``tests/examples/scripts.json`` says of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.examples.test_scripts import SCRIPTS, TENSORFLOWS, same

pytestmark = pytest.mark.oracle
UNDER = """
import runpy, sys
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
sys.modules["tensorflow"] = tf
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("name", TENSORFLOWS)
def test_tensorflow_prints_these_lines(name, tmp_path):
    pytest.importorskip("tensorflow")
    env = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", UNDER, SCRIPTS / f"{name}.py"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    same(done.stdout.splitlines(), TENSORFLOWS[name])
