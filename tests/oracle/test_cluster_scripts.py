"""The scripts of ``examples/cluster_scripts`` under an installed TensorFlow print the lines of tests/examples."""

from __future__ import annotations

import socket
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


@pytest.fixture(autouse=True)
def _tensorflow():
    if subprocess.run([PYTHON, "-c", "import tensorflow"], capture_output=True, check=False).returncode:
        pytest.skip("TensorFlow is not installed")


@pytest.mark.parametrize("name", sorted(LINES.keys() - {"between_graph"}))
def test_tensorflow_prints_these_lines(name, tmp_path):
    program = UNDER_TENSORFLOW.replace("import runpy, sys", "import runpy, sys" + PORTS)
    assert run([PYTHON, "-c", program, SCRIPTS / f"{name}.py"], tmp_path)[0] == LINES[name]


def test_tensorflow_prints_these_lines_of_a_script_of_flags(tmp_path):
    """One process per task: TensorFlow 2.21 often stops for ever in processes that are forked after its import."""
    held = [socket.create_server(("localhost", 0)) for _ in range(3)]
    ps, *workers = [f"localhost:{s.getsockname()[1]}" for s in held]
    for one in held:
        one.close()
    words = [PYTHON, "-c", UNDER_TENSORFLOW, SCRIPTS / "between_graph.py"]
    words += [f"--ps_hosts={ps}", f"--worker_hosts={','.join(workers)}"]
    server = subprocess.Popen([*words, "--job_name=ps"], stderr=subprocess.DEVNULL, cwd=tmp_path)
    others = [
        subprocess.Popen(
            [*words, "--job_name=worker", f"--task_index={i}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=tmp_path,
        )
        for i in range(2)
    ]
    try:
        said = [process.communicate(timeout=200)[0].splitlines()[-1] for process in others]
    finally:
        for process in (server, *others):
            process.kill()
            process.wait()
    found = [[word.partition(" at step")[0], *word.partition("[")[2].rstrip("]").split()] for word in said]
    lines = [f"{worker}: {' '.join(f'{float(number):.2f}' for number in numbers)}" for worker, *numbers in found]
    assert lines == LINES["between_graph"]
