"""Products of rows that only a step counts: one compiled function for every number of them, with what follows."""

from __future__ import annotations

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
from graphdock_llvm.tiles import print_tiles, tiles_of

from .test_tiles import program_of

FFI = cffi.FFI()
GENERIC = {"backends": ("llvm", "cpu"), "shape_policy": "generic", "intra_op_threads": 2}
ROWS = (0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 16, 23, 24, 25, 29, 50, 100, 397)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def numbers(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def opened(program):
    """The program, whose rows only a call counts."""

    def shape(part):
        return replace(part, shape=tuple([None if d == 0 else n for n, d in zip(part.shape, part.dims, strict=True)]))

    axes = (replace(program.axes[0], extent=None), *program.axes[1:])
    return replace(
        program, axes=axes, inputs=tuple(map(shape, program.inputs)), outputs=tuple(map(shape, program.outputs))
    )


def call(program, known, arrays, lanes, threads=1):
    """The outputs of a program of unknown rows for arrays of some; what stands behind them must stay as it was."""
    tiles = tiles_of(program, lanes)
    function = FFI.cast(
        "void (*)(void **, int64_t *)", compiled(print_tiles(program, tiles, len(arrays), lanes).text())
    )
    told = Extents(
        program,
        (threads, pool_address()) if threads > 1 else ALONE,
        parts=lambda extents: (3 if threads > 1 and extents[0] > 40 else tiles.matrices.parts(lanes, extents[0]), 0),
    )
    assert list(told.read([a.shape for a in arrays])) == [o.shape for o in known.outputs]
    rooms = [np.full(int(np.prod(o.shape)) * o.dtype.size + 64, 0xA5, np.uint8) for o in known.outputs]
    table = FFI.new("void *[]", [FFI.from_buffer(b) for b in (*arrays, *rooms)])
    function(table, FFI.new("int64_t[]", told.numbers.tolist()))
    assert all((room[-64:] == 0xA5).all() for room in rooms), "it wrote behind an output"
    return [room[:-64].view(o.dtype.np).reshape(o.shape) for room, o in zip(rooms, known.outputs, strict=True)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize(
    ("columns", "along", "turned", "dtype"),
    [(70, 61, "", "float32"), (33, 100, "b", "float32"), (10, 3, "", "float32"), (1, 17, "b", "float64"), (200, 64, "", "float64")],
)  # fmt: skip
def test_any_number_of_rows_agrees_with_the_reference(columns, along, turned, dtype, lanes, threads):
    program = opened(program_of((5, along, columns), turned, dtype))
    for rows in ROWS:
        known = program_of((rows, along, columns), turned, dtype)
        sources = {i.source: i for i in known.inputs}
        arrays = [numbers(*sources[s].shape, seed=s, dtype=sources[s].dtype.np) for s in sorted(sources)]
        if rows > 2:
            arrays[0][rows // 2, 1] = np.nan
        made = call(program, known, arrays, lanes, threads)
        for got, want in zip(made, evaluate(known, arrays), strict=True):
            np.testing.assert_allclose(got, want, 1e-4, 1e-4, err_msg=f"{rows} {lanes}")


def test_one_object_serves_ragged_batches_of_a_layer_and_its_gradient(compiles):
    w, c = numbers(60, 100), numbers(100)
    x = tf.placeholder(tf.float32, [None, 60])
    h = tf.nn.relu(tf.matmul(x, w) + c) * 2.0
    slope = tf.gradients(tf.reduce_sum(tf.square(h)), x)[0]
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        kernels = session.explain([h, slope]).kernels()
        assert "cpu.mat_mul" not in kernels and kernels["llvm.region"] >= 2
        session.run([h, slope], {x: numbers(3, 60)})
        known = len(compiles)
        for rows in (*ROWS, 2000, *np.random.default_rng(1).integers(0, 700, 30).tolist()):
            fed = numbers(rows, 60, seed=rows)
            made, back = session.run([h, slope], {x: fed})
            want = np.maximum(fed @ w + c, 0) * 2
            np.testing.assert_allclose(made, want, 1e-4, 1e-4)
            np.testing.assert_allclose(back, (4 * want * (want > 0)) @ w.T, 1e-3, 1e-2)
        assert len(compiles) == known


def test_unrolled_products_of_unknown_rows_share_the_packed_matrix():
    w = numbers(64, 64) * 0.2
    x, weight = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.float32, [64, 64])
    y = x
    for _ in range(3):
        y = tf.tanh(tf.matmul(y, weight))
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        assert session.explain(y).kernels() == {"llvm.region": 3, "llvm.panels": 1}
        for rows in ROWS:
            fed = want = numbers(rows, 64)
            for _ in range(3):
                want = np.tanh(want @ w)
            np.testing.assert_allclose(session.run(y, {x: fed, weight: w}), want, 1e-3, 1e-4)


def test_a_residual_and_a_column_of_as_many_rows_are_added_and_others_refused():
    w = numbers(48, 64)
    x, r = tf.placeholder(tf.float32, [None, 48]), tf.placeholder(tf.float32, [None, 64])
    y = tf.nn.relu(tf.matmul(x, w)) + r
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        for rows in (4, 1, 0, 31):
            a, b = numbers(rows, 48), numbers(rows, 64, seed=2)
            np.testing.assert_allclose(session.run(y, {x: a, r: b}), np.maximum(a @ w, 0) + b, 1e-4, 1e-4)
        one = session.run(y, {x: numbers(5, 48), r: numbers(1, 64)})
        np.testing.assert_allclose(one, np.maximum(numbers(5, 48) @ w, 0) + numbers(1, 64), 1e-4, 1e-4)
        with pytest.raises(errors.InvalidArgumentError):
            session.run(y, {x: numbers(5, 48), r: numbers(3, 64)})


def test_strided_and_turned_feeds_are_read_as_they_are():
    w = numbers(30, 40)
    x = tf.placeholder(tf.float32, [None, 30])
    y = tf.sigmoid(tf.matmul(x, w))
    whole = numbers(60, 90)
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        for fed in (
            whole[:, ::3],
            whole[::-2, 30:60],
            np.asfortranarray(whole[:, :30]),
            whole[:0, :30],
            whole[:1, :30],
        ):
            np.testing.assert_allclose(session.run(y, {x: fed}), 1 / (1 + np.exp(-(fed @ w))), 1e-4, 1e-4)
