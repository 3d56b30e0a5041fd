"""Products by one matrix become one product of the rows one below the other, where none of them waits for another."""

from __future__ import annotations

from collections import Counter
from typing import Any

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def shapes(fetches: Any, feed: Any, **passes: bool) -> Counter[str]:
    """Shapes of two matrices -> how many products of such a step computes."""
    with tf.Session(config=tf.SessionConfig(passes=passes, debug=True)) as sess:
        return Counter(r.shapes for r in sess.explain(fetches, feed).rows if r.op == "MatMul")


def agree(fetches: Any, feed: Any, rtol: float = 1e-5) -> None:
    """The values with the pass are those without it."""
    found = []
    for on in (True, False):
        with tf.Session(config=tf.SessionConfig(passes={"products": on}, debug=True)) as sess:
            sess.run([tf.assign(v, values(n, *v.shape.as_list())) for n, v in enumerate(tf.global_variables())])
            found.append(sess.run(fetches, feed))
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.abs(want).max(initial=0))


def values(seed: int, *shape: int) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal(shape) / np.sqrt(shape[-1])


def given(*shapes: tuple[int, ...], dtype: Any = tf.float32) -> tuple[list[Any], dict[Any, np.ndarray]]:
    """Placeholders, and what they are fed."""
    made = [tf.placeholder(dtype, shape) for shape in shapes]
    return made, {t: values(n, *t.shape.as_list()) for n, t in enumerate(made)}


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16, tf.complex64])
@pytest.mark.parametrize("turned", [False, True])
def test_rows_that_are_known_are_multiplied_at_once(dtype: Any, turned: bool) -> None:
    (w, *rows), feed = given((64, 32) if turned else (32, 64), *[(2, 32)] * 4, dtype=dtype)
    y = [tf.matmul(x, w, transpose_b=turned) for x in rows]
    assert sum(shapes(y, feed).values()) == 1 and sum(shapes(y, feed, products=False).values()) == 4
    agree(y, feed, 1e-2 if dtype is tf.float16 else 1e-5)


def test_products_that_follow_one_another_are_joined_level_by_level() -> None:
    """Two towers of three layers with one weight."""
    (w, *rows), feed = given((64, 64), (2, 64), (2, 64))
    y = []
    for x in rows:
        for _ in range(3):
            x = tf.tanh(tf.matmul(x, w))
        y.append(x)
    assert shapes(y, feed) == {"[4,64] [64,64]": 3}
    assert shapes(y[0], feed) == {"[2,64] [64,64]": 3}
    agree(y, feed)


@pytest.mark.parametrize("cell", ["BasicLSTMCell", "GRUCell", "BasicRNNCell"])
@pytest.mark.sampled(2)
def test_a_recurrent_layer_multiplies_its_inputs_ahead(cell: str) -> None:
    """Values and gradients of two layers; half of each product waits for the step before, and half does not."""
    (x,), feed = given((2, 5, 64))
    cells = [getattr(tf.nn.rnn_cell, cell)(64) for _ in range(2)]
    outputs, _ = tf.nn.static_rnn(tf.nn.rnn_cell.MultiRNNCell(cells), tf.unstack(x, 5, 1), dtype=tf.float32)
    weights = tf.trainable_variables()
    gradients = tf.gradients(tf.reduce_sum(tf.sin(tf.stack(outputs))), [x, *weights])
    fetches = [*outputs, *gradients]
    agree(fetches, feed, 1e-4)
    if cell == "BasicLSTMCell":
        # forward, and the gradient by the inputs and the state
        assert shapes(fetches, feed, products=False) == {"[2,128] [128,256]": 10, "[2,256] [128,256]": 10}
        # of each layer: the inputs of 5 steps at once, 5 products by what the step before left; and their gradients, but
        # for that by the first state, which nobody asked for
        steps = {"[2,64] [64,256]": 10, "[2,256] [64,256]": 8}
        assert shapes(fetches, feed) == {"[10,64] [64,256]": 2, "[10,256] [64,256]": 2, **steps}


