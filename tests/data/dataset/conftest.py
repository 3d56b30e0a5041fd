"""What the tests of datasets share: a folder of tests is no package."""

from __future__ import annotations

import gc
import importlib.util
import json
import threading
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parent


def _load(name):
    spec = importlib.util.spec_from_file_location(name, _FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pytest_generate_tests(metafunc):
    if "program" in metafunc.fixturenames:
        metafunc.parametrize("program", list(_load("programs").PROGRAMS))


@pytest.fixture(scope="session")
def programs():
    return _load("programs")


@pytest.fixture(scope="session")
def answers():
    return json.loads((_FOLDER / "answers.json").read_text())


@pytest.fixture(autouse=True)
def no_threads_left():
    """No thread that a test's pipelines began is there when it has ended."""
    before = set(threading.enumerate())
    yield
    if left := {t for t in threading.enumerate() if t not in before and t.name.startswith("graphdock-")}:
        gc.collect()  # which takes seconds once a process has run thousands of tests
    for thread in left:
        thread.join(60)
        assert not thread.is_alive(), thread
