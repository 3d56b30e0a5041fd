"""Examples for the tests: a folder of tests is no package."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def made():
    """``made.example(key=[...])`` and ``made.sequence_example(context, lists)``, as bytes."""
    spec = importlib.util.spec_from_file_location("made_examples", Path(__file__).with_name("made_examples.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
