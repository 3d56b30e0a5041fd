"""Reductions over the last axis and others apart from it: random programs against the reference, networks against NumPy."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Axis, RegionInput, RegionOutput, RegionProgram, Term, dtypes
from graphdock_llvm.pool import pool_address
from graphdock_llvm.primitives import nest_of, what_forbids
from graphdock_llvm.printer import shares
from graphdock_llvm.target import converts_halves, width
from graphdock_testing import random_regions
from graphdock_testing.random_regions import random_region
from graphdock_testing.region_reference import evaluate

#: Halves that the CPU converts.
HALVES = ("bfloat16", "float16") if converts_halves() else ("bfloat16",)
DTYPES = [("float32",), ("float64", "int32", "bool"), ("float32", *HALVES, "uint8", "int64")]
SPACES = [
    ((3, 5, 70), (0, 2)),
    ((4, 3, 5, 7), (0, 2, 3)),
    ((2, 3, 4, 33), (0, 3)),
    ((130, 2, 3), (0, 2)),
    ((2, 3, 4, 5), (1, 3)),
    ((3, 2, 5, 16), (0, 1, 3)),
    ((2, 2, 3, 2, 17), (0, 2, 4)),
    ((3, 4, 5), (1, 2)),
    ((7, 19), (0, 1)),
    ((70, 2, 2, 3, 65), (0, 2, 3, 4)),
]
SETS = [
    ((5, 7, 11), (0, 2)),
    ((1, 7, 11), (0, 2)),
    ((5, 1, 11), (0, 2)),
    ((5, 7, 1), (0, 2)),
    ((0, 7, 11), (0, 2)),
    ((5, 7, 0), (0, 2)),
    ((5, 0, 7), (0, 2)),
    ((3, 4, 5, 6), (0, 3)),
    ((3, 4, 5, 6), (1, 3)),
    ((3, 4, 5, 6), (0, 1, 3)),
    ((3, 13, 5, 6), (0, 2, 3)),
    ((67, 3, 1, 2), (0, 2, 3)),
    ((2, 3, 2, 3, 19), (0, 2, 4)),
    ((6, 31, 1009), (0, 2)),
]
BACKENDS = ("llvm", "cpu")


def ours(**more):
    return tf.Session(config=tf.SessionConfig(backends=BACKENDS, **more))


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_random_programs_agree_with_the_reference(call, lanes, monkeypatch):
    monkeypatch.setattr(random_regions, "_UNARY", ("abs", "neg", "sigmoid", "tanh"))
    monkeypatch.setattr(random_regions, "_INTEGERS", ("add", "maximum", "minimum", "mul", "sub"))
    compiled = 0
    for seed in range(lanes, lanes + 80):
        rng = np.random.default_rng(seed)
        extents, reduced = SPACES[seed % len(SPACES)]
        program, arrays = random_region(rng, extents, reduced, DTYPES[seed % len(DTYPES)])
        if not nest_of(program) or what_forbids(program, lanes) is not None:
            continue
        compiled += 1
        for out, a, b in zip(program.outputs, call(program, arrays, lanes), evaluate(program, arrays), strict=True):
            near = {"float16": 2e-3, "bfloat16": 2e-2}.get(out.dtype.name, 1e-4)
            np.testing.assert_allclose(a.astype(float), b.astype(float), near, near, err_msg=str(program))
    assert compiled > 25


REDUCE = {
    "sum": (tf.reduce_sum, np.sum),
    "mean": (tf.reduce_mean, np.mean),
    "max": (tf.reduce_max, lambda x, **k: np.max(x, initial=-np.inf, **k)),
    "min": (tf.reduce_min, lambda x, **k: np.min(x, initial=np.inf, **k)),
    "prod": (tf.reduce_prod, np.prod),
}


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("shape", "axes"), SETS)
def test_reductions_are_numpys(shape, axes, keep):
    a = np.random.default_rng(0).uniform(0.9, 1.1, shape)
    x = tf.placeholder(tf.float64, shape)
    made = {name: ours_(x * x, list(axes), keep_dims=keep) for name, (ours_, _) in REDUCE.items()}
    with ours() as sess, np.errstate(all="ignore"):
        got = sess.run(made, {x: a})
        if 0 not in shape and sum(n > 1 for n in shape) > 2:
            assert sess.explain(made, {x: a}).kernels() == {"llvm.region": 1}
        for name, (_, theirs) in REDUCE.items():
            if 0 not in shape or name in ("sum", "prod"):
                np.testing.assert_allclose(got[name], theirs(a * a, axis=axes, keepdims=keep), 1e-11)


@pytest.mark.parametrize("dtype", ["float32", *HALVES, "int8", "int32", "int64", "uint8"])
def test_reductions_of_other_dtypes_are_the_cpus(dtype):
    a = np.random.default_rng(0).integers(0, 9, (9, 5, 3, 21))
    x = tf.cast(tf.placeholder(tf.int64, a.shape, "a"), dtype)
    fetches = [f(x, [0, 2, 3]) for f in (tf.reduce_sum, tf.reduce_max, tf.reduce_min)]
    results = []
    for backends in (BACKENDS, ("cpu",)):
        with tf.Session(config=tf.SessionConfig(backends=backends)) as sess:
            results.append(sess.run(fetches, {"a:0": a}))
    for got, want in zip(*results, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got.astype(float), want.astype(float), 1e-2 if dtype in HALVES else 0)


def test_any_and_all_are_numpys():
    a = np.random.default_rng(0).random((4, 30, 3, 5)) < 0.02
    x = tf.placeholder(tf.bool, a.shape)
    with ours() as sess:
        fetches = [tf.reduce_any(x, [0, 2, 3]), tf.reduce_all(tf.logical_not(x), [0, 2, 3])]
        got = sess.run(fetches, {x: a})
        assert sess.explain(fetches, {x: a}).kernels() == {"llvm.region": 2}
    np.testing.assert_array_equal(got[0], a.any((0, 2, 3)))
    np.testing.assert_array_equal(got[1], (~a).all((0, 2, 3)))


def norm(x, axes, dtype=tf.float64):
    """Batch norm by hand, with a scale and an offset for each channel (axis 1)."""
    kept = [1 if a in axes else n for a, n in enumerate(x.shape.as_list())]
    scale = tf.constant(np.linspace(0.5, 1.5, np.prod(kept)).reshape(kept), dtype)
    mean, variance = tf.nn.moments(x, axes, keep_dims=True)
    return (x - mean) * tf.rsqrt(variance + 1e-3) * scale + scale * 0.1


@pytest.mark.parametrize("shape", [(4, 3, 5, 7), (2, 5, 33), (70, 3, 2, 40), (3, 4, 2, 3, 5)])
def test_batch_norm_with_channels_first_is_one_region_with_its_gradient(shape):
    axes = [a for a in range(len(shape)) if a != 1]
    a, g = np.random.default_rng(0).normal(2, 3, (2, *shape))
    x = tf.placeholder(tf.float64, shape)
    y = norm(x, axes)
    fetches, results = [y, *tf.gradients(y, x, grad_ys=tf.constant(g))], []
    for backends in (BACKENDS, ("cpu",)):
        with tf.Session(config=tf.SessionConfig(backends=backends)) as sess:
            results.append(sess.run(fetches, {x: a}))
            if backends is BACKENDS:
                assert sess.explain(fetches, {x: a}).kernels() == {"llvm.region": 1}
    mean, deviation = a.mean(tuple(axes), keepdims=True), np.sqrt(a.var(tuple(axes), keepdims=True) + 1e-3)
    scale = np.linspace(0.5, 1.5, shape[1]).reshape(mean.shape)
    np.testing.assert_allclose(results[0][0], (a - mean) / deviation * scale + scale * 0.1, 1e-9, 1e-9)
    np.testing.assert_allclose(results[0][1], results[1][1], 1e-9, 1e-9)


@pytest.mark.parametrize(
    ("shape", "fed"),
    [
        ((None, 3, 5, 7), [(4, 3, 5, 7), (0, 3, 5, 7), (100, 3, 5, 7), (1, 3, 5, 7)]),
        ((8, None, 40), [(8, 5, 40), (8, 0, 40), (8, 100, 40)]),
        ((8, 5, None), [(8, 5, 40), (8, 5, 0), (8, 5, 1), (8, 5, 1000)]),
        ((None, None, None), [(4, 5, 6), (0, 2, 3), (3, 2, 0), (130, 3, 90)]),
    ],
)
def test_one_function_reduces_what_has_any_shape(shape, fed, compiles):
    x = tf.placeholder(tf.float64, shape)
    axes = [a for a in range(len(shape)) if a != 1]
    sum_, most = tf.reduce_sum(x * x, axes), tf.reduce_max(tf.tanh(x), axes, keep_dims=True)
    with ours(shape_policy="generic") as sess:
        assert not {"cpu.sum", "cpu.max"} & sess.explain([sum_, most]).kernels().keys()
        texts = 0
        for size in fed:
            a = np.random.default_rng(0).normal(size=size)
            got = sess.run([sum_, most], {x: a})
            np.testing.assert_allclose(got[0], (a * a).sum(tuple(axes)), 1e-11)
            np.testing.assert_allclose(got[1], np.tanh(a).max(tuple(axes), keepdims=True, initial=-np.inf), 1e-11)
            assert len(compiles) == (texts or len(compiles))
            texts = len(compiles)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((5000, 3, 17), (0, 2)), ((40_000, 2, 2), (0, 2)), ((3, 2, 700_001), (0, 2)), ((60, 3, 40, 300), (0, 2, 3))],
)
@pytest.mark.parametrize("policy", ["exact", "generic"])
def test_large_sums_keep_their_digits(shape, axes, policy):
    a = np.random.default_rng(3).uniform(999, 1001, shape).astype(np.float32)
    x = tf.placeholder(tf.float32, shape if policy == "exact" else [None, *shape[1:]])
    y = tf.reduce_sum(x * 1.0, axes)
    with ours(shape_policy=policy) as sess:
        np.testing.assert_allclose(sess.run(y, {x: a}), a.sum(axes, dtype=float), 2e-6)


@pytest.mark.parametrize(("shape", "reduced"), [((40, 6, 5000), (0, 2)), ((9, 4, 40, 1000), (0, 3))])
def test_threads_share_what_is_kept_and_give_the_same_bits(call, shape, reduced, monkeypatch):
    monkeypatch.setattr(random_regions, "_UNARY", ("tanh",))
    shared = 0
    for seed in range(12):
        program, arrays = random_region(np.random.default_rng(seed), shape, reduced, ("float32",), size=8)
        if not nest_of(program) or what_forbids(program, width()) or not shares(program, len(arrays), width()):
            continue
        shared += 1
        alone = call(program, arrays)
        for threads in (2, 3):
            for got, want in zip(call(program, arrays, 0, (threads, pool_address())), alone, strict=True):
                np.testing.assert_array_equal(got, want)
    assert shared > 2


@pytest.mark.parametrize("threads", [1, 2])
def test_sessions_on_several_threads_train_alike(threads):
    a, g = np.random.default_rng(0).normal(2, 3, (2, 40, 6, 70, 71)).astype("f")
    x = tf.placeholder(tf.float32, a.shape)
    y = norm(x, [0, 2, 3], tf.float32)
    fetches, found = [y, *tf.gradients(y, x, grad_ys=tf.constant(g))], []
    for number in (1, threads):
        with ours(intra_op_threads=number) as sess:
            found.append(sess.run(fetches, {x: a}))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_region_has_one_set_of_several_axes_and_leaves_the_others():
    """The sum of all stands in the space of the others, and goes another way."""
    a = np.random.default_rng(0).normal(size=(9, 5, 30))
    x = tf.placeholder(tf.float64, a.shape)
    y = tf.nn.relu(x - tf.reduce_mean(x, [0, 2], keep_dims=True))
    fetches = [y, tf.reduce_sum(y * 3.0), tf.reduce_max(y, 2)]
    with ours() as sess:
        got = sess.run(fetches, {x: a})
        assert not {"cpu.mean", "cpu.relu"} & sess.explain(fetches, {x: a}).kernels().keys()
    want = np.maximum(a - a.mean((0, 2), keepdims=True), 0)
    for one, other in zip(got, [want, want.sum() * 3, want.max(2)], strict=True):
        np.testing.assert_allclose(one, other, 1e-11)


def chain(shape, axes, count):
    """Norms of hyperbolic tangents, each of the one before, and NumPy's."""
    a = np.random.default_rng(0).normal(size=shape)
    x = tf.placeholder(tf.float64, shape)
    y, want = x, a
    for _ in range(count):
        mean, variance = tf.nn.moments(tf.tanh(y), axes, keep_dims=True)
        y = (tf.tanh(y) - mean) * tf.rsqrt(variance + 1e-3)
        want = np.tanh(want)
        want = (want - want.mean(tuple(axes), keepdims=True)) / np.sqrt(want.var(tuple(axes), keepdims=True) + 1e-3)
    return x, a, y, want


