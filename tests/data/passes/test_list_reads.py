"""Reads of whole lists behind loops, and of parts: they are the rows, with zeros around them, where nothing else reads the list."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from list_programs import CPU, LISTS, agree, array, numbers, outcome, plan_of


def loop(count, size, **fields):
    x = tf.placeholder(tf.float32, [3])
    made = tf.while_loop(
        lambda i, *_: i < count, lambda i, v, o: (i + 1, v * 1.5, o.write(i, v)), [1, x, array(size, **fields)]
    )
    return x, made[2]


READS = {
    "all, and zeros where nothing is": (4, {}, lambda a: a.stack(), True),
    "as many indices as there are": (6, {}, lambda a: a.gather(tf.range(6)), True),
    "indices in another order": (6, {}, lambda a: a.gather([3, 1]), False),
    "indices past the end": (6, {}, lambda a: a.gather([0, 1, 2, 3, 4, 5, 6]), False),
    "twice, of an array that forgets": (6, {}, lambda a: a.stack() + a.gather(tf.range(6)), False),
    "twice, of one that does not": (6, {"clear_after_read": False}, lambda a: a.stack() + a.gather(tf.range(6)), True),
    "all, and the size": (6, {}, lambda a: a.stack() * tf.cast(a.size(), tf.float32), True),
    "zeros of no known shape": (4, {"infer_shape": False}, lambda a: a.stack(), False),
    "one by one": (6, {}, lambda a: a.read(2), False),
    "end to end": (6, {}, lambda a: a.concat(), False),
}


@pytest.mark.parametrize("kind", READS)
def test_reads(kind):
    count, fields, read, rows = READS[kind]
    x, made = loop(count, 6, **fields)
    y = read(made)
    fetches, fed = [y, *tf.gradients(y, x)], {x: numbers(3)}
    want = outcome(fetches, fed, **LISTS)
    for more in ({}, {"executor": "dataflow"}, {"debug": True}):
        agree(outcome(fetches, fed, **CPU, **more), want)
    ops, said = plan_of(y, fed)
    assert not said and not {"TensorListSetItem", "TensorListGetItem"} - {"TensorListGetItem"} & ops
    reads = {"TensorListStack", "TensorListGather", "TensorListGetItem", "TensorListConcatV2"} & ops
    assert bool(reads) is not rows, ops


def test_arrays_without_loops_are_not_looked_at():
    x = tf.placeholder(tf.float32, [4, 3])
    y = array(4).unstack(x).stack()
    assert "TensorListStack" in plan_of(y, {x: np.zeros((4, 3))})[0]


def test_a_step_that_makes_an_array_of_less_than_no_elements_says_so():
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [3])
    y = tf.while_loop(lambda i, _: i < n, lambda i, o: (i + 1, o.write(i, x)), [0, array(n)])[1].stack()
    for count in (-1, 0, 2):
        fed = {n: count, x: numbers(3)}
        want = outcome([y], fed, **LISTS)
        assert isinstance(want, tuple) is (count < 0)
        agree(outcome([y], fed, **CPU), want)
    assert "TensorListStack" not in plan_of(y, fed)[0]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("rows,width", [(5, 3), (7, 3), (5, 4)])
def test_shapes_that_the_program_promises_are_checked(rows, width, known):
    """Of an element that is read, of what is read behind the loop."""
    x, n = tf.placeholder(tf.float32, [None, 3 if known else None]), tf.placeholder(tf.int32, [])
    given = array(n).unstack(x)

    def body(i, o):
        row = given.read(i)
        if not known:
            row.set_shape([width])
        return i + 1, o.write(i, row * 2)

    y = tf.while_loop(lambda i, _: i < n, body, [0, array(n)])[1].stack()
    y.set_shape([rows, None])
    fed = {x: numbers(5, 3), n: 5}
    want = outcome([y], fed, **LISTS)
    assert isinstance(want, tuple) is (rows != 5 or width != 3 and not known)
    for more in ({}, {"debug": True}):
        agree(outcome([y], fed, **CPU, **more), want)
