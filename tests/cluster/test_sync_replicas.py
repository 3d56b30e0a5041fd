"""Synchronous training on a cluster: a server's variables, and workers that take their steps together."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import graphdock as tf
import numpy as np

#: A host whose servers listen nowhere: no plugin reaches other processes.
HOST = tf.Host(block=["ray"])
CLUSTER = {"ps": ["sync:1"], "worker": ["sync:2", "sync:3"]}
STEPS = 4
ROWS = np.random.default_rng(0).normal(size=(2, STEPS, 5, 3)).astype(np.float32)


def model():
    """Rows, the loss of them, and the optimizer."""
    w = tf.get_variable("w", initializer=np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2))
    x = tf.placeholder(tf.float32, [None, 3])
    return x, w, tf.reduce_mean(tf.matmul(x, w) ** 2), tf.train.MomentumOptimizer(0.1, 0.9)


def worker(number, target, chief_is_there):
    """Losses of one worker, and the variable after its last step."""
    with tf.Graph(host=HOST).as_default():
        setter = tf.train.replica_device_setter(cluster=CLUSTER, worker_device=f"/job:worker/task:{number}")
        with tf.device(setter):
            step = tf.train.get_or_create_global_step()
            x, w, loss, optimizer = model()
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, 2)
            train = optimizer.minimize(loss, global_step=step)
        hook = optimizer.make_session_run_hook(number == 0, num_tokens=0)
        config = tf.SessionConfig(device_filters=["/job:ps", f"/job:worker/task:{number}"])
        if number:
            assert chief_is_there.wait(60)
        with tf.train.MonitoredTrainingSession(target, number == 0, hooks=[hook], config=config) as session:
            chief_is_there.set()
            losses = [float(session.run([loss, train], {x: rows})[0]) for rows in ROWS[number]]
            return losses, session.run([w, step])


def test_workers_that_take_their_steps_together_have_the_losses_of_one_process():
    servers = [tf.train.Server(CLUSTER, job, i, host=HOST) for job, i in (("ps", 0), ("worker", 0), ("worker", 1))]
    there = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(worker, i, servers[1 + i].target, there) for i in (0, 1)]
        found = [each.result(60) for each in running]
    for server in servers:
        server.stop()
    with tf.Graph(host=HOST).as_default():
        x, w, loss, optimizer = model()
        (gradient, _), *_ = optimizer.compute_gradients(loss)
        total = tf.placeholder(tf.float32, [3, 2])
        apply = optimizer.apply_gradients([(total * 0.5, w)])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            losses: list[list[float]] = [[], []]
            for k in range(STEPS):
                both = [session.run([loss, gradient], {x: ROWS[i, k]}) for i in (0, 1)]
                for mine, (value, _) in zip(losses, both, strict=True):
                    mine.append(float(value))
                session.run(apply, {total: both[0][1] + both[1][1]})
            last = session.run(w)
    assert [each[0] for each in found] == losses
    for _, (value, step) in found:
        assert step == STEPS
        np.testing.assert_array_equal(value, last)
