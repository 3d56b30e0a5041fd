import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import graphdock as tf
import numpy as np
import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock_tensorflow.run import digits
from graphdock_tensorflow.run.finder import OPTIONS
from graphdock_tf1.platform.log import get_logger


@pytest.fixture
def run_apart(tmp_path):
    """Writes a script, runs it by ``graphdock run`` from an empty folder in a process of its own, and returns what it did."""

    def started(text, *options, arguments=(), name="script.py", command="run", **environment):
        (tmp_path / name).write_text(text, encoding="utf-8")
        words = [Path(sys.executable).parent / "graphdock", command, *options, name, *arguments]
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path), **environment}
        env.pop("GRAPHDOCK_DEBUG", None)
        return subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)

    return started


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Does as ``run_apart`` within this process, in little time, and leaves the process as it was."""
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", OPTIONS, "GRAPHDOCK_BACKENDS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.delenv("GRAPHDOCK_DEBUG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    for name in ("__getattr__", "reshape", "array", "fromstring"):
        monkeypatch.setattr(np, name, vars(np)[name])
    monkeypatch.setattr(digits, "_allowed", digits._allowed)
    logger = get_logger()
    monkeypatch.setattr(logger, "parent", logger.parent)
    formats = [(handler, handler.formatter) for handler in logger.handlers]
    finders = list(sys.meta_path)

    def forget():
        sys.meta_path[:] = finders
        for module in [m for m in sys.modules if m.partition(".")[0] == "tensorflow"]:
            del sys.modules[module]

    def started(text, *options, arguments=(), name="script.py", command="run", **environment):
        forget()
        (tmp_path / name).write_text(text, encoding="utf-8")
        with tf.Graph().as_default():
            done = CliRunner().invoke(cli, [command, *options, name, *arguments], env=environment)
        return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)

    yield started
    forget()
    for handler, formatter in formats:
        handler.setFormatter(formatter)
