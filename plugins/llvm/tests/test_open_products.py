"""Products whose inner extent, columns, or all three only a step knows: one function for all of them, with what follows."""

from __future__ import annotations

import itertools
from dataclasses import replace

import cffi
import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import errors
from graphdock.testing.region_reference import evaluate
from graphdock_llvm.extents import Extents
from graphdock_llvm.pool import pool_address
from graphdock_llvm.printer import ALONE
from graphdock_llvm.target import compiled
from graphdock_llvm.tiles import parts_of, print_tiles, tiles_of

from .test_tiles import arrays_of, program_of
from .test_tiles import call as call_known
from .test_unknown_products import numbers

FFI = cffi.FFI()
GENERIC = {"backends": ("llvm", "cpu"), "shape_policy": "generic", "intra_op_threads": 2}
#: Rows, places and columns around registers, blocks, panels and passes; none, one, and primes.
EXTENTS = (
    (1, 1, 1),
    (2, 3, 1),
    (4, 5, 513),
    (1, 37, 100),
    (3, 40, 77),
    (5, 0, 7),
    (0, 3, 4),
    (3, 4, 0),
    (13, 29, 45),
    (12, 400, 33),
    (29, 17, 16),
    (100, 257, 70),
    (31, 770, 5),
    (785, 263, 35),
)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def opened(program, axes):
    """The program, of which only a call knows the extents of some axes."""

    def shape(part):
        sizes = [None if d in axes else n for n, d in zip(part.shape, part.dims, strict=True)]
        return replace(part, shape=tuple(sizes))

    found = tuple(replace(axis, extent=None) if i in axes else axis for i, axis in enumerate(program.axes))
    inputs, outputs = (tuple(map(shape, parts)) for parts in (program.inputs, program.outputs))
    return replace(program, axes=found, inputs=inputs, outputs=outputs)


