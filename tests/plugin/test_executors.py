"""Executors and session factories from plugins: found by name and by scheme, one per name, and they run."""

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Builder, Executor, SessionFactory
from graphdock.dtypes import float32
from graphdock.errors import NotFoundError, PluginError
from graphdock.plugin.host import Host

OTHER = """\
from graphdock.contracts import Executor, SessionFactory, hookimpl

class Eager(Executor):
    name = "{name}"
    def compile(self, graph, devices): return None

class Far(SessionFactory):
    scheme = "far"
    def open(self, target, graph, config): return (target, graph, config)

@hookimpl
def register_executors(): return [Eager()]

@hookimpl
def register_session_factories(): return [Far()]
"""


def test_an_executor_is_found_by_its_name_and_runs_a_plan(toy):
    host = Host()
    executor = host.executor("toy")
    assert isinstance(executor, Executor)
    assert host.executor("toy") is executor
    builder = Builder("step")
    x = builder.input("x", float32, (2,))
    y = builder.node(host.ops.get("toy.Scale"), "y", [x], {"factor": 3.0, "T": float32}, [(float32, (2,))])
    graph = builder.finish(y)
    partition = executor.compile(graph, {})
    np.testing.assert_array_equal(partition.run([np.array([1, 2], np.float32)])[0], [3, 6])


def test_a_session_factory_is_found_by_the_targets_scheme(toy):
    factory = Host().session_factory("toy://anywhere")
    assert isinstance(factory, SessionFactory)
    assert factory.scheme == "toy"


def test_an_executor_whose_name_is_not_its_plugins_is_found_too(site):
    site.plugin("engines", OTHER.replace("{name}", "eager"))
    host = Host()
    assert host.executor("eager").name == "eager"
    assert host.session_factory("far://x").open("far://x", 1, 2) == ("far://x", 1, 2)


def test_names_that_nobody_brings(site):
    site.plugin("engines", OTHER.replace("{name}", "eager"))
    with pytest.raises(NotFoundError) as caught:
        Host().executor("eagr")
    assert caught.value.message == "no executor named 'eagr'"
    assert caught.value.expected == "one of auto, dataflow, eager, straight_line"
    assert caught.value.hint == "did you mean 'eager'?"
    with pytest.raises(NotFoundError, match="no session factory for the target 'ray://head'"):
        Host().session_factory("ray://head")


def test_two_executors_of_one_name(site):
    site.plugin("one", OTHER.replace("{name}", "eager"))
    site.plugin("two", OTHER.replace("{name}", "eager"))
    host = Host()
    host.backend("one")
    with pytest.raises(PluginError, match="plugin 'two' brings the executor 'eager', which plugin 'one' has"):
        host.backend("two")
    assert host.executors.names() == ["eager"]


def test_a_session_from_the_factory_runs_where_the_target_says(toy, process_host):
    host = process_host(Host())
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2])
        y = tf.square(x)
        with host.session_factory("toy://anywhere").open("toy://anywhere", graph, None) as session:
            np.testing.assert_array_equal(session.run(y, {x: [2.0, 3.0]}), [4.0, 9.0])
            assert session.config.backends == ("toy", "cpu")
    from graphdock_toy.device import LAUNCHES

    assert LAUNCHES["square"] >= 1
