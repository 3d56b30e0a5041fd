"""Runs of native launches are one call: what they compute, where they end, and who still sees each kernel."""

from __future__ import annotations

import ctypes
import re
import threading
import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import KernelDef, Native, NativeShapes, Prepared, errors, hookimpl
from graphdock.plugin.host import Host
from graphdock_executor.step_program.names import Names
from graphdock_executor.step_program.native_runs import join_launches
from graphdock_executor.step_program.statements import Block, Launch

pytestmark = pytest.mark.plain  # debug mode makes no runs

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int64))


class Shapes(NativeShapes):
    """Shapes of an elementwise kernel that takes no row of seven."""

    def __init__(self, made):
        self.numbers, self._shape, self.made = np.zeros(1, np.int64), (), made

    def read(self, shapes):
        (self._shape,) = shapes
        if self._shape[-1:] == (7,):
            raise errors.ShapeError("a row of seven", got="7")
        self.numbers[0] = int(np.prod(self._shape))
        return [self._shape]

    def make(self, output):
        self.made.append(self._shape)
        return np.empty(self._shape, np.float32)


class Lab:
    """Kernels for Neg and Tanh that native code calls; ``calls`` says how each was called."""

    def __init__(self, process_host):
        self.calls, self.made = [], []
        self.kept = []
        self.host = process_host(Host())
        kernels = [
            KernelDef(op, "cpu", prepare=self.preparing(f)) for op, f in (("Neg", np.negative), ("Tanh", np.tanh))
        ]
        hook = hookimpl(specname="register_kernels")(lambda: kernels)
        self.host.register("lab", types.SimpleNamespace(register_kernels=hook, __name__="lab"))

    def preparing(self, ufunc):
        def prepare(ctx):
            known = None not in ctx.outputs[0].shape
            count = int(np.prod(ctx.outputs[0].shape)) if known else 0

            def native(buffers, numbers):
                source, target = (
                    np.ctypeslib.as_array(ctypes.cast(buffers[i], ctypes.POINTER(ctypes.c_float)), (numbers[0],))
                    for i in (0, 1)
                )
                self.calls.append(f"native {ufunc.__name__}")
                ufunc(source, target)

            def compute(x, out=None):
                self.calls.append(f"python {ufunc.__name__}")
                if not known:
                    Shapes([]).read([x.shape])
                return ufunc(x, out=out)

            sized = None if known else lambda: Shapes(self.made)
            self.kept.append(FUNCTION(native))
            address = ctypes.cast(self.kept[-1], ctypes.c_void_p).value
            return Prepared(lambda bind: compute, native=Native(address, self.chain, (count,), sized=sized))

        return prepare

    def chain(self, calls, count):
        def run(*given):
            self.calls.append("run")
            for call in calls:
                buffers = [given[b] if isinstance(b, int) else b for b in call.buffers]
                table = (ctypes.c_void_p * len(buffers))(*[b.ctypes.data for b in buffers])
                FUNCTION(call.address)(table, (ctypes.c_int64 * len(call.numbers))(*map(int, call.numbers)))

        return run

    def session(self, **fields):
        return tf.Session(config=tf.SessionConfig(backends=["lab", "cpu"], **fields), host=self.host)

    def source(self, sess, fetches, feed):
        metadata = tf.RunMetadata()
        sess.run(fetches, feed, run_metadata=metadata)
        return metadata.plan.program.source


@pytest.fixture
def lab(process_host):
    with tf.Graph().as_default():
        yield Lab(process_host)


def numbers(seed=0):
    return np.random.default_rng(seed).normal(size=(3, 5)).astype(np.float32)


def test_a_run_is_one_call_after_the_first_step(lab):
    x = tf.placeholder(tf.float32, [3, 5])
    y = tf.negative(tf.tanh(tf.negative(tf.tanh(x))))
    with lab.session() as sess:
        for seed in range(3):
            lab.calls.clear()
            got = sess.run(y, {x: numbers(seed)})
            np.testing.assert_allclose(got, np.tanh(np.tanh(numbers(seed))), 1e-6)
            if seed == 0:
                assert lab.calls == ["python tanh", "python negative"] * 2  # each is held to its contract
            else:
                assert lab.calls == ["run", *["native tanh", "native negative"] * 2]
        step = lab.source(sess, y, {x: numbers()}).partition("def step")[2]
        assert re.search(r"\ba0\(", step) and not re.search(r"\bk\d+\(", step)


