"""Data parallelism: a server's variables, and workers that train them together, each by itself, or with one worker to spare.

    python -m examples.data_parallel --mode synchronous --workers 2

All tasks are of this process, workers in threads; a script of each task's own process would say the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import graphdock as tf
import numpy as np

from examples.local_cluster import HOST, local_cluster

MODES = ("synchronous", "asynchronous", "backup")
ROWS, COLUMNS, RATE = 16, 4, 0.1


def rows(worker: int, step: Any) -> tuple[Any, Any]:
    """Inputs and targets of a worker in a step, which is a tensor; both are the same in each run."""
    numbers = tf.cast(tf.reshape(tf.range(ROWS * COLUMNS), [ROWS, COLUMNS]), tf.float32)
    x = tf.sin(numbers * (1.0 + 0.37 * worker) + tf.cast(step, tf.float32))
    return x, tf.reduce_sum(x * [1.0, -2.0, 0.5, 3.0], 1, keepdims=True)


def loss_of(worker: int, step: Any, weight: Any) -> Any:
    """Mean square of the errors of a worker's rows."""
    x, y = rows(worker, step)
    return tf.reduce_mean(tf.square(tf.matmul(x, weight) - y))


def alone(steps: int, workers: int) -> list[float]:
    """Losses of the first worker's rows in one process, which follows the mean of all workers' gradients."""
    with tf.Graph(host=HOST).as_default(), tf.Session() as session:
        step = tf.train.get_or_create_global_step()
        weight = tf.get_variable("w", [COLUMNS, 1], initializer=tf.zeros_initializer())
        losses = [loss_of(each, step, weight) for each in range(workers)]
        train = tf.train.GradientDescentOptimizer(RATE).minimize(tf.add_n(losses) / float(workers), step)
        session.run(tf.global_variables_initializer())
        return [float(session.run([losses[0], train])[0]) for _ in range(steps)]


def together(mode: str, steps: int, workers: int) -> list[list[float]]:
    """Losses of each worker, step by step, on a cluster of one server and some workers."""
    with local_cluster(mode, 1, workers) as (cluster, targets), ThreadPoolExecutor(workers) as pool:
        running = [
            pool.submit(_train, mode, number, workers, steps, cluster, target) for number, target in enumerate(targets)
        ]
        return [each.result() for each in running]


def _train(mode: str, number: int, workers: int, steps: int, cluster: dict[str, list[str]], target: str) -> list[float]:
    own, hooks, found = f"/job:worker/task:{number}", [], []
    with tf.Graph(host=HOST).as_default():
        with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=own)):
            step = tf.train.get_or_create_global_step()
            weight = tf.get_variable("w", [COLUMNS, 1], initializer=tf.zeros_initializer())
            loss = loss_of(number, tf.identity(step), weight)
            optimizer = tf.train.GradientDescentOptimizer(RATE)
            if mode != "asynchronous":
                enough = workers if mode == "synchronous" else workers - 1
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, enough, workers)
                hooks.append(optimizer.make_session_run_hook(not number, num_tokens=0))
            train = optimizer.minimize(loss, step)
        hooks.append(tf.train.StopAtStepHook(last_step=steps))
        config = tf.SessionConfig(device_filters=["/job:ps", own])
        with tf.train.MonitoredTrainingSession(target, not number, hooks=hooks, config=config) as session:
            while not session.should_stop():
                found.append(float(session.run([loss, train])[0]))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Train in one mode, and say the first worker's losses beside those of one process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=MODES, default="synchronous")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args(arguments)
    found = together(options.mode, options.steps, options.workers)
    print("one process ", np.round(alone(options.steps, options.workers), 4).tolist())
    for number, losses in enumerate(found):
        print(f"worker {number:5}", np.round(losses, 4).tolist())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
