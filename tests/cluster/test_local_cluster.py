"""Servers of a local cluster share variables of a parameter server, on ports of their own."""

from __future__ import annotations

import graphdock as tf


def test_workers_share_a_variable_of_a_server():
    workers, servers = tf.test.create_local_cluster(2, 1)
    assert len({server.target for server in (*workers, *servers)}) == 3
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        with tf.device("/job:worker/task:1"):
            add = tf.assign_add(v, 2.0)
        with tf.Session(workers[0].target) as first, tf.Session(workers[1].target) as second:
            first.run(v.initializer)
            second.run(add)
            assert first.run(v) == 2.0
