"""``graphdock notebook`` starts Jupyter with graphdock in TensorFlow's place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

STAND_IN = """
import sys
import tensorflow as tf
print(tf.__version__, sys.argv[1:], hasattr(tf, "mul"))
sys.exit(4)
"""


def test_jupyter_gets_its_arguments_and_imports_graphdock(tmp_path):
    (tmp_path / "jupyterlab.py").write_text(STAND_IN)  # for the real one would open a browser, and wait
    command = [Path(sys.executable).parent / "graphdock", "notebook", "--before-1.0", "--no-browser", "x.ipynb"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 4, done.stderr
    assert done.stdout == "1.15.0 ['--no-browser', 'x.ipynb'] True\n"
