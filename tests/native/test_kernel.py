"""Native kernels in sessions: planned, fresh and strided buffers, scratch, constants, any shape, other threads."""

from __future__ import annotations

import mmap
import threading

import graphdock as tf
import ml_dtypes
import numpy as np
import pytest
from graphdock.contracts import ArgInfo, KernelRefused, PrepareContext, Scratch
from graphdock_native import Launch, NativeLibrary

TWICE = """
GRAPHDOCK_KERNEL(kernel) {
    const float *x = (const float *)call->inputs[0].data;
    float *y = (float *)call->outputs[0].data;
    for (int64_t i = 0; i < call->outputs[0].size; i++) y[i] = 2 * x[i];
    return GD_OK;
}
"""
STRIDED = """
GRAPHDOCK_KERNEL(kernel) {
    const gd_tensor *x = &call->inputs[0];
    float *y = (float *)call->outputs[0].data;
    for (int64_t i = 0; i < x->size; i++) {
        const char *from = (const char *)x->data;
        int64_t rest = i;
        for (int axis = x->rank - 1; axis >= 0; axis--) {
            from += rest % x->shape[axis] * x->strides[axis];
            rest /= x->shape[axis];
        }
        y[i] = 2 * *(const float *)from;
    }
    return GD_OK;
}
"""


@pytest.fixture(scope="module", params=["contiguous", "strided"])
def twice(lab, request):
    source = TWICE if request.param == "contiguous" else STRIDED
    inplace = {"y": ("x",)} if request.param == "contiguous" else {}
    return lab.pin(source, "lab.Twice", types={"T": ["float32"]}, layout=request.param, inplace=inplace)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (2, 3), (0, 3), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("how", ["planned", "dims", "rank", "around"])
def test_it_computes_over_every_shape_and_mode(lab, twice, shape, how):
    value = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    static = {"planned": shape, "around": shape, "dims": [None] * len(shape), "rank": None}[how]
    policy = "generic" if how in ("dims", "rank") else "exact"
    with tf.Graph().as_default(), tf.Session(config=twice.replace(shape_policy=policy)) as session:
        x = tf.placeholder(tf.float32, static)
        y = lab.ops.twice(tf.transpose(x) + 1.0) - 2.0 if how == "around" else lab.ops.twice(x)
        want = 2 * value.T if how == "around" else 2 * value
        for factor in (1, 2, 1):
            got = session.run(y, {x: value * factor})
            np.testing.assert_allclose(got, want * factor, rtol=1e-6, atol=1e-6)
            assert got.shape == want.shape and got.dtype == np.float32


def test_a_shape_generic_plan_calls_it_with_shapes_as_they_come(lab, twice):
    config = twice.replace(shape_policy="generic")
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        x = tf.placeholder(tf.float32)
        y = lab.ops.twice(x)
        for shape in [(), (3,), (0, 2), (3,), (4, 1)]:
            np.testing.assert_array_equal(session.run(y, {x: np.full(shape, 3.0)}), np.full(shape, 6.0))


def test_strided_inputs_are_not_copied_for_a_strided_kernel(lab, twice):
    value = np.arange(12, dtype=np.float32).reshape(3, 4)
    with tf.Graph().as_default(), tf.Session(config=twice) as session:
        x = tf.placeholder(tf.float32, [3, 4])
        y = lab.ops.twice(tf.transpose(x)[1:, ::2])
        np.testing.assert_array_equal(session.run(y, {x: value}), 2 * value.T[1:, ::2])


def test_a_loop_and_a_variable_hand_it_their_buffers(lab, twice):
    with tf.Graph().as_default(), tf.Session(config=twice) as session:
        v = tf.Variable([1.0, -3.0])
        _, y = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, lab.ops.twice(a)), [0, v.value()])
        session.run(tf.global_variables_initializer())
        assert session.run([y, v])[0].tolist() == [16.0, -48.0]
        assert session.run(v).tolist() == [1.0, -3.0]


