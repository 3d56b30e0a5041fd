"""In-graph replication: one client, a graph with a tower per worker, and the mean of their gradients."""

import numpy as np
import tensorflow as tf

WORKERS = 2


def main(_):
    workers, _ = tf.test.create_local_cluster(num_workers=WORKERS, num_ps=1)
    rng = np.random.RandomState(0)
    inputs = rng.normal(0, 1, (WORKERS, 32, 4)).astype(np.float32)
    targets = (inputs.sum(2, keepdims=True) > 0).astype(np.float32)
    with tf.device("/job:ps/task:0"):
        w = tf.get_variable("w", initializer=tf.constant(rng.normal(0, 0.1, (4, 1)).astype(np.float32)))
        b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    optimizer, towers, losses = tf.train.MomentumOptimizer(0.5, 0.9), [], []
    for i in range(WORKERS):
        with tf.device("/job:worker/task:%d" % i):
            logits = tf.matmul(inputs[i], w) + b
            loss = tf.reduce_mean(
                tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.constant(targets[i]), logits=logits)
            )
            towers.append(tf.gradients(loss, [w, b]))
            losses.append(loss)
    with tf.device("/job:ps/task:0"):
        means = [tf.add_n(list(each)) / WORKERS for each in zip(*towers)]
        train = optimizer.apply_gradients(list(zip(means, [w, b])))
    with tf.Session(workers[0].target) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(10):
            found, _ = sess.run([losses, train])
            print("step %d losses %s" % (step, " ".join("%.6f" % v for v in found)))


if __name__ == "__main__":
    tf.app.run()
