"""tf.layers is TensorFlow 1's: names, collections, values, gradients and updates of the same programs under both."""

from __future__ import annotations

import graphdock as tf
import pytest

from tests.oracle.peer_programs import compare, peer, run

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

HEAD = """
def data(*shape): return np.random.RandomState(0).normal(size=shape).astype(np.float32)
l2 = lambda w: 0.1 * tf.reduce_sum(tf.square(w))
"""
IMAGE = "a = data(2, 7, 6, 3); x = tf.placeholder(tf.float32, [None, 7, 6, 3]); feed = {x: a}\n"
ROW = "a = data(2, 9, 3); x = tf.placeholder(tf.float32, [None, 9, 3]); feed = {x: a}\n"
CUBE = "a = data(2, 4, 5, 4, 2); x = tf.placeholder(tf.float32, [None, 4, 5, 4, 2]); feed = {x: a}\n"
MATRIX = "a = data(5, 4); x = tf.placeholder(tf.float32, [None, 4]); feed = {x: a}\n"

PROGRAMS = {
    "dense": MATRIX
    + """
h = tf.layers.dense(x, 6, tf.nn.relu, kernel_regularizer=l2, bias_regularizer=l2, activity_regularizer=l2)
h = tf.layers.dense(h, 6, name='again')
h = tf.layers.dense(h, 6, name='again', reuse=True)
with tf.variable_scope('outer', initializer=tf.ones_initializer()):
    h = tf.layers.dense(h, 6, use_bias=False)
with tf.variable_scope('outer', reuse=tf.AUTO_REUSE):
    h = tf.layers.dense(h, 6); h = tf.layers.dense(h, 3, name='own')
with tf.name_scope('names'): h = tf.layers.dense(h, 2, trainable=False)
record(tf.layers.dense(tf.expand_dims(h, 1), 2, tf.tanh), feed)
""",
    "conv2d": IMAGE
    + """
h = tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu, kernel_regularizer=l2)
h = tf.layers.conv2d(h, 5, (2, 3), strides=(2, 1), padding='SAME', name='second')
record(tf.layers.conv2d(h, 2, 2, padding='same', dilation_rate=2), feed)
""",
    "conv1d": ROW
    + """
h = tf.layers.conv1d(x, 4, 3, 2, 'same', activation=tf.nn.relu)
record(tf.layers.conv1d(h, 2, 2, dilation_rate=2), feed, facts=False)
""",
    "causal": ROW
    + """
record(tf.layers.conv1d(x, 4, 3, padding='causal', dilation_rate=2), feed, facts=False)
""",
    "conv3d": CUBE
    + """
record(tf.layers.conv3d(tf.layers.conv3d(x, 3, 2, 2, 'same'), 2, (1, 2, 1)), feed)
""",
    "transposed": IMAGE
    + """
h = tf.layers.conv2d_transpose(x, 4, 5, 2, 'same', activation=tf.nn.relu)
record(tf.layers.conv2d_transpose(h, 2, (3, 4), (2, 3)), feed, facts=False)
""",
    "transposed3d": CUBE
    + """
h = tf.layers.conv3d_transpose(x, 3, 3, 2)
record(tf.layers.conv3d_transpose(h, 2, 2, 1, 'same'), feed, facts=False)
""",
    "separable": IMAGE
    + """
h = tf.layers.separable_conv2d(x, 4, 3, (2, 2), 'same', depth_multiplier=2)
record(tf.layers.separable_conv2d(h, 2, 2, depthwise_regularizer=l2), feed, facts=False)
""",
    "separable1d": ROW
    + """
record(tf.layers.separable_conv1d(x, 4, 3, 2, depth_multiplier=2, activation=tf.tanh), feed, facts=False)
""",
    "pools": IMAGE
    + """
h = tf.layers.max_pooling2d(x, 2, 1); h = tf.layers.average_pooling2d(h, (2, 3), (2, 1), 'same')
h = tf.layers.flatten(h); facts['flat'] = h.name, h.shape.as_list()
h = tf.reshape(h, [2, -1, 3]); h = tf.layers.max_pooling1d(h, 2, 1)
record(tf.layers.average_pooling1d(h, 3, 2, 'same') * tf.get_variable('w', []), feed)
""",
    "pools3d": CUBE
    + """
h = tf.layers.average_pooling3d(x, 2, 1)
record(tf.layers.max_pooling3d(h, 2, (1, 2, 1)) * tf.get_variable('w', []), feed)
""",
    "normalized": MATRIX
    + """
h = tf.layers.batch_normalization(x, training=True, gamma_regularizer=l2, momentum=0.9)
h = tf.layers.batch_normalization(h, training=False, scale=False)
h = tf.layers.batch_normalization(h, training=True, trainable=False)
record(tf.layers.batch_normalization(h, center=False, epsilon=0.1, training=True), feed)
""",
    "normalized images": IMAGE
    + """
h = tf.layers.batch_normalization(x, training=True, momentum=0.9)
h = tf.layers.batch_normalization(h, training=False)
h = tf.layers.batch_normalization(h, axis=2, training=True)
h = tf.layers.batch_normalization(h, axis=[1, 3], training=True, fused=False)
record(tf.layers.batch_normalization(h, fused=False, training=True, name='plain'), feed)
""",
    "normalized in the step": IMAGE
    + """
training = tf.placeholder(tf.bool, [])
h = tf.layers.batch_normalization(x, training=training, momentum=0.9)
h = tf.layers.batch_normalization(h, training=training, momentum=0.9, fused=False)
feed[training] = True
record(h, feed, facts=False)
values['trained'] = dict(values)
feed[training] = False
record(h, feed, facts=False)
""",
    "dropout": MATRIX
    + """
h = tf.layers.dropout(x, 0.5); facts['h'] = h.name
assert tf.layers.dropout(x, 0.5, training=True).shape.as_list() == [None, 4]
h = tf.layers.dropout(h, 0.0, noise_shape=[None, 1], training=tf.constant(True))
record(tf.layers.dense(h, 2), feed)
""",
    "optimizer": MATRIX
    + """
h = tf.layers.batch_normalization(tf.layers.dense(x, 6, kernel_constraint=tf.abs), training=True)
y = tf.layers.dense(h, 1)
with tf.control_dependencies(tf.get_collection('update_ops')):
    train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(tf.reduce_mean(tf.square(y - x[:, :1])))
recorder.graph()
with tf.Session() as session:
    recorder.fill(session)
    values['losses'] = [session.run([y, train], feed)[0] for _ in range(4)]
    values['after'] = session.run(tf.global_variables())
""",
}


@pytest.fixture(scope="module")
def theirs():
    found = peer({name: HEAD + text for name, text in PROGRAMS.items()})
    if found is None:
        pytest.skip("TensorFlow is not installed")
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(theirs, name):
    compare(run(tf, {name: HEAD + PROGRAMS[name]})[name], theirs[name])