@pytest.mark.parametrize("shape", [(3,), None], ids=str)
def test_a_variable_is_written_where_it_lies(lab, shape):
    source = """
GRAPHDOCK_KERNEL(kernel) {
    const float rate = ((const float *)call->inputs[1].data)[0], *delta = (const float *)call->inputs[2].data;
    for (int64_t i = 0; i < call->inputs[0].size; i++) ((float *)call->inputs[0].data)[i] -= rate * delta[i];
    return call->inputs[0].dtype == GD_FLOAT32 && call->output_count == 0 ? GD_OK : GD_INTERNAL;
}
"""
    config = lab.pin(source, "ResourceApplyGradientDescent", types={"T": ["float32"]})
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        v = tf.Variable(tf.placeholder_with_default([1.0, 2.0, 3.0], shape), validate_shape=shape is not None)
        loss = tf.reduce_sum(tf.square(v))
        step = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
        session.run(tf.global_variables_initializer())
        for want in ([0.5, 1.0, 1.5], [0.25, 0.5, 0.75]):
            session.run(step)
            assert session.run(v).tolist() == want


def test_small_integers_that_a_shape_depends_on_are_read_anew(lab):
    """Of a fresh output the shape follows from the elements of an input, which change while its own shape stays."""
    source = """
GRAPHDOCK_KERNEL(kernel) {
    for (int64_t i = 0; i < call->outputs[0].size; i++) ((float *)call->outputs[0].data)[i] = 7;
    return GD_OK;
}
"""
    config = lab.pin(source, "Fill", types={"T": ["float32"]})
    with tf.Graph().as_default(), tf.Session(config=config.replace(shape_policy="generic")) as session:
        dims = tf.placeholder(tf.int32, [2])
        y = tf.fill(dims, tf.placeholder_with_default(1.0, []))
        for shape in ([2, 3], [1, 4], [0, 5]):
            np.testing.assert_array_equal(session.run(y, {dims: shape}), np.full(shape, 7.0))


def test_a_dtype_without_a_buffer_interface_of_its_own(lab):
    source = """
GRAPHDOCK_KERNEL(kernel) {
    const uint16_t *x = (const uint16_t *)call->inputs[0].data;
    uint16_t *y = (uint16_t *)call->outputs[0].data;
    for (int64_t i = 0; i < call->outputs[0].size; i++) y[i] = (uint16_t)(x[i] + 0x80); /* one more in the exponent */
    return call->inputs[0].dtype == GD_BFLOAT16 ? GD_OK : GD_INTERNAL;
}
"""
    config = lab.pin(source, "lab.Twice", types={"T": ["bfloat16"]})
    for shape, policy in (([3], "exact"), ([None], "generic"), (None, "generic")):
        with tf.Graph().as_default(), tf.Session(config=config.replace(shape_policy=policy)) as session:
            x = tf.placeholder(tf.bfloat16, shape)
            got = session.run(lab.ops.twice(x), {x: np.array([1, 2.5, -3], ml_dtypes.bfloat16)})
            assert got.dtype == ml_dtypes.bfloat16 and got.astype(float).tolist() == [2, 5, -6]


def test_strings_are_refused_before_anything_is_called(lab):
    config = lab.pin(TWICE, "lab.Twice")
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        y = lab.ops.twice(tf.constant(["text"]))
        with pytest.raises(tf.errors.ConfigError, match="does not fit .*: a native kernel takes no string"):
            session.run(y)


def test_random_numbers_are_refused_before_anything_is_called(lab):
    config = lab.pin(TWICE, "RandomUniform")
    refused = pytest.raises(tf.errors.ConfigError, match="does not fit .*: a native kernel draws no random numbers")
    with tf.Graph().as_default(), tf.Session(config=config) as session, refused:
        session.run(tf.random_uniform([3]))


