"""What the laws share: helpers importable as ``lab``, a default graph per test, and how long a test waits for a hang."""

from __future__ import annotations

import sys
from pathlib import Path

import graphdock as tf
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def graph():
    """A default graph of its own for each test."""
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def patience(request):
    """Seconds after which a step counts as hanging; reached only by a test that fails, and soon by one that is known to."""
    return 1.5 if request.node.get_closest_marker("xfail") is not None else 60.0
