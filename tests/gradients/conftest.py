"""A graph of one's own, and a session on it."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.gradients import registry


@pytest.fixture(autouse=True)
def graph():
    state = registry.snapshot()
    with tf.Graph().as_default() as g:
        yield g
    registry.restore(state)


@pytest.fixture
def sess(graph):
    with tf.Session() as s:
        yield s
