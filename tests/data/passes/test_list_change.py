"""Errors of loops that have no lists any more: those of the same loops with lists. Arrays that grow, and sizes of arrays."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from list_programs import CPU, LISTS, agree, array, numbers, outcome, plan_of

ERRORS = {
    "a write past the end": lambda n, x: _written(n, x, array(4)),
    "a write where there is something": lambda n, x: _written(n, x, array(9).write(3, x)),
    "a write into an array that is closed": lambda n, x: _written(n, x, _closed(array(9))),
    "a read past the end": lambda n, x: _read(n, x, 4),
    "an element read twice": lambda n, x: _read(n, x, 9) + _read(n, x, 9, again=True),
    "a size below zero": lambda n, x: _written(n, x, array(n - 9)),
    "an element that was not written": lambda n, x: _written(n - 4, x, array(9, infer_shape=False)),
}
_LAST = []


def _written(n, x, out):
    return tf.while_loop(lambda i, _: i < n, lambda i, o: (i + 1, o.write(i, x)), [0, out])[1].stack()


def _closed(out):
    with tf.control_dependencies([out.close()]):
        return out.identity()


def _read(n, x, size, again=False):
    if not again:
        _LAST[:] = [array(size).unstack(tf.tile(x[tf.newaxis], [size, 1]))]
    rows = _LAST[0]
    return tf.while_loop(lambda i, _: i < n, lambda i, v: (i + 1, v + rows.read(i)), [0, x])[1]


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_are_those_of_lists(kind):
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3])
    fetches, fed = [ERRORS[kind](n, x)], {n: 6, x: numbers(3)}
    want = outcome(fetches, fed, **LISTS)
    assert isinstance(want, tuple) and want[0] == "InvalidArgumentError", want
    for fields in ({}, {"executor": "dataflow"}, {"debug": True}):
        agree(outcome(fetches, fed, **CPU, **fields), want)


@pytest.mark.parametrize("kind", ["a write past the end", "a read past the end"])
def test_a_loop_that_would_never_end_ends_with_its_error(kind):
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3])
    fetches, fed = [ERRORS[kind](n, x)], {n: 2**31 - 1, x: numbers(3)}
    agree(outcome(fetches, fed, **CPU), outcome(fetches, fed, **LISTS))
    assert not {"TensorListSetItem", "TensorListGetItem"} & plan_of(fetches, fed)[0]


def test_of_a_length_that_is_fed_results_and_gradients_are_rows_with_zeros_behind_them():
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [6, 3])
    rows = array(6).unstack(x)
    loop = tf.while_loop(
        lambda i, *_: i < n, lambda i, v, o: (i + 1, tf.tanh(v + rows.read(i)), o.write(i, v)), [0, x[0], array(6)]
    )
    y = loop[2].stack()
    fetches = [y, tf.gradients(y * y, x)[0]]
    for count in (4, 0, 6, 7):
        want = outcome(fetches, {n: count, x: numbers(6, 3)}, **LISTS)
        agree(outcome(fetches, {n: count, x: numbers(6, 3)}, **CPU), want)
    ops, said = plan_of(fetches, {n: 4, x: numbers(6, 3)})
    assert not said and "TensorListStack" not in ops and "Pad" in ops


@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
def test_what_waits_for_a_loop_waits_for_the_one_without_lists(executor):
    x = tf.placeholder(tf.float32, [3])
    total = tf.Variable(0.0, use_resource=True)
    loop = tf.while_loop(lambda i, *_: i < 4, lambda i, v, o: (i + 1, v * 2.0, o.write(i, v)), [0, x, array(4)])
    with tf.control_dependencies([loop[1]]):
        after = total.assign_add(1.0)
    with tf.control_dependencies([loop[2].stack()]):
        last = after + 1.0
    for given in (LISTS, CPU):
        with tf.Session(config=tf.SessionConfig(**given, executor=executor, debug=True)) as sess:
            sess.run(total.initializer)
            assert sess.run(last, {x: numbers(3)}) == 2.0
            sess.run(loop[1].op, {x: numbers(3)})
            with pytest.raises(tf.errors.InvalidArgumentError, match="was not fed"):
                sess.run(after)
            assert sess.run(total) == 1.0


@pytest.mark.parametrize("count", [-2, 0, 1, 4, 6, 7])
def test_rows_are_read_from_the_last_of_so_many_as_are_fed(count):
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [6, 3])
    rows = array(6).unstack(x)
    y = tf.while_loop(
        lambda i, _: i < n, lambda i, v: (i + 1, tf.tanh(v * 0.5 + rows.read(n - 1 - i))), [0, tf.ones([3])]
    )[1]
    fetches, fed = [y, tf.gradients(y, x)[0]], {n: count, x: numbers(6, 3)}
    want = outcome(fetches, fed, **LISTS)
    assert isinstance(want, tuple) is (count > 6)
    agree(outcome(fetches, fed, **CPU), want)
    assert not {"TensorListSetItem", "TensorListGetItem"} & plan_of(fetches, fed)[0]


@pytest.mark.parametrize("count", [0, 3, 6])
def test_arrays_that_grow_and_sizes_that_the_loop_asks_for(count):
    x, n = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])
    grown = tf.while_loop(
        lambda i, *_: i < n, lambda i, v, o: (i + 1, v * 1.5, o.write(i, v)), [0, x, array(0, dynamic_size=True)]
    )[2]
    rows = array(n).unstack(tf.tile(x[tf.newaxis], [n, 1]))
    total = tf.while_loop(
        lambda i, _: i < rows.size(), lambda i, v: (i + 1, v + rows.read(i) * tf.cast(rows.size(), tf.float32)), [0, x]
    )[1]
    fetches, fed = [grown.stack(), grown.size(), total, tf.gradients(total, x)[0]], {x: numbers(3), n: count}
    want = outcome(fetches, fed, **LISTS)
    agree(outcome(fetches, fed, **CPU), want)
    assert want[1] == count
    np.testing.assert_allclose(want[2], numbers(3) * (1 + count * count), 1e-5)
    assert not {"TensorListSetItem", "TensorListGetItem"} & plan_of(fetches, fed)[0]
