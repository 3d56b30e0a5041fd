"""A program that runs under TensorFlow and under graphdock: ``python replicas_program.py tensorflow``.

It prints what synchronous replicas compute, and on which devices their parts are.
"""

from __future__ import annotations

import importlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
FRAMEWORK = sys.argv[1]
tf = importlib.import_module("graphdock" if FRAMEWORK == "graphdock" else "tensorflow.compat.v1")
if FRAMEWORK == "tensorflow":
    tf.disable_v2_behavior()
    tf.enable_resource_variables()

N = 3


def show(*values):
    print("##", *values, flush=True)


def towers(steps, inner, **arguments):
    """Losses and variables of N replicas in one graph, each run by a thread."""
    tf.reset_default_graph()
    w = tf.get_variable("w", initializer=[1.0, 2.0])
    rows = tf.get_variable("rows", initializer=[[1.0], [2.0], [3.0], [4.0]])
    step = tf.train.get_or_create_global_step()
    xs, fetches, made = [], [], []
    for i in range(N):
        xs.append(tf.placeholder(tf.float32, [2]))
        loss = tf.reduce_sum(w * xs[i]) + tf.reduce_sum(tf.gather(rows, [0, i + 1]) * w[0])
        made.append(tf.train.SyncReplicasOptimizer(inner(), N, **arguments))
        with tf.name_scope(f"tower{i}"):
            fetches.append((loss, made[i].minimize(loss, global_step=step)))
    chief, none = made[0], made[0].get_init_tokens_op(0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([each.local_step_init_op for each in made])
        session.run([chief.chief_init_op, none])
        coord = tf.train.Coordinator()
        chief.get_chief_queue_runner().create_threads(session, coord=coord, daemon=True, start=True)

        def work(i):
            return [session.run(fetches[i], {xs[i]: [i + 1.0, k + 1.0]})[0] for k in range(steps)]

        with ThreadPoolExecutor(N) as pool:
            show("losses", [[round(float(loss), 5) for loss in each] for each in pool.map(work, range(N))])
        # TensorFlow's next step has begun: what it does to slots of rows does not wait for a gradient
        slots = [v for v in chief.variables() if "rows" not in v.name]
        values = session.run([step, *slots, w, rows])
        show("values", [np.asarray(value, np.float64).round(5).tolist() for value in values])
        coord.request_stop()


towers(3, lambda: tf.train.GradientDescentOptimizer(0.25))
towers(3, lambda: tf.train.MomentumOptimizer(0.25, 0.5), total_num_replicas=N)
towers(4, lambda: tf.train.AdamOptimizer(0.125))

for required, total in ((2, 2), (2, 3)):
    tf.reset_default_graph()
    with tf.device(tf.train.replica_device_setter(2, worker_device="/job:worker/task:1")):
        step = tf.train.get_or_create_global_step()
        parts = tf.get_variable("parts", [5, 1], partitioner=tf.fixed_size_partitioner(2))
        a, b = tf.get_variable("a", [2]), tf.get_variable("b", [3, 1])
        loss = tf.reduce_sum(a) + tf.reduce_sum(tf.gather(b, [0, 1])) + tf.reduce_sum(tf.convert_to_tensor(parts))
        average = tf.train.ExponentialMovingAverage(0.5)
        opt = tf.train.SyncReplicasOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), required, total, average, [a, b])
        opt.minimize(loss, global_step=step)
        saver = tf.train.Saver(sharded=True)
    kinds, others = (
        ("Accumulator", "Queue", "VarHandle"),
        ("SetGlobalStep", "Close", "q_enqueue", "q_Dequeue", "Graphdock", "sync_rep_generation"),
    )
    for op in tf.get_default_graph().get_operations():
        if any(kind in op.type for kind in kinds) and not any(other in op.name for other in others):
            show(op.name, op.type, op.device.removesuffix("/device:CPU:*"))
    show(sorted(str(v.name) for v in tf.local_variables()))
os._exit(0)  # TensorFlow waits for the thread that waits for gradients
