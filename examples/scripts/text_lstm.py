"""A language model of characters: an embedding, two LSTMs unrolled by dynamic_rnn, clipped gradients."""

import collections

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_integer("hidden", 24, "units of a layer")
flags.DEFINE_integer("steps", 20, "batches to train")
FLAGS = flags.FLAGS

TEXT = "the quick brown fox jumps over the lazy dog and the dog sleeps on while the fox runs far away " * 8
rng = np.random.RandomState(1)


def main(_):
    counts = collections.Counter(TEXT)
    ids = {char: number for number, char in enumerate(sorted(counts))}
    data = np.array([ids[char] for char in TEXT])
    size, batch, length = len(ids), 4, 12

    x = tf.placeholder(tf.int32, [batch, length])
    y = tf.placeholder(tf.int32, [batch, length])
    with tf.variable_scope("model", initializer=tf.constant_initializer(0.0)):
        table = tf.get_variable("embedding", initializer=rng.normal(0, 0.3, (size, 16)).astype(np.float32))
        cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.LSTMCell(FLAGS.hidden) for _ in range(2)])
        start = cell.zero_state(batch, tf.float32)
        outputs, last = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(table, x), initial_state=start)
        weights = tf.get_variable("w", initializer=rng.normal(0, 0.3, (FLAGS.hidden, size)).astype(np.float32))
        logits = tf.matmul(tf.reshape(outputs, [-1, FLAGS.hidden]), weights)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(y, [-1]), logits=logits))
    variables = tf.trainable_variables()
    gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    train = tf.train.GradientDescentOptimizer(0.5).apply_gradients(zip(gradients, variables))

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for variable in variables:  # cells make their own variables: give them values too
            if "kernel" in variable.name:
                variable.load(rng.normal(0, 0.3, variable.get_shape().as_list()).astype(np.float32), sess)
        state = sess.run(start)
        for step in range(FLAGS.steps):
            begins = step * 5 + np.arange(batch) * 150
            inputs = np.stack([data[b : b + length] for b in begins])
            targets = np.stack([data[b + 1 : b + length + 1] for b in begins])
            feeds = {x: inputs, y: targets}
            for (c, h), (c_value, h_value) in zip(start, state):
                feeds[c], feeds[h] = c_value, h_value
            state, value, size_of_step, _ = sess.run([last, loss, norm, train], feeds)
            print("step %d loss %.6f norm %.6f" % (step, value, size_of_step))


if __name__ == "__main__":
    tf.app.run()
