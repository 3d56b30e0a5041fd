"""Random numbers in regions: the same bits as the stream has, whatever the vector, the row, the threads and the step."""

from __future__ import annotations

import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import WORDS, Axis, RegionProgram, Term, dtypes
from graphdock_llvm.primitives import what_forbids
from graphdock_llvm.target import converts_halves
from graphdock_testing import random_regions
from graphdock_testing.random_regions import random_region, random_streams
from graphdock_testing.region_reference import evaluate

#: Halves that the CPU converts.
HALVES = ("bfloat16", "float16") if converts_halves() else ("bfloat16",)

EXTENTS = [(5,), (3, 37), (4, 16), (2, 3, 70), (1000,), (7, 9), (2, 2, 2, 5)]


@pytest.fixture
def of_what_is_compiled(monkeypatch):
    """Draw of the primitives that are compiled, so that few programs are refused."""
    monkeypatch.setattr(random_regions, "_UNARY", ("abs", "neg", "sigmoid", "tanh"))
    monkeypatch.setattr(random_regions, "_INTEGERS", ("add", "maximum", "minimum", "mul", "sub"))


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_random_programs_agree_with_the_reference(call, lanes, of_what_is_compiled):
    drawn = 0
    for seed in range(36):
        rng = np.random.default_rng(seed)
        extents = EXTENTS[seed % len(EXTENTS)]
        whole = tuple(range(len(extents)))
        kinds = [("float32", *HALVES[1:]), ("float64",), ("float32", "bfloat16", "bool")][seed % 3]
        program, arrays = random_region(rng, extents, [(), whole[-1:], whole][seed % 3], kinds, draws=1 + seed % 2)
        if what_forbids(program, lanes) is None:
            streams = random_streams(rng, program)
            drawn += program.draws
            got = call(program, arrays, lanes, streams=streams)
            for out, a, b in zip(program.outputs, got, evaluate(program, arrays, streams), strict=True):
                near = {"float16": 2e-3, "bfloat16": 2e-2}.get(out.dtype.name, 1e-4)
                np.testing.assert_allclose(a.astype(float), b.astype(float), near, near, err_msg=str(program))
    assert drawn > 6


def both(build, steps=3, **fields):
    """Values of some steps with llvm, which must be the cpu's to the last bit."""
    with tf.Graph().as_default() as graph:
        fetches, feed = build()
        configs = [tf.SessionConfig(backends=b, **fields) for b in (("llvm", "cpu"), ("cpu",))]
        with tf.Session(graph=graph, config=configs[0]) as ours, tf.Session(graph=graph, config=configs[1]) as theirs:
            rows = ours.explain(fetches, feed).rows
            assert any(row.kernel == "llvm.region" for row in rows)
            assert not any(row.op == "RandomUniform" for row in rows)
            found = []
            for _ in range(steps):
                got, want = ours.run(fetches, feed), theirs.run(fetches, feed)
                for a, b in zip(got, want, strict=True):
                    np.testing.assert_array_equal(a, b)
                found.append(got)
            assert not np.array_equal(found[0][0], found[1][0])
            return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [*HALVES, "float32", "float64"])
@pytest.mark.parametrize("shape", [(7,), (33,), (3, 5), (2, 8), (4, 1, 9), (2, 3, 4, 5), (1000,), (31, 67)])
def test_numbers_are_those_of_the_stream(shape, dtype):
    both(lambda: ([tf.random_uniform(shape, -1.0, 3.0, dtype, seed=7) * tf.constant(2.0, dtype)], {}))


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_share_what_is_drawn(threads):
    def build():
        x = tf.placeholder(tf.float32, [700, 999])
        return [tf.nn.dropout(x, 0.6, seed=1), tf.random_uniform([700, 999], seed=2) + x], {x: np.ones((700, 999))}

    both(build, 2, intra_op_threads=threads)


def test_dropout_and_its_gradient_draw_the_same_mask_and_keep_none():
    def build():
        x = tf.placeholder(tf.float32, [50, 70])
        y = tf.nn.dropout(x * 2.0, 0.5, seed=3)
        return [y, tf.gradients(tf.reduce_sum(y), x)[0]], {x: np.ones((50, 70))}

    for y, slope in both(build):
        np.testing.assert_array_equal(y, slope)


def test_loops_draw_other_numbers_in_each_iteration():
    def build():
        x = tf.placeholder(tf.float32, [3, 21])

        def row(i, total):
            inner = tf.while_loop(
                lambda j, _: j < 2, lambda j, t: (j + 1, t + tf.random_uniform([3, 21], seed=1)), [0, x]
            )
            return i + 1, total * 0.5 + inner[1] + tf.random_uniform([3, 21], seed=2)

        return [tf.while_loop(lambda i, _: i < 3, row, [0, x])[1]], {x: np.zeros((3, 21))}

    both(build)


def test_masks_that_are_repeated_along_rows_are_drawn_apart():
    def build():
        x = tf.placeholder(tf.float32, [6, 10])
        return [tf.nn.dropout(x * 3.0, 0.5, noise_shape=[6, 1], seed=1)], {x: np.ones((6, 10))}

    both(build)


def test_plans_for_any_shape_draw_by_the_cpu():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 10])
        y = tf.nn.dropout(x * 3.0 + 1.0, 0.5, seed=1)
        config = tf.SessionConfig(backends=("llvm", "cpu"), shape_policy="generic")
        with tf.Session(graph=graph, config=config) as sess, tf.Session(graph=graph) as theirs:
            assert sess.explain(y).kernels()["cpu.random_uniform"] == 1
            for rows in (6, 1, 0):
                feed = {x: np.ones((rows, 10))}
                np.testing.assert_array_equal(sess.run(y, feed), theirs.run(y, feed))


def test_what_is_not_drawn_says_why():
    words = [Term("stream", dtypes.uint64, value=(0, word)) for word in WORDS]

    def reason(place, extent=4):
        draw = Term("draw", dtypes.float32, (0, 1, 2, 3, 4, 5), place.axes)
        axes = (Axis("i", 3), Axis("j", extent))
        return what_forbids(RegionProgram("p", axes, (), (*words, place, draw), (), ("r",)), 16)

    assert reason(Term("place", dtypes.int64, (), (0, 1))) is None
    assert reason(Term("place", dtypes.int64, (), (0,))) == "it draws numbers that are not side by side"
    assert reason(Term("index", dtypes.int64, (), (1,), 1)) == "it draws numbers that are not side by side"
    assert reason(Term("place", dtypes.int64, (), (0, 1)), None) == "it draws numbers along axes of unknown extent"


def test_two_sessions_draw_at_once():
    """Words of a stream are those of the step that runs."""
    with tf.Graph().as_default() as graph:
        y = tf.random_uniform([64, 64], seed=5) * 2.0 + 1.0
        want = []
        with tf.Session(graph=graph) as sess:
            want = [sess.run(y) for _ in range(40)]
        with tf.Session(graph=graph, config=tf.SessionConfig(backends=("llvm", "cpu"))) as sess:
            found: list[np.ndarray] = []

            def run():
                for _ in range(10):
                    found.append(sess.run(y))

            threads = [threading.Thread(target=run) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert sorted(a.tobytes() for a in found) == sorted(a.tobytes() for a in want)
