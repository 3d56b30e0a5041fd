"""Executors and session factories from plugins: found by name and by scheme, one per name, and they run."""

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Executor, SessionFactory
from graphdock.contracts.executor import Program
from graphdock.errors import NotFoundError, PluginError
from graphdock.plugin.host import Host

OTHER = """\
from graphdock.contracts import Executor, SessionFactory, hookimpl

class Eager(Executor):
    name = "{name}"
    def compile(self, placed): return None

class Far(SessionFactory):
    scheme = "far"
    def open(self, target, graph, config, host): return (target, graph, config)

@hookimpl
def register_executors(): return [Eager()]

@hookimpl
def register_session_factories(): return [Far()]
"""


def test_an_executor_is_found_by_its_name(toy):
    host = Host()
    executor = host.executor("toy")
    assert isinstance(executor, Executor)
    assert host.executor("toy") is executor


def test_a_session_runs_on_the_executor_that_its_configuration_names(toy, process_host):
    process_host(Host())
    from graphdock_toy.device import LAUNCHES

    x = tf.placeholder(tf.float32, [2])
    y = tf.nn.relu(x * 3.0 - 1.0)
    before = LAUNCHES["executor"]
    with tf.Session(config=tf.SessionConfig(executor="toy")) as sess:
        explanation = sess.explain(y, {x: [0.0, 1.0]})
        assert LAUNCHES["executor"] == before
        assert explanation.summary().endswith(" · toy")
        for _ in range(2):
            assert sess.run(y, {x: [0.0, 1.0]}).tolist() == [0.0, 2.0]
        assert LAUNCHES["executor"] == before + 2
        with pytest.raises(tf.errors.UnimplementedError, match="the toy executor does not know Tanh"):
            sess.run(tf.tanh(x), {x: [0.0, 1.0]})


def test_a_name_that_no_executor_has_is_refused_when_the_session_is_made(site):
    site.plugin("engines", OTHER.replace("{name}", "eager"))
    with pytest.raises(NotFoundError, match="no executor named 'strait_line'") as caught:
        tf.Session(config=tf.SessionConfig(executor="strait_line"), host=Host())
    assert caught.value.hint == "did you mean 'straight_line'?"


def test_the_straight_line_executor_is_found_as_any_other():
    host = Host()
    executor = host.executor("straight_line")
    assert isinstance(executor, Executor) and host.executor("straight_line") is executor
    x = tf.placeholder(tf.float32, [2])
    with tf.Session(config=tf.SessionConfig(executor="straight_line")) as sess:
        assert sess.run(x + 1.0, {x: [0.0, 1.0]}).tolist() == [1.0, 2.0]
        assert sess.explain(x, {x: [0.0, 1.0]}).summary().endswith(" · straight_line")


def test_a_plugin_can_not_take_the_name_of_the_hosts_own(site):
    site.plugin("one", OTHER.replace("{name}", "straight_line"))
    host = Host()
    with pytest.raises(PluginError, match="'one' brings the executor 'straight_line', which plugin 'executor' has"):
        host.backend("one")


def test_a_session_factory_is_found_by_the_targets_scheme(toy):
    factory = Host().session_factory("toy://anywhere")
    assert isinstance(factory, SessionFactory)
    assert factory.scheme == "toy"


def test_an_executor_whose_name_is_not_its_plugins_is_found_too(site):
    site.plugin("engines", OTHER.replace("{name}", "eager"))
    host = Host()
    assert host.executor("eager").name == "eager"
    assert host.session_factory("far://x").open("far://x", 1, 2, None) == ("far://x", 1, 2)


def test_names_that_nobody_brings(site):
    site.plugin("engines", OTHER.replace("{name}", "eager"))
    with pytest.raises(NotFoundError) as caught:
        Host().executor("eagr")
    assert caught.value.message == "no executor named 'eagr'"
    assert caught.value.expected == "one of auto, dataflow, eager, straight_line"
    assert caught.value.hint == "did you mean 'eager'?"
    with pytest.raises(NotFoundError, match="no session factory for the target 'nowhere://head'"):
        Host().session_factory("nowhere://head")


def test_two_executors_of_one_name(site):
    site.plugin("one", OTHER.replace("{name}", "eager"))
    site.plugin("two", OTHER.replace("{name}", "eager"))
    host = Host()
    host.backend("one")
    with pytest.raises(PluginError, match="plugin 'two' brings the executor 'eager', which plugin 'one' has"):
        host.backend("two")
    assert host.executors.names() == ["dataflow", "eager", "straight_line"]


def test_a_session_from_the_factory_runs_where_the_target_says(toy, process_host):
    host = process_host(Host())
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2])
        y = tf.square(x)
        with host.session_factory("toy://anywhere").open("toy://anywhere", graph, None, host) as session:
            np.testing.assert_array_equal(session.run(y, {x: [2.0, 3.0]}), [4.0, 9.0])
            assert session.config.backends == ("toy", "cpu")
    from graphdock_toy.device import LAUNCHES

    assert LAUNCHES["square"] >= 1


def test_by_default_the_host_waits_for_what_is_in_flight_on_the_resources_of_a_step():
    """Steps of other sessions may be at work on them; a program that knows queues lets those wait."""
    asked = []

    class Resource:
        def settle(self, writes):
            asked.append((self, writes))

    class Plain(Program):
        def run(self, step, feeds):
            return []

    a, b = Resource(), Resource()
    Plain().follow(None, [(a, False), (b, True)])
    assert asked == [(a, False), (b, True)]
    assert not Plain().overlaps


HOOKED = """\
schema = 1

[plugin]
name    = "{name}"
summary = "states its hooks"
api     = ">=0.3,<0.4"
hooks   = {hooks}
"""


def test_a_plugin_whose_manifest_states_other_hooks_is_not_imported_for_an_executor(site):
    site.plugin("bystander", "raise RuntimeError('imported')", manifest=HOOKED.format(name="bystander", hooks="[]"))
    other = HOOKED.format(name="engines", hooks='["register_executors", "register_session_factories"]')
    site.plugin("engines", OTHER.replace("{name}", "eager"), manifest=other)
    host = Host()
    assert host.executor("eager").name == "eager"
    stages = {e.plugin: e.stage for e in host.ledger}
    assert stages["bystander"] == "found"
    assert stages["engines"] == "registered"


def test_hooks_that_the_manifest_does_not_state_are_drift(site):
    site.plugin(
        "engines",
        OTHER.replace("{name}", "eager"),
        manifest=HOOKED.format(name="engines", hooks='["register_executors"]'),
    )
    host = Host()
    host.executor("eager")
    (entry,) = [e for e in host.ledger if e.plugin == "engines"]
    assert entry.stage == "manifest drift"
    assert "hook register_session_factories is only in the code" in entry.cause


def test_graphdocks_own_manifests_state_their_hooks():
    host = Host()
    for state in host.plugins():
        if state.found.is_own:
            assert state.manifest.hooks is not None, state.name
