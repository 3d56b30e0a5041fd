"""Checkpoints that TensorFlow writes are read bitwise, and programs that it trained go on here.

Each program is one text that runs under both: TensorFlow trains it and saves it, graphdock builds it, restores it and computes the
same outputs. TensorFlow is the one of this interpreter, or of the interpreter that ``TENSORFLOW_PYTHON`` names.
"""

from __future__ import annotations

import os
import subprocess
import sys

import graphdock as tf
import numpy as np
import pytest

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
pytest.importorskip("google.protobuf")

PYTHON = os.environ.get("TENSORFLOW_PYTHON", sys.executable)

HEAD = """
x = tf.placeholder(tf.float32, [None, 8])
def dense(v, n, name, **more):
    w = tf.get_variable(name + "/w", [int(v.shape[-1]), n], initializer=tf.random_normal_initializer(stddev=0.3, seed=n), **more)
    return tf.matmul(v, w) + tf.get_variable(name + "/b", [n], initializer=tf.zeros_initializer())
def loss_of(y): return tf.reduce_mean(tf.square(y - x[:, :1]))
"""

#: Name -> the program: it defines ``y``, the output for ``x``, and ``train``, a step.
PROGRAMS = {
    "descent": "y = dense(x, 3, 'a'); train = tf.train.GradientDescentOptimizer(0.1).minimize(loss_of(y))",
    "adam": """
step = tf.train.get_or_create_global_step()
y = dense(tf.tanh(dense(x, 6, 'a')), 1, 'b')
train = tf.train.AdamOptimizer(0.01).minimize(loss_of(y), global_step=step)
""",
    "momentum": """
y = dense(tf.nn.relu(dense(x, 6, 'a')), 1, 'b')
train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss_of(y))
""",
    "rmsprop": """
y = dense(tf.sigmoid(dense(x, 6, 'a')), 1, 'b')
train = tf.train.RMSPropOptimizer(0.01, momentum=0.5).minimize(loss_of(y))
""",
    "partitioned": """
cut = tf.fixed_size_partitioner(3)
y = dense(tf.tanh(dense(x, 7, 'a', partitioner=cut)), 1, 'b', partitioner=tf.fixed_size_partitioner(2))
train = tf.train.AdagradOptimizer(0.1).minimize(loss_of(y))
""",
    "convolution": """
image = tf.reshape(x, [-1, 2, 4, 1])
kernel = tf.get_variable('conv/kernel', [2, 2, 1, 3], initializer=tf.random_normal_initializer(seed=1))
h = tf.nn.relu(tf.nn.conv2d(image, kernel, [1, 1, 1, 1], 'SAME'))
h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')
y = dense(tf.reshape(h, [-1, 6]), 1, 'b')
train = tf.train.FtrlOptimizer(0.05).minimize(loss_of(y))
""",
    "lstm": """
with tf.variable_scope('rnn/lstm_cell'):
    kernel = tf.get_variable('kernel', [2 + 5, 20], initializer=tf.random_normal_initializer(seed=2, stddev=0.3))
    bias = tf.get_variable('bias', [20], initializer=tf.zeros_initializer())
c = h = tf.zeros([tf.shape(x)[0], 5])
for t in range(4):
    i, j, f, o = tf.split(tf.matmul(tf.concat([x[:, 2 * t:2 * t + 2], h], 1), kernel) + bias, 4, 1)
    c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
    h = tf.tanh(c) * tf.sigmoid(o)
y = dense(tf.reshape(h, [-1, 5]), 1, 'out')
train = tf.train.AdadeltaOptimizer(1.0).minimize(loss_of(y))
""",
    "loop": """
w = tf.get_variable('w', [8, 8], initializer=tf.random_normal_initializer(seed=3, stddev=0.2))
_, h = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [tf.constant(0), x])
y = h[:, :1]
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss_of(y))
""",
    "averages": """
y = dense(x, 1, 'a')
average = tf.train.ExponentialMovingAverage(0.9)
with tf.control_dependencies([tf.train.GradientDescentOptimizer(0.1).minimize(loss_of(y))]):
    train = average.apply(tf.trainable_variables())
""",
    "embedding": """
table = tf.get_variable('table', [10, 4], initializer=tf.random_normal_initializer(seed=4))
places = tf.cast(tf.abs(x[:, :2]) * 3.0, tf.int32) % 10
y = dense(tf.reshape(tf.nn.embedding_lookup(table, places), [-1, 8]), 1, 'b')
train = tf.train.AdamOptimizer(0.01).minimize(loss_of(y))
""",
    "normalised": """
mean = tf.get_variable('bn/moving_mean', [8], trainable=False, initializer=tf.zeros_initializer())
gamma = tf.get_variable('bn/gamma', [8], initializer=tf.ones_initializer())
y = dense((x - mean) * gamma, 1, 'b')
words = tf.get_variable('words', initializer=tf.constant(['a', 'bc']), trainable=False)
count = tf.get_variable('count', [], tf.int64, initializer=tf.zeros_initializer(), trainable=False)
with tf.control_dependencies([tf.assign(mean, mean * 0.9 + tf.reduce_mean(x, 0) * 0.1), tf.assign_add(count, 3)]):
    train = tf.train.ProximalAdagradOptimizer(0.1).minimize(loss_of(y))
""",
}

WRITER = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_eager_execution(); tf.disable_v2_behavior()
folder = sys.argv[1]
data = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
for name, text in PROGRAMS.items():
    with tf.Graph().as_default(), tf.Session() as sess:
        names = {"tf": tf}
        exec(HEAD + text, names)
        savers = [tf.train.Saver(write_version=version) for version in (1, 2)]
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(names["train"], {names["x"]: data})
        for version, saver in enumerate(savers, 1):
            path = saver.save(sess, f"{folder}/{name}-v{version}", write_meta_graph=False, write_state=False)
        output = sess.run(names["y"], {names["x"]: data})
    reader = tf.train.NewCheckpointReader(path)  # of version 2: the other one's slices it does not join
    values = {n.replace("/", "|"): reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}
    np.savez(f"{folder}/{name}.npz", **{"=output": output, **values})
"""


def assert_same(found, expected):
    """Equal to a millionth of the largest element: float32 sums are taken in another order, and terms that cancel leave an error of
    their own size, not of the sum's."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    if subprocess.run([PYTHON, "-c", "import tensorflow"], capture_output=True, check=False).returncode:
        pytest.skip("TensorFlow is not installed")
    folder = tmp_path_factory.mktemp("tensorflow")
    text = f"HEAD, PROGRAMS = {HEAD!r}, {PROGRAMS!r}\n{WRITER}"
    done = subprocess.run([PYTHON, "-c", text, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_bitwise_and_outputs(written, name, version):
    path = f"{written}/{name}-v{version}"
    expected = {n.replace("|", "/"): v for n, v in np.load(f"{written}/{name}.npz", allow_pickle=True).items()}
    output = expected.pop("=output")
    assert dict(tf.train.list_variables(path)) == {n: list(v.shape) for n, v in expected.items()}
    for each, value in expected.items():
        found = np.asarray(tf.train.load_variable(path, each))
        assert found.dtype == value.dtype and found.tolist() == value.tolist(), each
    data = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as sess:
        names = {"tf": tf}
        exec(HEAD + PROGRAMS[name], names)
        tf.train.Saver().restore(sess, path)
        assert_same(sess.run(names["y"], {names["x"]: data}), output)
        sess.run(names["train"], {names["x"]: data})
