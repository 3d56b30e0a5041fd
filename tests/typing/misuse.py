# ruff: noqa
"""Mistakes that a type checker finds: each line that ends in a comment with E is one, no other is."""

import numpy as np

import graphdock as tf
from graphdock.typing import DTypeLike, TensorLike

x = tf.placeholder(tf.float32, [None, 4])
w = tf.Variable(tf.zeros([4, 3]))
sess = tf.Session()
loss = tf.reduce_sum(tf.matmul(x, w))

tf.matmul(x)  # E: call-arg, an argument is missing
tf.matmul(x, w, transpose_c=True)  # E: call-arg, no such argument
tf.matmul(x, w, transpose_a="yes")  # E: arg-type, an attribute of another type
tf.matmul(x, sess)  # E: arg-type, a session is no tensor
tf.matmull(x, w)  # E: attr-defined, no such function
tf.nn.relue(x)  # E: attr-defined, nor in a namespace
tf.nn.conv9d(x)  # E: attr-defined
tf.cast(x, "flaot32")  # E: arg-type, no such dtype
tf.cast(x, 3)  # E: arg-type, a number is no dtype
tf.flaot32  # E: attr-defined
tf.placeholder(tf.float32, ["a", 4])  # E: list-item, a dim is an integer
tf.nn.bias_add(x, w, "NWHC")  # E: arg-type, not one of the values
tf.pad(x, [[1, 1], [0, 0]], "MIRROR")  # E: arg-type
tf.random_uniform([2], seed="now")  # E: arg-type, a seed is an integer
tf.nn.softmax_cross_entropy_with_logits(x, x)  # E: arg-type, labels and logits are given by name
tf.train.AdamOptimizer(rate=0.1)  # E: call-arg, no such option
tf.train.AdamOptimizer(0.1).minimise(loss)  # E: attr-defined
number: float = tf.reduce_sum(x)  # E: assignment, a tensor is no number
tf.group(x).dtype  # E: attr-defined, an operation has no dtype
(x + w).shape.lenght  # E: attr-defined
answer = sess.run(w.initializer) + 1  # E: operator, an operation has no result
sess.run(3.5)  # E: call-overload, a number is nothing to fetch
tf.SessionConfig(backend=("cpu",))  # E: call-arg, no such setting
tf.Session(backends=["cpu"])  # E: call-arg, a setting is of the config
tf.train.AdamOptimizer(0.1).minimise(loss)  # E: attr-defined
w.assign(x, read_value=False).eval()  # E: attr-defined, an operation has no value
x + tf.no_op()  # E: operator, an operation is no operand
tf.split(x, 2).op  # E: attr-defined, a list has no op
np.ones(3) * x + tf.Graph()  # E: operator
tf.errors.InvalidArgumentErrors  # E: attr-defined
tf.custom_op("lab::op", shape={})  # E: call-arg
tf.ops.apply_opp("Add")  # E: attr-defined
tf.train.AdamOptimizer("0.1")  # E: arg-type, a text is no rate
tf.train.AdamOptimizer(0.1).minimize(loss=3.0)  # E: arg-type, a number depends on no variable
tf.device(3)  # E: arg-type
tf.SessionConfig(fallback="never")  # E: arg-type, not one of the values
tf.SessionConfig(shape_policy="any")  # E: arg-type
tf.cond(x, lambda: x, lambda: w).dtypes  # E: attr-defined
tf.gradients(x, [w])[0].dtypes  # E: union-attr


def scaled(x: TensorLike, dtype: DTypeLike = tf.float32) -> tf.Tensor:
    return tf.cast(x, dtype) * 2.0


scaled(tf.Graph())  # E: arg-type
scaled(1.0, "float23")  # E: arg-type
scaled([1.0, [x]], np.float64)
scaled(np.zeros(3), "bfloat16")

image = tf.placeholder(tf.float32, [2, 8, 8, 1])
tf.layers.conv2d(inputs=image, filters=3, kernel_size=3, activation=tf.nn.relu, reuse=tf.AUTO_REUSE)
tf.layers.conv2d(image, 3, 3, pading="same")  # E: call-arg
tf.layers.dense(image, "3")  # E: arg-type
tf.layers.max_pooling2d(image, 2)  # E: call-arg
tf.layers.Dense(3, dtpe=tf.float32)  # E: call-arg
