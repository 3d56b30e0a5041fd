"""``tf.estimator.train_and_evaluate`` by the tasks of a cluster: a chief, a worker, a server and an evaluator."""

from __future__ import annotations

import json
import threading

import graphdock as tf
import numpy as np
from graphdock_testing.transport import SeededTransport

CLUSTER = {"chief": ["chief:1"], "worker": ["worker:1"], "ps": ["ps:1"]}
TASKS = [*CLUSTER, "evaluator"]
STEPS = 12


def model(features, labels, mode):
    w = tf.get_variable("w", initializer=3.0)
    loss = tf.reduce_mean(tf.square(w * features - labels))
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    metrics = {"mean": tf.metrics.mean(w * features)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, eval_metric_ops=metrics)


def rows():
    return tf.data.Dataset.from_tensors((np.float32([1.0]), np.float32([0.5])))


def test_each_task_does_its_part(tmp_path, monkeypatch):
    network, servers, made = SeededTransport(1), [], {}
    server = tf.train.Server

    def started(*args, **kwargs):
        servers.append(server(*args, **kwargs))
        return servers[-1]

    monkeypatch.setattr(tf.train, "Server", started)
    for job in TASKS:
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": CLUSTER, "task": {"type": job, "index": 0}}))
        config = tf.estimator.RunConfig(save_checkpoints_steps=4, save_summary_steps=0, log_step_count_steps=None)
        made[job] = tf.estimator.Estimator(model, str(tmp_path), config)
    results = {}

    def run(job):
        host = tf.Host()
        host.register("network", network.plugin(f"{job}:1"))
        spec = tf.estimator.TrainSpec(lambda: rows().repeat(), STEPS)
        evaluation = tf.estimator.EvalSpec(rows, steps=1, start_delay_secs=0, throttle_secs=0)
        with tf.Graph(host).as_default():
            try:
                results[job] = tf.estimator.train_and_evaluate(made[job], spec, evaluation)
            except BaseException as error:  # noqa: BLE001 - the test looks at it
                results[job] = error
        host.close()

    threads = {job: threading.Thread(target=run, args=(job,), daemon=True) for job in TASKS}
    for thread in threads.values():
        thread.start()
    for job in ("chief", "worker", "evaluator"):
        threads[job].join(60)
    assert "ps" not in results, "a server serves on"
    for each in servers:
        each.stop()
    threads["ps"].join(60)
    network.close()
    assert results["chief"] == results["worker"] == results["ps"] == (None, []), results
    assert len(servers) == 3, "the evaluator needs none"
    metrics, exports = results["evaluator"]
    step = int(metrics["global_step"])
    assert step >= STEPS and exports == []
    # the worker goes on while the chief saves: a save may hold later steps than the one that it is named after
    saved = [tf.train.load_checkpoint(str(p.with_suffix(""))) for p in tmp_path.glob("model.ckpt-*.index")]
    kept = metrics["mean"]
    assert kept in [s.get_tensor("w") for s in saved if s.get_tensor("global_step") == step]
    assert metrics["loss"] == np.square(kept - np.float32(0.5)) and kept < 3.0
