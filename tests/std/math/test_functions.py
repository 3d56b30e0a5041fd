"""std's math: public functions through a session, against NumPy, SciPy and central differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
import scipy.special
from graphdock.contracts.opdef import resolve
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.plugin.host import default_host


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def numeric(function: Callable[..., np.ndarray], arrays: list[np.ndarray], dy: np.ndarray) -> list[np.ndarray]:
    """Central differences of ``sum(dy * function(*arrays))``."""
    grads = []
    for which, array in enumerate(arrays):
        grad = np.zeros(array.shape)
        for index in np.ndindex(array.shape):
            step = 1e-6
            sides = []
            for sign in (1, -1):
                moved = [a.copy() for a in arrays]
                moved[which][index] += sign * step
                sides.append(np.sum(dy * function(*moved)))
            grad[index] = (sides[0] - sides[1]) / (2 * step)
        grads.append(grad)
    return grads


def check_gradients(build: Callable[..., Any], function: Callable[..., Any], *arrays: np.ndarray) -> None:
    """``tf.gradients`` of ``build`` equals central differences of ``function``, with and without static shapes."""
    dy = rng(7).uniform(0.5, 1.5, np.shape(function(*arrays)))
    want = numeric(function, list(arrays), dy)
    for static in (True, False):
        xs = [tf.placeholder(tf.float64, a.shape if static else [None] * a.ndim) for a in arrays]
        grads = tf.gradients(build(*xs), xs, grad_ys=[tf.constant(dy)])
        got = run(grads, dict(zip(xs, arrays, strict=True)))
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-6, atol=1e-7)


# operators and dtypes


def test_operators_are_numpys() -> None:
    a, b = rng().uniform(1, 3, (2, 3)), rng(1).uniform(1, 3, (3,))
    x, y = tf.constant(a), tf.constant(b)
    pairs = [
        (x + y, a + b),
        (x - y, a - b),
        (x * y, a * b),
        (x / y, a / b),
        (x // y, a // b),
        (x % y, a % b),
        (x**y, a**b),
        (-x, -a),
        (abs(-x), a),
        (2 - x, 2 - a),
        (2 / x, 2 / a),
        (2.0**x, 2.0**a),
        (x < y, a < b),
        (x >= 2.0, a >= 2.0),
        ((x < y) | (x > 2.5), (a < b) | (a > 2.5)),
        (~(x < y) & (x > 2.5), ~(a < b) & (a > 2.5)),
        ((x < y) ^ (x > 2.5), (a < b) ^ (a > 2.5)),
        (x @ tf.transpose(x), a @ a.T),
    ]
    for (_, want), got in zip(pairs, run([t for t, _ in pairs]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.parametrize(
    ("dtype", "quotient"), [("int8", "float32"), ("uint16", "float32"), ("int32", "float64"), ("int64", "float64")]
)
def test_true_division_of_integers_is_floating(dtype: str, quotient: str) -> None:
    z = tf.constant(np.array([7, -7], dtype) if dtype != "uint16" else np.array([7, 9], dtype)) / 2
    assert z.dtype.name == quotient
    assert run(z)[0] == 3.5


def test_div_of_integers_floors_and_of_floats_does_not() -> None:
    whole, real = run([tf.div(tf.constant([-7, 7]), 2), tf.div(tf.constant([-7.0, 7.0]), 2.0)])
    assert whole.tolist() == [-4, 3]
    assert whole.dtype == np.int32
    assert real.tolist() == [-3.5, 3.5]


def test_floor_division_and_remainder_follow_the_divisors_sign() -> None:
    a, b = np.array([7, -7, 7, -7], np.int64), np.array([2, 2, -2, -2], np.int64)
    q, r = run([tf.floordiv(a, b), tf.mod(a, b)])
    assert (q * b + r == a).all()
    assert all(v == 0 or math.copysign(1, v) == math.copysign(1, d) for v, d in zip(r, b, strict=True))
    fq, fr = run([tf.floordiv(a.astype(float), b.astype(float)), tf.floormod(a.astype(float), b.astype(float))])
    assert (fq == q).all()
    assert (fr == r).all()


def test_integers_wrap_around() -> None:
    big = tf.constant(np.array([2**31 - 1], np.int32))
    total, product = run([tf.reduce_sum(tf.stack([big, big])), big * big])
    assert total == -2
    assert product.tolist() == [1]


def test_integers_to_negative_powers_are_refused() -> None:
    exponents = tf.placeholder(tf.int32, [2])
    y = tf.pow(tf.constant([2, 3]), exponents)
    assert run(y, {exponents: [3, 2]}).tolist() == [8, 9]
    with pytest.raises(InvalidArgumentError, match="negative power"):
        run(y, {exponents: [-1, 2]})


def test_tensors_of_two_dtypes_do_not_mix() -> None:
    with pytest.raises(DTypeError):
        tf.constant(1.0) + tf.constant(1)


def test_shapes_that_do_not_broadcast_are_named() -> None:
    with pytest.raises(ShapeError, match=r"\[2,3\] and \[2\]"):
        tf.add(np.ones((2, 3)), np.ones(2))


def test_rounding_is_half_to_even_and_keeps_the_sign_of_zero() -> None:
    got = run(tf.round(np.array([0.5, 1.5, 2.5, -0.5, -1.5])))
    assert got.tolist() == [0.0, 2.0, 2.0, 0.0, -2.0]
    assert math.copysign(1, got[3]) == -1


# special functions


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-13), ("float32", 5e-7)])
def test_erf_and_erfc_against_scipy(dtype: str, rtol: float) -> None:
    x = np.concatenate([np.linspace(-6, 6, 9001), np.linspace(-0.47, 0.47, 2001), np.logspace(-30, 0.9, 500)]).astype(
        dtype
    )
    got_erf, got_erfc = run([tf.erf(x), tf.erfc(x)])
    np.testing.assert_allclose(got_erf, scipy.special.erf(x.astype(np.float64)), rtol=rtol)
    want = scipy.special.erfc(x.astype(np.float64))
    normal = want > np.finfo(dtype).tiny
    np.testing.assert_allclose(got_erfc[normal], want[normal], rtol=10 * rtol)


def test_erfc_in_the_far_tail() -> None:
    x = np.linspace(4, 26, 4001)
    np.testing.assert_allclose(run(tf.erfc(x)), scipy.special.erfc(x), rtol=1e-12)


def test_sigmoid_keeps_small_values() -> None:
    x = np.array([-700.0, -50.0, 0.0, 50.0, 800.0, -800.0])
    np.testing.assert_allclose(run(tf.sigmoid(x)), scipy.special.expit(x), rtol=1e-14)


# reductions


@pytest.mark.parametrize("axis", [None, 0, -1, [0, 2], (1,), [0, 1, 2], []])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.sampled(2)
def test_reductions_against_numpy(axis: Any, keepdims: bool) -> None:
    x = rng().standard_normal((2, 3, 4))
    over = tuple(axis) if isinstance(axis, list) else axis
    for name, want in (
        ("reduce_sum", x.sum(over, keepdims=keepdims)),
        ("reduce_mean", x.mean(over, keepdims=keepdims)),
        ("reduce_prod", x.prod(over, keepdims=keepdims)),
        ("reduce_max", x.max(over, keepdims=keepdims)),
        ("reduce_min", x.min(over, keepdims=keepdims)),
        ("reduce_logsumexp", scipy.special.logsumexp(x, over, keepdims=keepdims) if over != () else x),
        ("reduce_variance", x.var(over, keepdims=keepdims)),
        ("reduce_std", x.std(over, keepdims=keepdims)),
    ):
        for shape in (x.shape, [None, 3, None], None):
            p = tf.placeholder(tf.float64, shape)
            y = getattr(tf, name)(p, axis, keepdims)
            got = run(y, {p: x})
            assert y.shape.is_compatible_with(got.shape)
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12, err_msg=f"{name} {shape}")


def test_axes_that_are_computed_in_the_step() -> None:
    x = rng().standard_normal((2, 3)).astype(np.float32)
    axis = tf.placeholder(tf.int32, [None])
    total, most = tf.reduce_sum(x, axis), tf.reduce_max(x, axis, keepdims=True)
    for over in ([0], [1], [0, 1]):
        got = run([total, most], {axis: over})
        np.testing.assert_allclose(got[0], x.sum(tuple(over)), rtol=1e-6)
        np.testing.assert_allclose(got[1], x.max(tuple(over), keepdims=True))


def test_reductions_of_bools_and_counts() -> None:
    b = np.array([[True, False], [True, True]])
    got = run(
        [tf.reduce_all(b, 1), tf.reduce_any(b, 0), tf.reduce_all(b), tf.count_nonzero(b), tf.count_nonzero([0.0, 2.0])]
    )
    assert got[0].tolist() == [False, True]
    assert got[1].tolist() == [True, True]
    assert not got[2]
    assert (got[3], got[4]) == (3, 1)
    assert got[3].dtype == np.int64


def test_the_mean_of_small_integers_does_not_overflow() -> None:
    x = np.full(1000, -7, np.int8)
    x[0] = 100
    got = run(tf.reduce_mean(x))
    assert got == -6  # -6.893, towards zero
    assert got.dtype == np.int8


def test_reductions_over_nothing() -> None:
    empty = np.zeros((0, 3))
    names = ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_mean")
    got = dict(zip(names, run([getattr(tf, n)(empty, 0) for n in names]), strict=True))
    assert got["reduce_sum"].tolist() == [0, 0, 0]
    assert got["reduce_prod"].tolist() == [1, 1, 1]
    assert got["reduce_max"].tolist() == [-np.inf] * 3
    assert got["reduce_min"].tolist() == [np.inf] * 3
    assert np.isnan(got["reduce_mean"]).all()


def test_half_precision_is_accumulated_in_float32() -> None:
    ones = np.ones(5000, np.float16)
    total, mean = run([tf.reduce_sum(ones), tf.reduce_mean(ones)])
    assert total == 5000  # float16 stops at 2048 when ones are added to it
    assert mean == 1
    wide = tf.cast(tf.constant(np.ones((1, 3000), np.float32)), tf.bfloat16)
    assert float(run(tf.matmul(wide, wide, transpose_b=True))[0, 0]) == 3008  # 3000 rounded to bfloat16


def test_old_argument_names() -> None:
    x = np.arange(6.0).reshape(2, 3)
    a, b, c = run(
        [tf.reduce_sum(x, reduction_indices=[1]), tf.reduce_mean(x, 0, keep_dims=True), tf.argmax(x, dimension=1)]
    )
    assert a.tolist() == [3, 12]
    assert b.shape == (1, 3)
    assert c.tolist() == [2, 2]
    with pytest.raises(InvalidArgumentError, match="both were given"):
        tf.reduce_sum(x, axis=0, reduction_indices=1)


def test_bad_axes_are_refused_when_the_graph_is_built() -> None:
    with pytest.raises(ShapeError, match="axis 2 is out of range"):
        tf.reduce_sum(np.ones((2, 3)), 2)
    with pytest.raises(ShapeError, match="given twice"):
        tf.reduce_sum(np.ones((2, 3)), [1, -1])


def test_index_of_extremes() -> None:
    x = rng().standard_normal((4, 5))
    got = run([tf.argmax(x), tf.argmax(x, 1, output_type=tf.int32), tf.argmin(x, -1), tf.argmax([1, 3, 3])])
    assert (got[0] == x.argmax(0)).all()
    assert got[0].dtype == np.int64
    assert got[1].dtype == np.int32
    assert (got[1] == x.argmax(1)).all()
    assert (got[2] == x.argmin(1)).all()
    assert got[3] == 1


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumsum(exclusive: bool, reverse: bool) -> None:
    def plain(x: np.ndarray) -> np.ndarray:
        x = x[:, ::-1] if reverse else x
        sums = np.cumsum(x, 1) - (x if exclusive else 0)
        return sums[:, ::-1] if reverse else sums

    x = rng().standard_normal((2, 4))
    np.testing.assert_allclose(run(tf.cumsum(x, 1, exclusive, reverse)), plain(x), atol=1e-14)
    check_gradients(lambda t: tf.cumsum(t, 1, exclusive, reverse), plain, x)


# products and the rest


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(("batch_a", "batch_b"), [((), ()), ((2,), (2,)), ((2, 1), (3,)), ((), (2,)), ((2,), ())])
def test_matmul_and_its_gradients(
    transpose_a: bool, transpose_b: bool, batch_a: tuple[int, ...], batch_b: tuple[int, ...]
) -> None:
    a = rng().standard_normal((*batch_a, *((3, 2) if transpose_a else (2, 3))))
    b = rng(1).standard_normal((*batch_b, *((4, 3) if transpose_b else (3, 4))))

    def plain(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (np.swapaxes(x, -1, -2) if transpose_a else x) @ (np.swapaxes(y, -1, -2) if transpose_b else y)

    np.testing.assert_allclose(run(tf.matmul(a, b, transpose_a, transpose_b)), plain(a, b), rtol=1e-12)
    check_gradients(lambda x, y: tf.matmul(x, y, transpose_a, transpose_b), plain, a, b)


def test_matmul_of_integers_keeps_the_dtype() -> None:
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    got = run(tf.matmul(a, a, transpose_b=True))
    assert got.dtype == np.int32
    assert (got == a @ a.T).all()


def test_matmul_of_shapes_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="inner sizes differ: 4 .* and 5"):
        tf.matmul(np.ones((3, 4)), np.ones((5, 6)))


@pytest.mark.parametrize("axes", [0, 1, 2, [[0], [1]], [[0, 1], [1, 0]], [[-1], [0]]])
def test_tensordot_against_numpy(axes: Any) -> None:
    a, b = rng().standard_normal((3, 3)), rng(1).standard_normal((3, 3))
    np.testing.assert_allclose(run(tf.tensordot(a, b, axes)), np.tensordot(a, b, axes), rtol=1e-12)


def test_tensordot_with_unknown_dims() -> None:
    a, b = rng().standard_normal((2, 3, 4)), rng(1).standard_normal((4, 3, 5))
    x, y = tf.placeholder(tf.float64, [None, None, 4]), tf.placeholder(tf.float64, [None, None, None])
    z = tf.tensordot(x, y, [[2, 1], [0, 1]])
    np.testing.assert_allclose(run(z, {x: a, y: b}), np.tensordot(a, b, [[2, 1], [0, 1]]), rtol=1e-12)


def test_norms() -> None:
    x = rng().standard_normal((3, 4))
    got = run([tf.norm(x), tf.norm(x, 1, 1), tf.norm(x, np.inf, 0), tf.norm(x, 3, 1, keepdims=True)])
    want = [
        np.linalg.norm(x),
        np.abs(x).sum(1),
        np.abs(x).max(0),
        np.linalg.norm(x, 3, 1, keepdims=True),
    ]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12)
    with pytest.raises(InvalidArgumentError, match="must be a supported vector norm"):
        tf.norm(x, "nuclear")


def test_where_broadcasts() -> None:
    c, x = np.array([[True], [False]]), np.arange(3.0)
    np.testing.assert_array_equal(run(tf.where(c, x, 7.0)), np.where(c, x, 7.0))


def test_clip_by_value() -> None:
    x = np.linspace(-2, 2, 9)
    np.testing.assert_array_equal(run(tf.clip_by_value(x, -1.0, 0.5)), np.clip(x, -1, 0.5))


# gradients that need care


def test_gradient_of_powers_at_zero() -> None:
    x, y = tf.placeholder(tf.float64, [4]), tf.placeholder(tf.float64, [4])
    grads = tf.gradients(x**y, [x, y])
    to_x, to_y = run(grads, {x: [0.0, 0.0, 2.0, -2.0], y: [0.0, 2.0, 0.0, 3.0]})
    np.testing.assert_allclose(to_x, [0, 0, 0, 12])
    np.testing.assert_allclose(to_y, [0, 0, np.log(2), 0])


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0, -1.5])
def test_gradient_of_powers_with_a_constant_exponent(exponent: float) -> None:
    check_gradients(lambda x: x**exponent, lambda x: x**exponent, rng().uniform(0.5, 2, (3,)))


_SINGULAR = {
    **dict.fromkeys(["sqrt", "rsqrt", "reciprocal", "log"], (0.0, -0.0)),
    "log1p": (-1.0,),
    **dict.fromkeys(["asin", "acos", "atanh"], (1.0, -1.0)),
}


@pytest.mark.parametrize("name", _SINGULAR)
def test_where_no_gradient_arrives_at_a_singular_place_none_leaves(name: str) -> None:
    """As TensorFlow's: of ``g.y * reciprocal(...)`` the second gradient, the first too where it has an op of its own."""
    x = tf.constant(_SINGULAR[name], tf.float64)
    none = tf.zeros_like(x)
    first = tf.gradients(getattr(tf, name)(x), x, none)[0]
    second = tf.gradients(first, x, none)[0]
    found = run(first if name in ("sqrt", "rsqrt", "reciprocal") else second)
    np.testing.assert_array_equal(np.abs(found), 0.0)


