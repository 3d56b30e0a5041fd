"""The programs of docs/tutorials.md are TensorFlow 1's: with its import they run there too, with the same names."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.oracle.peer_programs import PYTHON

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
PAGE = (Path(__file__).parents[2] / "docs" / "tutorials.md").read_text(encoding="utf-8")
IMPORT = "import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()"


def program(text: str) -> str:
    return text.replace("import graphdock as tf", IMPORT)


def run(path, *words):
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    env.pop("PYTHONPATH", None)
    return subprocess.run([PYTHON, path, *words], cwd=path.parent, capture_output=True, text=True, env=env, check=False)


@pytest.fixture(scope="module", autouse=True)
def tensorflow():
    if subprocess.run([PYTHON, "-c", "import tensorflow"], capture_output=True, check=False).returncode:
        pytest.skip("TensorFlow is not installed")


def test_the_script(tmp_path):
    (text,) = re.findall(r"<!-- file: regression.py -->\n```python\n(.*?)^```$", PAGE, re.M | re.S)
    (tmp_path / "regression.py").write_text(program(text))
    done = run(tmp_path / "regression.py", "--max_steps=120")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "steps 120 right True\n" and "step 100: loss" in done.stderr


def test_the_other_blocks(tmp_path):
    """Their assertions hold: on names, on what is learned, on a state that is carried by a nested feed."""
    blocks = re.findall(r"(?<!-->\n)```python\n(.*?)^```$", PAGE, re.M | re.S)
    assert len(blocks) == 5
    (tmp_path / "page.py").write_text(program("\n".join(blocks)))
    done = run(tmp_path / "page.py")
    assert done.returncode == 0, done.stderr
