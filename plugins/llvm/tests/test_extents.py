"""Axes of unknown extent: one compiled function for every size, against NumPy and against programs of known extents."""

from __future__ import annotations

import sys
from dataclasses import replace

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Axis, RegionInput, RegionOutput, RegionProgram, Term, dtypes, errors
from graphdock_llvm import target
from graphdock_llvm.extents import Extents
from graphdock_llvm.pool import pool_address
from graphdock_llvm.printer import ALONE, print_region
from graphdock_llvm.schedule import forbidden
from graphdock_llvm.target import converts_halves
from graphdock_testing import random_regions
from graphdock_testing.random_regions import random_region
from graphdock_testing.region_reference import evaluate

#: Halves that the CPU converts.
HALVES = ("bfloat16", "float16") if converts_halves() else ("bfloat16",)

SIZES = (0, 1, 2, 7, 64, 1000)
GENERIC = {"backends": ("llvm", "cpu"), "shape_policy": "generic"}
DTYPES = [("float32",), ("float32", "float64", "int32", "bool"), ("float32", *HALVES, "int64", "uint8")]
NEAR = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-4, "float64": 1e-4}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def opened(program, axes):
    """The program, of which the extents of these axes are not known."""

    def shape(part):
        return replace(
            part, shape=tuple([None if d in axes else n for n, d in zip(part.shape, part.dims, strict=True)])
        )

    return replace(
        program,
        axes=tuple([replace(a, extent=None) if i in axes else a for i, a in enumerate(program.axes)]),
        inputs=tuple(map(shape, program.inputs)),
        outputs=tuple(map(shape, program.outputs)),
    )


def resized(program, arrays, extents, rng):
    """The program over other extents, with arrays of these."""

    def shape(part):
        return replace(part, shape=tuple([1 if d is None else extents[d] for d in part.dims]))

    axes = tuple([replace(a, extent=n) for a, n in zip(program.axes, extents, strict=True)])
    made = replace(
        program, axes=axes, inputs=tuple(map(shape, program.inputs)), outputs=tuple(map(shape, program.outputs))
    )
    inputs = list(arrays)
    for part in made.inputs:
        old = arrays[part.source].reshape(-1)
        inputs[part.source] = old[rng.integers(old.size, size=int(np.prod(part.shape)))].reshape(part.shape)
    return made, inputs


def compare(call, program, arrays, open_axes, lanes, extents_of, rng, threads=1):
    text = print_region(opened(program, open_axes), len(arrays), lanes)
    for extents in extents_of:
        made, inputs = resized(program, arrays, extents, rng)
        numbers = Extents(opened(program, open_axes), (threads, pool_address()) if threads > 1 else ALONE)
        numbers.read([np.shape(i) for i in inputs])
        assert print_region(opened(made, open_axes), len(arrays), lanes) == text
        got = call(made, inputs, lanes, numbers.numbers.tolist(), text)
        for out, one, other in zip(made.outputs, got, evaluate(made, inputs), strict=True):
            near = NEAR.get(out.dtype.name, 0)
            np.testing.assert_allclose(
                one.astype(float), other.astype(float), near, near, err_msg=f"{extents} {lanes} {made}"
            )


