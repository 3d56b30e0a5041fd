"""What the tests of the dataflow executor share: a graph of its own for each, and sessions on executors with arguments."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import graphdock as tf
import pytest
from graphdock.contracts import hookimpl
from graphdock.plugin.host import Host
from graphdock_dataflow.cost import HAND_OFF
from graphdock_dataflow.executor import Dataflow

sys.path.insert(0, str(Path(__file__).parents[1] / "laws"))  # its lab of ops that wait


class Told(Dataflow):
    """The executor with arguments, beside the installed one."""

    name = "told"


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def told():
    """``told(seed=..., hand_off=..., **settings)``: a session on the executor with these arguments."""

    def session(seed=None, without=(), hand_off=HAND_OFF, host=None, **settings):
        host = Host() if host is None else host
        executor = Told(seed, without, hand_off)
        hooks = SimpleNamespace(register_executors=hookimpl(lambda: [executor]), __name__="told")
        host.register("told", hooks)
        return tf.Session(config=tf.SessionConfig(executor="told", **settings), host=host)

    return session
