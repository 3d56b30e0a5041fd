"""Targets on Ray: steps over two raylets, killed and restarted actors, servers with a presence, names that are taken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from graphdock_ray.directory import Directory, parse
from graphdock_ray.zeromq import ZeroMQTransport
from graphdock_testing.transport_laws import TRANSPORT_LAWS, check_transport

SERVER = """
import sys
import graphdock as tf
server = tf.train.Server({"ps": [sys.argv[1]]}, protocol="ray")
print("ready", flush=True)
server.join()
"""


def until(holds):
    """Seconds until something is so, half a minute at most."""
    begun = time.monotonic()
    while time.monotonic() - begun < 30:
        if holds():
            return time.monotonic() - begun
        time.sleep(0.005)
    raise AssertionError("it never came to be")


def config(ps=1, workers=2, **others):
    return tf.SessionConfig(cluster={"ps": ps, "worker": workers}, **others)


def actor_of(ray, cluster, task):
    return ray.get_actor(task, namespace=f"graphdock:{cluster}")


def kill(ray, cluster, task):
    """Kill the process of a task; when."""
    pid = ray.get(actor_of(ray, cluster, task).__ray_call__.remote(lambda self: os.getpid()))
    os.kill(pid, signal.SIGKILL)
    return time.monotonic()


@pytest.fixture
def tasks(raylets, cluster):
    """Target of a cluster of a server and two workers, which is gone afterwards."""
    yield f"ray://{cluster}"
    for actor in raylets.util.list_named_actors(all_namespaces=True):
        if actor["namespace"] == f"graphdock:{cluster}":
            raylets.kill(raylets.get_actor(actor["name"], namespace=actor["namespace"]))


def trained(target, **options):
    """Losses of a few steps."""
    rows = np.random.default_rng(0).normal(size=(4, 4, 3)).astype(np.float32)
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0" if target else None):
            w = tf.Variable(tf.ones([3, 2]), name="w")
        x = tf.placeholder(tf.float32, [None, 3])
        with tf.device("/job:worker/task:1" if target else None):
            loss = tf.reduce_sum(tf.nn.dropout(tf.matmul(x, w), 0.5, seed=3) ** 2)
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
        with tf.Session(target, **options) as session:
            session.run(tf.global_variables_initializer())
            return [session.run([train, loss], {x: row})[1] for row in rows]


def test_a_task_is_not_there_whose_class_ray_has_forgotten_before_its_name(monkeypatch):
    class Ray:
        def get_actor(self, name, namespace):
            raise AssertionError("Expected str or bytes, got <class 'NoneType'>")

    monkeypatch.setattr(Directory, "ray", Ray())
    with pytest.raises(UnavailableError, match="/job:ps/task:0 of the cluster 'demo' is not known to Ray"):
        Directory().where("demo/job:ps/task:0")


@pytest.mark.slow
@pytest.mark.parametrize("law", TRANSPORT_LAWS)
def test_a_law_of_transports_holds(raylets, law):
    check_transport("ray", law)


@pytest.mark.slow
def test_a_target_starts_its_tasks_and_the_losses_are_those_of_one_process(raylets, cluster, tasks):
    assert trained(tasks, config=config(workers=3)) == trained("")
    names = ["/job:ps/task:0", *(f"/job:worker/task:{n}" for n in range(3))]
    where = [
        actor_of(raylets, cluster, name).__ray_call__.remote(
            lambda self: __import__("ray").get_runtime_context().get_node_id()
        )
        for name in names
    ]
    assert len(set(raylets.get(where))) == 2
    with tf.Session(tasks) as session:
        assert session.list_devices() == [f"{name}/device:cpu:0" for name in names]
    with pytest.raises(FailedPreconditionError, match="other tasks on Ray: /job:worker/task:2"):
        tf.Session(tasks, config=config())


@pytest.mark.slow
def test_a_killed_actor_is_noticed_comes_back_empty_and_is_another_incarnation(raylets, cluster, tasks):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0, name="v")
            taken = tf.FIFOQueue(1, [tf.int32], name="queue").dequeue()
        session = tf.Session(tasks, config=config())
        session.run(v.initializer)
        killer = threading.Thread(
            target=lambda: [until(lambda: session._running), kill(raylets, cluster, "/job:ps/task:0")]
        )
        killer.start()
        with pytest.raises(tf.errors.UnavailableError, match="lost"):
            session.run(taken)
        killer.join()
        with pytest.raises(tf.errors.AbortedError, match="started anew"):
            until(lambda: _runs(session, v))
        session.close()
        with tf.Session(tasks) as again, pytest.raises(tf.errors.FailedPreconditionError):
            again.run(v)


def _runs(session, fetch):
    try:
        session.run(fetch)
    except tf.errors.UnavailableError:
        return False
    return True


@pytest.mark.slow
def test_a_monitored_session_goes_on_from_its_checkpoint(raylets, cluster, tasks, tmp_path):
    tf.Session(tasks, config=config()).close()
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:0")):
            step = tf.train.get_or_create_global_step()
            total = tf.Variable(0, name="total", trainable=False)
            train = tf.group(total.assign_add(2), step.assign_add(1))
        killed = []
        hooks = [tf.train.StopAtStepHook(last_step=30)]
        with tf.train.MonitoredTrainingSession(
            tasks, checkpoint_dir=str(tmp_path), save_checkpoint_secs=None, save_checkpoint_steps=5, hooks=hooks
        ) as session:
            while not session.should_stop():
                session.run(train)
                if not killed and session.run(step) >= 12:
                    killed.append(kill(raylets, cluster, "/job:ps/task:0"))
    assert killed
    found = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(tmp_path)))
    assert (found.get_tensor("global_step"), found.get_tensor("total")) == (30, 60)


@pytest.mark.slow
def test_the_name_of_a_server_in_a_process_ends_with_it_and_is_taken_meanwhile(raylets, cluster, tasks):
    address = f"{cluster}/job:ps/task:0"
    command = [sys.executable, "-c", SERVER, address]
    first = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert first.stdout.readline() == b"ready\n"
    with pytest.raises(tf.errors.AlreadyExistsError, match="/job:ps/task:0"):
        tf.train.Server({"ps": [address]}, protocol="ray")
    with tf.Graph().as_default(), tf.Session(tasks) as session:
        assert session.run(tf.constant(2) + 3) == 5
    endpoint, _ = raylets.get(actor_of(raylets, cluster, "/job:ps/task:0").where.remote())
    stranger = ZeroMQTransport()
    with pytest.raises(tf.errors.UnavailableError):
        stranger.call(endpoint, "info", {}).result(30)  # it has no key
    stranger.close()
    first.kill()
    first.wait()
    until(lambda: not raylets.util.list_named_actors(all_namespaces=True) or not _named(raylets, cluster))
    server = tf.train.Server({"ps": [address]}, protocol="ray")
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        assert session.run(tf.py_func(lambda: np.int64(7), [], tf.int64)) == 7
    server.stop()
    until(lambda: not _named(raylets, cluster))


def _named(ray, cluster):
    return [a for a in ray.util.list_named_actors(all_namespaces=True) if a["namespace"] == f"graphdock:{cluster}"]


@pytest.mark.slow
def test_a_cluster_without_tasks_is_waited_for_as_long_as_is_said(raylets, cluster):
    with pytest.raises(tf.errors.DeadlineExceededError, match=f"'{cluster}' has no tasks on Ray"):
        tf.Session(f"ray://{cluster}", config=tf.SessionConfig(operation_timeout=2.0))


def test_other_targets_start_no_tasks():
    server = tf.train.Server.create_local_server()
    with pytest.raises(tf.errors.UnimplementedError, match="start no tasks"):
        tf.Session(server.target, config=config())
    server.stop()


@pytest.mark.parametrize("address", ["head:6379", "demo/task:1", "a b"])
def test_what_is_no_target_is_refused(address):
    with pytest.raises(InvalidArgumentError):
        parse(address)


def test_a_target_names_a_cluster_and_may_name_a_task():
    assert parse("") == ("graphdock", None)
    assert [str(part) for part in parse("demo/job:ps/task:1")] == ["demo", "/job:ps/task:1"]