def call(program, known, arrays, lanes, parts=1):
    """The outputs of a program for arrays of known extents; what stands behind them must stay as it was."""
    tiles = tiles_of(program, lanes)
    text = print_tiles(program, tiles, len(arrays), lanes).text()
    function = FFI.cast("void (*)(void **, int64_t *)", compiled(text))

    def shared(extents):
        rows, columns = extents[0], extents[2]
        most = max(-(-rows // 12), -(-columns // (2 * lanes)), 1)
        # as much room as the widest vectors would take
        return min(parts, most), max(parts_of(tiles, extents)[1], tiles.matrices.room(lanes, rows, extents[1], columns))

    told = Extents(program, (2, pool_address()) if parts > 1 else ALONE, parts=shared)
    assert list(told.read([a.shape for a in arrays])) == [o.shape for o in known.outputs]
    rooms = [np.full(int(np.prod(o.shape)) * o.dtype.size + 64, 0xA5, np.uint8) for o in known.outputs]
    table = FFI.new("void *[]", [FFI.from_buffer(b) for b in (*arrays, *rooms)])
    function(table, FFI.new("int64_t[]", told.numbers.tolist()))
    assert all((room[-64:] == 0xA5).all() for room in rooms), "it wrote behind an output"
    return [room[:-64].view(o.dtype.np).reshape(o.shape) for room, o in zip(rooms, known.outputs, strict=True)]


@pytest.mark.parametrize(("lanes", "dtype"), [(4, "float32"), (8, "float64"), (8, "float32"), (16, "float32")])
@pytest.mark.parametrize("turned", ["", "a", "b", "ab"])
def test_any_extents_agree_with_the_reference_on_any_number_of_threads(turned, lanes, dtype):
    program = opened(program_of((5, 6, 7), turned, dtype), (0, 1, 2))
    for extents in EXTENTS:
        known = program_of(extents, turned, dtype)
        arrays = arrays_of(known)
        if min(extents) > 2:
            arrays[0][2, 1], arrays[1][1, 2] = np.nan, np.inf
        made = call(program, known, arrays, lanes)
        for got, want in zip(made, evaluate(known, arrays), strict=True):
            np.testing.assert_allclose(got, want, 1e-4, 1e-4, err_msg=f"{extents} {lanes}")
        for parts in (2, 3):
            for got, other in zip(made, call(program, known, arrays, lanes, parts), strict=True):
                np.testing.assert_array_equal(got, other, err_msg=f"{extents} {lanes} in {parts} parts")


@pytest.mark.parametrize("axes", [(1,), (2,), (0, 1), (0, 2), (1, 2)])
@pytest.mark.parametrize("turned", ["", "a", "b", "ab"])
def test_some_extents_may_be_known(axes, turned):
    for extents, lanes in itertools.product(((13, 29, 45), (33, 300, 9), (3, 40, 77), (40, 2, 13)), (4, 16)):
        known = program_of(extents, turned, "float64" if lanes == 4 else "float32")
        program, arrays = opened(known, axes), arrays_of(known)
        for got, want in zip(call(program, known, arrays, lanes), evaluate(known, arrays), strict=True):
            np.testing.assert_allclose(got, want, 1e-4, 1e-4, err_msg=f"{extents} {lanes}")


def test_sums_have_the_bits_of_a_plan_for_one_shape():
    known = program_of((67, 261, 95), "a")
    arrays = arrays_of(known)
    for whole, cut in zip(
        call_known(known, arrays, 16), call(opened(known, (0, 1, 2)), known, arrays, 16), strict=True
    ):
        np.testing.assert_array_equal(whole, cut)


@pytest.mark.parametrize("extents", [(1200, 300, 64), (64, 3000, 700), (3, 2000, 900), (700, 40, 260)])
def test_as_many_parts_as_it_chooses_have_the_same_bits(extents):
    known = program_of(extents, "a")
    program, arrays = opened(known, (0, 1, 2)), arrays_of(known)
    tiles = tiles_of(program, 16)
    parts = tiles.matrices.parts(16, *extents)
    assert 1 < parts <= 16
    for got, one in zip(call(program, known, arrays, 16, parts), call(program, known, arrays, 16), strict=True):
        np.testing.assert_array_equal(got, one)


def test_the_gradient_by_a_weight_is_one_function_for_every_batch(compiles):
    w, c = tf.placeholder(tf.float32, [60, 100]), numbers(100)
    x = tf.placeholder(tf.float32, [None, 60])
    h = tf.nn.relu(tf.matmul(x, w) + c)
    by_weight = tf.gradients(tf.reduce_sum(tf.square(h)), w)[0]
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        assert "cpu.mat_mul" not in session.explain(by_weight).kernels()
        weights = numbers(60, 100, seed=1)
        session.run(by_weight, {x: numbers(3, 60), w: weights})
        known = len(compiles)
        for rows in (0, 1, 2, 5, 16, 67, 256, 257, 1000, 2000):
            fed = numbers(rows, 60, seed=rows)
            made = np.maximum(fed @ weights + c, 0)
            found = session.run(by_weight, {x: fed, w: weights})
            np.testing.assert_allclose(found, fed.T @ (2 * made), 1e-3, 1e-2)
        assert len(compiles) == known


def test_attention_of_unknown_lengths_is_native():
    q, k, v = (tf.placeholder(tf.float32, [None, 24], name=name) for name in "qkv")
    scores = tf.nn.relu(tf.matmul(q, k, transpose_b=True) * 0.2)
    made = tf.matmul(tf.nn.softmax(scores), v)
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        assert set(session.explain(made).kernels()) == {"llvm.region"}
        for m, n in ((3, 7), (1, 40), (0, 5), (130, 1), (65, 300)):
            a, b, c = numbers(m, 24), numbers(n, 24, seed=1), numbers(n, 24, seed=2)
            weights = np.exp(np.maximum(a @ b.T * 0.2, 0))
            want = weights / weights.sum(1, keepdims=True) @ c
            np.testing.assert_allclose(session.run(made, {q: a, k: b, v: c}), want, 1e-3, 1e-4)
        with pytest.raises(errors.ShapeError, match="v") as refused:
            session.run(made, {q: numbers(3, 24), k: numbers(7, 24), v: numbers(6, 24)})
        assert refused.value.op is made.op
        # without keys there are no numbers to weigh: a sum of none is 0
        nothing = session.run(made, {q: numbers(3, 24), k: numbers(0, 24), v: numbers(0, 24)})
        np.testing.assert_array_equal(nothing, np.zeros((3, 24), np.float32))


def test_nothing_is_known_of_two_matrices_but_that_they_fit():
    a, b = (tf.placeholder(tf.float64, [None, None], name=name) for name in "ab")
    made = tf.nn.relu(tf.matmul(a, b) + 1.0)
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        assert session.explain(made).kernels() == {"llvm.region": 1}
        for m, k, n in EXTENTS:
            x, y = numbers(m, k, dtype=np.float64), numbers(k, n, seed=1, dtype=np.float64)
            np.testing.assert_allclose(session.run(made, {a: x, b: y}), np.maximum(x @ y + 1, 0), 1e-9, 1e-9)
        for x, y in ((numbers(3, 4), numbers(5, 6)), (numbers(1, 1), numbers(4, 1))):
            with pytest.raises(errors.ShapeError, match=r"inner sizes differ.*a.*b"):
                session.run(made, {a: x, b: y})


def test_one_matrix_may_stand_on_both_sides():
    x = tf.placeholder(tf.float32, [None, 30])
    gram, turned = tf.tanh(tf.matmul(x, x, transpose_b=True) * 0.1), tf.tanh(tf.matmul(x, x, transpose_a=True) * 0.1)
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        assert session.explain([gram, turned]).kernels() == {"llvm.region": 2}
        for rows in (1, 0, 17, 50):
            fed = numbers(rows, 30)
            one, other = session.run([gram, turned], {x: fed})
            np.testing.assert_allclose(one, np.tanh(fed @ fed.T * 0.1), 1e-4, 1e-5)
            np.testing.assert_allclose(other, np.tanh(fed.T @ fed * 0.1), 1e-4, 1e-5)


def test_a_product_of_few_columns_by_places_that_only_a_step_counts_is_left_to_the_library():
    x, y = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.float32, [None, 3])
    made = tf.matmul(x, tf.tanh(y) * 2.0, transpose_a=True)
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        assert session.explain(made).kernels()["cpu.mat_mul"] == 1
        a, b = numbers(20, 64), numbers(20, 3, seed=1)
        np.testing.assert_allclose(session.run(made, {x: a, y: b}), a.T @ (np.tanh(b) * 2), 1e-3, 1e-4)


def test_rows_that_only_a_step_counts_meet_matrices_of_any_size():
    """A right matrix of more than 2^20 elements, sums of more than 3,000 products, and a left one that lies transposed."""
    for k, n, turned in ((1100, 1000, False), (3500, 40, False), (70, 90, True)):
        x, w = tf.placeholder(tf.float32, [k, None] if turned else [None, k]), numbers(k, n, seed=1)
        made = tf.nn.relu(tf.matmul(x, w, transpose_a=turned))
        with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
            assert session.explain(made).kernels() == {"llvm.region": 1}
            for rows in (1, 0, 2, 50):
                fed = numbers(rows, k)
                got = session.run(made, {x: np.ascontiguousarray(fed.T) if turned else fed})
                np.testing.assert_allclose(got, np.maximum(fed @ w, 0), 1e-3, 1e-3)


def test_columns_that_are_weighted_and_added_stay_sums_of_rows():
    x, weight = tf.placeholder(tf.float32, [None, 9]), tf.placeholder(tf.float32, [None, 1])
    made = tf.reduce_sum(tf.tanh(x) * weight, 0)
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        assert session.explain(made).kernels() == {"llvm.region": 1}
        for rows in (1, 0, 50):
            a, b = numbers(rows, 9), numbers(rows, 1, seed=1)
            found = session.run(made, {x: a, weight: b})
            np.testing.assert_allclose(found, (np.tanh(a) * b).sum(0), 1e-4, 1e-5)