def test_gradient_of_asinh_of_large_numbers() -> None:
    x = tf.constant([1e25, -1e25], tf.float32)
    np.testing.assert_allclose(run(tf.gradients(tf.asinh(x), x)[0]), [1e-25, 1e-25], rtol=1e-5)


def test_second_gradient_of_relu6_is_zeros() -> None:
    x = tf.constant([-1.0, 0.0, 2.0, 6.0, 7.0])
    slope = tf.gradients(tf.nn.relu6(x), x)[0]
    np.testing.assert_array_equal(run([slope, *tf.gradients(slope, x)]), [[0, 0, 1, 0, 0], [0] * 5])


def test_where_two_are_equal_the_gradient_goes_to_the_first() -> None:
    x, y = tf.constant([1.0, 2.0]), tf.constant([1.0, 3.0])
    got = run(tf.gradients(tf.maximum(x, y), [x, y]) + tf.gradients(tf.minimum(x, y), [x, y]))
    assert [g.tolist() for g in got] == [[1, 0], [0, 1], [1, 1], [0, 0]]


def test_equal_extrema_share_the_gradient() -> None:
    x = tf.constant([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    (got,) = run(tf.gradients(tf.reduce_max(x, 1), [x]))
    np.testing.assert_allclose(got, [[0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]])


@pytest.mark.parametrize("row", [[2.0, 3.0, 4.0], [0.0, 3.0, 4.0], [0.0, 0.0, 4.0]])
def test_gradient_of_products_with_zeros(row: list[float]) -> None:
    check_gradients(lambda x: tf.reduce_prod(x, 0), lambda x: x.prod(0), np.array(row))


def test_gradient_of_logsumexp_is_softmax_even_for_large_values() -> None:
    x = tf.constant([1000.0, 1001.0, -1e30])
    y = tf.reduce_logsumexp(x)
    value, (grad,) = run([y, tf.gradients(y, [x])])
    assert value == pytest.approx(1001.3133, rel=1e-6)
    np.testing.assert_allclose(grad, scipy.special.softmax([1000.0, 1001.0, -1e30]), rtol=1e-4)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, [0, 2], [1, 2], [-1, 0]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_gradients_of_reductions(axis: Any, keepdims: bool) -> None:
    x = rng().uniform(0.5, 2, (2, 3, 2))
    over = tuple(axis) if isinstance(axis, list) else axis
    check_gradients(lambda t: tf.reduce_sum(t * t, axis, keepdims), lambda a: (a * a).sum(over, keepdims=keepdims), x)
    check_gradients(lambda t: tf.reduce_mean(t, axis, keepdims), lambda a: a.mean(over, keepdims=keepdims), x)
    check_gradients(lambda t: tf.reduce_max(t, axis, keepdims), lambda a: a.max(over, keepdims=keepdims), x)
    check_gradients(lambda t: tf.reduce_prod(t, axis, keepdims), lambda a: a.prod(over, keepdims=keepdims), x)


@pytest.mark.parametrize(
    ("left", "right"), [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((3, 1, 2), (2, 1)), ((1,), (2, 3))]
)
def test_gradients_of_broadcast_operands(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = np.asarray(rng().uniform(0.5, 2, left)), np.asarray(rng(1).uniform(0.5, 2, right))
    check_gradients(lambda x, y: x * y + x / y - y, lambda x, y: x * y + x / y - y, a, b)
    check_gradients(lambda x, y: tf.squared_difference(x, y) ** y, lambda x, y: ((x - y) ** 2) ** y, a, b + 3)


def test_second_derivatives() -> None:
    x = tf.placeholder(tf.float64, [3])
    for build, second in (
        (tf.tanh, lambda v: -2 * np.tanh(v) * (1 - np.tanh(v) ** 2)),
        (tf.sigmoid, lambda v: (s := scipy.special.expit(v)) * (1 - s) * (1 - 2 * s)),
        (tf.exp, np.exp),
        (lambda t: t**3.0, lambda v: 6 * v),
        (lambda t: tf.reduce_sum(tf.square(t)) * t, None),
    ):
        (first,) = tf.gradients(build(x), [x])
        (again,) = tf.gradients(first, [x])
        values = np.array([0.3, -0.5, 1.2])
        got = run(again, {x: values})
        if second is not None:
            np.testing.assert_allclose(got, second(values), rtol=1e-9)
        else:
            assert np.isfinite(got).all()


# economy


def made(build: Callable[[], Any]) -> list[str]:
    """Types of the operations that ``build`` adds, constants aside."""
    graph = tf.get_default_graph()
    before = len(graph.get_operations())
    build()
    return [op.type for op in graph.get_operations()[before:] if op.type != "Const"]


def test_gradients_of_a_layer_have_no_spare_nodes_although_the_batch_is_unknown() -> None:
    x = tf.placeholder(tf.float32, [None, 784])
    w, b = tf.placeholder(tf.float32, [784, 10]), tf.placeholder(tf.float32, [10])
    y = tf.matmul(x, w) + b
    dy = tf.placeholder(tf.float32, [None, 10])
    assert made(lambda: tf.gradients(y, [w, b], grad_ys=[dy])) == ["Sum", "MatMul", "MatMul"]


def test_equal_static_shapes_need_no_reduction() -> None:
    x, y = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [2, 3])
    z, dy = x * y, tf.placeholder(tf.float32, [2, 3])
    assert made(lambda: tf.gradients(z, [x, y], grad_ys=[dy])) == ["Mul", "Mul"]


def test_unknown_dims_are_decided_in_the_step() -> None:
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    grads = tf.gradients(x + y, [x, y])
    got = run(grads, {x: [1.0], y: [1.0, 2.0, 3.0]})
    assert [g.tolist() for g in got] == [[3.0], [1.0, 1.0, 1.0]]


# decompositions


@pytest.mark.parametrize("op", ["SquaredDifference", "ClipByValue", "Rsqrt", "Sigmoid", "TanhGrad", "SigmoidGrad"])
def test_decompositions_agree_with_the_kernels(op: str) -> None:
    opdef = default_host().ops.get(op)
    arrays = {a.name: tf.constant(rng(i).uniform(0.2, 0.9, (3, 4))) for i, a in enumerate(opdef.inputs)}
    assert opdef.decomposition is not None
    (parts,) = resolve(opdef.decomposition)(**arrays, T=tf.float64)
    whole = tf.ops.apply_op(op, **arrays)
    assert parts.op.type != op
    np.testing.assert_allclose(*run([parts, whole]), rtol=1e-14)


def test_a_constant_of_zeros_keeps_the_sign_of_each() -> None:
    x = tf.placeholder(tf.float32, [2])
    assert run(x / tf.constant([0.0, -0.0]), {x: [1.0, 1.0]}).tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.float32, tf.float64])
