"""The first call of a kernel is held to its contract, in every session: a notebook's kernel prints no garbage."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.contracts import Bound, In, Out
from graphdock.errors import InternalError
from graphdock.plugin.host import Host
from graphdock_testing import queued

pytestmark = pytest.mark.plain


def two_steps(kernel, **fields):
    """Square of a variable by a kernel, in two steps, and the variable afterwards."""
    with tf.Graph().as_default():
        name = f"first_call_{kernel.__name__}_{len(fields)}"
        ops.RegisterKernel("Square", name=name, label="test", **fields)(kernel)
        x = tf.Variable([1.0, 2.0, 3.0])
        y = tf.square(x)
        with tf.Session(config=tf.SessionConfig(kernels={"Square@cpu": f"user.{name}"})) as session:
            session.run(tf.global_variables_initializer())
            return [session.run(v).tolist() for v in (y, y, x)]


RIGHT = [[1.0, 4.0, 9.0], [1.0, 4.0, 9.0], [1.0, 2.0, 3.0]]


def returns_an_array(ctx):
    return lambda x, y: x * x


def returns_a_scalar(ctx):
    return lambda x, y: np.float32(4)


def returns_its_input(ctx):
    def compute(x, y):
        return x

    return compute


def writes_nothing(ctx):
    return lambda x, y: None


def writes_its_input(ctx):
    def compute(x, y):
        x *= x
        y[...] = x

    return compute


def writes_its_input_by_reordered_arguments(ctx):
    return Bound(lambda y, x: np.multiply(x, x, x), args=(Out(0), In(0)))


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (returns_an_array, r"returned an array and is to write one\n.*'y'.*float32\[3\]"),
        (returns_a_scalar, "left elements of its output 'y' as they were"),
        (returns_its_input, "returned an array and is to write one"),
        (writes_nothing, "left elements of its output 'y' as they were"),
        (writes_its_input, "writes to an input: .*read-only\n.*'x' as it is"),
        (writes_its_input_by_reordered_arguments, "writes to an input"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_a_kernel_that_breaks_its_contract_gives_no_result(kernel, words):
    with pytest.raises(InternalError, match=words) as caught:
        two_steps(kernel)
    assert "kernel user.first_call" in str(caught.value) and "test_first_call.py" in str(caught.value)


def writes(ctx):
    return lambda x, y: np.multiply(x, x, y)


def writes_and_returns_part_of_its_output(ctx):
    def compute(x, y):
        np.multiply(x, x, y)
        return y[:2]

    return compute


def returns_none_of_its_business(ctx):
    def compute(x, y):
        np.multiply(x, x, y)
        return "done"

    return compute


@pytest.mark.parametrize("kernel", [writes, writes_and_returns_part_of_its_output, returns_none_of_its_business])
def test_what_is_right_passes(kernel):
    assert two_steps(kernel) == RIGHT


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int64", "int16", "int8"])
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 1000])
@pytest.mark.parametrize("value", [0, -1, 0xA5 - 256])
def test_no_right_result_is_taken_for_memory_that_was_not_written(dtype, count, value):
    """Zeros where zeros were, all bits set, and the byte that marks what was not written."""

    def filling(ctx):
        return lambda x, y: y.fill(value)

    with tf.Graph().as_default():
        name = f"first_call_{value}_{dtype}_{count}"
        ops.RegisterKernel("Neg", name=name, label="test")(filling)
        x = tf.placeholder(dtype, [count])
        with tf.Session(config=tf.SessionConfig(kernels={"Neg@cpu": f"user.{name}"})) as session:
            assert (session.run(tf.negative(x), {x: np.ones(count)}) == value).all()


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "float16", "bfloat16", "int32", "float64", "complex64"]
)
@pytest.mark.parametrize("count", [4, 9, 1000])
def test_a_kernel_that_does_nothing_is_found_whatever_the_dtype(dtype, count):
    with tf.Graph().as_default():
        name = f"first_call_nothing_{dtype}_{count}"
        ops.RegisterKernel("Cast", name=name, label="test")(lambda ctx: lambda x, y: None)
        x = tf.placeholder("float32", [count])
        y, config = tf.cast(x, dtype), tf.SessionConfig(kernels={"Cast@cpu": f"user.{name}"})
        with (
            tf.Session(config=config) as session,
            pytest.raises(InternalError, match="left elements of its output 'y'"),
        ):
            session.run(y, {x: np.ones(count)})


def test_a_kernel_that_leaves_the_tail_is_found():
    def head(ctx):
        return lambda x, y: np.multiply(x[:4096], x[:4096], y[:4096])

    with tf.Graph().as_default():
        ops.RegisterKernel("Square", name="first_call_head", label="test")(head)
        x = tf.placeholder(tf.float32, [5000])
        y, config = tf.square(x), tf.SessionConfig(kernels={"Square@cpu": "user.first_call_head"})
        with (
            tf.Session(config=config) as session,
            pytest.raises(InternalError, match="left elements of its output 'y'"),
        ):
            session.run(y, {x: np.ones(5000)})


def test_later_calls_are_the_kernels_own():
    """Inputs are read-only at the first call of an instance alone: the check is gone then."""
    writable = []

    def noting(ctx):
        def compute(x, y):
            writable.append(x.flags.writeable)
            np.multiply(x, x, y)

        return compute

    assert two_steps(noting) == RIGHT
    assert writable == [False, True]


def computes(x, y):
    np.multiply(x, x, y)


def computes_and_returns(x, y):
    return x * x


def takes_inputs_alone(x):
    return x * x


@pytest.mark.parametrize("function", [computes, computes_and_returns, takes_inputs_alone])
def test_a_function_that_computes_may_write_or_return(function):
    assert two_steps(function, compute=True) == RIGHT


def of_another_dtype(x):
    return (x * x).astype(np.float64)


def of_another_shape(x):
    return (x * x)[:2]


def of_nothing(x):
    pass


def of_two(x):
    return x, x


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (of_another_dtype, r"another array for its output 'y'\n.*float32\[3\], got float64\[3\]"),
        (of_another_shape, r"another array for its output 'y'\n.*float32\[3\], got float32\[2\]"),
        (of_nothing, "another array for its output 'y'\n.*got None"),
        (of_two, "wrong number of arrays\n.*expected 1, got 2"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_what_such_a_function_returns_fits_its_output(function, words):
    with pytest.raises(InternalError, match=words):
        two_steps(function, compute=True)


@pytest.mark.parametrize("returns", ["a new buffer", "its output", "a number"])
def test_a_kernel_of_a_device_with_queues_may_not_return_what_it_is_to_write(process_host, returns):
    host = process_host(Host())
    device = queued.install(host, seed=7)

    def kernel(ctx):
        def compute(x, y):
            ctx.queue.launch("square", lambda: np.multiply(x.array, x.array, out=y.array), [x], [y])
            made = device.empty(tf.float32, (3,)) if returns == "a new buffer" else y
            return 3 if returns == "a number" else made

        return compute

    with tf.Graph(host).as_default():
        ops.RegisterKernel("Square", device="queued", name="returning", label="test")(kernel)
        x = tf.placeholder(tf.float32, [3])
        y = tf.square(x)
        config = tf.SessionConfig(backends=("queued", "cpu"), kernels={"Square@queued": "user.returning"})
        with tf.Session(config=config, host=host) as session:
            if returns == "a new buffer":
                with pytest.raises(InternalError, match="returned an array and is to write one\n.*'y'"):
                    session.run(y, {x: [1.0, 2.0, 3.0]})
            else:
                assert session.run(y, {x: [1.0, 2.0, 3.0]}).tolist() == [1.0, 4.0, 9.0]
