"""Programs of the laws: graphs of many kinds, and what is run in each, step after step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.ops.apply import apply_op

__all__ = ["LAWS", "Steps"]


@dataclass
class Steps:
    """Steps of a graph: fetches, feeds, and initializers before them.

    Attributes:
      fetches: of every step. feeds: of each step, in order, by tensor.
      before: what is run once, first: initializers.
      raises: the error that each step ends with, in place of results.
      python: the graph holds a Python function, which no form of graphs can.
    """

    fetches: list[Any]
    feeds: list[dict[Any, Any]] = field(default_factory=lambda: [{}])
    before: list[Any] = field(default_factory=list)
    raises: type[Exception] | None = None
    python: bool = False


def _values(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def _kernels() -> Steps:
    x, n = tf.placeholder(tf.float32, [4, 3], name="x"), tf.placeholder(tf.int64, [2], name="n")
    y = tf.nn.relu(tf.matmul(x, tf.ones([3, 2])) - 0.5)
    fetches = [y, tf.reduce_sum(y, axis=0), n // 2, tf.concat([x, x], 1), tf.nn.softmax(x), tf.equal(n, 3)]
    return Steps(fetches, [{x: _values(4, 3), n: np.array([3, -3])}, {x: np.full((4, 3), np.nan), n: np.array([0, 1])}])


def _sums() -> Steps:
    """Sums, which the plainest form of graphs holds: float32 of unknown shape, and no attribute that is no dtype."""
    x = tf.placeholder(tf.float32, name="x")
    return Steps([tf.nn.relu(x), x + tf.nn.relu(x)], [{x: _values(4, 3)}, {x: _values(2)}])


def _any_shape() -> Steps:
    x = tf.placeholder(tf.float32, [None, None], name="x")
    y = tf.boolean_mask(x, tf.greater(x, 0.0))
    return Steps(
        [y, tf.shape(y), tf.reduce_mean(x, axis=0)], [{x: _values(4, 3)}, {x: _values(1, 5)}, {x: _values(4, 3)}]
    )


def _aliases() -> Steps:
    """Values that are fed, constant, or views of either."""
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    c = tf.constant([1.0, 2.0])
    return Steps(
        [x, tf.reshape(x, [3, 2]), tf.identity(c), tf.expand_dims(c, 0), tf.reduce_sum(x), x + 1.0],
        [{x: _values(2, 3)}] * 2,
    )


def _redundant() -> Steps:
    """Patterns that passes look for: nodes that undo each other, compute what is known, or compute it twice."""
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    turned = tf.transpose(tf.transpose(x))
    same = [
        tf.negative(x),
        tf.sign(tf.sign(x)),
        x * 1.0,
        x + 0.0,
        tf.reshape(tf.reshape(x, [6]), [2, 3]),
        tf.cast(x, tf.float32),
    ]
    twice = tf.square(x) + tf.square(x)
    algebra = [
        *(
            x - x,
            x / x,
            x * 0.0,
            x + x,
            x * x,
            tf.negative(tf.negative(x)),
            tf.log(tf.exp(x)),
            tf.exp(tf.log(x)),
            tf.sqrt(tf.square(x)),
        ),
        *(tf.square(tf.sqrt(x)), tf.maximum(x, x), tf.where(x > 0.0, x, x), x / 2.0, x - 0.0, 1.0 / (1.0 / x)),
    ]
    special = [[np.nan, np.inf, -np.inf], [0.0, -0.0, 1e-40]]
    return Steps(
        [turned, *same, twice, tf.constant(2.0) * tf.constant([3.0]), tf.abs(tf.abs(x)), *algebra],
        [{x: _values(2, 3)}, {x: special}],
    )


def _constants() -> Steps:
    """Numbers and texts that are lost on the way through text, through doubles, or through C's strings."""
    kinds: list[Any] = [
        *(np.array([np.nan, np.inf, -np.inf, -0.0, 0.1], kind) for kind in (np.float32, np.float64, np.float16)),
        *(np.array([2**63 - 1, -(2**63), 2**53 + 1], np.int64), np.array([2**64 - 1], np.uint64)),
        *(np.array([True, False]), np.array([1 - 2j], np.complex64), np.zeros([0, 3], np.float32)),
    ]
    return Steps([tf.identity(tf.constant(a)) for a in [*kinds, np.array(b"\xff A", object)]])