def test_quotients_and_remainders_of_either_sign_are_pythons(dtype: Any) -> None:
    pairs = [(x, y) for x in (-7, -6, -1, 0, 1, 6, 7) for y in (-3, -2, 2, 3)]
    a, b = (np.array(side, dtype.np) for side in zip(*pairs, strict=True))
    x, y = tf.placeholder(dtype, [len(pairs)]), tf.placeholder(dtype, [len(pairs)])
    quotient, remainder = run([x // y, x % y], {x: a, y: b})
    assert quotient.tolist() == [i // j for i, j in pairs]
    assert remainder.tolist() == [i % j for i, j in pairs]


@pytest.mark.parametrize("axes", [0, 1, [[1, 2], [1, 0]], [[-1], [0]]])
def test_tensordot_of_unknown_ranks(axes: Any) -> None:
    a, b = np.random.default_rng(0).random((2, 3, 4)), np.random.default_rng(1).random((4, 3, 5))
    x, y = tf.placeholder(tf.float64), tf.placeholder(tf.float64)
    z = tf.tensordot(x, y, axes)
    found, slope = run([z, tf.gradients(z, x)[0]], {x: a, y: b})
    np.testing.assert_allclose(found, np.tensordot(a, b, axes), rtol=1e-12)
    assert slope.shape == a.shape


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("axes", [[[], []], [[1], [2]], [[-1, 1], [0, -1]], [[1, 2], [2, 0]]], ids=str)
def test_tensordot_of_axes_that_are_a_tensor(axes, known) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=[2, 3, 4]), rng.normal(size=[4, 5, 3])
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = (tf.placeholder(tf.float64, v.shape if known else None) for v in (a, b))
        fed = tf.placeholder(tf.int32)
        made = [tf.tensordot(x, y, fed)]
        made += tf.gradients(made[0], [x, y])
        got = sess.run(made, {x: a, y: b, fed: np.array(axes, np.int32).reshape(2, -1)})
    np.testing.assert_allclose(got[0], np.tensordot(a, b, axes))
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = tf.constant(a), tf.constant(b)
        for found, wanted in zip(got[1:], sess.run(tf.gradients(tf.tensordot(x, y, axes), [x, y])), strict=True):
            np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
@pytest.mark.parametrize("output_type", [tf.int64, tf.int32])
@pytest.mark.parametrize(
    ("row", "largest", "smallest"),
    [
        ([math.nan, 1, 3, 2], 2, 1),
        ([1, math.nan, 3, 2], 2, 0),
        ([1, 2, 3, math.nan], 2, 0),
        ([math.nan] * 4, 0, 0),
        ([math.nan, -math.inf, -math.inf, math.nan], 0, 1),
        ([math.nan, math.inf, math.inf, math.nan], 1, 0),
        ([-math.inf, math.nan, math.inf, 0], 2, 0),
    ],
)
def test_what_is_no_number_is_neither_largest_nor_smallest(
    dtype: Any, output_type: Any, row: list[float], largest: int, smallest: int
) -> None:
    x, axis = tf.constant([row, [1.0, 2, 0, 0]], dtype), tf.placeholder(tf.int32, [])
    found = [f(x, a, output_type=output_type) for f in (tf.argmax, tf.argmin) for a in (1, axis)]
    found += [f(tf.transpose(x), 0, output_type=output_type) for f in (tf.argmax, tf.argmin)]
    whole = [[largest, 1]] * 2 + [[smallest, 2]] * 2 + [[largest, 1], [smallest, 2]]
    assert [v.tolist() for v in run(found, {axis: 1})] == whole


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
def test_the_euclidean_norm_of_integers_is_one(kind: Any) -> None:
    made = run(tf.math.reduce_euclidean_norm(np.array([[3, 4], [5, 12], [1, 1]], kind), 1))
    assert made.dtype == kind
    assert made.tolist() == [5, 13, 1]


def test_variances_of_complex_numbers_are_real_and_of_integers_refused() -> None:
    x = np.array([[3 + 1j, 4 - 1j], [5, 12j]], np.complex64)
    variance, deviation = run([tf.math.reduce_variance(x, 1), tf.math.reduce_std(x, 1)])
    assert variance.dtype == np.float32
    np.testing.assert_allclose(variance, np.var(x, 1), rtol=1e-6)
    np.testing.assert_allclose(deviation, np.std(x, 1), rtol=1e-6)
    with pytest.raises(DTypeError, match="variance"):
        tf.math.reduce_variance([1, 2])
