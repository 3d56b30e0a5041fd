"""Plans whose loops still have lists."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import graphdock as tf
import pytest
from graphdock.contracts import Pass, hookimpl
from graphdock.plugin.host import Host

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def planned(process_host):
    """The plan graph of fetches as the pass is given it, and its nodes by name."""
    seen, looking = [], []

    def look(graph, context):
        if not looking:
            return
        seen.append((graph, {n.name: n for level in graph.all_graphs() for n in level.nodes}))
        raise LookupError("seen")  # what would come next changes the graph

    host = process_host(Host())
    look_in = Pass("look", "rewrite", 9, "keeps graphs", look)
    host.register("look", types.SimpleNamespace(register_passes=hookimpl(lambda: [look_in]), __name__="look"))

    def plan(fetches, feed=None):
        looking.append(True)
        fields = {"backends": ("cpu",), "passes": {"lists": False, "regions": False}}
        with tf.Session(config=tf.SessionConfig(**fields), host=host) as sess, pytest.raises(Exception, match="seen"):
            sess.explain(fetches, feed)
        looking.clear()
        return seen[-1]

    return plan
