"""Every optimizer with whole gradients and with gathered rows, against what TensorFlow 1 computes for the same program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest

START = np.array([[0.5, -0.25], [1.0, 0.75], [-0.5, 2.0], [0.1, -1.0]], np.float32)
SCALE = np.array([[1.0, -2.0], [0.5, 1.5], [2.0, 0.25], [-1.0, 3.0]], np.float32)
#: Rows that each of the six steps gathers, some twice.
ROWS = [[0, 2], [1], [2, 2, 0], [3], [0, 1, 2], [2]]

t = tf.train
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "descent": lambda step: t.GradientDescentOptimizer(0.3),
    "momentum": lambda step: t.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda step: t.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda step: t.AdagradOptimizer(0.3),
    "adam": lambda step: t.AdamOptimizer(0.1, 0.8, 0.95, 1e-3),
    "rmsprop": lambda step: t.RMSPropOptimizer(0.1, 0.9, 0.5, 1e-3),
    "rmsprop_centered": lambda step: t.RMSPropOptimizer(0.1, 0.9, 0.5, 1e-3, centered=True),
    "ftrl": lambda step: t.FtrlOptimizer(0.4, l1_regularization_strength=0.05, l2_regularization_strength=0.01),
    "ftrl_power": lambda step: t.FtrlOptimizer(0.4, -0.4),
    "ftrl_shrinkage": lambda step: t.FtrlOptimizer(
        0.4,
        l1_regularization_strength=0.05,
        l2_regularization_strength=0.01,
        l2_shrinkage_regularization_strength=0.1,
    ),
    "adadelta": lambda step: t.AdadeltaOptimizer(1.0, 0.9, 1e-2),
    "adagrad_da": lambda step: t.AdagradDAOptimizer(0.5, step, 0.1, 0.03, 0.02),
    "proximal_descent": lambda step: t.ProximalGradientDescentOptimizer(0.3, 0.1, 0.05),
    "proximal_descent_plain": lambda step: t.ProximalGradientDescentOptimizer(0.3),
    "proximal_adagrad": lambda step: t.ProximalAdagradOptimizer(0.3, 0.1, 0.1, 0.05),
}

#: The weights after six steps, by TensorFlow 1's optimizers in float32.
EXPECTED = {
    "descent/dense": [0.3008192, -0.9029539, 0.7508598, 0.201011, -4.7442002, 1.8360547, -0.2983616, -7981.8466797],
    "descent/sparse": [0.3128, 0.1244, 0.889, 0.267375, -6.6276817, 1.859833, -0.14, 4.9400001],
    "momentum/dense": [0.1582052, -0.2291992, 0.6994296, 0.1057414, -0.3647948, 1.8290397, -0.5835896, 1.0859498],
    "momentum/sparse": [0.3124, -0.0572, 0.943, 0.143625, 0.44796, 1.8849347, 0.02, 0.9799999],
    "nesterov/dense": [0.2203964, -0.1501668, 0.6659507, 0.2305723, 0.1489161, 1.7941363, -0.4592073, -63.3054619],
    "nesterov/sparse": [0.2783296, -0.1450112, 0.91141, 0.0110888, 0.2289098, 1.8504657, -0.052, 2.7619996],
    "adagrad/dense": [0.3000044, -0.1510154, 0.6229345, 0.2094081, 0.1202705, 1.60773, -0.2995201, -0.1698717],
    "adagrad/sparse": [0.2990332, -0.1229907, 0.7481492, 0.3281204, 0.0877468, 1.6628931, -0.1789943, -0.7000383],
    "adam/dense": [0.2305446, -0.1866287, 0.5098262, 0.2061522, 0.0590204, 1.4446199, -0.3940502, -0.4172777],
    "adam/sparse": [0.2106975, -0.1432867, 0.7143314, 0.4535223, -0.0528329, 1.5614963, -0.0583096, -0.8408224],
    "rmsprop/dense": [0.2820415, -0.157022, 0.8041165, 0.1509613, 0.1876068, 1.886677, -0.3311941, 0.2166207],
    "rmsprop/sparse": [0.3513412, -0.1178126, 0.9475161, 0.3244765, 0.3610897, 1.9140191, 0.0185621, -0.6873446],
    "rmsprop_centered/dense": [
        0.2818576,
        -0.1569629,
        0.8037677,
        0.1544913,
        0.1789151,
        1.8866005,
        -0.3327413,
        0.2321821,
    ],
    "rmsprop_centered/sparse": [
        0.3510749,
        -0.1178494,
        0.9474919,
        0.3135945,
        0.3807378,
        1.9139707,
        0.0182907,
        -0.6708429,
    ],
    "ftrl/dense": [0.2999415, -0.1500054, 0.5265874, 0.2000911, 0.1468223, 0.5265527, -0.3, -0.0257627],
    "ftrl/sparse": [0.2849231, -0.1467634, 0.1603171, 0.2140035, 0.1495993, 0.3976038, -0.282873, -0.5828366],
    "ftrl_power/dense": [0.2998973, -0.1504364, 0.5094624, 0.1999963, 0.1499972, 0.4928149, -0.3000001, 0.0978137],
    "ftrl_power/sparse": [0.2854108, -0.1223882, 0.1781618, 0.1902391, 0.1506651, 0.3809905, -0.3058648, -0.236783],
    "ftrl_shrinkage/dense": [0.2725449, -0.1463422, 0.3850043, 0.1915223, 0.1438657, 0.2557199, -0.2727273, -0.022369],
    "ftrl_shrinkage/sparse": [
        0.2506663,
        -0.1449776,
        0.0349917,
        0.1999542,
        0.1474082,
        0.0885499,
        -0.2920871,
        -0.5787983,
    ],
    "adadelta/dense": [0.3057186, -0.3604049, 0.6085801, 0.2000068, 0.1495356, 1.5661279, -0.3000002, 0.0382397],
    "adadelta/sparse": [0.2817557, 0.0425928, 0.723814, 0.2539232, 0.1491834, 1.6237422, -0.1940858, -0.6838126],
    "adagrad_da/dense": [0.2822064, -0.1462814, 0.4515824, 0.1874605, 0.1464929, 0.3858332, -0.2819799, 0.1196335],
    "adagrad_da/sparse": [0.2709946, -0.1723997, 0.0328999, 0.0544475, 0.1012894, 0.2717445, -0.3776802, 0.4959046],
    "proximal_descent/dense": [
        0.2448618,
        -0.5821816,
        0.5831305,
        0.1766814,
        -3.8618143,
        1.5322118,
        -0.2426142,
        -7239.0834961,
    ],
    "proximal_descent/sparse": [
        0.2595767,
        0.0642093,
        0.8099201,
        0.2364532,
        -5.8863344,
        1.6482697,
        -0.1083744,
        4.8374381,
    ],
    "proximal_descent_plain/dense": [
        0.3008192,
        -0.9029539,
        0.7508598,
        0.201011,
        -4.7442002,
        1.8360547,
        -0.2983616,
        -7981.8466797,
    ],
    "proximal_descent_plain/sparse": [0.3128, 0.1244, 0.889, 0.267375, -6.6276817, 1.859833, -0.14, 4.9400001],
    "proximal_adagrad/dense": [
        0.2439025,
        -0.1406019,
        0.3899438,
        0.1845799,
        0.1108759,
        0.9404595,
        -0.2433123,
        -0.1642517,
    ],
    "proximal_adagrad/sparse": [0.2436, -0.0933641, 0.5769908, 0.3067867, 0.0816551, 1.1700262, -0.1416501, -0.6979946],
}

#: Those whose rows wait for their own gradients; Adam moves every row at every step.
WAITING = sorted(set(OPTIMIZERS) - {"adam"})


def trained(make: Callable[[Any], Any], sparse: bool, dtype: Any = tf.float32, rows: Any = ROWS) -> np.ndarray:
    with tf.Graph().as_default():
        step = tf.Variable(0, trainable=False, dtype=tf.int64)
        w = tf.Variable(tf.constant(START, dtype), name="w")
        picked = tf.placeholder(tf.int32, [None])
        scale = tf.constant(SCALE, dtype)
        scaled = tf.gather(w, picked) * tf.gather(scale, picked) if sparse else w * scale
        train_op = make(step).minimize(tf.reduce_sum(tf.square(scaled - 0.3)), global_step=step)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for each in rows:
                session.run(train_op, {picked: each})
            return np.asarray(session.run(w))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.sampled(2)
def test_it_moves_as_tensorflow_moves(name: str, kind: str) -> None:
    expected = np.array(EXPECTED[f"{name}/{kind}"]).reshape(4, 2)
    np.testing.assert_allclose(trained(OPTIMIZERS[name], kind == "sparse"), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", WAITING)
def test_rows_that_no_gradient_names_wait(name: str) -> None:
    if name == "adagrad_da":  # a variable follows from its slots alone once its row is named
        return
    found = trained(OPTIMIZERS[name], True, rows=[[0], [2, 2], [0]])
    np.testing.assert_array_equal(found[[1, 3]], START[[1, 3]])
    assert (found[[0, 2]] != START[[0, 2]]).all()


def test_lazy_adam_is_adam_where_all_rows_are_named() -> None:
    lazy = trained(lambda _: tf.contrib.opt.LazyAdamOptimizer(0.1, 0.8, 0.95, 1e-3), True, rows=[[0, 1, 2, 3]] * 5)
    plain = trained(lambda _: t.AdamOptimizer(0.1, 0.8, 0.95, 1e-3), True, rows=[[0, 1, 2, 3]] * 5)
    np.testing.assert_allclose(lazy, plain, rtol=1e-6)


def test_lazy_adam_lets_the_other_rows_wait() -> None:
    found = trained(lambda _: tf.contrib.opt.LazyAdamOptimizer(0.1), True, rows=[[0], [2, 2], [2]])
    np.testing.assert_array_equal(found[[1, 3]], START[[1, 3]])


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda _: t.AdadeltaOptimizer(), ["w", "w/Adadelta", "w/Adadelta_1"]),
        (lambda step: t.AdagradDAOptimizer(0.1, step), ["w", "w/AdagradDA", "w/AdagradDA_1"]),
        (lambda _: t.ProximalAdagradOptimizer(0.1), ["w", "w/ProximalAdagrad"]),
        (lambda _: t.ProximalGradientDescentOptimizer(0.1), ["w"]),
        (lambda _: t.RMSPropOptimizer(0.1, centered=True), ["w", "w/RMSProp", "w/RMSProp_1", "w/RMSProp_2"]),
        (lambda _: t.FtrlOptimizer(0.1, accum_name="a", linear_name="l"), ["w", "w/a", "w/l"]),
    ],
)
def test_slots_have_the_names_that_checkpoints_hold(make: Any, names: list[str]) -> None:
    with tf.Graph().as_default():
        step = tf.Variable(0, trainable=False, name="step")
        w = tf.Variable([1.0, 2.0], name="w")
        optimizer = make(step)
        optimizer.minimize(tf.reduce_sum(w * w))
        assert sorted(v.op.name for v in tf.global_variables() if v.op.name != "step") == names
        if len(names) == 4:
            assert [optimizer.get_slot(w, s).op.name for s in ("rms", "mg", "momentum")] == names[1:]


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (
            lambda: t.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=-1.0),
            "l1_regularization_strength",
        ),
        (lambda: t.ProximalAdagradOptimizer(0.1, initial_accumulator_value=0.0), "initial_accumulator_value"),
        (lambda: t.AdagradDAOptimizer(0.1, 0, 0.0), "initial_gradient_squared_accumulator_value"),
        (
            lambda: t.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=-0.1),
            "l2_shrinkage_regularization_strength",
        ),
        (lambda: t.FtrlOptimizer(0.1, learning_rate_power=0.5), "learning_rate_power"),
        (lambda: t.AdadeltaOptimizer(rho="much"), "rho"),
    ],
)
def test_wrong_arguments_are_named(make: Any, argument: str) -> None:
    with pytest.raises(ValueError, match=argument):
        make()
