"""Wave forms of one variable, of period 1."""

import graphdock as tf


def square(x, name=None):
    """A square wave: the sign of sin(2 pi x), of the dtype of x."""
    with tf.name_scope(name, "square", [x]):
        x = tf.convert_to_tensor(x)
        return tf.sign(tf.sin(2 * 3.141592653589793 * x))


def triangle(x, name=None):
    """A triangular wave: the distance of x to the nearest integer, of the dtype of x."""
    with tf.name_scope(name, "triangle", [x]):
        x = tf.convert_to_tensor(x)
        return tf.abs(x - tf.round(x))