def test_memory_that_is_not_the_hosts_is_refused(lab):
    library = NativeLibrary(lab.compile(TWICE))
    kernel = library.kernel("lab.Twice", "kernel", device="chip")
    info = ArgInfo("x", tf.float32, (3,), "chip:0")
    with pytest.raises(KernelRefused, match="'x' lies in chip:0; a native kernel reads and writes host memory"):
        kernel.prepare(PrepareContext(None, (info,), (), None, None))


SCRATCH = """
GRAPHDOCK_KERNEL(kernel) {
    const gd_tensor *x = &call->inputs[0], *table = &call->constants[0], *room = &call->scratch[0];
    double *held = (double *)room->data;
    if (call->scratch_count != 1 || call->constant_count != 1) return GD_INTERNAL;
    if (room->size != x->size + 1 || room->dtype != GD_FLOAT64) return GD_INTERNAL;
    for (int64_t i = 0; i < x->size; i++) held[i] = ((const float *)x->data)[i] * (double)((const int32_t *)table->data)[1];
    for (int64_t i = 0; i < x->size; i++) ((float *)call->outputs[0].data)[i] = (float)held[i];
    return table->rank == 2 ? GD_OK : GD_INTERNAL;
}
"""


@pytest.mark.parametrize("shape", [[3], [None], None], ids=str)
@pytest.mark.parametrize("where", ["declared", "prepared"])
def test_scratch_and_constants(lab, shape, where):
    def scratch(shapes):
        return [Scratch(tf.float64, (int(np.prod(shapes[0])) + 1,))]

    table = np.array([[1], [2]], np.int32).T.T
    if where == "declared":
        config = lab.pin(SCRATCH, "lab.Twice", scratch=scratch, constants=[table])
    else:
        config = lab.pin(
            SCRATCH, "lab.Twice", symbol="unknown", prepare=lambda ctx: Launch(scratch, [table], symbol="kernel")
        )
    policy = "exact" if shape == [3] else "generic"
    with tf.Graph().as_default(), tf.Session(config=config.replace(shape_policy=policy)) as session:
        x = tf.placeholder(tf.float32, shape)
        y = lab.ops.twice(x)
        for value in ([1.0, 2, 3], [4.0, 5, 6]):
            assert session.run(y, {x: value}).tolist() == [2 * v for v in value]


def test_prepare_may_refuse_and_check_may_say_why(lab):
    def refuse(ctx):
        raise KernelRefused("not on a Monday")

    for fields, reason in (
        ({"prepare": refuse}, "not on a Monday"),
        ({"check": lambda node: "not on a Friday"}, "not on a Friday"),
    ):
        config = lab.pin(TWICE, "lab.Twice", **fields)
        with (
            tf.Graph().as_default(),
            tf.Session(config=config) as session,
            pytest.raises(tf.errors.ConfigError, match=f"does not fit .*{reason}"),
        ):
            session.run(lab.ops.twice(tf.placeholder_with_default([1.0], [1])))


POSITIVE = """
GRAPHDOCK_KERNEL(kernel) {
    const gd_tensor *x = &call->inputs[0];
    float *y = (float *)call->outputs[0].data;
    for (int64_t i = 0; i < x->size; i++) {
        const float element = ((const float *)x->data)[i];
        if (element > 0) *y++ = element;
    }
    return GD_OK;
}
"""


