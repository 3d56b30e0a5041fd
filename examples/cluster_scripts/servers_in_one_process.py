"""Synchronous replicas of one process: a server of parameters and two workers, each with a graph and a thread of its own."""

import socket
import threading

import numpy as np
import tensorflow as tf

STEPS = 60


def replica(index, cluster, target, said):
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % index, cluster=cluster)):
            w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
            step = tf.train.get_or_create_global_step()
            loss = tf.reduce_sum(tf.square(w - [3.0, -1.0]))
            optimizer = tf.train.SyncReplicasOptimizer(
                tf.train.GradientDescentOptimizer(0.2), replicas_to_aggregate=2, total_num_replicas=2
            )
            train = optimizer.minimize(loss, global_step=step)
        hooks = [optimizer.make_session_run_hook(index == 0), tf.train.StopAtStepHook(last_step=STEPS)]
        with tf.train.MonitoredTrainingSession(master=target, is_chief=(index == 0), hooks=hooks) as sess:
            try:
                while not sess.should_stop():
                    _, found = sess.run([train, w])
                    said[index] = found
            except tf.errors.OutOfRangeError:
                pass  # the other one has ended


def main(_):
    held = [socket.create_server(("localhost", 0)) for _ in range(3)]
    ps, first, second = ["localhost:%d" % s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    cluster = tf.train.ClusterSpec({"ps": [ps], "worker": [first, second]})
    tf.train.Server(cluster, job_name="ps", task_index=0)
    workers = [tf.train.Server(cluster, job_name="worker", task_index=i) for i in range(2)]
    said = {}
    threads = [
        threading.Thread(target=replica, args=(i, cluster, server.target, said), daemon=True)
        for i, server in enumerate(workers)
    ]
    for thread in threads:
        thread.start()
    threads[0].join(100)
    print("weights " + " ".join("%.3f" % v for v in np.asarray(said[0])))


if __name__ == "__main__":
    tf.app.run()
