"""Contexts that kernels name: a step runs within each of them once, and has left them however it ends."""

from __future__ import annotations

import contextlib

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Bound, KernelDef, OpDef, Prepared, opdef
from graphdock.plugin.host import Host


class Door(contextlib.AbstractContextManager):
    def __init__(self):
        self.inside = self.entered = 0

    def __enter__(self):
        self.inside += 1
        self.entered += 1

    def __exit__(self, *error):
        self.inside -= 1


class Lab:
    """An op ``Through`` whose kernel names a door; ``seen``: how many were inside at each call."""

    def __init__(self, prepared):
        self.host, self.door, self.seen, self.error = Host(), Door(), [], None
        arg = opdef.ArgDef("x", "float32", "[*S]")
        self.op = OpDef(
            "lab.Through",
            inputs=(arg,),
            outputs=(opdef.ArgDef("y", "float32", "[*S]"),),
            traits=frozenset({"stateful"}),
        )
        self.host.ops.add(self.op, "lab")
        kernel = (
            {"prepare": lambda ctx: Prepared(lambda c: self.compute, within=self.door)}
            if prepared
            else {"build": lambda ctx: Bound(self.compute, within=self.door)}
        )
        self.host.kernels.add(KernelDef("lab.Through", "cpu", modes=("planned",), **kernel), "cpu", "lab")

    def compute(self, x, y):
        self.seen.append(self.door.inside)
        if self.error is not None:
            raise self.error
        np.copyto(y, x)

    def __call__(self, x):
        return tf.get_default_graph().create_op("lab.Through", [x], op_def=self.op).outputs[0]


@pytest.fixture(params=[False, True], ids=["build", "prepare"])
def lab(request):
    made = Lab(request.param)
    with tf.Graph(host=made.host).as_default():
        yield made


def test_once_however_many_kernels_name_it(lab):
    x = tf.constant([1.0, 2.0])
    y, other = lab(lab(x)) + lab(x), x * 2.0
    with tf.Session() as sess:
        for step in range(1, 4):
            assert sess.run(y).tolist() == [2.0, 4.0]
            assert lab.seen == [1] * 3 * step and (lab.door.inside, lab.door.entered) == (0, step)
        sess.run(other)
        assert lab.door.entered == 3


def test_in_the_body_of_a_loop_and_of_a_branch(lab):
    looped = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, lab(x) + 1.0), (tf.constant(0), tf.zeros([2])))[1]
    p = tf.placeholder(tf.bool, [])
    chosen = tf.cond(p, lambda: lab(tf.ones([2])), lambda: tf.zeros([2]))
    with tf.Session() as sess:
        assert sess.run(looped).tolist() == [3.0, 3.0] and lab.seen == [1] * 3
        assert sess.run(chosen, {p: True}).tolist() == [1.0, 1.0] and lab.seen == [1] * 4
    assert (lab.door.inside, lab.door.entered) == (0, 2)


def test_left_when_a_step_fails(lab):
    y = lab(tf.constant([1.0]))
    with tf.Session() as sess:
        lab.error = ValueError("broken")
        with pytest.raises(tf.errors.GraphdockError, match="broken"):
            sess.run(y)
        assert (lab.door.inside, lab.door.entered) == (0, 1)
        lab.error = None
        assert sess.run(y).tolist() == [1.0]
