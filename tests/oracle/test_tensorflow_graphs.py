"""Graphs that TensorFlow writes compute the same here, and TensorFlow computes the same with those that graphdock writes.

Each program is one text that runs under both. TensorFlow writes it as a frozen GraphDef, as a meta graph with a
checkpoint, and as a
SavedModel; graphdock reads these without its text. Then graphdock builds it and writes it, and TensorFlow reads that.
TensorFlow is the one
of this interpreter, or of the interpreter that ``TENSORFLOW_PYTHON`` names.
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
x = tf.placeholder(tf.float32, [None, 8], name="x")
def dense(v, n, name, **more):
    w = tf.get_variable(name + "/w", [int(v.shape[-1]), n], initializer=tf.random_normal_initializer(stddev=0.3, seed=n), **more)
    return tf.matmul(v, w) + tf.get_variable(name + "/b", [n], initializer=tf.zeros_initializer())
def loss_of(y): return tf.reduce_mean(tf.square(y - x[:, :1]))
"""

#: Name -> the program: it defines ``y``, the output for ``x``, and ``train``, a step.
PROGRAMS = {
    "dense": """
y = tf.nn.softmax(dense(tf.nn.relu(dense(x, 6, 'a')), 3, 'b'))
train = tf.train.AdamOptimizer(0.01).minimize(loss_of(y), tf.train.get_or_create_global_step())
""",
    "momentum": """
h = tf.nn.leaky_relu(dense(x, 6, 'a'))
y = tf.where(h > 0.1, tf.sqrt(tf.abs(h) + 1.0), h / 3.0)
train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss_of(y))
""",
    "partitioned": """
y = dense(tf.tanh(dense(x, 7, 'a', partitioner=tf.fixed_size_partitioner(3))), 1, 'b', partitioner=tf.fixed_size_partitioner(2))
train = tf.train.AdagradOptimizer(0.1).minimize(loss_of(y))
""",
    "convolution": """
image = tf.reshape(x, [-1, 2, 4, 1])
kernel = tf.get_variable('conv/kernel', [2, 2, 1, 3], initializer=tf.random_normal_initializer(seed=1))
h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(image, kernel, [1, 1, 1, 1], 'SAME'), tf.constant([0.1, 0.2, 0.3])))
h = tf.nn.max_pool(tf.pad(h, [[0, 0], [0, 2], [0, 0], [0, 0]]), [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')
y = dense(tf.reshape(h, [-1, 12]), 1, 'b')
train = tf.train.GradientDescentOptimizer(0.05).minimize(loss_of(y))
""",
    "normalised": """
image = tf.reshape(x, [-1, 2, 2, 2])
scale, offset = tf.get_variable('s', [2], initializer=tf.ones_initializer()), tf.get_variable('o', [2],
initializer=tf.zeros_initializer())
h, _, _ = tf.nn.fused_batch_norm(image, scale, offset, mean=tf.constant([0.1, 0.2]), variance=tf.constant([1.1, 0.9]),
is_training=False)
y = tf.reduce_mean(h, [1, 2]) + tf.reduce_max(tf.nn.elu(tf.transpose(h, [0, 3, 1, 2])), [2, 3])
train = tf.train.RMSPropOptimizer(0.01).minimize(loss_of(y))
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
train = tf.train.AdamOptimizer(0.01).minimize(loss_of(y))
""",
    "loop": """
w = tf.get_variable('w', [8, 8], initializer=tf.random_normal_initializer(seed=3, stddev=0.2))
_, h = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [tf.constant(0), x])
y = h[:, :1]
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss_of(y))
""",
    "nested": """
w = tf.get_variable('w', [8, 8], initializer=tf.random_normal_initializer(seed=3, stddev=0.2))
def inner(v, n): return tf.while_loop(lambda j, u: j < n, lambda j, u: (j + 1, tf.tanh(u) + 0.1), [tf.constant(0), v])[1]
def step(i, h):
    grown = tf.cond(tf.reduce_sum(h) > 0.0, lambda: tf.matmul(h, w) + 1.0, lambda: inner(h, i) * 0.5)
    return i + 1, tf.cond(tf.equal(i, 1), lambda: inner(grown, 2), lambda: grown)
_, y = tf.while_loop(lambda i, h: i < 4, step, [tf.constant(0), x])
train = tf.group(w.assign(w * 0.9))
""",
    "branches": """
v = tf.get_variable('v', [8], initializer=tf.ones_initializer())
a = tf.cond(tf.reduce_mean(x) > 0.0, lambda: tf.cond(x[0, 0] > 0.0, lambda: x * v, lambda: x - v), lambda: tf.zeros_like(x))
b, c = tf.cond(tf.reduce_mean(x) > 0.0, lambda: (a + 1.0, tf.constant(2.0)), lambda: (a - 1.0, tf.reduce_sum(v)))
y = tf.concat([b, b * c], 1)
train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(v * v))
""",
    "embedding": """
table = tf.get_variable('table', [10, 4], initializer=tf.random_normal_initializer(seed=4))
places = tf.cast(tf.abs(x[:, :2]) * 3.0, tf.int32) % 10
h = tf.reshape(tf.nn.embedding_lookup(table, places), [-1, 8])
top, _ = tf.nn.top_k(h, 3)
y = dense(tf.concat([h, top, tf.one_hot(tf.argmax(h, 1), 3)], 1), 2, 'b')
train = tf.train.AdamOptimizer(0.01).minimize(loss_of(y))
""",
    "resources": """
w = tf.get_variable('w', [8, 3], initializer=tf.random_normal_initializer(seed=5), use_resource=True)
y = tf.expand_dims(tf.reduce_sum(tf.matmul(x, w), 1), -1) + tf.gather(w, [1], axis=0)[:, :1] + tf.nn.embedding_lookup(w, [2])[:, :1]
train = tf.train.AdamOptimizer(0.01).minimize(loss_of(y))
""",
    "updates": """
mean = tf.get_variable('mean', [8], trainable=False, initializer=tf.zeros_initializer())
count = tf.get_variable('count', [], tf.int64, initializer=tf.zeros_initializer(), trainable=False)
y = (x - mean) * tf.cast(count, tf.float32) + tf.stack([tf.reduce_sum(x, 1)] * 8, 1) ** 2.0
with tf.control_dependencies([tf.assign(mean, mean * 0.9 + tf.reduce_mean(x, 0) * 0.1), tf.assign_add(count, 3)]):
    train = tf.no_op('updated')
""",
}

