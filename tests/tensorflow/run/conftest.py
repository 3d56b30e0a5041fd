import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def run(tmp_path):
    """Writes a script, runs it by ``graphdock run`` from an empty folder, and returns what it did."""

    def started(text, *options, arguments=(), name="script.py", command="run", **environment):
        (tmp_path / name).write_text(text, encoding="utf-8")
        words = [Path(sys.executable).parent / "graphdock", command, *options, name, *arguments]
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path), **environment}
        env.pop("GRAPHDOCK_DEBUG", None)
        return subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)

    return started
