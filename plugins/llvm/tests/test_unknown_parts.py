"""Parts of tensors of which only a step knows some dims, read where they lie: one plan and one object for all sizes."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import (
    Axis,
    Multiple,
    RegionInput,
    RegionOutput,
    RegionProgram,
    Span,
    Term,
    check_program,
    dtypes,
    errors,
)
from graphdock_llvm.extents import Extents
from graphdock_llvm.printer import ALONE

GENERIC = {"backends": ("llvm", "cpu"), "shape_policy": "generic", "intra_op_threads": 2}
SIZES = (5, 0, 1, 2, 3, 7, 13, 64, 257)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _cut(rng, dims):
    """A way to take a part of a tensor of such dims (None: unknown), by NumPy and by an op, and the dims that are left."""
    axis = int(rng.integers(len(dims)))
    size, before = dims[axis], (slice(None),) * axis
    if size is None:
        item = [slice(1, None), slice(None, -1), slice(None, 4), slice(0, None, 2), slice(2, 9, 3), slice(-2, None)][
            int(rng.integers(6))
        ]
        return lambda x: x[(*before, item)], lambda v: v[(*before, item)], dims
    match int(rng.integers(5)):
        case 0 if size % 2 == 0:
            which, kept = int(rng.integers(2)), [*dims[:axis], size // 2, *dims[axis + 1 :]]
            return lambda x: np.split(x, 2, axis)[which], lambda v: tf.split(v, 2, axis)[which], kept
        case 1 if size > 2:
            sizes, kept = [1, size - 2, 1], [*dims[:axis], size - 2, *dims[axis + 1 :]]
            return lambda x: x[(*before, slice(1, -1))], lambda v: tf.split(v, sizes, axis)[1], kept
        case 2 if len(dims) > 2:
            which, kept = int(rng.integers(size)), [*dims[:axis], *dims[axis + 1 :]]
            return lambda x: np.take(x, which, axis), lambda v: tf.unstack(v, axis=axis)[which], kept
        case 3:
            begin = int(rng.integers(size))
            after = (slice(None),) * (len(dims) - axis - 1)
            index, kept = (..., slice(begin, None), *after), [*dims[:axis], size - begin, *dims[axis + 1 :]]
            return lambda x: x[index], lambda v: v[index], kept
        case _:
            order = [int(i) for i in rng.permutation(len(dims))]
            return lambda x: np.transpose(x, order), lambda v: tf.transpose(v, order), [dims[i] for i in order]


@pytest.mark.parametrize("seed", range(60))
def test_parts_of_parts_of_any_size_agree_with_numpy(seed):
    """Read element by element, in sums along rows and over them, and in products; one plan for all sizes."""
    rng = np.random.default_rng(seed)
    dims = [int(n) for n in rng.integers(2, 24, int(rng.integers(2, 4)))]
    for place in rng.choice(len(dims), 1 + seed % 2, replace=False):
        dims[place] = None
    fed = tf.placeholder(tf.float32, dims)
    value = tf.tanh(fed) * 2.0
    fetches, wanted = [value], [lambda whole: whole]
    for _ in range(3):
        said, ways, left = value, [], dims
        for _ in range(int(rng.integers(1, 3))):
            if len(left) > 1:
                way, op, left = _cut(rng, left)
                said, ways = op(said), [*ways, way]

        def part(whole, ways=ways):
            for way in ways:
                whole = way(whole)
            return whole

        fetches += [tf.nn.relu(said * said - 0.25) + 1.0, tf.reduce_sum(said * said, -1), tf.reduce_sum(said * 3.0, 0)]
        wanted += [
            lambda x, part=part: np.maximum(part(x) ** 2 - 0.25, 0) + 1,
            lambda x, part=part: (part(x) ** 2).sum(-1),
            lambda x, part=part: (part(x) * 3).sum(0),
        ]
        if len(left) == 2 and left[1] is not None:
            w = numbers(left[1], 24, seed=seed)
            fetches.append(tf.tanh(tf.matmul(said, w) + 1.0))
            wanted.append(lambda x, part=part, w=w: np.tanh(part(x) @ w + 1))
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        for size in SIZES:
            shape = [size if n is None else n for n in dims]
            x = rng.normal(size=shape).astype(np.float32)
            whole = np.tanh(x) * 2
            made = session.run(fetches, {fed: x})
            for number, (got, want) in enumerate(zip(made, wanted, strict=True)):
                np.testing.assert_allclose(got, want(whole), 2e-4, 2e-4, err_msg=f"{number} of {size}")


def test_gates_of_any_batch_are_no_copies_and_one_object(compiles):
    w = numbers(32, 128)
    x = tf.placeholder(tf.float32, [None, 32])
    gates = tf.split(tf.matmul(x, w) + 1.0, 4, 1)
    cell = tf.sigmoid(gates[0]) * tf.tanh(gates[1]) + tf.sigmoid(gates[2])
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        assert session.explain(cell).kernels() == {"llvm.region": 2}
        session.run(cell, {x: numbers(3, 32)}), session.run([cell, gates[1]], {x: numbers(3, 32)})
        known = len(compiles)
        for rows in SIZES:
            fed = numbers(rows, 32, seed=rows)
            want = np.split(fed @ w + 1, 4, 1)
            one = 1 / (1 + np.exp(-np.array(want)))
            made, second = session.run([cell, gates[1]], {x: fed})
            np.testing.assert_allclose(made, one[0] * np.tanh(want[1]) + one[2], 1e-4, 1e-4)
            np.testing.assert_allclose(second, want[1], 1e-4, 1e-4)
            np.testing.assert_allclose(session.run(cell, {x: fed}), made, 1e-5, 1e-5)
        assert len(compiles) == known


def test_parts_of_sequences_of_any_batch_and_length_are_read_where_they_lie(compiles):
    """Strides are multiples of the length, which another dim of the part has."""
    x = tf.placeholder(tf.float32, [None, None, 48])
    q, k, v = tf.split(tf.exp(x), 3, 2)
    mixed = tf.tanh(q) * k - v
    heads = tf.nn.softmax(tf.transpose(tf.reshape(tf.exp(x), [-1, 6, 4, 12])[:, :, 1:], [0, 2, 1, 3]) * 0.5)
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        assert session.explain(mixed).kernels() == {"cpu.exp": 1, "llvm.region": 1}
        assert "cpu.split" not in session.explain([mixed, heads]).kernels()
        session.run([mixed, heads], {x: numbers(2, 6, 48)})
        known = len(compiles)
        for batch, length in ((1, 6), (6, 1), (3, 12), (0, 6), (2, 0), (41, 6), (7, 30)):
            fed = numbers(batch, length, 48, seed=batch)
            e = np.exp(fed)
            want = np.tanh(e[..., :16]) * e[..., 16:32] - e[..., 32:]
            np.testing.assert_allclose(session.run(mixed, {x: fed}), want, 1e-4, 1e-5)
            if batch * length % 6 == 0 and batch * length:
                half = np.exp(0.5 * e.reshape(-1, 6, 4, 12)[:, :, 1:].transpose(0, 2, 1, 3))
                made = session.run(heads, {x: fed})
                np.testing.assert_allclose(made, half / half.sum(-1, keepdims=True), 1e-4, 1e-5)
        assert len(compiles) == known


def test_a_part_beside_its_dying_whole_of_any_size_is_read_before_that_is_written_over():
    x, w = tf.placeholder(tf.float32, [None, 64]), numbers(64, 64)
    whole = tf.matmul(x, w)
    left, right = tf.split(whole, 2, 1)
    mixed = tf.tanh(whole) + 1.0
    fetches = [
        tf.concat([right * 2.0, left * 3.0], 1),
        mixed,
        tf.tanh(left) * tf.tanh(right) + tf.split(mixed, 2, 1)[1],
    ]
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        for rows in SIZES:
            fed = numbers(rows, 64, seed=rows)
            want = fed @ w
            a, b, c = session.run(fetches, {x: fed})
            np.testing.assert_allclose(a, np.concatenate([want[:, 32:] * 2, want[:, :32] * 3], 1), 1e-4, 1e-3)
            np.testing.assert_allclose(b, np.tanh(want) + 1, 1e-4, 1e-4)
            np.testing.assert_allclose(c, np.tanh(want[:, :32]) * np.tanh(want[:, 32:]) + b[:, 32:], 1e-4, 1e-4)


def test_slices_of_an_unknown_dim_clamp_as_ever_and_indices_out_of_it_are_errors():
    x = tf.placeholder(tf.float32, [4, None])
    first, later, odd = tf.exp(x)[1:, :5], tf.exp(x)[:, 2:], tf.exp(x)[:, :-1]
    fetches = [tf.tanh(first) * 2.0, tf.reduce_sum(later * 2.0, 1), tf.reduce_max(odd * 2.0 + 1.0, 0)]
    at = tf.tanh(tf.exp(x)[:, 3]) * 2.0
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        for size in SIZES:
            fed = numbers(4, size, seed=size)
            e = np.exp(fed)
            a, b, c = session.run(fetches, {x: fed})
            np.testing.assert_allclose(a, np.tanh(e[1:, :5]) * 2, 1e-5, 1e-5)
            np.testing.assert_allclose(b, (e[:, 2:] * 2).sum(1), 1e-4, 1e-4)
            np.testing.assert_allclose(c, (e[:, :-1] * 2 + 1).max(0), 1e-4, 1e-4)
            if size > 3:
                np.testing.assert_allclose(session.run(at, {x: fed}), np.tanh(e[:, 3]) * 2, 1e-5, 1e-5)
            else:
                with pytest.raises(errors.InvalidArgumentError):
                    session.run(at, {x: fed})


def test_one_dim_that_several_tensors_have_is_compared_and_the_tensors_named():
    f32 = dtypes.float32
    program = RegionProgram(
        "p",
        (Axis("i", None), Axis("j", 3)),
        (
            RegionInput(
                "y:1", 0, f32, (None, 3), (0, 1), strides=(7, 1), offset=2, whole=(None, 7), spans=(Span(0, 1), None)
            ),
            RegionInput("z", 1, f32, (None, 3), (0, 1)),
        ),
        (
            Term("input", f32, (), (0, 1), 0),
            Term("input", f32, (), (0, 1), 1),
            Term("add", f32, (0, 1), (0, 1)),
        ),
        (RegionOutput("sum", 2, f32, (None, 3), (0, 1)),),
    )
    assert "y:1: float32[i, j], strides 7, 1 from 2, i along 0[1::1]" in str(program)
    told = Extents(program, ALONE)
    assert list(told.read([(5, 7), (4, 3)])) == [(4, 3)]
    assert list(told.read([(1, 7), (0, 3)])) == [(0, 3)]
    check_program(program)
    with pytest.raises(errors.ShapeError, match=r"dim 0 of z is not that of y:1, dim 0"):
        told.read([(5, 7), (5, 3)])
    with pytest.raises(errors.ShapeError, match=r"dim 1 of the tensor that y:1 is a part of is not that of the plan"):
        told.read([(5, 6), (4, 3)])
    with pytest.raises(errors.ShapeError, match=r"the tensor that y:1 is a part of is of another rank than planned"):
        told.read([(5,), (4, 3)])


def test_strides_that_are_multiples_of_axes_are_those_of_a_call():
    spans, strides = (Span(0), Span(1), None), (Multiple(12, (1,)), 12, 1)
    lies = RegionInput(
        "y", 0, dtypes.float32, (None, None, 4), (0, 1, 2), 1, False, strides, 0, (None, None, 12), spans
    )
    assert lies.lies((5, 7, 4)) == (84, 12, 1)
