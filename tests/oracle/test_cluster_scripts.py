"""The scripts of ``examples/cluster_scripts`` under an installed TensorFlow print the lines of tests/examples."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks.tutorials import UNDER_TENSORFLOW, run
from tests.examples.test_cluster_scripts import LINES, SCRIPTS
from tests.oracle.peer_programs import PYTHON

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

#: TensorFlow's local clusters ask a package for free ports.
PORTS = """
import socket, types
def pick_unused_port():
    with socket.create_server(("localhost", 0)) as free:
        return free.getsockname()[1]
sys.modules["portpicker"] = types.ModuleType("portpicker")
sys.modules["portpicker"].pick_unused_port = pick_unused_port
"""


@pytest.mark.parametrize("name", LINES)
def test_tensorflow_prints_these_lines(name, tmp_path):
    if subprocess.run([PYTHON, "-c", "import tensorflow"], capture_output=True, check=False).returncode:
        pytest.skip("TensorFlow is not installed")
    program = UNDER_TENSORFLOW.replace("import runpy, sys", "import runpy, sys" + PORTS)
    assert run([PYTHON, "-c", program, SCRIPTS / f"{name}.py"], tmp_path)[0] == LINES[name]
