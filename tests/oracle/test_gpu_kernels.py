"""The kernels that benchmarks measure beside PyTorch's compute the same as PyTorch's do, in float32 on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest

from benchmarks.gpu_kernels import CASES, graphdock_kernel

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
PYTHON = os.environ.get("TORCH_PYTHON", sys.executable)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, timeout=120).returncode:
        pytest.skip(f"{PYTHON} has no torch; TORCH_PYTHON may name an interpreter that has")
    path = tmp_path_factory.mktemp("kernels") / "values.npz"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([PYTHON, "-m", "benchmarks.gpu_kernels", path], check=True, timeout=300, cwd=ROOT, env=environment)
    return dict(np.load(path))


@pytest.mark.parametrize("name", [name for name in CASES if name != "dropout"])
def test_a_kernel_is_pytorchs(name: str, theirs: dict[str, np.ndarray]) -> None:
    config = tf.SessionConfig(backends=("cpu",))
    with tf.Graph().as_default() as graph, tf.Session(graph=graph, config=config) as session:
        call, kept = graphdock_kernel(tf, session, CASES[name], True, tf.float32)
        call()
        ours = {f"{name}/{number}": session.run(v) for number, v in enumerate(kept)}
    assert ours.keys() == {key for key in theirs if key.startswith(f"{name}/")}
    for key, value in ours.items():
        np.testing.assert_allclose(value, theirs[key], rtol=1e-5, atol=1e-5)
