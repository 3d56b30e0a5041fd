"""What is refused when the graph is made, by the class that TensorFlow 1 raises there, and static shapes that follow from it."""

from __future__ import annotations

import functools

import graphdock as tf
import numpy as np
import pytest


def _image():
    return tf.placeholder(tf.float32, [5, 7, 9, 4])


def _any(dtype=tf.float32):
    return tf.placeholder(dtype)


def _sequences(indices, shape):
    return tf.SparseTensor(indices, [1] * len(indices), shape)


#: Programs that TensorFlow refuses before any step, and the class of its error.
REFUSED = {
    "max_pooling2d strides=None": (lambda: tf.layers.max_pooling2d(_image(), 3, strides=None), ValueError),
    "max_pooling2d pool_size=None": (lambda: tf.layers.max_pooling2d(_image(), None, strides=2), ValueError),
    "max_pooling2d pool_size text": (lambda: tf.layers.max_pooling2d(_image(), "ab", strides=2), ValueError),
    "AveragePooling1D strides=None": (lambda: tf.layers.AveragePooling1D(3, None), ValueError),
    "conv2d kernel_size=None": (lambda: tf.layers.conv2d(_image(), 3, None), ValueError),
    "conv2d strides=None": (lambda: tf.layers.conv2d(_image(), 3, 3, strides=None), ValueError),
    "conv2d dilation_rate=None": (lambda: tf.layers.conv2d(_image(), 3, 3, dilation_rate=None), ValueError),
    "conv2d filters=None": (lambda: tf.layers.conv2d(_image(), None, 3), ValueError),
    "separable_conv2d strides=None": (lambda: tf.layers.separable_conv2d(_image(), 3, 3, strides=None), ValueError),
    "conv2d_transpose kernel_size=None": (lambda: tf.layers.conv2d_transpose(_image(), 3, None), ValueError),
    "Dense of an unknown rank": (lambda: tf.layers.Dense(2).compute_output_shape(None), ValueError),
    "Dense of a scalar": (lambda: tf.layers.Dense(2).compute_output_shape([]), ValueError),
    "Dense of a vector": (lambda: tf.layers.Dense(2).compute_output_shape([1]), ValueError),
    "Dense of an unknown last dim": (lambda: tf.layers.Dense(2).compute_output_shape([4, None]), ValueError),
    "random_normal_initializer string": (lambda: tf.random_normal_initializer(dtype=tf.string), ValueError),
    "random_normal_initializer int32": (lambda: tf.random_normal_initializer(dtype=tf.int32), ValueError),
    "truncated_normal_initializer": (lambda: tf.truncated_normal_initializer(dtype=tf.complex64), ValueError),
    "uniform_unit_scaling_initializer": (lambda: tf.uniform_unit_scaling_initializer(dtype=tf.bool), ValueError),
    "orthogonal_initializer": (lambda: tf.orthogonal_initializer(dtype=tf.int32), ValueError),
    "variance_scaling_initializer": (lambda: tf.variance_scaling_initializer(dtype=tf.string), ValueError),
    "constant_initializer of an object": (lambda: tf.constant_initializer(object()), TypeError),
    "constant_initializer of a dict": (lambda: tf.constant_initializer({"a": 1}), TypeError),
    "constant_initializer of a tensor": (lambda: tf.constant_initializer(tf.constant(1.0)), TypeError),
    "a global step of rank 1": (
        lambda: tf.train.assert_global_step(tf.Variable([1], trainable=False, dtype=tf.int32)),
        TypeError,
    ),
    "space_to_batch of rank 3": (
        lambda: tf.space_to_batch(tf.placeholder(tf.float32, [None] * 3), [[0, 0], [0, 0]], 2),
        ValueError,
    ),
    "run(None)": (lambda: tf.Session().run(None), TypeError),
}

#: Programs, and the static shape of what they give in TensorFlow.
SHAPES = {
    "batch_to_space of unknown crops": (lambda: tf.batch_to_space(_any(), _any(tf.int32), 4), [None] * 4),
    "space_to_batch of unknown paddings": (lambda: tf.space_to_batch(_any(), _any(tf.int32), 4), [None] * 4),
    "batch_to_space of an unknown rank": (lambda: tf.batch_to_space(_any(), [[0, 0], [0, 0]], 4), [None] * 4),
    "edit_distance of one shape": (
        lambda: tf.edit_distance(_sequences([[0, 0], [1, 0]], [2, 1]), _sequences([[0, 0]], [2, 2])),
        [2],
    ),
    "edit_distance of the larger dims": (
        lambda: tf.edit_distance(_sequences([[0, 0, 0]], [2, 1, 4]), _sequences([[0, 1, 0]], [1, 3, 2])),
        [2, 3],
    ),
    "edit_distance of an unknown shape": (
        lambda: tf.edit_distance(
            tf.SparseTensor([[0, 0]], [1], tf.placeholder(tf.int64, [2])), _sequences([[0, 0]], [2, 2])
        ),
        [None],
    ),
    "Dense of a batch": (lambda: tf.zeros([1, 2]) + 0 * tf.layers.Dense(2)(tf.zeros([1, 3])), [1, 2]),
}


