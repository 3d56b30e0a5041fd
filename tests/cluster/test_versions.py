"""Versions of plugins on the tasks of a step: what takes part is of one version, and the rest may differ."""

from __future__ import annotations

import importlib
import shutil

import graphdock as tf
import pytest
from graphdock_testing.thread_cluster import ThreadCluster
from graphdock_testing.transport import SeededTransport


@pytest.fixture
def cluster(site):
    """Tasks that are started by the test, each with the plugins that are installed by then."""
    with ThreadCluster({"ps": 1, "worker": 1}) as made:
        yield made


def begin_again(cluster, site, name, version, plugin="chip"):
    """Start a task anew, as on a machine where another version of a plugin is installed; none for None."""
    for info in site.folder.glob("*.dist-info"):
        shutil.rmtree(info)
    if version is not None:
        site.record(f"graphdock-{plugin}", version, {plugin: f"graphdock_{plugin}.plugin"})
    cluster.kill(name)
    return cluster.start(name)


def two_tasks():
    with tf.device("/job:ps/task:0"):
        a = tf.constant([1.0, 2.0]) * tf.placeholder_with_default(2.0, [])
    with tf.device("/job:worker/task:0"):
        return a + 1.0


def test_tasks_that_plan_with_two_versions_of_a_plugin_are_refused_and_both_are_named(
    cluster, site, builder, monkeypatch
):
    site.plugin("chip", builder.device_source("chip"), manifest=builder.device_manifest("chip"))
    monkeypatch.setenv("GRAPHDOCK_BACKENDS", "cpu,chip")
    begin_again(cluster, site, "ps0", "1.0")
    server = begin_again(cluster, site, "worker0", "2.0")
    with tf.Graph(host=server.host).as_default():
        both = two_tasks()
        with tf.device("/job:worker/task:0"):
            alone = tf.constant(3.0) + 1.0
        with tf.Session(server.target) as session:
            for _ in range(2):
                with pytest.raises(tf.errors.FailedPreconditionError) as caught:
                    session.run(both)
                text = str(caught.value)
                assert "the plugin 'chip' is of different versions" in text
                assert "1.0 for /job:ps/task:0" in text and "2.0 for /job:worker/task:0" in text
                assert {caught.value.expected, caught.value.got} == {"1.0", "2.0"}
            assert session.run(alone) == 4.0, "a step of one task has one version"
        begin_again(cluster, site, "ps0", "2.0")
        with tf.Session(server.target) as session:
            assert session.run(both).tolist() == [3.0, 5.0]


@pytest.mark.parametrize("backends", ["cpu", "cpu,chip"])
def test_what_takes_no_part_in_plans_may_differ(cluster, site, builder, monkeypatch, backends):
    """A plugin that no task lists, or that is listed and has no device here."""
    probe = 'raise DeviceUnavailable("no chip", "buy one")'
    site.plugin("chip", builder.device_source("chip", probe), manifest=builder.device_manifest("chip"))
    monkeypatch.setenv("GRAPHDOCK_BACKENDS", backends)
    monkeypatch.setenv("GRAPHDOCK_FALLBACK", "allow")
    begin_again(cluster, site, "ps0", "1.0")
    server = begin_again(cluster, site, "worker0", "2.0")
    with tf.Graph(host=server.host).as_default(), tf.Session(server.target) as session:
        assert session.run(two_tasks()).tolist() == [3.0, 5.0]


@pytest.mark.parametrize("listed", [True, False])
def test_a_plugin_whose_patterns_are_looked_for_takes_part(cluster, site, builder, listed):
    """Those of kernels that no backend lists are not."""
    source = f"""\
from graphdock.contracts import PatternLibrary, hookimpl

@hookimpl
def register_patterns(): return [PatternLibrary("graphdock_chip.patterns:ALL", ("Tanh",), listed={listed})]
"""
    site.plugin("chip", source, manifest=builder.MANIFEST.format(name="chip") + 'hooks = ["register_patterns"]\n')
    begin_again(cluster, site, "ps0", "1.0")
    server = begin_again(cluster, site, "worker0", "2.0")
    with tf.Graph(host=server.host).as_default(), tf.Session(server.target) as session:
        if listed:
            assert session.run(two_tasks()).tolist() == [3.0, 5.0]
        else:
            with pytest.raises(tf.errors.FailedPreconditionError, match="'chip' is of different versions"):
                session.run(two_tasks())


#: A plugin whose transport is the network of a test, which it finds in its own module.
CARRIER = """\
from graphdock.contracts import hookimpl
ENDS = []

@hookimpl
def register_transports(): return [ENDS.pop()]
"""


