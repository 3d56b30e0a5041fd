"""Kernels without a package, for a notebook: what the decorator registers is found, wins where it should, and runs."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.errors import AlreadyExistsError, InvalidArgumentError, UnknownOpError
from graphdock.plugin.host import Host


@pytest.fixture
def host(process_host):
    return process_host(Host())


def square(value, **config):
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(**config)) as sess:
        x = tf.placeholder(tf.float32, [2])
        y = tf.square(x)
        return sess.run(y, {x: value}).tolist(), sess.explain(y).rows[-1].kernel


def test_a_build_function_is_a_kernel(host):
    @ops.RegisterKernel("Square", name="mine", priority=5)
    def build(ctx):
        if ctx.fresh:
            return lambda x: np.full_like(x, 7)
        return lambda x, y: y.fill(7)

    assert callable(build)
    assert square([1, 2], kernels={"Square@cpu": "user.mine"}) == ([7.0, 7.0], "user.mine")


def test_a_function_that_computes_is_a_kernel(host):
    @ops.RegisterKernel("Square", compute=True)
    def eight(x, y):
        y[...] = 8

    assert square([1, 2], kernels={"Square@cpu": "user.eight"}) == ([8.0, 8.0], "user.eight")


def test_the_default_name_is_the_functions_and_is_taken_once(host):
    def build(ctx):
        return np.square

    ops.RegisterKernel("Square")(build)
    with pytest.raises(AlreadyExistsError, match="user.build"):
        ops.RegisterKernel("Square")(build)


def test_a_kernel_is_for_an_op_that_is_there(host):
    with pytest.raises(UnknownOpError, match="Sqare"):
        ops.RegisterKernel("Sqare")(lambda ctx: np.square)


def test_a_misspelt_keyword_is_told_the_nearest(host):
    for wrong, right in (("lable", "label"), ("type", "types")):
        with pytest.raises(InvalidArgumentError, match=f"RegisterKernel has no argument '{wrong}'") as raised:
            ops.RegisterKernel("Square", **{wrong: "x"})
        assert raised.value.hint == f"did you mean '{right}'?"