@pytest.mark.parametrize("program, kind", REFUSED.values(), ids=REFUSED)
def test_refused_when_the_graph_is_made(session, program, kind):
    with pytest.raises(kind) as caught:
        program()
    assert isinstance(caught.value, tf.errors.OpError)


@pytest.mark.parametrize("program, dims", SHAPES.values(), ids=SHAPES)
def test_static_shape(session, program, dims):
    assert program().shape.as_list() == dims


def test_images_whose_rank_is_fed_are_of_rank_4(session):
    x = tf.placeholder(tf.float32)
    y = tf.space_to_batch(x, [[0, 0], [0, 0]], 2)
    assert y.eval({x: np.zeros((1, 2, 4, 3))}).shape == (4, 1, 2, 3)
    with pytest.raises(tf.errors.InvalidArgumentError):
        y.eval({x: np.zeros((1, 2, 4))})


def test_scalar_mul_of_rows_stays_rows(session):
    x = tf.IndexedSlices(tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([0, 4]))
    y = tf.scalar_mul(-2, x)
    assert isinstance(y, tf.IndexedSlices) and y.dense_shape is None
    assert y.values.eval().tolist() == [[-2, -4], [-6, -8]] and y.indices.eval().tolist() == [0, 4]


def test_what_is_colocated_has_the_other_one_s_device_and_groups(session):
    with tf.device("/cpu:0"):
        with tf.device("/device:GPU:0"):
            a = tf.constant([2.0], name="a")
        with tf.colocate_with(a.op):
            b = tf.constant(3.0)
            with tf.colocate_with(b.op):
                c = tf.constant(4.0)
            with tf.device("/cpu:0"):
                d = tf.constant(4.0)
        e = tf.constant(5.0)
    assert [x.op.device for x in (a, b, c, d, e)] == ["/device:GPU:0"] * 4 + ["/device:CPU:0"]
    assert [x.op.colocation_groups() for x in (a, b, c)] == [[b"loc:@a"]] * 3
    f = tf.constant(1.0, name="f")
    with tf.device("/device:GPU:0"), tf.colocate_with(f), tf.colocate_with(c):
        assert tf.constant(1.0).op.colocation_groups() == [b"loc:@a", b"loc:@f"]
    with tf.device("/device:GPU:0"), tf.colocate_with(f):
        assert tf.constant(1.0).op.device == ""


#: Functions that take a SparseTensor in TensorFlow, and what they make of -4 and 9.
OF_SPARSE = {
    "abs": [4.0, 9.0],
    "negative": [4.0, -9.0],
    "sign": [-1.0, 1.0],
    "square": [16.0, 81.0],
    "tanh": [np.tanh(np.float32(-4)), 1.0],
    "erf": [-1.0, 1.0],
    "identity": [-4.0, 9.0],
    "stop_gradient": [-4.0, 9.0],
    "math.bessel_i1e": [-0.17875084, 0.12722498],
}


@pytest.mark.parametrize("name, wanted", OF_SPARSE.items())
def test_functions_that_keep_zero_take_sparse_tensors(session, name, wanted):
    sparse = tf.SparseTensor([[0, 1], [2, 3]], [-4.0, 9.0], [5, 6])
    made = functools.reduce(getattr, name.split("."), tf)(sparse, name="it")
    assert made.shape.as_list() == [5, 6] and made.indices is sparse.indices
    np.testing.assert_allclose(session.run(made).values, wanted, rtol=1e-6)
    assert (tf.gradients(made.values, sparse.values) == [None]) == (name == "stop_gradient")


def test_zeros_like_of_a_sparse_tensor_are_dense(session):
    sparse = tf.SparseTensor([[0, 1]], [-4.0], [2, 3])
    np.testing.assert_array_equal(session.run(tf.zeros_like(sparse)), np.zeros((2, 3), np.float32))
    assert tf.zeros_like(sparse, tf.int64).dtype == tf.int64


def test_functions_that_do_not_keep_zero_refuse_sparse_tensors(session):
    with pytest.raises(TypeError):
        tf.exp(tf.SparseTensor([[0]], [1.0], [2]))