def _layers() -> Steps:
    """Ops whose attributes are no defaults, on a device that is named, behind what is waited for."""
    x = tf.placeholder(tf.float32, [2, 6, 5, 3], name="x")
    with tf.device("/device:cpu:0"):
        y = tf.nn.conv2d(x, tf.constant(_values(3, 2, 3, 4)), [1, 2, 2, 1], "SAME")
    y, *_ = tf.nn.fused_batch_norm(y, tf.ones([4]), tf.zeros([4]), epsilon=0.125)
    with tf.control_dependencies([x]):
        pooled = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
    rows = tf.matmul(tf.reshape(pooled, [2, 16]), tf.constant(_values(5, 16)), transpose_b=True)
    return Steps([pooled, rows, tf.argmax(rows, 1, output_type=tf.int32)], [{x: _values(2, 6, 5, 3)}])


def _updates() -> Steps:
    """Reads and writes of a variable that do not commute."""
    v = tf.Variable(np.ones(2, np.float32), name="v")
    fetches: list[Any] = []
    for i in range(4):
        fetches += [v.read_value(), v.assign(v.read_value() * (i + 2.0)) if i % 2 else v.assign_add([1.0, i])]
    return Steps(fetches, [{}] * 3, [v.initializer])


def _shared() -> Steps:
    """One resource by two handles, and another of that name in a container of its own."""
    both = {"dtype": tf.float32, "shape": [2], "shared_name": "both"}
    one, other = (apply_op("VarHandleOp", name=name, **both) for name in ("one", "other"))
    apart = apply_op("VarHandleOp", name="apart", container="elsewhere", **both)
    before = [apply_op("AssignVariableOp", resource=h, value=_values(2) + i) for i, h in enumerate((one, apart))]
    with tf.control_dependencies([apply_op("AssignAddVariableOp", resource=one, value=tf.ones([2]))]):
        reads = [apply_op("ReadVariableOp", resource=handle, dtype=tf.float32) for handle in (other, apart)]
    return Steps(reads, [{}] * 2, before)


def _training() -> Steps:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.Variable(np.full((3, 2), 0.5, np.float32), name="w")
    loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, w)) - 1.0))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    with tf.control_dependencies([train]):
        after = w.read_value()
    return Steps(
        [loss, after], [{x: _values(4, 3)}, {x: _values(2, 3)}, {x: _values(4, 3)}], [tf.global_variables_initializer()]
    )


def _random() -> Steps:
    drawn = [tf.random_uniform([3], seed=1), tf.random_normal([3], seed=2) * 2.0, tf.random_uniform([3], seed=4)]
    return Steps([*drawn, drawn[0] + drawn[1], tf.nn.dropout(tf.ones([8]), 0.5, seed=3)], [{}] * 3)


def _branches() -> Steps:
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.cond(x > 0.0, lambda: x * 2.0, lambda: tf.cond(x > -1.0, lambda: x, lambda: x - 1.0))
    return Steps([y, tf.gradients(y, x)[0]], [{x: v} for v in (1.0, -0.5, -2.0)])


def _loops() -> Steps:
    n = tf.placeholder(tf.int32, [], name="n")
    i, total = tf.while_loop(
        lambda i, a: i < n, lambda i, a: (i + 1, a * 0.5 + tf.cast(i, tf.float32)), [0, tf.ones([2])]
    )
    return Steps([i, total], [{n: v} for v in (0, 3, 5)])


def _gradients_of_loops() -> Steps:
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.tanh(a) * x), [0, x])[1]
    return Steps([y, tf.gradients(y, x)[0]], [{x: [0.3, -2.0]}])


def _python() -> Steps:
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.py_func(lambda a: a[::-1].copy(), [x], tf.float32)
    y.set_shape([2])
    return Steps([y * 2.0], [{x: [1.0, 2.0]}], python=True)


def _errors() -> Steps:
    def fail(_: Any) -> Any:
        raise ValueError("on purpose")

    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.py_func(fail, [x + 1.0], tf.float32, name="fails")
    return Steps([y], [{x: [1.0, 2.0]}] * 2, raises=tf.errors.OpError, python=True)


def _uninitialized() -> Steps:
    return Steps([tf.Variable([1.0], name="v") * 2.0], raises=tf.errors.FailedPreconditionError)


#: Name -> what builds the graph of a law in the default graph.
LAWS: Mapping[str, Callable[[], Steps]] = {
    function.__name__.strip("_").replace("_", " "): function
    for function in (
        *(_kernels, _sums, _any_shape, _aliases, _redundant, _constants, _layers, _updates, _shared, _training, _random),
        *(_branches, _loops, _gradients_of_loops, _python, _errors, _uninitialized),
    )
}  # fmt: skip
