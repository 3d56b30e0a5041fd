"""Buffers of results: used again when the caller has dropped them, and only then."""

from __future__ import annotations

import weakref

import graphdock as tf
import numpy as np
import pytest
from graphdock_executor.straight_line.recycled import Recycled


def address(array):
    return array.__array_interface__["data"][0]


def test_an_array_is_made_again_only_where_nobody_knows_it():
    make = Recycled((1000,), np.float32)
    first = make()
    where = address(first)
    assert address(make()) != where  # it is still held
    again = make()
    del first, again
    kept = make()
    where = address(kept)
    del kept
    assert address(make()) == where
    view = make()[::2]
    assert address(make()) != address(view)
    del view
    shared = memoryview(make())
    assert address(make()) != address(np.asarray(shared))
    watched = weakref.ref(make())
    assert watched() is not make()
    frozen = make()
    frozen.flags.writeable = False
    del frozen
    assert make().flags.writeable


@pytest.mark.plain
def test_results_of_a_session_that_are_held_stay_as_they_are():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [])
        y = tf.fill([1 << 18], x)
        z = y + 1.0
        held = [sess.run(z, {x: i}) for i in range(3)]
        for i in range(3):
            assert held[i][0] == held[i][-1] == i + 1
        where = address(held[-1])
        del held
        assert {address(sess.run(z, {x: i})) for i in range(3)} == {where}