@pytest.mark.parametrize(("versions", "runs"), [(("1.0", "1.0"), True), (("1.0", "2.0"), False), ((None, "2.0"), True)])
def test_what_carries_messages_is_of_one_version_or_of_another_plugin(site, versions, runs):
    network, hosts = SeededTransport(), []
    package = site.plugin("chip", CARRIER)
    for address, version in zip(("ps0:1", "worker0:1"), versions, strict=True):
        shutil.rmtree(next(site.folder.glob("*.dist-info")))
        (end,) = network.plugin(address).register_transports()
        hosts.append(tf.Host())
        if version is None:
            site.record("graphdock-chip", "0.1", {"unused": f"{package}.plugin"})
            hosts[-1].register("network", network.plugin(address))
        else:
            site.record("graphdock-chip", version, {"chip": f"{package}.plugin"})
            importlib.import_module(f"{package}.plugin").ENDS.append(end)
            hosts[-1].backend("chip")
    spec = {"ps": ["ps0:1"], "worker": ["worker0:1"]}
    servers = [tf.train.Server(spec, job, 0, host=host) for job, host in zip(spec, hosts, strict=True)]
    with tf.Graph(host=hosts[1]).as_default(), tf.Session(servers[1].target) as session:
        if runs:
            assert session.run(two_tasks()).tolist() == [3.0, 5.0]
        else:
            with pytest.raises(tf.errors.FailedPreconditionError, match=r"2\.0 for the session, 1\.0 for /job:ps"):
                session.run(two_tasks())
    for server in servers:
        server.stop()
    network.close()


def test_ops_are_declared_by_the_same_version_where_they_run(cluster, toy):
    begin_again(cluster, toy, "ps0", "1.0", "toy")
    server = begin_again(cluster, toy, "worker0", "2.0", "toy")
    with tf.Graph(host=server.host).as_default():
        with tf.device("/job:ps/task:0"):
            x = tf.placeholder_with_default(2.0, [])
            scaled, other = importlib.import_module("graphdock_toy").scale(x, factor=3.0), x + 1.0
        with tf.Session(server.target) as session:
            assert session.run(other) == 3.0
            with pytest.raises(
                tf.errors.FailedPreconditionError, match=r"2\.0 for the session, 1\.0 for /job:ps/task:0"
            ):
                session.run(scaled)
        begin_again(cluster, toy, "ps0", None)
        with (
            tf.Session(server.target) as session,
            pytest.raises(tf.errors.FailedPreconditionError, match="/job:ps/task:0 has no plugin 'toy'"),
        ):
            session.run(scaled)
        begin_again(cluster, toy, "ps0", "2.0", "toy")
        with tf.Session(server.target) as session:
            assert session.run(scaled) == 6.0


@pytest.mark.parametrize("where", ["cond", "loop", "nested"])
def test_ops_in_bodies_of_branches_and_loops_are_declared_by_the_same_version_too(cluster, toy, where):
    begin_again(cluster, toy, "ps0", "1.0", "toy")
    server = begin_again(cluster, toy, "worker0", "2.0", "toy")
    scale = importlib.import_module("graphdock_toy").scale
    with tf.Graph(host=server.host).as_default(), tf.device("/job:ps/task:0"):
        x = tf.placeholder_with_default(2.0, [])

        def loop(x):
            return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, scale(y, factor=3.0)), [0, x])[1]

        made = {
            "cond": lambda: tf.cond(x > 1, lambda: scale(x, factor=3.0), lambda: x),
            "loop": lambda: loop(x),
            "nested": lambda: tf.cond(x > 1, lambda: loop(x), lambda: x),
        }[where]()
        with (
            tf.Session(server.target) as session,
            pytest.raises(tf.errors.FailedPreconditionError, match=r"2\.0 for the session, 1\.0 for /job:ps/task:0"),
        ):
            session.run(made)


@pytest.mark.parametrize(
    ("backends", "error", "message"),
    [("cpu,chip", tf.errors.UnknownBackendError, "backend 'chip'"), ("cpu", tf.errors.InvalidArgumentError, "chip:0")],
)
def test_a_task_without_the_plugin_of_a_device_says_so_with_its_name(
    cluster, site, builder, monkeypatch, backends, error, message
):
    site.plugin("chip", builder.device_source("chip"), manifest=builder.device_manifest("chip"))
    server = begin_again(cluster, site, "worker0", "1.0")
    monkeypatch.setenv("GRAPHDOCK_BACKENDS", backends)
    begin_again(cluster, site, "ps0", None)
    with tf.Graph(host=server.host).as_default():
        with tf.device("/job:ps/task:0/device:chip:0"):
            x = tf.identity(tf.placeholder_with_default(2.0, []))
        with tf.Session(server.target) as session, pytest.raises(error, match=message) as caught:
            session.run(x)
        assert any("/job:ps/task:0" in note for note in caught.value.__notes__)
