"""Products of sparse matrices and dense ones by the plugin's function, beside NumPy's of dense ones."""

from __future__ import annotations

import cffi
import graphdock as tf
import numpy as np
import pytest
from graphdock_llvm.sparse_text import BAD, text
from graphdock_llvm.target import compiled

LLVM = tf.SessionConfig(backends=("llvm", "cpu"))


@pytest.mark.parametrize("seed", range(24))
def test_random_products_agree_with_numpy(seed):
    rng = np.random.default_rng(seed)
    kind = np.float32 if seed % 2 else np.float64
    rows, inner = (int(n) for n in rng.integers(1, 60, 2))
    columns, terms = int(rng.choice([0, 1, 7, 16, 33, 70, 200])), int(rng.choice([0, 1, 40, 3000]))
    turned, flipped = (bool(rng.integers(2)) for _ in range(2))
    at = np.stack([rng.integers(0, rows, terms), rng.integers(0, inner, terms)], 1)
    if rng.integers(2):
        at = at[np.lexsort(at.T[::-1])]
    values, b = rng.normal(size=terms).astype(kind), rng.normal(size=(inner, columns)).astype(kind)
    dense = np.zeros((rows, inner))
    np.add.at(dense, tuple(at.T), values)
    shape = [inner, rows] if turned else [rows, inner]
    fed = {
        "at": at[:, ::-1] if turned else at,
        "values": values,
        "shape": np.array(shape),
        "b": b.T if flipped else b,
    }
    for known in (False, True):
        with tf.Graph().as_default(), tf.Session(config=LLVM) as session:
            if known:
                given = {name: tf.constant(value) for name, value in fed.items()}
            else:
                given = {name: tf.placeholder(value.dtype, [None] * value.ndim) for name, value in fed.items()}
                given["shape"] = tf.placeholder(tf.int64, [2])
            matrix = tf.SparseTensor(given["at"], given["values"], given["shape"])
            made = tf.sparse_tensor_dense_matmul(matrix, given["b"], turned, flipped)
            metadata = tf.RunMetadata()
            feed = {} if known else {given[name]: value for name, value in fed.items()}
            result = session.run(made, feed, run_metadata=metadata)
            names = {k.full_name for k in metadata.plan.placement.kernels.values()}
        assert known or "llvm.sparse_tensor_dense_mat_mul" in names
        np.testing.assert_allclose(result, dense @ b, rtol=1e-4 if kind is np.float32 else 1e-10, atol=1e-4)


@pytest.mark.parametrize(
    ("at", "shape", "match"),
    [
        ([[0, 0], [2, -1]], [3, 4], r"a_indices\[1, 1\] is -1"),
        ([[0, 0], [3, 0]], [3, 4], r"a_indices\[1, 0\] is 3"),
        ([[0, 1 << 62], [0, 0]], [3, 4], r"a_indices\[0, 1\] is 4611686018427387904"),
        ([[0, 0], [1, 1]], [3, 5], "inner sizes differ"),
        ([[0, 0], [1, 1]], [-3, 4], "a_shape"),
        ([[0, 0]], [3, 4], "a_values"),
    ],
)
def test_wrong_terms_and_sizes_are_named(at, shape, match):
    with tf.Graph().as_default(), tf.Session(config=LLVM) as session:
        places, values, sizes = (
            tf.placeholder(k, s) for k, s in ((tf.int64, None), (tf.float32, None), (tf.int64, [2]))
        )
        made = tf.sparse_tensor_dense_matmul(tf.SparseTensor(places, values, sizes), tf.zeros([4, 20]))
        with pytest.raises(tf.errors.InvalidArgumentError, match=match):
            session.run(made, {places: np.array(at), values: [1.0, 2.0], sizes: shape})


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("columns", [1, 4, 5, 13, 64, 131])
def test_other_widths_write_what_is_theirs_alone(lanes, columns):
    rng, ffi = np.random.default_rng(columns), cffi.FFI()
    at = np.stack([rng.integers(0, 9, 50), rng.integers(0, 5, 50)], 1)
    values, b = rng.normal(size=50).astype(np.float32), rng.normal(size=(5, columns)).astype(np.float32)
    room = np.full(9 * columns + 64, 7.5, np.float32)
    numbers = np.array([1, 0, 50, columns, 9, 5, 0, -1])
    function = ffi.cast("void (*)(void **, int64_t *)", compiled(text("float", lanes)))
    buffers = [ffi.from_buffer(a) for a in (at, values, b, room)]
    function(ffi.new("void *[]", buffers), ffi.cast("int64_t *", ffi.from_buffer(numbers)))
    dense = np.zeros((9, 5))
    np.add.at(dense, tuple(at.T), values)
    np.testing.assert_allclose(room[:-64].reshape(9, columns), dense @ b, rtol=1e-4, atol=1e-5)
    assert numbers[BAD] == -1 and (room[-64:] == 7.5).all()