@pytest.mark.parametrize(
    ("shape", "axes", "count", "regions"),
    [
        ((4, 5, 33), [0, 2], 4, 1),  # all is kept
        ((20, 5, 600), [0, 2], 3, 1),  # two of three
        ((60, 5, 600), [0, 2], 1, 1),  # nothing, and computed three times
        ((60, 5, 600), [0, 2], 4, 3),
        ((9, 40), [1], 4, 1),
        ((9, 40), [1], 12, 5),
    ],
)
def test_dear_terms_are_kept_or_a_region_ends(shape, axes, count, regions):
    x, a, y, want = chain(shape, axes, count)
    with ours() as sess:
        np.testing.assert_allclose(sess.run(y, {x: a}), want, 1e-8, 1e-8)
        assert sess.explain(y, {x: a}).kernels() == {"llvm.region": regions}


def test_moving_averages_are_written_where_they_are_computed():
    a = np.random.default_rng(0).normal(size=(9, 5, 6, 7))
    x = tf.placeholder(tf.float64, a.shape)
    average = tf.Variable(np.ones(5))
    update = tf.assign_sub(average, 0.25 * (average - tf.reduce_mean(x, [0, 2, 3])))
    with ours() as sess:
        sess.run(average.initializer)
        sess.run(update.op, {x: a})
        np.testing.assert_allclose(sess.run(average), 0.75 + 0.25 * a.mean((0, 2, 3)), 1e-12)
        sess.run(update.op, {x: a})
        assert sess.explain(update.op, {x: a}).kernels() == {"llvm.region": 1}
        np.testing.assert_allclose(sess.run(average), 0.5625 + 0.4375 * a.mean((0, 2, 3)), 1e-12)


@pytest.mark.parametrize("unknown", [False, True])
def test_what_lies_along_some_axes_of_a_row_is_written_once(unknown):
    """Its elements are visited again for each place along the others, of which there may be none where that is unknown."""
    f32, sizes = dtypes.float32, (None if unknown else 4, 5, 6)
    terms = (
        Term("input", f32, (), (0, 1, 2), 0),
        Term("input", f32, (), (2,), 1),
        Term("mul", f32, (0, 1), (0, 1, 2)),
        Term("sum", f32, (2,), (1,), (0, 2)),
        Term("add", f32, (1, 1), (2,)),
    )
    inputs = RegionInput("x", 0, f32, sizes, (0, 1, 2)), RegionInput("v", 1, f32, (6,), (2,))
    outputs = RegionOutput("y", 3, f32, (5,), (1,)), RegionOutput("v", 4, f32, (6,), (2,), into=None if unknown else 1)
    axes = tuple([Axis(name, n) for name, n in zip("ijk", sizes, strict=True)])
    reason = what_forbids(RegionProgram("p", axes, inputs, terms, outputs), width())
    assert reason == "v is written once, along a row of several axes of which it lacks some"
    assert what_forbids(RegionProgram("p", axes, inputs, terms, outputs[:1]), width()) is None