def test_outputs_whose_shape_only_a_function_tells(lab):
    config = lab.pin(POSITIVE, "lab.Positive", shapes=lambda node, inputs: [(int((inputs[0] > 0).sum()),)])
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        x = tf.placeholder(tf.float32, [None])
        y = lab.ops.positive(x)
        assert session.run(y, {x: [1.0, -2.0, 3.0]}).tolist() == [1.0, 3.0]
        assert session.run(y, {x: [-1.0, -2.0, 3.0]}).tolist() == [3.0]
        assert session.run(y, {x: []}).tolist() == []
    for fields, message in (
        ({}, r"depends on more than its spec says\n(.*\n)*.*library\.kernel\(\.\.\., shapes=\.\.\.\)"),
        ({"shapes": lambda node, inputs: []}, "returned the wrong number of shapes\n  expected 1, got 0"),
    ):
        config = lab.pin(POSITIVE, "lab.Positive", **fields)
        with (
            tf.Graph().as_default(),
            tf.Session(config=config) as session,
            pytest.raises(tf.errors.InvalidArgumentError, match=message),
        ):
            session.run(lab.ops.positive(tf.placeholder_with_default([1.0], [1])))


WAIT = """
#include <time.h>
GRAPHDOCK_KERNEL(kernel) {
    volatile char *flags = (volatile char *)(intptr_t)call->attrs[0].ints[0];
    const time_t end = time(NULL) + ((const int32_t *)call->inputs[0].data)[0];
    flags[0] = 1;
    while (!flags[1]) {
        if (time(NULL) > end) return gd_fail(call, GD_DEADLINE_EXCEEDED, "nobody came");
    }
    ((int32_t *)call->outputs[0].data)[0] = 42;
    return GD_OK;
}
"""


def test_other_threads_of_python_run_while_it_computes(lab):
    """The kernel does not return before another Python thread has seen it run, and has answered."""
    config = lab.pin(WAIT, "lab.Wait")
    flags = mmap.mmap(-1, 2)
    address = np.frombuffer(flags, np.uint8).ctypes.data

    def answer():
        while not flags[0]:
            pass
        flags[1] = 1

    with tf.Graph().as_default(), tf.Session(config=config) as session:
        y = lab.ops.wait(tf.placeholder_with_default(60, []), address=address)
        thread = threading.Thread(target=answer)
        thread.start()
        assert session.run(y) == 42
        thread.join()


def test_steps_of_several_threads_do_not_share_a_call(lab, twice):
    with tf.Graph().as_default(), tf.Session(config=twice) as session:
        x = tf.placeholder(tf.float32, [1000])
        y = lab.ops.twice(x)
        wrong = []

        def steps(value):
            for _ in range(50):
                if (session.run(y, {x: np.full(1000, value)}) != 2 * value).any():
                    wrong.append(value)

        threads = [threading.Thread(target=steps, args=(float(i),)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


def test_an_exception_of_cpp_becomes_a_status(lab):
    source = """
#include <stdexcept>
#include <vector>
GRAPHDOCK_KERNEL(kernel) {
    return gd_guard(call, [&]() -> int32_t {
        if (call->inputs[0].size == 1) throw std::runtime_error("thrown");
        if (call->inputs[0].size == 2) throw 3;
        std::vector<char> none(static_cast<size_t>(-1) / 2);
        return none.empty() ? GD_OK : GD_INTERNAL;
    });
}
"""
    config = lab.pin(source, "lab.Twice", suffix=".cpp")
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        x = tf.placeholder(tf.float32, [None])
        y = lab.ops.twice(x)
        for size, error, message in (
            (1, tf.errors.InternalError, "thrown"),
            (2, tf.errors.InternalError, "an exception of an unknown type"),
            (3, tf.errors.ResourceExhaustedError, "."),
        ):
            with pytest.raises(error, match=message):
                session.run(y, {x: np.zeros(size)})


def test_a_missing_library_ends_the_step_with_the_node_and_the_remedy(lab, tmp_path):
    kernel = NativeLibrary(tmp_path / "gone").kernel("lab.Twice", "kernel", name="gone", label="lab")
    config = lab.register(kernel)
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        y = lab.ops.twice(tf.placeholder_with_default([1.0], [1]), name="here")
        with pytest.raises(tf.errors.PluginError, match=r"gone\.\w+ is not there") as caught:
            session.run(y)
        assert caught.value.op_name == "here" and "test_kernel.py" in caught.value.site
