"""Between-graph replication: one script of flags, run once per task; without a job it forks the tasks of a small cluster.

Each worker builds a graph of its own, whose variables a server has, and trains by itself.
"""

import multiprocessing
import socket

import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_string("job_name", "", "ps or worker; empty: all of them, each in a forked process")
tf.app.flags.DEFINE_integer("task_index", 0, "which of its job")
tf.app.flags.DEFINE_string("ps_hosts", "", "addresses, with commas")
tf.app.flags.DEFINE_string("worker_hosts", "", "addresses, with commas")
FLAGS = tf.app.flags.FLAGS
STEPS = 300


def task(job, index, ps, workers, said=None):
    cluster = tf.train.ClusterSpec({"ps": ps, "worker": workers})
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    if job == "ps":
        server.join()
    with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % index, cluster=cluster)):
        rng = np.random.RandomState(index)
        inputs = rng.normal(0, 1, (64, 3)).astype(np.float32)
        x = tf.placeholder(tf.float32, [None, 3])
        y = tf.placeholder(tf.float32, [None])
        w = tf.get_variable("w", [3], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(x * w, 1) - y))
        train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)
    targets = inputs.dot([1.0, -2.0, 0.5]).astype(np.float32)
    hooks = [tf.train.StopAtStepHook(last_step=STEPS)]
    with tf.train.MonitoredTrainingSession(master=server.target, is_chief=(index == 0), hooks=hooks) as sess:
        while not sess.should_stop():
            _, found, at = sess.run([train, w, step], {x: inputs, y: targets})
    if said is not None:
        said.put((index, [float(v) for v in found]))
    else:
        print("worker %d at step %d: %s" % (index, at, np.round(found, 2)))


def main(_):
    if FLAGS.job_name:
        task(FLAGS.job_name, FLAGS.task_index, FLAGS.ps_hosts.split(","), FLAGS.worker_hosts.split(","))
        return
    held = [socket.create_server(("localhost", 0)) for _ in range(3)]
    ps, first, second = ["localhost:%d" % s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    fork = multiprocessing.get_context("fork")
    said = fork.Queue()
    tasks = [("ps", 0), ("worker", 0), ("worker", 1)]
    processes = [fork.Process(target=task, args=(j, i, [ps], [first, second], said), daemon=True) for j, i in tasks]
    for process in processes:
        process.start()
    for index, weights in sorted(said.get(timeout=100) for _ in range(2)):
        print("worker %d: %s" % (index, " ".join("%.2f" % v for v in weights)))
    processes[0].terminate()


if __name__ == "__main__":
    tf.app.run()
