"""The Chicago slides' custom op, the SO(3) tensor product: a YAML spec, its gradient op, and load_op_library."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.contracts.opdef import resolve
from graphdock.gradients import registry

FOLDER = Path(__file__).parents[2] / "examples" / "so3"


@pytest.fixture(scope="module")
def so3():
    library = tf.load_op_library(str(FOLDER / "so3.yaml"))
    if not tf.default_host().kernels.for_op("so3.TensorProduct"):
        spec = importlib.util.spec_from_file_location("so3_kernels", FOLDER / "so3_kernels.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return library


def vectors(degree, channels=2, batch=3, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(batch, 2 * l + 1, channels)) for l in range(degree + 1)]


def placeholders(values):
    return [tf.placeholder(tf.float64, v.shape) for v in values]


def test_degree_zero_is_the_product_of_scalars(so3):
    with tf.Graph().as_default(), tf.Session() as sess:
        a, b = vectors(0), vectors(0, seed=1)
        out = so3.tensor_product(a, b, L=0)
        np.testing.assert_allclose(sess.run(out)[0], a[0] * b[0])


def test_two_vectors_couple_to_the_scalar_and_cross_products(so3):
    """In the spherical basis the l=0 and l=1 parts of u x v are -u.v/sqrt(3) and i (u x v)/sqrt(2)."""

    def spherical(v):
        x, y, z = v
        return np.array([(x - 1j * y) / np.sqrt(2), z, -(x + 1j * y) / np.sqrt(2)])

    u, v = np.array([0.3, -1.0, 2.0]), np.array([1.5, 0.2, -0.7])
    spec = importlib.util.spec_from_file_location("so3_kernels_pure", FOLDER / "so3_kernels.py")
    source = Path(spec.origin).read_text().replace("@ops.RegisterKernel", "# @ops.RegisterKernel")
    names: dict[str, object] = {}
    exec(source, names)
    c = names["clebsch_gordan"]
    su, sv = spherical(u), spherical(v)
    scalar = np.einsum("xyz,x,y->z", c(1, 1, 0), su, sv)
    vector = np.einsum("xyz,x,y->z", c(1, 1, 1), su, sv)
    np.testing.assert_allclose(scalar, [-(u @ v) / np.sqrt(3)], atol=1e-12)
    np.testing.assert_allclose(vector, 1j * spherical(np.cross(u, v)) / np.sqrt(2), atol=1e-12)


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_the_kernel_agrees_with_the_oracle_of_the_spec(so3, degree):
    oracle = resolve(tf.default_host().ops.get("so3.TensorProduct").reference)
    a, b = vectors(degree), vectors(degree, seed=1)
    with tf.Graph().as_default(), tf.Session() as sess:
        got = sess.run(so3.tensor_product(a, b, L=degree))
    for mine, theirs in zip(got, oracle(a, b, L=degree), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_its_gradient_op_agrees_with_numeric_differentiation(so3, degree):
    a, b = vectors(degree), vectors(degree, seed=1)
    weights = vectors(degree, seed=2)
    with tf.Graph().as_default(), tf.Session() as sess:
        pa, pb = placeholders(a), placeholders(b)
        out = so3.tensor_product(pa, pb, L=degree)
        loss = tf.add_n([tf.reduce_sum(o * w) for o, w in zip(out, weights, strict=True)])
        feed = dict(zip(pa + pb, a + b, strict=True))
        grads = sess.run(tf.gradients(loss, pa + pb), feed)
        eps = 1e-6
        for tensor, value, grad in zip(pa + pb, a + b, grads, strict=True):
            numeric = np.zeros_like(value)
            for i in np.ndindex(value.shape):
                plus, minus = value.copy(), value.copy()
                plus[i] += eps
                minus[i] -= eps
                numeric[i] = (sess.run(loss, {**feed, tensor: plus}) - sess.run(loss, {**feed, tensor: minus})) / (
                    2 * eps
                )
            np.testing.assert_allclose(grad, numeric, rtol=1e-3, atol=1e-5)


def test_the_listing_registers_the_gradient_by_hand(so3):
    CPU_API = so3
    before = registry.snapshot()
    try:

        @ops.RegisterGradient("so3.TensorProduct")
        def tensor_product_grad(op, *grad):
            L = op.get_attr("L")
            result = CPU_API.tensor_product_grad(list(grad), op.inputs[: L + 1], op.inputs[L + 1 :], L=L)
            return list(result.grad_v1) + list(result.grad_v2)

        a, b = vectors(1), vectors(1, seed=1)
        with tf.Graph().as_default(), tf.Session() as sess:
            pa, pb = placeholders(a), placeholders(b)
            out = so3.tensor_product(pa, pb, L=1)
            grads = tf.gradients(out, pa)
            got = sess.run(grads, dict(zip(pa + pb, a + b, strict=True)))
        assert [g.shape for g in got] == [v.shape for v in a]
    finally:
        registry.restore(before)


def test_a_wrong_part_is_refused_with_its_shape(so3):
    with tf.Graph().as_default():
        a, b = vectors(1), vectors(1, seed=1)
        a[1] = a[1][:, :2]
        with pytest.raises(tf.errors.ShapeError, match="must be 3, but it is 2") as caught:
            so3.tensor_product(a, b, L=1)
        assert "test_tensor_product.py" in str(caught.value)
        with pytest.raises(tf.errors.InvalidArgumentError, match="needs 2 tensors"):
            so3.tensor_product(a[:1], b, L=1)
