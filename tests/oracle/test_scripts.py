"""The scripts of ``examples/scripts`` under an installed TensorFlow, held to scripts.json; their cost: ``benchmarks.tutorials``."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks.tutorials import BY_HAND, UNDER_TENSORFLOW, run
from tests.examples.test_scripts import SCRIPTS, TENSORFLOWS, same
from tests.oracle.peer_programs import PYTHON

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module", autouse=True)
def tensorflow():
    if subprocess.run([PYTHON, "-c", "import tensorflow"], capture_output=True, check=False).returncode:
        pytest.skip("TensorFlow is not installed")


@pytest.mark.parametrize("name", TENSORFLOWS)
def test_tensorflow_prints_these_lines(name, tmp_path):
    begin = [BY_HAND[name]] if name in BY_HAND else ["-c", UNDER_TENSORFLOW]
    same(run([PYTHON, *begin, SCRIPTS / f"{name}.py"], tmp_path)[0], TENSORFLOWS[name])
