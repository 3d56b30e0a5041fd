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
    with pytest.raises(
        tf.errors.UnknownError, match="Could not start /job:other/task:0: the address test:12 is that of /job:worker"
    ):
        tf.train.Server({"other": ["test:12"]}, host=host)
    server.stop()


@pytest.mark.parametrize(
    "address", ["localhost", "", "localhost:", "localhost:abc", "localhost:-1", "localhost:70000", "http://x:1"]
)
def test_an_address_without_a_port_is_refused(address):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f'Could not parse port for local server from "{address}"'):
        tf.train.Server({"worker": [address]}, host=tf.Host(block=["ray"]), start=False)


def test_a_servers_configuration_is_in_its_definition():
    config = tf.ConfigProto(operation_timeout_in_ms=50, gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=0.1))
    server = tf.train.Server.create_local_server(config=config, start=False)
    assert server.server_def.default_session_config == config
    again = tf.train.Server(server.server_def, start=False)
    assert again.server_def == server.server_def
    other = tf.train.Server(server.server_def, config=tf.ConfigProto(operation_timeout_in_ms=9), start=False)
    assert other.server_def.default_session_config == tf.ConfigProto(operation_timeout_in_ms=9)
    assert not tf.train.Server.create_local_server(start=False).server_def.HasField("default_session_config")


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
