"""Nodes that cut, turn and join tensors in a loop: steps of its program."""

from __future__ import annotations

import graphdock as tf
import numpy as np
from graphdock.contracts import LoopCopy


def test_what_cuts_and_joins_in_a_loop_is_a_copy_between_parts_of_buffers(loops):
    made = loops()
    x = tf.placeholder(tf.float32, [2, 6], name="x")

    def body(i, t):
        a, b, c = tf.split(t, 3, axis=1)
        return i + 1, tf.concat([c, a * 0.5, tf.stack([b[:, 1], b[:, 0]], axis=1)], axis=1)

    y = tf.while_loop(lambda i, _: i < 3, body, [0, x])[1]
    fed = np.arange(12.0, dtype=np.float32).reshape(2, 6)
    want = fed
    for _ in range(3):
        want = np.concatenate([want[:, 4:], want[:, :2] * 0.5, want[:, 3:4], want[:, 2:3]], 1)
    with made.session() as sess:
        np.testing.assert_allclose(sess.run(y, {x: fed}), want)
    (program,) = made.compiler.loops_built
    copies = [s.program for s in program.body if isinstance(s.program, LoopCopy)]
    assert LoopCopy((2, 2), (6, 1), 4, (6, 1), 0) in copies or len(copies) > 3
    assert "copy [2, 2], strides 2, 1 from 0, to strides 6, 1 from 2" in str(program)


def test_what_turns_dims_around_reads_them_from_their_ends(loops):
    made = loops()
    x = tf.placeholder(tf.float32, [2, 3, 4])
    y = tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, tf.reverse(t * 0.5, [0, -1])), [0, x])[1]
    fed = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    with made.session() as sess:
        np.testing.assert_allclose(sess.run(y, {x: fed}), fed[::-1, :, ::-1] * 0.125)
    (program,) = made.compiler.loops_built
    copies = [s.program for s in program.body if isinstance(s.program, LoopCopy)]
    assert copies == [LoopCopy((2, 3, 4), (-12, 4, -1), 15, (12, 4, 1), 0)]
