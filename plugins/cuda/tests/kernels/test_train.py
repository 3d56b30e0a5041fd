"""Optimizer updates beyond the samples of their specs: sizes around the bounds of blocks, many rows, rows that are not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError
from graphdock.plugin.host import Host
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install

Computed = Callable[..., list[np.ndarray]]


@pytest.mark.parametrize("size", [1, 7, 255, 4097, 9001])
def test_every_element_is_updated_once(computed: Computed, size: int) -> None:
    rng = np.random.default_rng(size)
    var, m, v = rng.standard_normal(size), rng.standard_normal(size), rng.random(size)
    grad = rng.standard_normal(size)
    rates = {"beta1_power": 0.81, "beta2_power": 0.998, "lr": 0.5, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-3}
    arrays = {"var": var, "m": m, "v": v, **{n: np.float64(r) for n, r in rates.items()}, "grad": grad}
    got = computed("ResourceApplyAdam", arrays, T="float64")
    m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad**2
    var = var - 0.5 * np.sqrt(1 - 0.998) / (1 - 0.81) * m / (np.sqrt(v) + 1e-3)
    for a, b in zip(got, (var, m, v), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("count", "rows", "width"), [(31, 5, 3), (2048, 300, 2), (2049, 70_000, 1), (5000, 17, 3), (300, 2_000_000, 1)]
)
def test_rows_get_the_sum_of_their_gradients_in_order(
    computed: Computed, count: int, rows: int, width: int, dtype: Any
) -> None:
    rng = np.random.default_rng(count)
    var = np.zeros((rows, width), np.float32)
    # sums whose last bits depend on the order
    grad = (rng.standard_normal((count, width)) * 10.0 ** rng.integers(-3, 4, (count, 1))).astype(np.float32)
    indices = rng.integers(0, rows, count).astype(dtype)
    arrays = {"var": var, "alpha": np.float32(1), "delta": grad, "indices": indices}
    (got,) = computed("ResourceSparseApplyGradientDescent", arrays)
    want = np.zeros_like(var)
    np.add.at(want, indices, grad)
    np.testing.assert_array_equal(got, -want)


@pytest.mark.parametrize("bad", [-3, 4])
def test_a_row_that_is_not_there_changes_nothing(computed: Computed, bad: int) -> None:
    indices = np.array([1, bad, 0], np.int32)
    arrays = {"var": np.zeros((4, 2), np.float32), "alpha": np.float32(1), "delta": np.ones((3, 2), np.float32)}
    with pytest.raises(InvalidArgumentError, match=f"rows from 0 to 3, got {bad}"):
        computed("ResourceSparseApplyGradientDescent", {**arrays, "indices": indices})


def test_a_gradient_of_another_shape_is_refused(computed: Computed) -> None:
    arrays = {"var": np.zeros(4, np.float32), "alpha": np.float32(1), "delta": np.ones(3, np.float32)}
    with pytest.raises(InvalidArgumentError, match="delta has not the shape of var"):
        computed("ResourceApplyGradientDescent", arrays)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.train.GradientDescentOptimizer(0.1),
        lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        lambda: tf.train.AdagradOptimizer(0.1),
        lambda: tf.train.AdamOptimizer(0.1),
        lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    ],
    ids=["sgd", "momentum", "adagrad", "adam", "rmsprop"],
)
@pytest.mark.sampled(2)
def test_many_variables_are_updated_by_one_launch(make: Callable[[], Any]) -> None:
    """Of all sizes, some more than one launch takes; the bits are those of one launch per variable."""
    tools, host = toolkit(seed=1), Host()
    driver: Any = tools.driver
    install(host, tools)
    sizes = [1, 3, 4, 17, 4096, 5000, 9001, *([5] * 63)]

    def trained(backends: tuple[str, ...]) -> list[np.ndarray]:
        with tf.Graph(host=host).as_default():
            x = tf.placeholder(tf.float32, [])
            variables = [tf.Variable(np.linspace(-1, 1, n, dtype=np.float32)) for n in sizes]
            loss = tf.add_n([tf.reduce_sum(tf.square(v)) for v in variables]) * x
            train = make().minimize(loss)
            with tf.Session(config=tf.SessionConfig(backends=backends), host=host) as session:
                session.run(tf.global_variables_initializer())
                for step in range(4):
                    driver.log.reset()
                    session.run(train, {x: 1.0 + step})
                counted.update(driver.log.kernels)
                return list(session.run(variables))

    counted: Counter[str] = Counter()
    on_gpu = trained(("cuda", "cpu"))
    assert counted["dense_updates"] == 2 and not counted["dense_update"], counted
    for got, want in zip(on_gpu, trained(("cpu",)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    driver.verify()
