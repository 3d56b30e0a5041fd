"""``tf.train.Supervisor`` on targets: a chief makes or restores the variables of a server, a worker waits for them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import graphdock as tf
import numpy as np
from graphdock_testing.thread_cluster import ThreadCluster

STEPS = 3


def train(cluster, number, folder):
    """Train to the last step; the variable and the step that a worker has seen last, and those it began with."""
    server = cluster.server(f"worker{number}")
    with tf.Graph(server.host).as_default():
        setter = tf.train.replica_device_setter(cluster=cluster.spec, worker_device=f"/job:worker/task:{number}")
        with tf.device(setter):
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", initializer=[1.0, 2.0])
            add = tf.group(w.assign_add([1.0, 1.0]), step.assign_add(1))
        supervisor = tf.train.Supervisor(
            is_chief=not number, logdir=str(folder), summary_op=None, save_model_secs=0, recovery_wait_secs=0.05
        )
        config = tf.SessionConfig(device_filters=["/job:ps", f"/job:worker/task:{number}"])
        with supervisor.managed_session(server.target, config=config) as session:
            began = session.run([w, step])
            if not number:
                for _ in range(STEPS):
                    session.run(add)
                supervisor.saver.save(session, supervisor.save_path, global_step=step)
            return began, session.run([w, step])


def test_a_chief_makes_the_variables_saves_them_and_restores_them_on_a_server_that_came_back(tmp_path):
    with ThreadCluster({"ps": 1, "worker": 2}, 0) as cluster, ThreadPoolExecutor(2) as pool:
        waits = pool.submit(train, cluster, 1, tmp_path)  # it waits for the chief
        (w, step), (last, end) = train(cluster, 0, tmp_path)
        np.testing.assert_array_equal(w, [1.0, 2.0])
        np.testing.assert_array_equal(last, [4.0, 5.0])
        assert (step, end) == (0, STEPS)
        _, (seen, at) = waits.result(60)
        assert 0 <= at <= STEPS and seen[1] == seen[0] + 1.0
        cluster.kill("ps0"), cluster.start("ps0")
        (w, step), (last, end) = train(cluster, 0, tmp_path)
        np.testing.assert_array_equal(w, [4.0, 5.0])
        assert (step, end) == (STEPS, 2 * STEPS)