WRITER = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
folder = sys.argv[1]
data = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
for name, text in PROGRAMS.items():
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        names = {"tf": tf}
        exec(HEAD + text, names)
        y = tf.identity(names["y"], "y")
        tf.add_to_collection("the_step", names["train"])
        saver = tf.train.Saver()
        sess.run(tf.global_variables_initializer())
        sess.run(names["train"], {names["x"]: data})
        frozen = tf.graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), ["y"])
        tf.train.write_graph(frozen, folder, name + ".pb", as_text=False)
        tf.train.write_graph(frozen, folder, name + ".pbtxt")
        saver.save(sess, f"{folder}/{name}", write_state=False)
        tf.saved_model.simple_save(sess, f"{folder}/{name}.model", {"x": names["x"]}, {"y": y})
        before = sess.run(y, {names["x"]: data})
        sess.run(names["train"], {names["x"]: data})
        np.savez(f"{folder}/{name}.npz", y=before, after=sess.run(y, {names["x"]: data}))
"""

READER = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
folder = sys.argv[1]
data = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
for name in PROGRAMS:
    found = {}
    with tf.Graph().as_default(), tf.Session() as sess:
        graph_def = tf.GraphDef()
        with open(f"{folder}/{name}.pb", "rb") as file:
            graph_def.ParseFromString(file.read())
        (y,) = tf.import_graph_def(graph_def, return_elements=["y:0"], name="")
        found["frozen"] = sess.run(y, {"x:0": data})
    with tf.Graph().as_default(), tf.Session() as sess:
        meta = tf.saved_model.load(sess, ["serve"], f"{folder}/{name}.model")
        signature = meta.signature_def["serving_default"]
        found["model"] = sess.run(signature.outputs["y"].name, {signature.inputs["x"].name: data})
    np.savez(f"{folder}/{name}.npz", **found)
"""

