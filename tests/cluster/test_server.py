"""Servers: which task they are, what they say of themselves, what is refused."""

from __future__ import annotations

import graphdock as tf
import pytest


def test_a_local_server_needs_no_plugin():
    server = tf.train.Server.create_local_server()
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        assert session.run(tf.constant(2) + 3) == 5
    assert server.server_def.job_name == "local" and server.server_def.task_index == 0
    server.stop()
    server.join()


@pytest.mark.parametrize(
    "cluster",
    [
        {"worker": ["test:10", "test:11"]},
        tf.train.ClusterSpec({"worker": ["test:10", "test:11"]}),
        tf.train.ClusterSpec({"worker": ["test:10", "test:11"]}).as_cluster_def(),
    ],
)
def test_a_cluster_is_given_in_any_form(cluster):
    server = tf.train.Server(cluster, job_name="worker", task_index=1, start=False)
    assert server.target == "grpc://test:11"
    made = tf.train.Server(server.server_def, start=False)
    assert made.target == server.target and made.server_def == server.server_def


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"a": ["x:1"], "b": ["y:1"]},), "job_name is needed"),
        (({"worker": ["x:1"]}, "wroker", 0), "no job 'wroker'"),
        (({"worker": ["x:1", "y:1"]}, "worker"), "task_index is needed"),
        (({"worker": ["x:1"]}, "worker", 4), "no task 4"),
        ((3,), "wrong type"),
    ],
)
def test_a_task_that_is_not_in_the_cluster_is_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tf.train.Server(*arguments)


def test_two_servers_of_one_address_are_refused():
    host = tf.Host(block=["ray"])
    server = tf.train.Server({"worker": ["test:12"]}, host=host)
    with pytest.raises(tf.errors.AlreadyExistsError, match="test:12"):
        tf.train.Server({"worker": ["test:12"]}, host=host)
    server.stop()


def test_a_protocol_that_is_not_known_is_refused():
    with pytest.raises(tf.errors.UnimplementedError, match="protocol"):
        tf.train.Server({"worker": ["test:13"]}, protocol="grpc+verbs")


def test_who_watches_a_session_is_told_each_time_that_tensors_do_not_reach_a_task():
    """Also of what was noticed while nobody watched; the task is named, where its address is one of the cluster's."""
    server = tf.train.Server({"ps": ["told:1"], "worker": ["told:2"]}, "ps", 0, host=tf.Host(block=["ray"]))
    task = server._task
    task.open("mine", tf.__version__)
    first = task.watch("mine")
    assert task.watch("mine") is first and not first.done()
    for address in ("told:2", "elsewhere:1"):
        for step in (7, 5):
            task.unreached("mine", address, step)
            task.unreached("another", address, step)
    assert first.result(0) == {"unreached": "/job:worker/task:0", "step": 7}
    assert task.watch("mine").result(0) == {"unreached": "", "step": 7}
    assert task.watch("mine").result(0) == {"unreached": "/job:worker/task:0", "step": 5}
    last = task.watch("mine")
    assert not last.done()
    server.stop()
    assert last.result(0) == {}