def test_each_step_returns_memory_of_its_own(lab):
    x = tf.placeholder(tf.float32, [3, 5])
    inner = tf.tanh(x)
    fetches = [inner, tf.negative(inner)]
    with lab.session() as sess:
        first = sess.run(fetches, {x: numbers(1)})
        second = sess.run(fetches, {x: numbers(2)})
        third = sess.run(fetches, {x: numbers(3)})
    assert "run" in lab.calls
    for seed, got in enumerate((first, second, third), 1):
        np.testing.assert_allclose(got, [np.tanh(numbers(seed)), -np.tanh(numbers(seed))], 1e-6)


def test_a_python_kernel_and_a_branch_end_a_run(lab):
    x = tf.placeholder(tf.float32, [3, 5])
    y = tf.exp(tf.negative(tf.tanh(x)))
    z = tf.negative(tf.tanh(y))
    w = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.tanh(tf.negative(z)), lambda: z * 2.0)
    with lab.session() as sess:
        source = lab.source(sess, w, {x: numbers()})
        for seed in range(4):
            got = sess.run(w, {x: numbers(seed)})
            at = -np.tanh(np.exp(-np.tanh(numbers(seed))))
            want = np.tanh(-at) if numbers(seed).sum() > 0 else at * 2
            np.testing.assert_allclose(got, want, 1e-5, 1e-6)
    assert len(re.findall(r"^ +a\d+\(", source, re.M)) == 3
    assert lab.calls.count("run") >= 3


def test_a_run_in_a_loop_gets_the_buffers_of_each_iteration(lab):
    x = tf.placeholder(tf.float32, [3, 5])
    y = tf.while_loop(lambda i, v: i < 7, lambda i, v: (i + 1, tf.negative(tf.tanh(v))), [0, x])[1]
    with lab.session() as sess:
        for seed in range(3):
            want = numbers(seed)
            for _ in range(7):
                want = -np.tanh(want)
            np.testing.assert_allclose(sess.run(y, {x: numbers(seed)}), want, 1e-5, 1e-6)
    assert "run" in lab.calls