DATA = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
#: Programs of whose training TensorFlow's graph has stacks, which graphdock lacks.
UNTRAINED = {"loop"}


def assert_same(found, expected, what=""):
    """Equal to a millionth of the largest element: float32 sums are taken in another order, and terms that cancel leave an error of
    their own size, not of the sum's."""
    limit = 1e-6 * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=limit, err_msg=what)


def run(text, folder):
    if subprocess.run([PYTHON, "-c", "import tensorflow"], capture_output=True, check=False).returncode:
        pytest.skip("TensorFlow is not installed")
    text = f"HEAD, PROGRAMS = {HEAD!r}, {PROGRAMS!r}\n{text}"
    done = subprocess.run([PYTHON, "-c", text, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theirs")
    run(WRITER, folder)
    return folder


@pytest.mark.parametrize("ending", ["pb", "pbtxt"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_frozen_graph_computes_the_same(written, name, ending):
    from graphdock_tensorflow.graphs.files import read_message

    message = read_message("GraphDef", f"{written}/{name}.{ending}")
    with tf.Graph().as_default(), tf.Session() as sess:
        (y,) = tf.import_graph_def(message, return_elements=["y:0"], name="")
        assert_same(sess.run(y, {"x:0": DATA}), np.load(f"{written}/{name}.npz")["y"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_meta_graph_is_restored_and_trains_on(written, name):
    expected = np.load(f"{written}/{name}.npz")
    with tf.Graph().as_default(), tf.Session() as sess:
        saver = tf.train.import_meta_graph(f"{written}/{name}.meta", allow_missing=name in UNTRAINED)
        saver.restore(sess, f"{written}/{name}")
        assert_same(sess.run("y:0", {"x:0": DATA}), expected["y"])
        if name not in UNTRAINED:
            (train,) = tf.get_collection("the_step")
            sess.run(train, {"x:0": DATA})
            assert_same(sess.run("y:0", {"x:0": DATA}), expected["after"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_saved_model_computes_the_same(written, name):
    with tf.Graph().as_default(), tf.Session() as sess:
        meta = tf.saved_model.load(sess, ["serve"], f"{written}/{name}.model")
        signature = meta.signature_def["serving_default"]
        found = sess.run(signature.outputs["y"].name, {signature.inputs["x"].name: DATA})
        assert_same(found, np.load(f"{written}/{name}.npz")["y"])


def test_tensorflow_computes_the_same_with_graphs_of_graphdock(tmp_path):
    outputs = {}
    for name, text in PROGRAMS.items():
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            names = {"tf": tf}
            exec(HEAD + text.partition("\ntrain =")[0], names)
            y = tf.identity(names["y"], "y")
            sess.run(tf.global_variables_initializer())
            outputs[name] = sess.run(y, {names["x"]: DATA})
            frozen = tf.graph_util.convert_variables_to_constants(sess, graph.as_graph_def(), ["y"])
            tf.train.write_graph(frozen, str(tmp_path), f"{name}.pb", as_text=False)
            tf.saved_model.simple_save(sess, f"{tmp_path}/{name}.model", {"x": names["x"]}, {"y": y})
    run(READER, tmp_path)
    for name, output in outputs.items():
        found = np.load(f"{tmp_path}/{name}.npz")
        for kind in ("frozen", "model"):
            assert_same(found[kind], output, f"{name}: {kind}")