def programs(seeds, lanes):
    """Random programs, each with sets of its axes of which the extents are not known."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        extents = [(5,), (3, 37), (4, 16), (2, 3, 20)][seed % 4]
        whole = tuple(range(len(extents)))
        reduced = [(), whole[-1:], whole, whole[:-1]][seed // 4 % 4]
        program, arrays = random_region(rng, extents, reduced, DTYPES[seed % 3])
        for axes in {whole[:1], whole[-1:], whole}:
            if forbidden(opened(program, axes), lanes) is None:
                yield program, arrays, axes, rng


def check(call, seeds, lanes):
    count = 0
    for program, arrays, axes, rng in programs(seeds, lanes):
        known = [a.extent for a in program.axes]
        some = [int(rng.choice([0, 1, 2, 7, 40])) for _ in known]
        sizes = [tuple([m if a in axes else n for a, (n, m) in enumerate(zip(known, some, strict=True))])]
        sizes += [tuple([m if a in axes else n for a, n in enumerate(known)]) for m in (0, 33)]
        compare(call, program, arrays, axes, lanes, sizes, rng)
        count += 1
    return count


@pytest.fixture
def of_what_is_compiled(monkeypatch):
    """Draw of the primitives that are compiled, so that few programs are refused."""
    monkeypatch.setattr(random_regions, "_UNARY", ("abs", "neg", "sigmoid", "tanh"))
    monkeypatch.setattr(random_regions, "_INTEGERS", ("add", "maximum", "minimum", "mul", "sub"))


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_random_programs_of_unknown_extents_agree_with_the_reference(call, of_what_is_compiled, lanes):
    assert check(call, range(lanes, lanes + 8), lanes) > 5


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", range(100, 900, 50))
def test_many_random_programs_of_unknown_extents_agree_with_the_reference(call, of_what_is_compiled, start):
    assert check(call, range(start, start + 50), [4, 8, 16][start // 50 % 3]) > 40


@pytest.mark.parametrize("axes", [(0,), (0, 1)])
@pytest.mark.parametrize(("rows", "length"), [(1, 40), (3, 1), (63, 40), (40_000, 40), (17, 30_000)])
def test_rows_in_parts_give_the_same_bits_on_any_number_of_threads(call, rows, length, axes):
    """Sums over rows, along them, and what is written, of a number of rows that one text is for."""
    if length > 4096 and axes == (0,):
        return  # the results of such rows are not kept on the stack
    f32, shape = dtypes.float32, (rows, length)
    program = RegionProgram(
        "p",
        (Axis("i", rows), Axis("j", length)),
        (RegionInput("x", 0, f32, shape, (0, 1)),),
        (
            Term("input", f32, (), (0, 1), 0),
            Term("sum", f32, (0,), (1,), (0,)),
            Term("sqrt", f32, (0,), (0, 1)),
            Term("sum", f32, (2,), (0,), (1,)),
            Term("mul", f32, (2, 3), (0, 1)),
            Term("max", f32, (0,), (1,), (0,)),
            Term("sub", f32, (1, 5), (1,)),
        ),
        (
            RegionOutput("y", 1, f32, (length,), (1,)),
            RegionOutput("z", 4, f32, shape, (0, 1)),
            RegionOutput("u", 6, f32, (length,), (1,)),
        ),
    )
    x = np.random.default_rng(rows).uniform(0, 1, shape).astype(np.float32)
    text, results = print_region(opened(program, axes), 1, target.width()), []
    for threads in (1, 2, 3):
        extents = Extents(opened(program, axes), (threads, pool_address()))
        extents.read([x.shape])
        assert extents.numbers.tolist()[3:-1] == [x.shape[a] for a in axes]
        assert (extents.numbers[2] > 1) == (rows * length > 500_000)
        results.append(call(program, [x], 0, extents.numbers.tolist(), text))
    total, root = x.astype(np.float64).sum(0), np.sqrt(x.astype(np.float64))
    np.testing.assert_allclose(results[0][0], total, 2e-6)
    np.testing.assert_allclose(results[0][1], root * root.sum(1, keepdims=True), 1e-5)
    np.testing.assert_allclose(results[0][2], total - x.max(0), 1e-5, 1e-6)
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


# -- sessions


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return e / e.sum(-1, keepdims=True)


def test_one_function_serves_every_size_of_a_batch(compiles):
    x, y = tf.placeholder(tf.float32, [None, 50]), tf.placeholder(tf.float32, [None, 50])
    b, c = tf.placeholder(tf.float32, [50]), tf.placeholder(tf.float32, [None])
    z = tf.nn.softmax(tf.tanh(x + b) * y)
    fetches = [z, tf.reduce_sum(z * x, 0), tf.reduce_max(x - y, 1) + c, tf.reduce_mean(x * y), tf.exp(c) * 2.0]
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as sess:
        plans = set()
        for size in SIZES:
            u, v, w, d = numbers(size, 50), numbers(size, 50, seed=1), numbers(50, seed=2), numbers(size, seed=3)
            s = softmax(np.tanh(u + w) * v)
            mean = (u * v).mean(dtype=np.float64) if size else np.nan
            want = [s, (s * u).sum(0), (u - v).max(1) + d, mean, np.exp(d) * 2]
            metadata = tf.RunMetadata()
            got = sess.run(fetches, {x: u, y: v, b: w, c: d}, run_metadata=metadata)
            plans.add(metadata.plan)
            if not plans - {metadata.plan}:
                found = len(compiles)
            for g, e in zip(got, want, strict=True):
                assert g.shape == np.shape(e)
                np.testing.assert_allclose(g, e, 1e-4, 1e-5)
        kernels = sess.explain(fetches).kernels()
    assert len(plans) == 1 and len(compiles) == found
    assert set(kernels) == {"llvm.region"} and len([t for t in compiles if "@region" in t]) >= kernels["llvm.region"]


@pytest.mark.parametrize("dims", [[None], [None, None], [None, 3, None], [2, None, 5]])
def test_any_dim_may_be_unknown(dims, compiles):
    x, y = tf.placeholder(tf.float32, dims), tf.placeholder(tf.float32, dims)
    fetches = [tf.sigmoid(x) * y + 1.0, tf.reduce_sum(tf.maximum(x, y), -1), tf.nn.softmax(x * y)]
    counts = set()
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as sess:
        for size in SIZES[:5]:
            for other in (1, 5):
                shape = [d or (other if i else size) for i, d in enumerate(dims)]
                u, v = numbers(*shape), numbers(*shape, seed=1)
                got = sess.run(fetches, {x: u, y: v})
                want = [v / (1 + np.exp(-u)) + 1, np.maximum(u, v).sum(-1), softmax(u * v)]
                counts.add(len(compiles))
                for g, e in zip(got, want, strict=True):
                    np.testing.assert_allclose(g, e, 1e-4, 1e-5)
        assert set(sess.explain(fetches).kernels()) == {"llvm.region"}
    assert len(counts) == 1


def test_sums_over_rows_of_unknown_length_are_those_of_the_nodes():
    x, g = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None])
    centred = x - tf.reduce_mean(x, -1, keepdims=True)
    norm = centred * tf.rsqrt(tf.reduce_mean(tf.square(centred), -1, keepdims=True) + 1e-5) * g
    fetches = [*tf.gradients(norm * x, g), tf.reduce_mean(x * x, 0) - tf.reduce_max(x, 0), tf.nn.softmax(x * 2.0)]
    fetches += [tf.reduce_sum(tf.cast(x > 0.0, tf.int32) * 3, 0)]
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as sess, tf.Session() as plain:
        for shape in ((3, 4), (0, 4), (4, 0), (0, 0), (1, 1), (5, 1), (1, 5), (70, 33)):
            for bad in ((), (np.nan, np.inf)):
                u = numbers(*shape)
                u.flat[: len(bad)] = bad[: u.size]
                with np.errstate(all="ignore"):
                    feed = {x: u, g: numbers(shape[1], seed=1)}
                    for got, want in zip(sess.run(fetches, feed), plain.run(fetches, feed), strict=True):
                        assert got.shape == want.shape
                        np.testing.assert_allclose(got, want, 1e-4, 1e-4)
        kernels = sess.explain(fetches).kernels()
    assert not {"cpu.sum", "cpu.max", "cpu.prod", "cpu.mean", "cpu.softmax"} & kernels.keys()


def test_the_ninth_shape_of_a_call_gets_a_function_for_all(compiles):
    x = tf.placeholder(tf.float32, [None, 5])
    y = tf.tanh(x) * x + 0.5
    with tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as sess:
        for size in range(1, 12):
            np.testing.assert_allclose(
                sess.run(y, {x: numbers(size, 5)}), np.tanh(numbers(size, 5)) * numbers(size, 5) + 0.5, 1e-5
            )
            if size == 9:
                found = len(compiles)
    assert len(compiles) == found


def test_two_unknown_dims_that_differ_are_refused_by_name_and_one_may_be_1():
    x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.float32, [None, 5])
    z = tf.multiply(tf.tanh(x), y + 1.0, name="meet")
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as sess:
        assert sess.explain(z).kernels() == {"llvm.region": 1}
        for a, b in ((4, 4), (1, 4), (4, 1), (1, 1), (0, 1), (1, 0), (0, 0), (4, 4)):
            u, v = numbers(a, 5), numbers(b, 5, seed=1)
            np.testing.assert_allclose(sess.run(z, {x: u, y: v}), np.tanh(u) * (v + 1), 1e-5)
            with pytest.raises(errors.ShapeError, match="3") as refused:
                sess.run(z, {x: numbers(3, 5), y: numbers(2, 5)})
            assert refused.value.op is z.op


def test_dims_that_only_follow_from_others_are_no_one_axis_and_may_be_1():
    """A concatenation may be one row: it is broadcast then, in a plan for any shape as well."""
    x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.float32, [None, 5])
    joined = tf.concat([y, y[1:]], 0)
    z = tf.tanh(x) * 2.0 + tf.tanh(joined) * 2.0
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as sess:
        for a, b in ((5, 3), (3, 1), (1, 3), (5, 3)):
            u, v = numbers(a, 5), numbers(b, 5, seed=1)
            want = np.tanh(u) * 2 + np.tanh(np.concatenate([v, v[1:]])) * 2
            np.testing.assert_allclose(sess.run(z, {x: u, y: v}), want, 1e-5)
        with pytest.raises(errors.ShapeError):
            sess.run(z, {x: numbers(4, 5), y: numbers(3, 5)})
        assert sess.explain(z).kernels()["llvm.region"] == 2
        assert "refused 1 node" in str(sess.explain(z)) or "not known" in str(sess.explain(z))


def test_a_function_refuses_arrays_whose_dims_differ():
    program = RegionProgram(
        "p",
        (Axis("i", None),),
        (RegionInput("x", 0, dtypes.float32, (None,), (0,)), RegionInput("y", 1, dtypes.float32, (None, 1), (0, None))),
        (),
        (),
    )
    extents = Extents(program, ALONE)
    extents.read([(3,), (3, 1)])
    for shapes, names in (
        ([(3,), (2, 1)], "dim 0 of y is not that of x"),
        ([(3,), (3, 2)], "dim 1 of y"),
        ([(3,), (3,)], "rank"),
    ):
        with pytest.raises(errors.ShapeError, match=names):
            extents.read(shapes)


def test_a_network_of_unknown_batch_trains_as_without(compiles):
    x, labels = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.float32, [None, 3])
    w, b = tf.Variable(numbers(8, 3)), tf.Variable(tf.zeros([3]))
    h = tf.tanh(tf.matmul(x, w) + b)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=h, labels=labels))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    seen, counts = [], set()
    for backends in (("llvm", "cpu"), ("cpu",)):
        with tf.Session(config=tf.SessionConfig(backends=backends, shape_policy="generic")) as sess:
            sess.run(tf.global_variables_initializer())
            made = []
            for step, size in enumerate((10, 1, 64, 7, 10)):
                feed = {x: numbers(size, 8, seed=step), labels: np.eye(3, dtype=np.float32)[np.arange(size) % 3]}
                made.append(sess.run([loss, train], feed)[0])
                if len(backends) == 2:
                    counts.add(len(compiles))
            seen.append([*made, *sess.run([w, b])])
            kernels = sess.explain([loss, train]).kernels()
            assert (kernels.get("llvm.region", 0) > 2) == (len(backends) == 2)
    for got, want in zip(*seen, strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-5)
    assert len(counts) == 1


def test_loops_and_branches_of_unknown_batch():
    x = tf.placeholder(tf.float32, [None, 5])
    y = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(h * x) * 0.5 + h), [0, x])[1]
    z = tf.cond(tf.reduce_sum(y) > 0.0, lambda: tf.sigmoid(y) * 2.0 - x, lambda: tf.exp(-y * y) + x)
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as sess, tf.Session() as plain:
        for size in (3, 0, 1, 64):
            feed = {x: numbers(size, 5, seed=size)}
            np.testing.assert_allclose(sess.run(z, feed), plain.run(z, feed), 1e-5, 1e-6)
        assert sess.explain(z).kernels()["llvm.region"] >= 3


@pytest.mark.plain  # debug mode makes no runs
def test_regions_of_unknown_dims_are_one_native_call():
    x, y = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None, 8])
    sums, rows = tf.reduce_sum(x * x, 0), tf.nn.softmax(x * 2.0)
    fetches = [tf.tanh(sums * 2.0 + rows), tf.reduce_max(y * 2.0, 0), tf.sigmoid(y) * y]
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as sess, tf.Session() as plain:
        for shape in ((3, 4), (3, 4), (0, 4), (4, 0), (1, 1), (64, 33), (500, 3000)):
            feed = {x: numbers(*shape), y: numbers(shape[0] + 2, 8)}
            metadata = tf.RunMetadata()
            for got, want in zip(sess.run(fetches, feed, run_metadata=metadata), plain.run(fetches, feed), strict=True):
                np.testing.assert_allclose(got, want, 1e-4, 1e-4)
        step = metadata.plan.program.source.partition("def step")[2]
        assert sess.explain(fetches).kernels()["llvm.region"] > 2
    assert "a0(" in step and "k" not in step.partition("\n")[2].replace("return", "")


@pytest.mark.plain  # debug mode keeps results, to look at them again
def test_large_results_stay_as_they_were_while_anybody_knows_of_them():
    x = tf.placeholder(tf.float32, [None, 1000])
    y = tf.tanh(x) * 2.0
    first, second = numbers(600, 1000), numbers(600, 1000, seed=1)
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as sess:
        kept = [sess.run(y, {x: first}), sess.run(y, {x: first})[5:], sess.run(y, {x: second})]
        sess.run(y, {x: numbers(600, 1000, seed=2)})
        made = sess.run(y, {x: second}).ctypes.data  # which nobody keeps
        again = sess.run(y, {x: second})
    for got, want in zip(kept, [first, first[5:], second], strict=True):
        np.testing.assert_allclose(got, np.tanh(want) * 2, 1e-5)
    np.testing.assert_allclose(again, np.tanh(second) * 2, 1e-5)
    assert again.ctypes.data == made or sys.implementation.name != "cpython"
