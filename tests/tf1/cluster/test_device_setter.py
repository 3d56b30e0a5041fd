"""``tf.train.replica_device_setter``: the devices are those that TensorFlow 2.21 gave the same program."""

from __future__ import annotations

import graphdock as tf
import pytest

CLUSTER = {"ps": ["a:1", "b:2"], "w": {1: "c:3", 4: "d:4"}}


def devices(setter):
    with tf.device(setter):
        a = tf.Variable([1.0])
        b = tf.get_variable("b", [2], use_resource=True)
        k = tf.constant(1.0) + a
        with tf.device("/cpu:0"):
            z = tf.Variable(2.0)
        with tf.device("/job:ps/task:1"):
            y = tf.Variable(2.0)
        with tf.device("/job:other"):
            u = tf.Variable(2.0)
    return [t.op.device for t in (a, b, k, z, y, u)]


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (
            {"ps_tasks": 2},
            [
                "/job:ps/task:0",
                "/job:ps/task:1",
                "/job:worker",
                "/job:ps/task:0/device:CPU:0",
                "/job:ps/task:1",
                "/job:other",
            ],
        ),
        (
            {"cluster": CLUSTER},
            [
                "/job:ps/task:0",
                "/job:ps/task:1",
                "/job:worker",
                "/job:ps/task:0/device:CPU:0",
                "/job:ps/task:1",
                "/job:other",
            ],
        ),
        (
            {"ps_tasks": 3, "worker_device": "/job:worker/task:7", "ps_device": "/job:ps/cpu:0"},
            [
                "/job:ps/task:0/device:CPU:0",
                "/job:ps/task:1/device:CPU:0",
                "/job:worker/task:7",
                "/job:ps/task:2/device:CPU:0",
                "/job:ps/task:1/device:CPU:0",
                "/job:other/device:CPU:0",
            ],
        ),
        (
            {"ps_tasks": 2, "merge_devices": False},
            ["/job:ps/task:0", "/job:ps/task:1", "/job:worker", "/device:CPU:0", "/job:ps/task:1", "/job:other"],
        ),
        (
            {"cluster": tf.train.ClusterSpec(CLUSTER), "ps_device": "/job:w"},
            [
                "/job:w/task:0",
                "/job:w/task:1",
                "/job:worker",
                "/job:w/task:0/device:CPU:0",
                "/job:ps/task:1",
                "/job:other",
            ],
        ),
    ],
)
def test_devices(arguments, want):
    assert devices(tf.train.replica_device_setter(**arguments)) == want


@pytest.mark.parametrize("arguments", [{}, {"cluster": {"worker": ["a"]}}, {"ps_tasks": 0}])
def test_without_servers_there_is_no_function(arguments):
    assert tf.train.replica_device_setter(**arguments) is None


def test_strategies():
    with pytest.raises(TypeError, match="ps_strategy must be callable"):
        tf.train.replica_device_setter(2, ps_strategy=3)
    greedy = tf.contrib.training.GreedyLoadBalancingStrategy(2, tf.contrib.training.byte_size_load_fn)
    with tf.device(tf.train.replica_device_setter(2, ps_strategy=greedy)):
        sizes = [100, 10, 20, 60, 5]
        made = [tf.get_variable(f"v{n}", [n]) for n in sizes]
    assert [v.op.device[-1] for v in made] == ["0", "1", "1", "1", "1"]
    drawn = tf.contrib.training.RandomStrategy(4, seed=2)
    assert {drawn(None) for _ in range(100)} == {0, 1, 2, 3}


def test_gradients_of_such_a_graph_train_here():
    """Tasks are names until there is a cluster: one process runs them, where its configuration lets it."""
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        w = tf.Variable([2.0])
        train = tf.train.GradientDescentOptimizer(0.1).minimize(w * w)
    assert w.op.device == "/job:ps/task:0"
    assert train.graph is w.graph