def test_a_trace_and_debug_mode_see_each_kernel(lab):
    x = tf.placeholder(tf.float32, [3, 5])
    y = tf.negative(tf.tanh(x))
    with lab.session() as sess:
        sess.run(y, {x: numbers()})
        lab.calls.clear()
        metadata = tf.RunMetadata()
        sess.run(y, {x: numbers()}, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
        assert lab.calls == ["python tanh", "python negative"]
        assert [e.kernel for e in metadata.events if e.kind == "kernel"] == ["lab.tanh", "lab.neg"]
        lab.calls.clear()
        sess.run(y, {x: numbers()})
        assert lab.calls[0] == "run"
    with lab.session(debug=True) as sess:
        lab.calls.clear()
        for _ in range(2):
            sess.run(y, {x: numbers()})
        assert lab.calls == ["python tanh", "python negative"] * 2


def test_a_kernel_that_leaves_its_output_is_found_in_the_first_step(lab):
    x = tf.placeholder(tf.float32, [3, 5])
    y = tf.negative(tf.tanh(x))
    kernels = [KernelDef(op, "cpu", prepare=lazy(lab)) for op in ("Neg", "Tanh")]
    hook = hookimpl(specname="register_kernels")(lambda: kernels)
    lab.host.register("idle", types.SimpleNamespace(register_kernels=hook, __name__="idle"))
    sess = tf.Session(config=tf.SessionConfig(backends=["idle", "cpu"]), host=lab.host)
    with sess, pytest.raises(tf.errors.OpError, match="left elements of its output"):
        sess.run(y, {x: numbers()})


def lazy(lab):
    return lambda ctx: Prepared(lambda bind: lambda x, out: None, native=Native(1, lab.chain))


def test_shapes_that_only_a_step_knows_follow_from_what_a_run_is_given(lab):
    x = tf.placeholder(tf.float32, [None, None])
    inner = tf.tanh(x)
    fetches = [tf.negative(tf.tanh(tf.negative(inner))), inner]
    with lab.session(shape_policy="generic") as sess:
        for step, shape in enumerate(((3, 5), (3, 5), (2, 0), (1, 1), (4, 9), (4, 9))):
            lab.calls.clear(), lab.made.clear()
            value = np.full(shape, step, np.float32)
            got = sess.run(fetches, {x: value})
            np.testing.assert_allclose(got[0], np.tanh(np.tanh(value)), 1e-6)
            np.testing.assert_allclose(got[1], np.tanh(value), 1e-6)
            assert lab.calls[0] == ("run" if step else "python tanh") and len(lab.calls) == 4 + bool(step)
            assert lab.made == ([shape] * 4 if step else [])
        trace = tf.RunMetadata()
        sess.run(
            fetches, {x: value}, options=tf.RunOptions(trace_level=tf.RunOptions.SOFTWARE_TRACE), run_metadata=trace
        )
        assert sum("python" in c for c in lab.calls) == 4
        with pytest.raises(
            errors.ShapeError, match="a row of seven"
        ) as refused:  # by the first kernel, as without a run
            sess.run(fetches, {x: np.ones((2, 7), np.float32)})
        assert refused.value.op is inner.op
        np.testing.assert_allclose(sess.run(fetches, {x: value})[1], np.tanh(value), 1e-6)
        step = lab.source(sess, fetches, {x: value}).partition("def step")[2]
        assert re.search(r"v\d+(, v\d+){3} = a0\(", step) and not re.search(r"\bk\d+\(", step)


def test_loop_variables_of_unknown_shape_are_other_values_in_each_iteration(lab):
    x = tf.placeholder(tf.float32, [None, 5])

    def body(i, a, b):
        return i + 1, tf.tanh(tf.negative(b)), tf.negative(tf.tanh(a))

    found = tf.while_loop(lambda i, *_: i < 3, body, [0, x, x * 2.0])[1:]
    with lab.session(shape_policy="generic") as sess:
        for rows in (3, 1, 0, 3):
            value = np.random.default_rng(rows).normal(size=(rows, 5)).astype(np.float32)
            a, b = value, value * 2
            for _ in range(3):
                a, b = np.tanh(-b), -np.tanh(a)
            np.testing.assert_allclose(sess.run(found, {x: value}), [a, b], 1e-6)
    assert "run" in lab.calls


def test_steps_on_many_threads_have_tables_of_their_own(lab):
    x = tf.placeholder(tf.float32, [3, 5])
    y = tf.negative(tf.tanh(x))
    wrong = []
    with lab.session() as sess:

        def work(seed):
            for i in range(20):
                value = numbers(100 * seed + i)
                if not np.allclose(sess.run(y, {x: value}), -np.tanh(value), 1e-5, 1e-6):
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong and "run" in lab.calls


def test_runs_of_many_launches_are_found_in_one_way_over_them():
    """A thousand launches: arguments are looked at a bounded number of times."""
    looked = 0

    class Counting(tuple):
        def __iter__(self):
            nonlocal looked
            looked += 1
            return super().__iter__()

    names = Names()
    block, builds, value = Block(), {}, names.new("value")
    for _ in range(1000):
        kernel, following = names.new("kernel"), names.new("value")
        prepared = types.SimpleNamespace(native=Native(0, None, (), sized=object))
        builds[kernel] = types.SimpleNamespace(prepared=prepared, static=(None,))
        block.add(Launch(kernel, Counting((value,)), (following,), node=None, device=None))
        value = following
    (run,) = join_launches(block, builds, names)
    assert len(run.body.statements) == 1000 and block.statements == [run]
    assert looked < 10_000


class Checked(Lab):
    """A lab whose Tanh refuses what begins with a number above 100, from native code and, unless it is ``stubborn``, from Python.

    Neg's chain knows of no status.
    """

    stubborn = False

    def preparing(self, ufunc):
        def prepare(ctx):
            checks, known = ufunc is np.tanh, None not in ctx.outputs[0].shape
            count = int(np.prod(ctx.outputs[0].shape)) if known else 0

            def native(buffers, numbers):
                source, target = (
                    np.ctypeslib.as_array(ctypes.cast(buffers[i], ctypes.POINTER(ctypes.c_float)), (numbers[0],))
                    for i in (0, 1)
                )
                self.calls.append(f"native {ufunc.__name__}")
                if checks and source[0] > 100:
                    ctypes.cast(buffers[2], ctypes.POINTER(ctypes.c_int64))[0] = 7
                else:
                    ufunc(source, target)

            def compute(x, out=None):
                self.calls.append(f"python {ufunc.__name__}")
                if checks and not self.stubborn and x.flat[0] > 100:
                    raise errors.InvalidArgumentError("a number above 100", got=str(x.flat[0]))
                return ufunc(x, out=out)

            self.kept.append(FUNCTION(native))
            address = ctypes.cast(self.kept[-1], ctypes.c_void_p).value
            chain = self.chain_with_status if checks else self.chain
            sized = None if known else lambda: Shapes(self.made)
            return Prepared(lambda bind: compute, native=Native(address, chain, (count,), sized=sized, status=checks))

        return prepare

    def chain(self, calls, count):
        assert not any(call.status for call in calls)
        return super().chain(calls, count)

    def chain_with_status(self, calls, count):
        def run(*given):
            self.calls.append("run")
            for number, call in enumerate(calls):
                status = [np.zeros(1, np.int64)] if call.status else []
                buffers = [*[given[b] if isinstance(b, int) else b for b in call.buffers], *status]
                table = (ctypes.c_void_p * len(buffers))(*[b.ctypes.data for b in buffers])
                FUNCTION(call.address)(table, (ctypes.c_int64 * len(call.numbers))(*map(int, call.numbers)))
                if call.status and status[0]:
                    return number
            return None

        return run


@pytest.fixture
def checked(process_host):
    with tf.Graph().as_default():
        yield Checked(process_host)


@pytest.mark.parametrize("shape", [(3, 5), (None, None)])
def test_a_launch_that_fails_raises_the_error_of_its_kernel_and_node(checked, shape):
    x = tf.placeholder(tf.float32, shape)
    first = tf.tanh(tf.negative(x))
    second = tf.tanh(tf.negative(first), name="second")
    third = tf.negative(second)
    good = np.full((3, 5), 0.5, np.float32)
    with checked.session(shape_policy="exact" if shape[0] else "generic") as sess:
        for _ in range(2):
            np.testing.assert_allclose(sess.run(third, {x: good}), -np.tanh(np.tanh(good)), 1e-6)
        checked.calls.clear()
        with pytest.raises(errors.InvalidArgumentError, match=r"(?s)above 100.*101") as refused:
            sess.run(third, {x: np.full((3, 5), -101, np.float32)})
        assert refused.value.op is first.op
        # what stands before it has been called once, what stands behind it not at all
        assert checked.calls == ["run", "native negative", "native tanh", "python tanh"]
        checked.calls.clear()
        np.testing.assert_allclose(sess.run(third, {x: good}), -np.tanh(np.tanh(good)), 1e-6)
        assert checked.calls[0] == "run" and not any("python" in c for c in checked.calls)


@pytest.mark.parametrize("shape", [(3, 5), (None, None)])
def test_where_the_kernel_computes_after_all_so_do_those_behind_it(checked, shape):
    x = tf.placeholder(tf.float32, shape)
    inner = tf.negative(tf.tanh(tf.negative(x)))
    fetches = [tf.tanh(inner), inner]
    with checked.session(shape_policy="exact" if shape[0] else "generic") as sess:
        sess.run(fetches, {x: numbers()})
        checked.calls.clear()
        checked.stubborn = True
        value = np.full((3, 5), -101, np.float32)
        got = sess.run(fetches, {x: value})
        np.testing.assert_allclose(got, [np.tanh(-np.tanh(-value)), -np.tanh(-value)], 1e-6)
        tail = ["python tanh", "python negative", "python tanh"]
        assert checked.calls == ["run", "native negative", "native tanh", *tail]
