"""Settings of sessions on targets: which hold on tasks, which have no effect, which are refused, and that none meet another's."""

from __future__ import annotations

import logging
import threading

import graphdock as tf
import pytest
from graphdock.contracts import Pass, hookimpl
from graphdock_cluster import settings
from graphdock_testing import queued
from graphdock_testing.thread_cluster import ThreadCluster


@pytest.fixture
def cluster():
    with ThreadCluster({"ps": 1, "worker": 2}) as made:
        yield made


@pytest.fixture
def told(caplog):
    settings._tell.cache_clear()
    caplog.set_level(logging.WARNING, "graphdock")
    return lambda: [r.getMessage() for r in caplog.records if "has no effect" in r.getMessage()]


def test_what_is_each_servers_own_is_told_once(cluster, told):
    server = cluster.server("worker0")
    with tf.Graph(host=server.host).as_default():
        with tf.device("/job:ps/task:0"):
            y = tf.placeholder_with_default(2.0, []) + 1.0
        for _ in range(2):
            config = tf.SessionConfig(backends=["nonesuch"], inter_op_threads=2, fusion=False, operation_timeout=60)
            with tf.Session(server.target, config=config) as session:
                assert session.run(y) == 3.0
    assert [message.split(" ")[0] for message in told()] == [
        "SessionConfig.backends",
        "SessionConfig.inter_op_threads",
    ]


def test_what_the_sessions_own_server_says_as_well_is_not_told(told):
    """A program gives one configuration to its server and to its session."""
    config = tf.ConfigProto(inter_op_parallelism_threads=2, intra_op_parallelism_threads=1, allow_soft_placement=True)
    server = tf.train.Server.create_local_server(config=config)
    with tf.Graph().as_default(), tf.Session(server.target, config=config) as session:
        assert session.run(tf.constant(1.0) + 1.0) == 2.0
    server.stop()
    assert not told()


def test_a_pass_that_there_is_not_is_refused_when_the_session_is_made(cluster):
    server = cluster.server("worker0")
    with pytest.raises(tf.errors.InvalidArgumentError, match="no pass named 'nonesuch'"):
        tf.Session(server.target, config=tf.SessionConfig(passes={"nonesuch": False}), host=server.host)
    assert not server._task.sessions


class _Passes:
    __name__ = "own_passes"

    @hookimpl
    def register_passes(self):
        return [Pass("own", "simplify", 75, "does nothing", lambda graph, context: None)]


def test_a_pass_that_only_the_sessions_machine_has_may_be_switched_off(cluster):
    """As ``OptimizerOptions.L0`` does with every pass that simplifies."""
    server = cluster.server("worker0")
    server.host.register("own_passes", _Passes())
    with tf.Graph(host=server.host).as_default():
        with tf.device("/job:ps/task:0"):
            y = tf.placeholder_with_default(2.0, []) + 1.0
        with tf.Session(server.target, config=tf.SessionConfig(passes={"own": False, "fold": False})) as session:
            assert session.run(y) == 3.0
        with (
            tf.Session(server.target, config=tf.SessionConfig(passes={"own": True})) as session,
            pytest.raises(tf.errors.InvalidArgumentError, match="no pass named 'own'") as caught,
        ):
            session.run(y)
        assert "raised on /job:ps/task:0" in caught.value.__notes__
    assert not cluster.server("ps0")._task.sessions


@pytest.mark.parametrize(
    "given", [{"backends": ["cpu"]}, {"operation_timeout": 0.1}, {"options": {}}, {"nonesuch": 1}, ["fusion"], "x"]
)
def test_a_message_cannot_change_what_is_a_servers_own(cluster, given):
    ps, worker = (cluster.server(name)._task for name in ("ps0", "worker0"))
    arguments = {"session": "forged", "version": tf.__version__, "settings": given}
    with pytest.raises(tf.errors.InvalidArgumentError, match="settings that are the task's own"):
        worker.transport.call(ps.address, "open", arguments).result(30)
    assert not ps.sessions