#: Static shape, that of its diagonal part (or the error), and by the shape that is fed the diagonal; None where the step fails.
DIAGONALS = [
    ([], ValueError, {}),
    ([2], ValueError, {}),
    ([2, 5], ValueError, {}),
    ([None] * 3, ValueError, {}),
    ([2, 1, 2, 3], ValueError, {}),
    ([None, 3], [3], {(3, 3): [0, 4, 8], (2, 3): None}),
    ([2, None, None, 3], [2, 3], {(2, 3, 2, 3): [[0, 7, 14], [21, 28, 35]]}),
    ([None] * 4, [None, None], {(2, 3, 3, 2): None}),
    (None, None, {(3, 3): [0, 4, 8], (2, 3): None, (1, 1, 1): None}),
]


@pytest.mark.parametrize("shape, wanted, feeds", DIAGONALS, ids=[str(d[0]) for d in DIAGONALS])
def test_diag_part_of_shapes_that_are_not_all_known(session, shape, wanted, feeds):
    x = tf.placeholder(tf.float32, shape)
    if wanted is ValueError:
        with pytest.raises(ValueError):
            tf.diag_part(x)
        return
    y = tf.diag_part(x)
    assert (None if y.shape.rank is None else y.shape.as_list()) == wanted
    for fed, answer in feeds.items():
        value = np.arange(np.prod(fed), dtype=np.float32).reshape(fed)
        if answer is None:
            with pytest.raises(tf.errors.InvalidArgumentError):
                y.eval({x: value})
        else:
            assert y.eval({x: value}).tolist() == answer


@pytest.mark.parametrize(
    "shape, rows", [([2, 1], True), ([None, 1], True), ([2, 2], False), ([2, 3, 1], False), (None, False)]
)
def test_the_gradient_of_gather_nd_is_of_rows_where_indices_name_rows(session, shape, rows):
    params, indices = tf.constant(np.eye(4)), tf.placeholder(tf.int64, shape)
    (gradient,) = tf.gradients(tf.gather_nd(params, indices), params)
    assert isinstance(gradient, tf.IndexedSlices) is rows
    fed = np.array([[3], [3]]) if rows or shape is None else np.zeros(shape)
    answer = np.zeros((4, 4))
    np.add.at(answer, tuple(np.moveaxis(fed.astype(int), -1, 0)), 1)
    np.testing.assert_array_equal(session.run(tf.convert_to_tensor(gradient), {indices: fed}), answer)
    if rows:
        assert session.run(gradient, {indices: fed}).indices.tolist() == [3, 3]


def test_an_initial_tensor_in_parts_may_have_its_shape_beside_it(session):
    value, cut = tf.constant(np.arange(6.0).reshape(3, 2)), tf.fixed_size_partitioner(2)
    made = tf.get_variable("p", [3, None], initializer=value, partitioner=cut)
    with tf.variable_scope("s", partitioner=cut):
        inherited = tf.get_variable("q", [3, 2], initializer=value)
    session.run(tf.global_variables_initializer())
    for variable in (made, inherited):
        assert len(list(variable)) == 2 and session.run(variable.as_tensor()).tolist() == [[0, 1], [2, 3], [4, 5]]
    for shape in ([2, 2], [3, 2, 1]):
        with pytest.raises(ValueError):
            tf.get_variable("r", shape, initializer=value, partitioner=cut)
    with pytest.raises(ValueError):
        tf.get_variable("r", [3, 2], initializer=value)


def _loss():
    return tf.reduce_sum(tf.Variable([1.0]))


#: What tf.contrib.layers refuses when the graph is made.
CONTRIB = {
    "softmax of an unknown rank": (lambda: tf.contrib.layers.softmax(_any()), ValueError),
    "softmax of a vector": (lambda: tf.contrib.layers.softmax(tf.zeros([3])), ValueError),
    "softmax of an unknown last dim": (
        lambda: tf.contrib.layers.softmax(tf.placeholder(tf.float32, [3, None])),
        ValueError,
    ),
    "unit_norm of an unknown rank": (lambda: tf.contrib.layers.unit_norm(_any(), 2), ValueError),
    "unit_norm along no dim": (lambda: tf.contrib.layers.unit_norm(tf.zeros([3, 2]), 2), ValueError),
    "a class that is no optimizer": (
        lambda: tf.contrib.layers.optimize_loss(_loss(), None, 0.1, tf.Variable),
        ValueError,
    ),
    "a function that makes no optimizer": (
        lambda: tf.contrib.layers.optimize_loss(_loss(), None, 0.1, lambda rate: None),
        ValueError,
    ),
    "a global step of another dtype": (
        lambda: tf.contrib.layers.optimize_loss(_loss(), tf.Variable(0.0), 0.1, "SGD"),
        TypeError,
    ),
}


@pytest.mark.parametrize("program, kind", CONTRIB.values(), ids=CONTRIB)
def test_contrib_layers_refuse(session, program, kind):
    with pytest.raises(kind):
        program()
