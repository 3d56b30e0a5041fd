"""The package as a user meets it: the C kernels are chosen, and agree with NumPy's."""

import subprocess
import sys
from pathlib import Path

import graphdock as tf
import graphdock_so3 as so3
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
NUMPY = {
    "so3.TensorProduct@cpu": "so3.tensor_product_numpy",
    "so3.TensorProductGrad@cpu": "so3.tensor_product_grad_numpy",
}


def vectors(degree, dtype, seed, batch=3, channels=5):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(batch, 2 * l + 1, channels)).astype(dtype) for l in range(degree + 1)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_c_and_numpy_agree_on_the_product_and_its_gradient(degree, static, dtype):
    a, b = vectors(degree, dtype, 0), vectors(degree, dtype, 1)
    with tf.Graph().as_default() as graph:
        shapes = [v.shape if static else [None, v.shape[1], None] for v in a]
        pa, pb = ([tf.placeholder(dtype, s) for s in shapes] for _ in "ab")
        out = list(so3.tensor_product(pa, pb, L=degree))
        fetches = out + tf.gradients([tf.reduce_sum(tf.square(o)) for o in out], pa + pb)
    feed = dict(zip(pa + pb, a + b, strict=True))
    policy = "exact" if static else "generic"
    with tf.Session(graph=graph, config=tf.SessionConfig(shape_policy=policy)) as session:
        assert "so3.tensor_product " in str(session.explain(fetches)) + " "
        in_c = session.run(fetches, feed)
    with tf.Session(graph=graph, config=tf.SessionConfig(kernels=NUMPY)) as session:
        in_numpy = session.run(fetches, feed)
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    for c, n in zip(in_c, in_numpy, strict=True):
        np.testing.assert_allclose(c, n, rtol=tolerance, atol=tolerance)


def test_factors_of_two_dtypes_go_to_numpy():
    with tf.Graph().as_default() as graph:
        parts = [tf.placeholder("float32", [1, 1, 2]), tf.placeholder("float64", [1, 3, 2])]
        out = so3.tensor_product(parts, parts, L=1)
    with tf.Session(graph=graph) as session:
        shown = str(session.explain(list(out)))
    assert "so3.tensor_product_numpy" in shown


@pytest.mark.skipif(not (ROOT / "native").is_dir(), reason="runs beside the sources")
@pytest.mark.parametrize(
    "command",
    [
        ["check", "src/graphdock_so3"],
        ["manifest", "--check", "src/graphdock_so3"],
        ["header", "--check", "--out", "native", "--package", "src/graphdock_so3"],
    ],
    ids=lambda c: c[0],
)
def test_what_is_generated_is_up_to_date(command):
    done = subprocess.run(
        [sys.executable, "-m", "graphdock_opgen", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