def test_sessions_of_different_settings_share_a_server_at_once(cluster):
    """Each has its own, from whatever task it comes, however often it is made anew."""
    found = []

    def program(number, fields, expected):
        server = cluster.server(f"worker{number % 2}")
        with tf.Graph(host=server.host).as_default():
            with tf.device("/job:ps/task:0"):
                x = tf.placeholder(tf.float32, [])
                y = tf.log(x)
            with tf.device("/job:ps/task:0/device:GPU:0"):
                z = x + 1.0
            for _ in range(5):
                with tf.Session(server.target, config=tf.SessionConfig(**fields)) as session:
                    said = ""
                    for fetch, value in ((y, 0.0), (y, 1.0), (z, 1.0)):
                        try:
                            session.run(fetch, {x: value})
                            said += "+"
                        except tf.errors.InvalidArgumentError:
                            said += "-"
                    found.append((said, expected))

    cases = [
        ({"check_numerics": True}, "-+-"),
        ({"fallback": "allow"}, "+++"),
        ({"fallback": {"default": "allow"}, "check_numerics": True}, "-++"),
        ({"fusion": False, "deterministic": True}, "++-"),
        ({}, "++-"),
    ]
    threads = [threading.Thread(target=program, args=(n, *case)) for n, case in enumerate(cases)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 25 and all(said == expected for said, expected in found), found


def test_settings_hold_on_a_task_that_came_back_and_after_a_reset(cluster):
    server = cluster.server("worker0")
    config = tf.SessionConfig(check_numerics=True)
    with tf.Graph(host=server.host).as_default():
        with tf.device("/job:ps/task:0"):
            y = tf.log(tf.placeholder_with_default(0.0, []))
        for change in (lambda: None, lambda: (cluster.kill("ps0"), cluster.start("ps0")), reset(server)):
            change()
            with tf.Session(server.target, config=config) as session, pytest.raises(tf.errors.InvalidArgumentError):
                session.run(y)
            with tf.Session(server.target) as session:
                session.run(y)


def test_what_the_server_of_the_target_was_given_holds_on_all_tasks_unless_the_session_says_otherwise():
    """As with TensorFlow, where the master's server places the nodes of all tasks."""
    host = tf.Host(block=["ray"])
    cluster = {"ps": ["given:1"], "worker": ["given:2", "given:3"]}
    soft = tf.ConfigProto(allow_soft_placement=True)
    tasks = (("ps", 0, None), ("worker", 0, soft), ("worker", 1, None))
    servers = [tf.train.Server(cluster, job, number, config=config, host=host) for job, number, config in tasks]
    with tf.Graph(host=host).as_default():
        for task in ("ps", "worker"):
            with tf.device(f"/job:{task}/task:0/device:GPU:0"):
                y = tf.placeholder_with_default(2.0, []) + 1.0
            for config in (None, tf.ConfigProto(), tf.SessionConfig(check_numerics=True)):
                with tf.Session(servers[1].target, config=config) as session:
                    assert session.run(y) == 3.0
        with (
            tf.Session(servers[1].target, config=tf.SessionConfig(fallback="warn")) as session,
            pytest.raises(tf.errors.InvalidArgumentError, match="asks for the device"),
        ):
            session.run(y)
        with tf.device("/job:ps/task:0/device:GPU:0"):
            y = tf.placeholder_with_default(2.0, []) + 1.0
        with (
            tf.Session(servers[2].target) as session,
            pytest.raises(tf.errors.InvalidArgumentError, match="asks for the device"),
        ):
            session.run(y)
    for server in servers:
        server.stop()


def reset(server):
    return lambda: tf.Session.reset(server.target, host=server.host)


@pytest.mark.plain  # debug mode waits for each kernel
def test_a_step_ends_with_its_work_whatever_the_server_says_of_steps_in_flight():
    host = tf.Host(block=["ray"])
    device = queued.install(host, laziness=1.0)
    config = tf.SessionConfig(backends=["queued", "cpu"], steps_in_flight=4)
    server = tf.train.Server({"worker": ["ahead:1"]}, config=config, host=host)
    with tf.Graph(host=host).as_default():
        v = tf.Variable([1.0, 2.0])
        with tf.Session(server.target) as session:
            session.run(v.initializer)
            for _ in range(3):
                session.run(v.assign_add([1.0, 1.0]).op)
                assert not device.pending
    server.stop()