def test_what_orders_one_group_is_seen_by_the_next() -> None:
    """Each of two groups could be joined, but not both: then each would wait for the other."""
    (v, w, x, y), feed = given((64, 64), (64, 64), (2, 64), (2, 64))
    one = tf.matmul(x, v)
    two = tf.matmul(y, w)
    fetches = [tf.matmul(one, w), tf.matmul(two, v)]
    assert shapes(fetches, feed) == {"[4,64] [64,64]": 1, "[2,64] [64,64]": 2}
    agree(fetches, feed)


def test_what_must_not_be_joined() -> None:
    (w, x, y, large, larger), feed = given((64, 64), (2, 64), (2, 64), (40, 64), (40, 64))
    assert shapes([tf.matmul(large, w), tf.matmul(larger, w)], feed) == {"[40,64] [64,64]": 2}, (
        "more is moved than saved"
    )
    one = tf.matmul(x, w)
    with tf.control_dependencies([tf.Print(one, []).op]):
        late = tf.identity(y)
    assert shapes([one, tf.matmul(late, w)], feed) == {"[2,64] [64,64]": 2}, "the rows wait for the first product"
    with tf.control_dependencies([tf.Print(x, []).op]):
        waiting = tf.matmul(y, w)
    assert shapes([one, waiting], feed) == {"[2,64] [64,64]": 2}, "the product waits itself"
    wide, state, pairs = tf.concat([w, w], 0), x, []
    for row in (x, y):
        with tf.control_dependencies([tf.Print(row, []).op]):
            pairs.append(tf.concat([row, state], 1))
        state = tf.matmul(pairs[-1], wide)
    assert shapes(state, feed) == {"[2,128] [128,64]": 2}, "the pieces wait where they are joined"
    assert shapes([one, tf.matmul(y, w, transpose_b=True)], feed) == {"[2,64] [64,64]": 2}, (
        "one is by the transposed matrix"
    )


def test_a_product_that_others_read_too_is_not_cut() -> None:
    (w, state, *rows), feed = given((128, 64), *[(2, 64)] * 4)
    products, parts = [], []
    for x in rows:
        products.append(tf.matmul(x + state, w, transpose_b=True))
        part, state = tf.split(products[-1], [64, 64], 1)
        parts.append(part)
    assert shapes(parts, feed) == {"[6,64] [64,64]": 1, "[2,64] [64,64]": 2}
    assert shapes([*parts, *products], feed) == {"[2,64] [128,64]": 3}
    agree([*parts, *products], feed)
    agree(parts, feed)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    """Products by three weights, in whatever order they depend on one another, of joined rows or cut into columns."""
    random = np.random.RandomState(seed)
    (u, v, w, *known), feed = given((64, 32), (32, 64), (32, 32), *[(1, 32)] * 3)
    for _ in range(18):
        x, y = (known[i] for i in random.randint(len(known), size=2))
        kind = random.randint(5)
        if kind == 0:
            known.append(tf.tanh(tf.matmul(tf.concat([x, y], 1), u)))
        elif kind == 1:
            known += tf.split(tf.tanh(tf.matmul(x, v)), 2, 1)
        elif kind == 2:
            known += tf.split(tf.matmul(y, u, transpose_b=True), [32, 32], 1)
        elif kind == 3:
            known.append(tf.matmul(x, w, transpose_b=True))
        else:
            known.append(tf.tanh(x * y + tf.matmul(y, w)))
    agree(known, feed, 1e-4)
    assert len(known) >= 21 and all(value.shape.as_list() == [1, 32] for value in known)


def test_an_op_that_is_joined_names_ops_that_fit() -> None:
    """What joins takes a list and an axis, what cuts a tensor, sizes and an axis, what adds two tensors."""
    host = tf.default_host()
    host.backend("std")
    joint = [d for d in map(host.ops.get, host.ops.names()) if d.joint]
    assert [d.name for d in joint] == ["MatMul"]
    for one in joint:
        assert {a.name for a in one.attrs} >= {"transpose_a", "transpose_b"} and len(one.inputs) == 2
        join, cut, add = (host.ops.get(one.joint[part]) for part in ("join", "cut", "add"))
        assert [a.arity for a in join.inputs] == ["many", "one"] and len(join.outputs) == 1
        assert [a.arity for a in cut.inputs] == ["one"] * 3 and cut.outputs[0].arity == "many"
        assert [a.arity for a in add.inputs] == ["one"] * 2 and "elementwise" in add.traits
