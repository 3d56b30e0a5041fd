"""Reductions over axes in the middle: random programs against the reference, and networks against NumPy's kernels."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock_llvm.peeling import inner, outer_axes, print_peeled
from graphdock_llvm.primitives import what_forbids
from graphdock_llvm.target import converts_halves
from graphdock_testing import random_regions
from graphdock_testing.random_regions import random_region
from graphdock_testing.region_reference import evaluate

#: Halves that the CPU converts.
HALVES = ("bfloat16", "float16") if converts_halves() else ("bfloat16",)

SPACES = [
    ((3, 5, 70), (1,)),
    ((2, 3, 4, 33), (1, 2)),
    ((2, 3, 4, 33), (2,)),
    ((4, 6, 16), (1, 2)),
    ((2, 5, 7, 9), (1, 2, 3)),
    ((3, 2, 5, 8), (2, 3)),
    ((2, 2, 3, 4, 17), (2, 3)),
    ((5, 3, 4, 9), (0, 2, 3)),
    ((5, 3, 33), (0,)),
    ((3, 4, 2, 3, 17), (0, 2)),
    ((3, 4, 2, 5, 17), (1, 3, 4)),
]
DTYPES = [("float32",), ("float64", "int32", "bool"), ("float32", *HALVES, "uint8")]


@pytest.mark.parametrize("lanes", [4, 16])
def test_random_programs_agree_with_the_reference(call, lanes, monkeypatch):
    monkeypatch.setattr(random_regions, "_UNARY", ("abs", "neg", "sigmoid", "tanh"))
    monkeypatch.setattr(random_regions, "_INTEGERS", ("add", "maximum", "minimum", "mul", "sub"))
    compiled = 0
    for seed in range(132):
        rng = np.random.default_rng(seed)
        extents, reduced = SPACES[seed % len(SPACES)]
        program, arrays = random_region(rng, extents, reduced, DTYPES[seed % len(DTYPES)])
        outer = outer_axes(program)
        if not outer or what_forbids(inner(program, outer), lanes) is not None:
            continue
        compiled += 1
        text = print_peeled(program, outer, len(arrays), lanes).text()
        for out, a, b in zip(program.outputs, call(program, arrays, text=text), evaluate(program, arrays), strict=True):
            near = {"float16": 2e-3, "bfloat16": 2e-2}.get(out.dtype.name, 1e-4)
            np.testing.assert_allclose(a.astype(float), b.astype(float), near, near, err_msg=str(program))
    assert compiled > 12


BUILDS = {
    "global pool": (lambda x: tf.reduce_mean(tf.nn.relu(x), [1, 2]), (4, 7, 7, 40)),
    "pool with channels first": (lambda x: tf.reduce_mean(x, [2, 3]), (4, 40, 8, 9)),
    "maximum over time": (lambda x: tf.reduce_max(x * 2.0, 1), (6, 50, 30)),
    "over all of an example": (lambda x: tf.reduce_sum(x * x, [1, 2, 3]), (5, 6, 7, 8)),
    "instance norm": (
        lambda x: (
            (x - tf.reduce_mean(x, [1, 2], keep_dims=True)) * tf.rsqrt(tf.reduce_mean(x * x, [1, 2], keep_dims=True))
        ),
        (3, 10, 10, 20),
    ),
    "one place before": (lambda x: tf.reduce_sum(x + 1.0, 1), (1, 9, 33)),
    "over the first of three": (lambda x: tf.reduce_max(x * 3.0, 0), (9, 4, 33)),
    "over every other": (lambda x: tf.reduce_sum(tf.tanh(x), [0, 2]) * 2.0, (6, 5, 7, 16)),
    "a part": (lambda x: tf.reduce_sum(x[:, 1:, :20] * 3.0, 1), (5, 9, 33)),
}


@pytest.mark.parametrize("name", BUILDS)
def test_networks_compute_what_the_cpu_does(name):
    build, shape = BUILDS[name]
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float64, shape)
        y = build(x)
        fetches, feed = [y, *tf.gradients(y, x)], {x: np.random.default_rng(0).normal(size=shape)}
        with tf.Session(graph=graph, config=tf.SessionConfig(backends=("llvm", "cpu"))) as ours:
            assert not {"cpu.sum", "cpu.mean", "cpu.max"} & ours.explain(y, feed).kernels().keys()
            got = ours.run(fetches, feed)
        with tf.Session(graph=graph) as theirs:
            for a, b in zip(got, theirs.run(fetches, feed), strict=True):
                np.testing.assert_allclose(a, b, 1e-12, 1e-12)


def test_threads_give_the_same_bits():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [31, 40, 50, 30])
        y = tf.reduce_sum(tf.tanh(x), [1, 2])
        feed = {x: np.random.default_rng(0).normal(size=x.shape.as_list())}
        found = []
        for threads in (1, 2, 3):
            config = tf.SessionConfig(backends=("llvm", "cpu"), intra_op_threads=threads)
            with tf.Session(graph=graph, config=config) as sess:
                found.append(sess.run(y, feed))
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])
        np.testing.assert_allclose(found[0], np.tanh(feed[x]).sum((1, 2)), 1e-4, 1e-4)


def test_what_counts_along_the_axes_before_is_not_taken():
    """The numbers of a dropout are those of all places."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4, 9, 33])
        y = tf.reduce_sum(tf.nn.dropout(x, 0.5, seed=1), 1)
        feed = {x: np.ones((4, 9, 33))}
        results = []
        for backends in (("llvm", "cpu"), ("cpu",)):
            with tf.Session(graph=graph, config=tf.SessionConfig(backends=backends)) as sess:
                results.append(sess.run(y, feed))
        np.testing.assert_allclose(*results, 1e-6)
