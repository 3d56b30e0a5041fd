"""Variables fetched in the steps that update them, in every form whose answer TensorFlow 1 leaves to no thread: a line for each.

Usage: fetches_program.py (tensorflow | graphdock)
"""

from __future__ import annotations

import importlib
import sys

import numpy as np

if sys.argv[1] == "graphdock":
    tf = importlib.import_module("graphdock")
else:
    tf = importlib.import_module("tensorflow.compat.v1")
    tf.disable_v2_behavior()
    tf.disable_resource_variables()


def descent(w, optimizer=None):
    optimizer = optimizer or tf.train.GradientDescentOptimizer(0.5)
    return optimizer.minimize(tf.reduce_sum(w * 2.0))


def under(w):
    with tf.control_dependencies([descent(w)]):
        return [tf.identity(w), w + 0.0, w.read_value(), w.value(), w]


def two(w):
    first = w.assign_add([1.0] * 3)
    with tf.control_dependencies([first]):
        return [w.assign_add([10.0] * 3).op, w]


def looped(w):
    def body(i):
        with tf.control_dependencies([w.assign_add([1.0] * 3)]):
            return i + 1

    return [tf.while_loop(lambda i: i < 3, body, [0]), w]


def averaged(w):
    average = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([w.assign_add([1.0] * 3)]):
        return [average.apply([w]), average.average(w)]


def counted(w):
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(w * 2.0), global_step=step)
    return [train, step, tf.train.get_global_step(), "global_step:0"]


FORMS = {
    "variable": lambda w: [descent(w), w],
    "first": lambda w: [w, descent(w)],
    "name": lambda w: [descent(w), "w:0"],
    "value": lambda w: [descent(w), w.value()],
    "dict": lambda w: {"a": descent(w), "b": (w, [w])},
    "adam": lambda w: [descent(w, tf.train.AdamOptimizer(0.5)), w],
    "momentum": lambda w: [descent(w, tf.train.MomentumOptimizer(0.5, 0.5)), w],
    "assign_add": lambda w: [w.assign_add([1.0] * 3), w],
    "assign": lambda w: [w.assign(w + 1.0).op, w],
    "two updates": two,
    "scatter": lambda w: [tf.scatter_add(w, [0], [5.0]).op, w],
    "scatter_nd": lambda w: [tf.scatter_nd_update(w, [[0]], [5.0]).op, w],
    "cond": lambda w: [tf.cond(tf.constant(True), lambda: w.assign_add([1.0] * 3), lambda: w.assign_sub([1.0] * 3)).op, w],
    "loop": looped,
    "control dependencies": under,
    "average": averaged,
    "global step": counted,
}  # fmt: skip


def shown(value):
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(v) for v in value]
    return None if value is None else [round(float(x), 4) for x in np.ravel(value)]


for name, form in FORMS.items():
    with tf.Graph().as_default():
        w = tf.Variable(np.ones(3, np.float32), name="w")
        fetches = form(w)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            call = sess.make_callable(fetches)
            print(name, [shown(sess.run(fetches)), shown(sess.run(fetches)), shown(call())])
