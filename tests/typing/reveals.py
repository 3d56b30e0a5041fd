# ruff: noqa
"""What a checker says something is: the comment of the line."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import graphdock as tf

x = tf.placeholder(tf.float32, [None, 4])
v = tf.Variable(x)
sess = tf.Session()

reveal_type(tf.matmul(x, v, transpose_b=True))  # Tensor
reveal_type(tf.unstack(x))  # list[Tensor]
reveal_type(tf.nn.moments(x, 0)[1])  # Tensor
reveal_type(tf.group(x, v))  # Operation
reveal_type(tf.py_func(np.sum, [x], tf.float32))  # Tensor
reveal_type(tf.py_func(np.sum, [x], [tf.float32, "int32"]))  # list[Tensor]
reveal_type(v.assign_add(x))  # Tensor
reveal_type(v.assign_add(x, read_value=False))  # Operation
reveal_type(-v * 2 + np.ones(3))  # Tensor
reveal_type(np.ones(3) + v)  # Tensor
reveal_type(2.0 / x)  # Tensor
reveal_type(x[:, 0] < 1)  # Tensor
reveal_type(sess.run([x, v]))  # list[Any]
reveal_type(sess.run({"x": x}))  # dict[str, Any]
reveal_type(tf.float32)  # DType
reveal_type(tf.train.AdamOptimizer().minimize(x))  # Operation
reveal_type(tf.trainable_variables())  # list[Variable]
reveal_type(tf.get_variable("v", [2]))  # Variable
reveal_type(tf.glorot_uniform_initializer()([2]))  # Tensor


@tf.custom_op("lab::one", shapes={"x": "[*S]", "y": "[*S]"})
def one(x: NDArray[np.float32], factor: float = 1.0) -> NDArray[np.float32]:
    return x


@tf.custom_op("lab::two")
def two(x: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    return x, np.zeros(1, np.int64)


@tf.custom_op("lab::none", effects=("io",))
def none(x: NDArray[np.float32]) -> None:
    print(x)


@one.register_kernel("cpu")
def again(x: NDArray[np.float32], factor: float) -> NDArray[np.float32]:
    return x


class Pair(NamedTuple):
    mean: NDArray[np.float32]
    size: NDArray[np.int64]


@tf.custom_op("lab::named", shapes={"x": "[*S]", "mean": "[]", "size": "[]"})
def named(x: NDArray[np.float32]) -> Pair:
    return Pair(x.mean(), np.asarray(x.size))


reveal_type(named(x).mean)  # Any
reveal_type(tf.cond(x, lambda: x, lambda: v))  # Tensor
reveal_type(tf.cond(x, lambda: 1.0, lambda: x + 1))  # Tensor
reveal_type(tf.cond(x, lambda: (x, v), lambda: (v, 2)))  # tuple[Tensor, Tensor]
reveal_type(tf.cond(x, lambda: tf.no_op(), lambda: tf.group(x)))  # Operation
reveal_type(tf.cond(x, lambda: [x], lambda: [v]))  # Any
reveal_type(tf.gradients(x, [v]))  # list[Tensor | Any]
tf.train.AdamOptimizer(tf.constant(0.1)), tf.train.AdamOptimizer(np.float32(0.1)), tf.train.AdamOptimizer(lambda: v)
tf.device(None), tf.device("cpu:0"), tf.device(lambda op_def: "cpu"), tf.SessionConfig(fallback={"MatMul": "allow"})

reveal_type(one(x, factor=2.0))  # Tensor
reveal_type(two(x))  # tuple[Tensor, Tensor]
reveal_type(none(x))  # Operation
reveal_type(again(np.ones(1, np.float32), 1.0))  # ndarray[tuple[Any, ...], dtype[floating[_32Bit]]]
