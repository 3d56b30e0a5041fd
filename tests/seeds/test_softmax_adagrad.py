"""The sample program of the recitation slides: softmax regression trained with Adagrad."""

from __future__ import annotations

import numpy as np

LISTING = """
import graphdock as tf
import numpy as np
BATCH_SIZE = 10
NUM_STEPS = 10000
##### Placeholder for inputs (images and labels)#####
x = tf.placeholder(tf.float32, [BATCH_SIZE, 784])
y = tf.placeholder(tf.float32, [BATCH_SIZE, 10])
#####
#####Variables for parameters with initialization#####
W_1 = tf.Variable(tf.random_uniform([784, 10]))
b_1 = tf.Variable(tf.zeros([10]))
#####
#####NN Layer#####
layer_1 = tf.matmul(x, W_1) + b_1
#####
#####Loss and optimizer operations#####
loss = tf.nn.softmax_cross_entropy_with_logits(logits = layer_1, labels = y)
train_op = tf.train.AdagradOptimizer(0.01).minimize(loss)
#####
#####Execute the graph#####
with tf.Session() as sess:      #Connect to the TF runtime.
    sess.run(tf.global_variables_initializer())    #Randomly initialize weights.
    for step in range(NUM_STEPS):
        x_data,y_data= np.random.normal(size=(BATCH_SIZE, 784)),np.random.normal(size=(BATCH_SIZE, 10))
        # Perform one training step
        sess.run(train_op, {x: x_data, y: y_data})
"""


def by_hand(w, b, batches):
    """The same training in float64 NumPy, from the formulas of Duchi, Hazan and Singer (2011)."""
    w, b = w.astype(np.float64), b.astype(np.float64)
    aw, ab = np.full_like(w, 0.1), np.full_like(b, 0.1)
    for x, y in batches:
        x, y = x.astype(np.float32).astype(np.float64), y.astype(np.float32).astype(np.float64)
        logits = x @ w + b
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        # d loss / d logits of -sum(y * log p) where the rows of y do not sum to one: TensorFlow's kernel gives p - y
        g = p - y
        gw, gb = x.T @ g, g.sum(0)
        aw += gw * gw
        ab += gb * gb
        w -= 0.01 * gw / np.sqrt(aw)
        b -= 0.01 * gb / np.sqrt(ab)
    return w, b


def test_the_program_runs_as_it_stands():
    import graphdock as tf

    with tf.Graph().as_default():
        names: dict[str, object] = {}
        exec(compile(LISTING, "listing", "exec"), names)
        assert names["step"] == 9999


def test_its_updates_are_those_of_the_formulas():
    import graphdock as tf

    rng = np.random.default_rng(0)
    batches = [(rng.normal(size=(10, 784)), rng.normal(size=(10, 10))) for _ in range(30)]
    with tf.Graph().as_default():
        names: dict[str, object] = {}
        exec(compile(LISTING.partition("#####Execute")[0], "listing", "exec"), names)
        x, y, w, b, train_op = (names[n] for n in ("x", "y", "W_1", "b_1", "train_op"))
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            start = sess.run([w, b])
            for x_data, y_data in batches:
                sess.run(train_op, {x: x_data, y: y_data})
            got_w, got_b = sess.run([w, b])
    want_w, want_b = by_hand(*start, batches)
    np.testing.assert_allclose(got_w, want_w, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(got_b, want_b, rtol=2e-4, atol=2e-5)
    assert np.abs(start[0] - got_w).max() > 0.01
