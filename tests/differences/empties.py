"""Programs over dims of size 0 and 1: one function ``program(tf, *inputs)`` for each family of ops, in TensorFlow 1's names.

Letters stand for dims; :func:`cases` gives each letter sizes, of which at least one is 0 or 1. What TensorFlow answers to each is
kept in ``empties.json``, written by ``python tests/differences/record.py empties`` where TensorFlow is installed.
"""

from __future__ import annotations

import itertools
import random
import zlib

import numpy as np

#: TensorFlow is asked without its optimizer, which loses biases of empty products.
PLAIN = True
#: Integers are class numbers, indices and lengths; they stay below the dim that they count in.
INT = "int32"


def _dynamic(tf, x):
    return tf.reshape(x, [tf.shape(x)[0], -1])


PROGRAMS = {
    # name: (shapes, program); a shape is letters and digits, "i:" before it for integers
    "reshape: rows": ("ABC", _dynamic),
    "reshape: columns": ("ABC", lambda tf, x: tf.reshape(x, [-1, tf.shape(x)[2]])),
    "reshape: middle": ("ABC", lambda tf, x: tf.reshape(x, [tf.shape(x)[0], -1, tf.shape(x)[2]])),
    "reshape: split": ("A4C", lambda tf, x: tf.reshape(x, [-1, 2, 2, tf.shape(x)[2]])),
    "reshape: flat": ("ABC", lambda tf, x: tf.reshape(x, [-1])),
    "reshape: number": ("A34", lambda tf, x: tf.reshape(x, [tf.shape(x)[0], -1])),
    "reshape: products": ("ABC", lambda tf, x: tf.reshape(x, tf.stack([tf.shape(x)[0] * tf.shape(x)[1], -1]))),
    "reshape: there and back": ("ABC", lambda tf, x: tf.reshape(tf.reshape(x, [-1]), tf.shape(x))),
    "flatten": ("ABC", lambda tf, x: tf.layers.flatten(x)),
    "squeeze": ("A1C", lambda tf, x: tf.squeeze(x, [1])),
    "expand_dims": ("AB", lambda tf, x: tf.expand_dims(x, 1)),
    "transpose": ("ABC", lambda tf, x: tf.transpose(x, [2, 0, 1])),
    "space_to_batch": ("A44C", lambda tf, x: tf.space_to_batch(x, [[0, 0], [0, 0]], 2)),
    "space_to_batch_nd": ("AB3", lambda tf, x: tf.space_to_batch_nd(x, [2], [[1, 1]])),
    "batch_to_space": ("A22C", lambda tf, x: tf.batch_to_space(tf.concat([x, x, x, x], 0), [[0, 0], [0, 0]], 2)),
    "space_to_depth": ("A44C", lambda tf, x: tf.space_to_depth(x, 2)),
    "depth_to_space": ("AB24", lambda tf, x: tf.depth_to_space(x, 2)),
    "reduce_sum": ("ABC", lambda tf, x: [tf.reduce_sum(x, a) for a in (0, 1, [0, 2], None)]),
    "reduce_mean": ("ABC", lambda tf, x: [tf.reduce_mean(x, a) for a in (0, 1, [0, 2], None)]),
    "reduce_max": ("ABC", lambda tf, x: [tf.reduce_max(x, a) for a in (0, 1, [0, 2], None)]),
    "reduce_min": ("ABC", lambda tf, x: [tf.reduce_min(x, a) for a in (0, 1, [0, 2], None)]),
    "reduce_prod": ("ABC", lambda tf, x: [tf.reduce_prod(x, a) for a in (0, 1, [0, 2], None)]),
    "reduce_any": ("AB", lambda tf, x: [tf.reduce_any(x > 0, a) for a in (0, 1, None)]),
    "reduce_all": ("AB", lambda tf, x: [tf.reduce_all(x > 0, a) for a in (0, 1, None)]),
    "reduce_logsumexp": ("AB", lambda tf, x: [tf.reduce_logsumexp(x, a) for a in (0, 1, None)]),
    "reduce_sum, kept": ("ABC", lambda tf, x: [tf.reduce_sum(x, a, keepdims=True) for a in (1, [0, 2])]),
    "norm": ("AB", lambda tf, x: [tf.norm(x, axis=a) for a in (0, 1)]),
    "l2_normalize": ("AB", lambda tf, x: tf.nn.l2_normalize(x, 1)),
    "count_nonzero": ("AB", lambda tf, x: tf.count_nonzero(x, 1)),
    "argmax": ("A3", lambda tf, x: tf.argmax(x, 1)),
    "argmin of columns": ("3B", lambda tf, x: tf.argmin(x, 0)),
    "cumsum": ("AB", lambda tf, x: [tf.cumsum(x, 0), tf.cumsum(x, 1, exclusive=True, reverse=True)]),
    "cumprod": ("AB", lambda tf, x: tf.cumprod(x + 3, 1)),
    "concat": ("AB CB", lambda tf, x, y: tf.concat([x, y, x], 0)),
    "concat, last": ("AB AC", lambda tf, x, y: tf.concat([x, y], -1)),
    "stack": ("AB AB", lambda tf, x, y: [tf.stack([x, y], a) for a in (0, 1, -1)]),
    "unstack": ("3B", lambda tf, x: tf.unstack(x, 3)),
    "split": ("A4", lambda tf, x: tf.split(x, 2, 1)),
    "split, sized": ("A4", lambda tf, x: tf.split(x, [0, 3, 1], 1)),
    "split of rows": ("A4", lambda tf, x: tf.split(x, [tf.shape(x)[0], 0], 0)),
    "tile": ("AB", lambda tf, x: [tf.tile(x, [2, 1]), tf.tile(x, [0, 2]), tf.tile(x, [1, 3])]),
    "pad": ("AB", lambda tf, x: tf.pad(x, [[1, 0], [0, 2]])),
    "pad, reflected": ("A3", lambda tf, x: tf.pad(x, [[0, 0], [1, 2]], "REFLECT")),
    "slice": ("AB", lambda tf, x: tf.slice(x, [0, 0], [-1, 0])),
    "strided_slice": ("AB", lambda tf, x: [x[1:], x[:0], x[:, ::-1], x[..., tf.newaxis], x[-1:]]),
    "reverse": ("AB", lambda tf, x: tf.reverse(x, [0, 1])),
    "reverse_sequence": ("AB i:A<=B", lambda tf, x, n: tf.reverse_sequence(x, n, 1, 0)),
    "roll": ("AB", lambda tf, x: tf.manip.roll(x, 1, 1)),
    "gather": ("3B i:A<3", lambda tf, x, i: tf.gather(x, i)),
    "gather, axis 1": ("A3 i:B<3", lambda tf, x, i: tf.gather(x, i, axis=1)),
    "gather_nd": ("3B i:A1<3", lambda tf, x, i: tf.gather_nd(x, i)),
    "gather of nothing": ("AB i:0<1", lambda tf, x, i: tf.gather(x, i)),
    "scatter_nd": ("i:A1<3 AB", lambda tf, i, x: tf.scatter_nd(i, x, tf.stack([3, tf.shape(x)[1]]))),
    "boolean_mask": ("AB", lambda tf, x: tf.boolean_mask(x, x > 0)),
    "where": ("AB", lambda tf, x: tf.where(x > 0)),
    "select": ("AB AB", lambda tf, x, y: tf.where(x > 0, x, y)),
    "one_hot": ("i:AB<3", lambda tf, i: [tf.one_hot(i, 3), tf.one_hot(i, 0), tf.one_hot(i, 2, axis=0)]),
    "segment_sum": ("AB", lambda tf, x: tf.segment_sum(x, tf.range(tf.shape(x)[0]) // 2)),
    "segment_mean": ("AB", lambda tf, x: tf.segment_mean(x, tf.range(tf.shape(x)[0]) // 2)),
    "segment_max": ("AB", lambda tf, x: tf.segment_max(x, tf.range(tf.shape(x)[0]) // 2)),
    "unsorted_segment_sum": ("AB i:A<3", lambda tf, x, i: tf.unsorted_segment_sum(x, i, 4)),
    "unsorted_segment_max": ("AB i:A<3", lambda tf, x, i: tf.unsorted_segment_max(x, i, 4)),
    "dynamic_partition": ("AB i:A<2", lambda tf, x, i: tf.dynamic_partition(x, i, 3)),
    "dynamic_stitch": ("AB", lambda tf, x: tf.dynamic_stitch([tf.range(tf.shape(x)[0])], [x])),
    "top_k": ("A3", lambda tf, x: tf.nn.top_k(x, 2)),
    "top_k, none": ("AB", lambda tf, x: tf.nn.top_k(x, 0)),
    "in_top_k": ("A3 i:A<3", lambda tf, x, i: tf.nn.in_top_k(x, i, 2)),
    "sort": ("AB", lambda tf, x: [tf.sort(x), tf.argsort(x)]),
    "unique": ("i:A<3", lambda tf, i: tf.unique(i)),
    "unique_with_counts": ("i:A<3", lambda tf, i: tf.unique_with_counts(i)),
    "setdiff1d": ("i:A<3 i:B<3", lambda tf, i, j: tf.setdiff1d(i, j)),
    "bincount": ("i:A<3", lambda tf, i: [tf.bincount(i), tf.bincount(i, minlength=2)]),
    "invert_permutation": ("A", lambda tf, x: tf.invert_permutation(tf.range(tf.shape(x)[0]))),
    "matmul": ("AB BC", lambda tf, x, y: [tf.matmul(x, y), tf.matmul(y, x, transpose_a=True, transpose_b=True)]),
    "matmul of batches": ("ABC ACB", lambda tf, x, y: tf.matmul(x, y)),
    "tensordot": ("ABC CB", lambda tf, x, y: tf.tensordot(x, y, [[1, 2], [1, 0]])),
    "einsum": ("ABC CB", lambda tf, x, y: tf.einsum("abc,cd->abd", x, y)),
    "bias_add": ("AB B", lambda tf, x, b: tf.nn.bias_add(x, b)),
    "xw_plus_b": ("AB BC C", lambda tf, x, w, b: tf.nn.xw_plus_b(x, w, b)),
    "add": ("AB B", lambda tf, x, y: [x + y, x * y, x - 1.0, tf.maximum(x, y), tf.squared_difference(x, y)]),
    "broadcast by one": ("A1 1B", lambda tf, x, y: x * y),
    "broadcast_to": ("1B", lambda tf, x: tf.broadcast_to(x, [0, tf.shape(x)[1]])),
    "add_n": ("AB AB", lambda tf, x, y: tf.add_n([x, y, x])),
    "unary": (
        "AB",
        lambda tf, x: [tf.exp(x), tf.tanh(x), tf.nn.relu(x), tf.nn.sigmoid(x), tf.square(x), -x, tf.abs(x)],
    ),
    "softmax": ("AB", lambda tf, x: [tf.nn.softmax(x), tf.nn.log_softmax(x), tf.nn.softmax(x, 0)]),
    "softmax loss": ("AB AB", lambda tf, x, y: tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x)),
    "sparse softmax loss": (
        "A3 i:A<3",
        lambda tf, x, i: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=i, logits=x),
    ),
    "sigmoid loss": ("AB AB", lambda tf, x, y: tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x)),
    "l2_loss": ("AB", lambda tf, x: tf.nn.l2_loss(x)),
    "losses.softmax": ("AB AB", lambda tf, x, y: tf.losses.softmax_cross_entropy(y, x)),
    "losses.sparse": ("A3 i:A<3", lambda tf, x, i: tf.losses.sparse_softmax_cross_entropy(i, x)),
    "losses.mean_squared_error": ("AB AB", lambda tf, x, y: tf.losses.mean_squared_error(y, x)),
    "losses, weighted": ("AB AB A1", lambda tf, x, y, w: tf.losses.absolute_difference(y, x, w)),
    "losses, unreduced": ("AB AB", lambda tf, x, y: tf.losses.huber_loss(y, x, reduction="none")),
    "losses.cosine": ("AB AB", lambda tf, x, y: tf.losses.cosine_distance(y, x, axis=1)),
    "losses.pairwise": ("AB AB", lambda tf, x, y: tf.losses.mean_pairwise_squared_error(y, x)),
    "losses.hinge": ("AB AB", lambda tf, x, y: tf.losses.hinge_loss(y, x)),
    "losses.log": ("AB AB", lambda tf, x, y: tf.losses.log_loss(tf.sigmoid(y), tf.sigmoid(x))),
    "moments": ("ABC", lambda tf, x: tf.nn.moments(x, [0, 1])),
    "batch_normalization": ("AB B", lambda tf, x, m: tf.nn.batch_normalization(x, m, tf.exp(m), m, m, 1e-3)),
    "conv1d": ("A53 332", lambda tf, x, w: tf.nn.conv1d(x, w, 1, "SAME")),
    "conv2d": ("A55C 33CD", lambda tf, x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")),
    "conv2d, valid": ("A44C 22C3", lambda tf, x, w: tf.nn.conv2d(x, w, [1, 2, 2, 1], "VALID")),
    "conv2d of images": ("1AB2 2221", lambda tf, x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")),
    "conv2d_transpose": (
        "A33C 222C",
        lambda tf, x, w: tf.nn.conv2d_transpose(x, w, [tf.shape(x)[0], 6, 6, 2], [1, 2, 2, 1]),
    ),
    "depthwise_conv2d": ("A44C 22C1", lambda tf, x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME")),
    "separable_conv2d": (
        "A442 2221 1123",
        lambda tf, x, w, p: tf.nn.separable_conv2d(x, w, p, [1, 1, 1, 1], "SAME"),
    ),
    "conv3d": ("A333C 222C2", lambda tf, x, w: tf.nn.conv3d(x, w, [1, 1, 1, 1, 1], "SAME")),
    "max_pool": ("A44C", lambda tf, x: tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")),
    "avg_pool": ("A55C", lambda tf, x: tf.nn.avg_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME")),
    "max_pool3d": ("A444C", lambda tf, x: tf.nn.max_pool3d(x, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "VALID")),
    "lrn": ("A22C", lambda tf, x: tf.nn.lrn(x)),
    "fused_batch_norm": (
        "A222 2",
        lambda tf, x, s: tf.nn.fused_batch_norm(x, s, s, tf.zeros([2]), tf.ones([2]), is_training=False)[0],
    ),
    "fused_batch_norm, training": ("A222 2", lambda tf, x, s: tf.nn.fused_batch_norm(x, s, s)[0]),
    "resize": ("A33C", lambda tf, x: tf.image.resize_bilinear(x, [5, 5])),
    "resize, nearest": ("A33C", lambda tf, x: tf.image.resize_nearest_neighbor(x, [2, 2])),
    "dropout": ("AB", lambda tf, x: tf.nn.dropout(x, 1.0)),
    "embedding_lookup": ("3C i:AB<3", lambda tf, w, i: tf.nn.embedding_lookup(w, i)),
    "embedding_lookup_sparse": (
        "3C",
        lambda tf, w: tf.nn.embedding_lookup_sparse(
            w,
            tf.SparseTensor(tf.zeros([0, 2], tf.int64), tf.zeros([0], tf.int64), tf.constant([2, 2], tf.int64)),
            None,
            combiner="sum",
        ),
    ),
    "sequence_mask": ("i:A<=3", lambda tf, n: [tf.sequence_mask(n, 3), tf.sequence_mask(n)]),
    "matrix_band_part": ("AB", lambda tf, x: tf.matrix_band_part(x, 1, 0)),
    "matrix_diag": ("AB", lambda tf, x: tf.matrix_diag(x)),
    "matrix_diag_part": ("ABC", lambda tf, x: tf.matrix_diag_part(x)),
    "matrix_set_diag": ("ABB AB", lambda tf, x, d: tf.matrix_set_diag(x, d)),
    "diag": ("A", lambda tf, x: tf.diag(x)),
    "trace": ("ABB", lambda tf, x: tf.trace(x)),
    "cholesky": ("A00", lambda tf, x: tf.cholesky(x)),
    "cholesky of batches": (
        "ABB",
        lambda tf, x: tf.cholesky(tf.matmul(x, x, transpose_b=True) + 9 * tf.eye(tf.shape(x)[1])),
    ),
    "matrix_inverse": ("ABB", lambda tf, x: tf.matrix_inverse(x + 9 * tf.eye(tf.shape(x)[1]))),
    "matrix_determinant": ("ABB", lambda tf, x: tf.matrix_determinant(x + 9 * tf.eye(tf.shape(x)[1]))),
    "matrix_solve": ("ABB ABC", lambda tf, x, y: tf.matrix_solve(x + 9 * tf.eye(tf.shape(x)[1]), y)),
    "triangular_solve": ("ABB ABC", lambda tf, x, y: tf.matrix_triangular_solve(x + 9 * tf.eye(tf.shape(x)[1]), y)),
    "fft": ("A4", lambda tf, x: tf.abs(tf.fft(tf.complex(x, x)))),
    "rfft": ("A4", lambda tf, x: tf.abs(tf.spectral.rfft(x))),
    "sparse_tensor_dense_matmul": (
        "BC",
        lambda tf, x: tf.sparse_tensor_dense_matmul(
            tf.SparseTensor(
                tf.zeros([0, 2], tf.int64),
                tf.zeros([0]),
                tf.stack([tf.constant(2, tf.int64), tf.shape(x, out_type=tf.int64)[0]]),
            ),
            x,
        ),
    ),
    "sparse_to_dense": ("A", lambda tf, x: tf.sparse_to_dense(tf.expand_dims(tf.range(tf.shape(x)[0]), 1), [3], x)),
    "fill": ("A", lambda tf, x: tf.fill([tf.shape(x)[0]], 2.0) * x),
    "map_fn": ("AB", lambda tf, x: tf.map_fn(lambda r: r * 2, x)),
    "scan": ("AB", lambda tf, x: tf.scan(lambda a, r: a + r, x, initializer=tf.zeros(tf.shape(x)[1:]))),
    "foldl": ("AB", lambda tf, x: tf.foldl(lambda a, r: a + r, x, initializer=tf.zeros(tf.shape(x)[1:]))),
    "while_loop": (
        "AB",
        lambda tf, x: tf.while_loop(
            lambda i, a: i < tf.shape(x)[0], lambda i, a: (i + 1, a * x[i]), [0, tf.ones([tf.shape(x)[1]])]
        )[1],
    ),
    "cond": ("AB", lambda tf, x: tf.cond(tf.size(x) > 0, lambda: x * 2, lambda: x - 1)),
    "dense": ("A3", lambda tf, x: tf.layers.dense(x, 2, tf.nn.relu, kernel_initializer=tf.ones_initializer())),
    "dense of rank 3": ("AB3", lambda tf, x: tf.layers.dense(x, 2, kernel_initializer=tf.ones_initializer())),
    "layers.conv2d": ("A443", lambda tf, x: tf.layers.conv2d(x, 2, 3, kernel_initializer=tf.ones_initializer())),
    "layers.batch_normalization": ("A3", lambda tf, x: tf.layers.batch_normalization(x)),
    "layers.batch_normalization, training": ("A3", lambda tf, x: tf.layers.batch_normalization(x, training=True)),
    "layers.max_pooling2d": ("A443", lambda tf, x: tf.layers.max_pooling2d(x, 2, 2)),
    "layers network": (
        "A443",
        lambda tf, x: tf.layers.dense(
            tf.layers.flatten(tf.layers.max_pooling2d(x, 2, 2)), 2, kernel_initializer=tf.ones_initializer()
        ),
    ),
    "rnn": (
        "A32",
        lambda tf, x: tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(2), x, dtype=tf.float32)[0] * 0,
    ),
    "rnn of lengths": (
        "A32 i:A<=3",
        lambda tf, x, n: tf.nn.dynamic_rnn(_zero_cell(tf), x, n, dtype=tf.float32),
    ),
    "rnn of no steps": ("2A2", lambda tf, x: tf.nn.dynamic_rnn(_zero_cell(tf), x, dtype=tf.float32)),
    "metrics.mean": ("AB", lambda tf, x: tf.metrics.mean(x)[1]),
    "metrics.accuracy": ("i:A<3 i:A<3", lambda tf, i, j: tf.metrics.accuracy(i, j)[1]),
    "metrics.precision": ("i:A<2 i:A<2", lambda tf, i, j: tf.metrics.precision(i, j)[1]),
    "metrics.recall": ("i:A<2 i:A<2", lambda tf, i, j: tf.metrics.recall(i, j)[1]),
    "metrics.auc": ("i:A<2 A", lambda tf, i, x: tf.metrics.auc(i, tf.sigmoid(x))[1]),
    "metrics.mean_iou": ("i:A<2 i:A<2", lambda tf, i, j: tf.metrics.mean_iou(i, j, 2)[1]),
    "metrics.mean_squared_error": ("AB AB", lambda tf, x, y: tf.metrics.mean_squared_error(x, y)[1]),
    "confusion_matrix": ("i:A<2 i:A<2", lambda tf, i, j: tf.confusion_matrix(i, j, 3)),
    "global_norm": ("AB C", lambda tf, x, y: tf.global_norm([x, y])),
    "clip_by_norm": ("AB", lambda tf, x: tf.clip_by_norm(x, 1.0)),
    "clip_by_global_norm": ("AB C", lambda tf, x, y: tf.clip_by_global_norm([x, y], 1.0)[0]),
    "clip_by_value": ("AB", lambda tf, x: tf.clip_by_value(x, -0.5, 0.5)),
    "string_join": ("i:A<3", lambda tf, i: tf.string_join([tf.as_string(i), tf.as_string(i)])),
    "random_shuffle": ("1B", lambda tf, x: tf.random_shuffle(x)),
    "zeros_like": ("AB", lambda tf, x: [tf.zeros_like(x), tf.ones_like(x), tf.shape(x), tf.size(x), tf.rank(x)]),
    "range": ("A", lambda tf, x: [tf.range(tf.shape(x)[0]), tf.linspace(0.0, 1.0, tf.shape(x)[0] + 1)]),
    "meshgrid": ("A B", lambda tf, x, y: tf.meshgrid(x, y)),
    "matmul, turned": ("AB CB", lambda tf, x, y: tf.matmul(x, y, transpose_b=True)),
    "accumulate_n": ("AB AB", lambda tf, x, y: tf.accumulate_n([x, y])),
    "edit_distance": (
        "A",
        lambda tf, x: tf.edit_distance(
            tf.SparseTensor(tf.zeros([0, 2], tf.int64), tf.zeros([0], tf.int64), tf.constant([2, 0], tf.int64)),
            tf.SparseTensor(tf.constant([[0, 0]], tf.int64), tf.constant([1], tf.int64), tf.constant([2, 1], tf.int64)),
        ),
    ),
    "extract_image_patches": (
        "A44C",
        lambda tf, x: tf.extract_image_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
    ),
    "crop_and_resize": ("2441 A4 i:A<2", lambda tf, x, b, i: tf.image.crop_and_resize(x, b, i, [2, 2])),
    "non_max_suppression": ("A4 A", lambda tf, b, s: tf.image.non_max_suppression(b, s, 3)),
    "identity_n": ("AB C", lambda tf, x, y: tf.identity_n([x, y])),
}


def _zero_cell(tf):
    """A cell whose answers do not depend on random weights: the state counts steps and adds inputs."""

    class Adding(tf.nn.rnn_cell.RNNCell):
        output_size = state_size = 2

        def __call__(self, inputs, state, scope=None):
            state = state * 0.5 + inputs
            return state * 2.0, state

    return Adding()


def _dims(text, sizes):
    return tuple(int(c) if c.isdigit() else sizes[c] for c in text)


def cases(most=12):
    """``(name, shapes, dims by letter)``: for each program at most so many choices of sizes, each with a 0 or a 1."""
    for name, (shapes, _) in PROGRAMS.items():
        letters = sorted({c for c in shapes.replace("i:", "") if c.isalpha()})
        choices = [s for s in itertools.product((0, 1, 3), repeat=len(letters)) if 0 in s or 1 in s]
        random.Random(zlib.crc32(name.encode())).shuffle(choices)
        choices.sort(key=lambda s: s.count(0) != 1)
        for sizes in choices[:most] or [()]:
            yield name, shapes, dict(zip(letters, sizes, strict=True))


def inputs(shapes, sizes):
    """The arrays of a case."""
    arrays = []
    for k, text in enumerate(shapes.split()):
        rng = np.random.RandomState(zlib.crc32(f"{shapes}{k}".encode()))
        if text.startswith("i:"):
            dims, _, limit = text[2:].partition("<")
            reach = limit.lstrip("=")
            top = (sizes[reach] if reach.isalpha() else int(reach)) + limit.startswith("=")
            shape = _dims(dims, sizes)
            arrays.append(rng.randint(0, max(top, 1), shape).astype(INT))
        else:
            arrays.append(rng.uniform(-1, 1, _dims(text, sizes)).astype("float32"))
    return arrays


def flat(tf, result):
    """The tensors of a result, in order."""
    if isinstance(result, (list, tuple)):
        return [t for part in result for t in flat(tf, part)]
    return [result]


def build(tf, name, feeds):
    """What a case fetches: the program's tensors, and the gradients of their sum by each input of floating numbers."""
    results = flat(tf, PROGRAMS[name][1](tf, *feeds))
    floats = [r for r in results if r.dtype.base_dtype == tf.float32]
    wanted = [x for x in feeds if x.dtype == tf.float32]
    whole = tf.add_n([tf.reduce_sum(r * r) for r in floats]) if floats else None
    grads = tf.gradients(whole, wanted) if floats and wanted else []
    return results, [tf.convert_to_tensor(g) for g in grads if g is not None]


def written(array):
    """An array as JSON takes it: its shape, and its first elements to five digits, as text."""
    array = np.asarray(array)
    if array.dtype == object or array.dtype.kind == "S":
        return [list(array.shape), [v.decode() for v in array.ravel().tolist()]]
    return [list(array.shape), [f"{v:.5g}" for v in np.asarray(array, float).ravel()[:8].tolist()]]


def static(shape, text, kind):
    """The static shape of a placeholder for a text of dims: ``known``, ``letters`` or ``dims`` of it unknown, or the ``rank``."""
    if kind == "rank":
        return None
    text = text.removeprefix("i:").partition("<")[0]
    return [
        d if kind == "known" or (kind == "letters" and c.isdigit()) else None for c, d in zip(text, shape, strict=True)
    ]


def answer(tf, name, shapes, sizes, make_session, kind="letters"):
    """What TensorFlow, or another ``tf``, gives for a case: results and gradients, each a list of arrays or the error it raised."""
    arrays = inputs(shapes, sizes)
    with tf.Graph().as_default(), make_session() as session:
        feeds = [tf.placeholder(a.dtype, static(a.shape, t, kind)) for a, t in zip(arrays, shapes.split(), strict=True)]
        try:
            both = build(tf, name, feeds)
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        except (tf.errors.OpError, ValueError, TypeError) as error:
            return [error, error]
        return [_asked(tf, session, tensors, dict(zip(feeds, arrays, strict=True))) for tensors in both]


def _asked(tf, session, tensors, feeds):
    try:
        return [written(a) for a in session.run(tensors, feeds)]
    except tf.errors.OpError as error:
        return error


def key(name, sizes):
    return " ".join([name, *(f"{k}={v}" for k, v in sizes.items())])


def answers(tf, make_session):
    """The answers to all cases, as they are kept."""
    found = {}
    for name, shapes, sizes in cases():
        both = answer(tf, name, shapes, sizes, make_session)
        found[key(name, sizes)] = [a if isinstance(a, list) else "refused" for a in both]
    return found
