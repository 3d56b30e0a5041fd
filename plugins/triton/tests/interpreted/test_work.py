"""Kernels of authors in whole steps on the emulated cuda device."""

from __future__ import annotations

from types import SimpleNamespace

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import errors, hookimpl
from graphdock.plugin.host import Host
from graphdock_cuda.testing import find_compiler, toolkit
from graphdock_cuda.testing.install import install
from graphdock_triton import compiling
from graphdock_triton.modules import load_function
from graphdock_triton.testing.authors import interpret
from graphdock_triton.testing.compiler import InterpretingCompiler
from graphdock_triton.work import Work, kernel_from_trace

SOURCE = """import triton
import triton.language as tl


@triton.jit
def doubled(x, y, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, i < n, other=0.0) * factor
    tl.store(y + i, value, i < n)
"""


TURNED = """import triton
import triton.language as tl


@triton.jit
def turned(x, y, rows, columns, HIGH: tl.constexpr, WIDE: tl.constexpr):
    before = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [HIGH, WIDE])
    after = tl.make_tensor_descriptor(y, [columns, rows], [rows, 1], [WIDE, HIGH])
    row, column = tl.program_id(0) * HIGH, tl.program_id(1) * WIDE
    after.store([column, row], before.load([row, column]).T)
"""


def turned(work):
    x, y = work.inputs[0], work.outputs[0]
    rows, columns = x.shape
    grid, blocks = (-(-rows // 16), -(-columns // 32)), {"HIGH": 16, "WIDE": 32}
    function = load_function("turned", TURNED)
    work.launch(function, grid, {"x": x, "y": y, "rows": rows, "columns": columns}, blocks, descriptors=("x", "y"))


def doubled(work):
    x, y = work.inputs[0], work.outputs[0]
    if x.size == 7:
        raise work.refuse("seven is too many")
    function = load_function("doubled", SOURCE)
    work.launch(function, (-(-x.size // 16),), {"x": x, "y": y, "n": x.size, "factor": 1.5}, {"BLOCK": 16})
    work.launch(function, (-(-x.size // 16),), {"x": y, "y": y, "n": x.size, "factor": 2.0}, {"BLOCK": 16})


@pytest.fixture
def lab(process_host):
    yield from lab_of(
        process_host, kernel_from_trace("Relu", doubled, name="tripled", types={"T": ("float32",)}, priority=1000)
    )


@pytest.fixture
def turning(process_host):
    yield from lab_of(
        process_host, kernel_from_trace("MatrixInverse", turned, name="turned", types={"T": ("float32",)})
    )


def lab_of(process_host, kernel):
    if find_compiler() is None:
        pytest.skip("there is no C++ compiler for the emulated CUDA")
    host, tools = process_host(Host()), toolkit()
    install(host, tools)
    compiler = InterpretingCompiler()
    before = compiling.use(compiler)
    host.register("mine", SimpleNamespace(__name__="mine", register_kernels=hookimpl(lambda: [kernel])))
    yield SimpleNamespace(host=host, compiler=compiler)
    compiling.use(before)
    tools.driver.verify()


def test_its_launches_are_in_order_and_it_is_told_once_for_a_plan(lab):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [5, 9])
        y = tf.nn.relu(x)
        config = tf.SessionConfig(backends=["mine", "cuda", "cpu"], fallback="forbid")
        with tf.Session(config=config, host=lab.host) as sess:
            for seed in range(4):
                value = np.random.default_rng(seed).normal(size=(5, 9)).astype(np.float32)
                np.testing.assert_array_equal(sess.run(y, {x: value}), value * np.float32(1.5) * 2)
            assert sess.explain(y).kernels() == {"mine.tripled": 1}
        assert lab.compiler.launched == {"doubled": 8}
        assert {j.divisible for j in lab.compiler.compiled} == {("x", "y")}


def test_a_node_that_it_refuses_gets_another_kernel(lab):
    with tf.Graph().as_default():
        y = tf.nn.relu(tf.placeholder(tf.float32, [7], name="x"))
        z = tf.nn.relu(tf.placeholder(tf.float32, [None], name="z"))
        with tf.Session(config=tf.SessionConfig(backends=["mine", "cuda", "cpu"]), host=lab.host) as sess:
            refused = dict(sess.explain(y).rows[1].lost)
            assert refused["mine.tripled"] == "refused when it was prepared: seven is too many"
            assert "mine.tripled" not in sess.explain(z).kernels()


def test_descriptors_have_room_that_is_no_other_launchs(turning):
    """The interpreter's compiler writes over all of it at each launch."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [40, 40])
        twice = tf.linalg.inv(tf.linalg.inv(x) + 1.0)
        config = tf.SessionConfig(backends=["mine", "cuda", "cpu"])
        with tf.Session(config=config, host=turning.host) as sess:
            for seed in range(3):
                value = np.random.default_rng(seed).normal(size=(40, 40)).astype(np.float32)
                np.testing.assert_array_equal(sess.run(twice, {x: value}), value + np.float32(1))
            assert sess.explain(twice).kernels()["mine.turned"] == 2
    assert {(j.room, j.divisible) for j in turning.compiler.compiled} == {(256, ("x", "y"))}


def test_a_descriptor_of_what_begins_within_a_tensor_is_an_error(turning):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [41 * 41])
        y = tf.linalg.inv(tf.reshape(x[1:1601], [40, 40]))
        config = tf.SessionConfig(backends=["mine", "cuda", "cpu"])
        with (
            tf.Session(config=config, host=turning.host) as sess,
            pytest.raises(errors.FailedPreconditionError, match="turned makes a descriptor of x, which begins within"),
        ):
            sess.run(y, {x: np.zeros(41 * 41, np.float32)})


def test_descriptors_in_the_interpreter():
    value = np.random.default_rng(0).normal(size=(20, 44)).astype(np.float32)
    (made,) = interpret(turned, [value], [("float32", (44, 20))])
    np.testing.assert_array_equal(made, value.T)


def test_what_the_interpreter_gives_and_nothing_for_nothing():
    x = np.arange(20, dtype=np.float32)
    (y,) = interpret(doubled, [x], [("float32", (20,))])
    np.testing.assert_array_equal(y, 3 * x)
    (empty,) = interpret(doubled, [x[:0]], [("float32", (0,))])
    assert empty.shape == (0,)


def test_arguments_that_the_function_has_not():
    work = Work(None, [], [])
    with pytest.raises(errors.InternalError, match="doubled: arguments BLOCK, n, x, y, z do not match"):
        work.launch(load_function("doubled", SOURCE), (1,), {"z": 3, "factor": 1.0}, {})
    with pytest.raises(errors.InternalError, match="doubled: arguments n do not match"):
        numbers = dict.fromkeys(("x", "y", "n", "factor"), 1)
        work.launch(load_function("doubled", SOURCE), (1,), numbers, {"BLOCK": 16}, descriptors=["n"])
