"""Convolutions and pools of any number of images: one plan and one function, beside the cpu's kernels."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import errors
from graphdock_llvm.batches import images_of
from graphdock_llvm.kernels import conv
from graphdock_llvm.target import width

from .test_convolutions import _layer

GENERIC = {"backends": ("llvm", "cpu"), "shape_policy": "generic", "intra_op_threads": 2}
CPU = {**GENERIC, "backends": ("cpu",)}
BATCHES = (3, 1, 0, 2, 7, 3)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _beside_the_cpu(fetches, fed, shape, ops, **fields):
    """Runs a sequence of batches in both sessions; the ops are the plugin's."""
    with (
        tf.Session(config=tf.SessionConfig(**GENERIC, **fields)) as fused,
        tf.Session(config=tf.SessionConfig(**CPU)) as cpu,
    ):
        kernels = fused.explain(fetches, {fed: numbers(2, *shape)}).kernels()
        assert {f"llvm.{op}" for op in ops} <= set(kernels), kernels
        for batch in BATCHES:
            feed = {fed: numbers(batch, *shape, seed=batch)}
            for got, want in zip(fused.run(fetches, feed), cpu.run(fetches, feed), strict=True):
                assert got.shape == want.shape
                np.testing.assert_allclose(got, want, 1e-4, 1e-4 * np.abs(want).max(initial=1.0), err_msg=f"{batch}")


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("seed", range(24))
def test_random_layers_of_any_batch_agree_with_the_cpus_kernels(seed, debug, compiles):
    (_, *image), window, attrs = _layer(np.random.default_rng(seed))
    x, w = tf.placeholder(tf.float32, [None, *image]), tf.constant(numbers(*window, seed=seed))
    y = tf.nn.conv2d(x, w, **attrs)
    fetches = [y, *tf.gradients(tf.reduce_sum(tf.sin(y)), [x, w])]
    ops = ["conv2d", "conv2d_backprop_filter", *(["conv2d_backprop_input"] if 2 * image[-1] >= width() else [])]
    _beside_the_cpu(fetches, x, image, ops, debug=debug)
    assert len([text for text in compiles if "@pad(" in text]) == 1


@pytest.mark.parametrize("seed", range(16))
def test_random_pools_of_any_batch_agree_with_the_cpus_kernels(seed):
    rng = np.random.default_rng(seed)
    image = [*(int(n) for n in rng.integers(4, 20, 2)), int(rng.choice([1, 5, 16, 33]))]
    window, step = rng.integers(1, 4, (2, 2)).tolist()
    x = tf.placeholder(tf.float32, [None, *image])
    y = tf.nn.max_pool(x, [1, *window, 1], [1, *step, 1], ["SAME", "VALID"][seed % 2])
    fetches = [y, tf.gradients(tf.reduce_sum(tf.sin(y)), x)[0]]
    _beside_the_cpu(fetches, x, image, ("max_pool", "max_pool_grad"), debug=seed % 3 == 0)


def test_batches_whose_tensors_are_too_large_for_one_call_are_halved(monkeypatch):
    x, w = tf.placeholder(tf.float32, [None, 6, 5, 16]), tf.constant(numbers(3, 3, 16, 8))
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    fetches = [y, *tf.gradients(tf.reduce_sum(tf.sin(y)), [x, w])]
    monkeypatch.setattr(conv, "_MOST", 3 * 6 * 5 * 16)
    _beside_the_cpu(fetches, x, [6, 5, 16], ("conv2d", "conv2d_backprop_input", "conv2d_backprop_filter"))


def test_what_is_not_known_of_images_is_said():
    x = tf.placeholder(tf.float32, [None, None, 8, 3])
    size = tf.placeholder(tf.int32, [])
    back = tf.nn.conv2d_transpose(
        tf.placeholder(tf.float32, [None, 4, 4, 8]), numbers(3, 3, 16, 8), [size, 8, 8, 16], [1, 2, 2, 1]
    )
    few = tf.nn.conv2d_transpose(
        tf.placeholder(tf.float32, [2, 4, 4, 8]), numbers(3, 3, 1, 8), [2, 8, 8, 1], [1, 2, 2, 1]
    )
    many = tf.nn.conv2d(tf.placeholder(tf.float32, [None, 9, 9, 128]), numbers(3, 3, 128, 128), [1, 1, 1, 1], "SAME")
    said = {
        "the sides of its images or of its filter are not known": tf.nn.conv2d(
            x, numbers(3, 3, 3, 8), [1, 1, 1, 1], "SAME"
        ),
        "the sides of its images are not known": tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
        "how many images it makes is not known": back,
        "its images' channels are few: vectors would be mostly empty": few,
        "a transform of its images saves more where they are many": many,
    }
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        for why, value in said.items():
            report = session.explain(value).text(lost=True)
            assert why in report, report


@pytest.mark.parametrize(("images", "whose"), [(2, "llvm"), (8, "cpu")])
def test_layers_that_a_transform_makes_quicker_are_the_cpus(images, whose):
    """From 128 channels and some hundred million multiplications on, forward and in both gradients."""
    x, w = tf.placeholder(tf.float32, [images, 28, 28, 128]), tf.constant(numbers(3, 3, 128, 128))
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    ops = ("conv2d", "conv2d_backprop_input", "conv2d_backprop_filter")
    with tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as session:
        kernels = session.explain([y, *tf.gradients(y, [x, w])]).kernels()
    assert {name for name in kernels if "conv2d" in name} == {f"{whose}.{op}" for op in ops}


@pytest.mark.plain
def test_a_convolutional_network_of_any_batch_is_trained_without_kernels_of_the_cpu_for_images():
    x, t = tf.placeholder(tf.float32, [None, 12, 12, 3]), tf.placeholder(tf.float32, [None, 10])
    filters, weights = tf.Variable(numbers(3, 3, 3, 16) * 0.2), tf.Variable(numbers(6 * 6 * 16, 10, seed=1) * 0.1)
    h = tf.nn.max_pool(tf.nn.relu(tf.nn.conv2d(x, filters, [1, 1, 1, 1], "SAME")), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    scores = tf.matmul(tf.reshape(h, [-1, 6 * 6 * 16]), weights)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=t, logits=scores))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    losses = []
    for backends in (("llvm", "cpu"), ("cpu",)):
        with tf.Session(config=tf.SessionConfig(**{**GENERIC, "backends": backends})) as session:
            session.run(tf.global_variables_initializer())
            losses.append([])
            for batch in (8, 5, 8, 1, 16):
                feed = {
                    x: numbers(batch, 12, 12, 3, seed=batch),
                    t: np.eye(10, dtype=np.float32)[np.arange(batch) % 10],
                }
                losses[-1].append(session.run([loss, step], feed)[0])
            if len(backends) > 1:
                kernels = session.explain([loss, step], feed).kernels()
                assert not {k for k in kernels if k.startswith("cpu.") and ("conv" in k or "pool" in k)}, kernels
    np.testing.assert_allclose(*losses, 1e-4, 1e-4)


def test_arrays_that_are_not_of_as_many_images_or_of_other_sides_are_refused():
    x, y = tf.placeholder(tf.float32, [None, 4, 4, 2]), tf.placeholder(tf.float32, [None, 3, 3, 5])
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        values = session.explain([x * 2.0, y * 2.0]).plan.graph.inputs
    assert images_of(values, [(6, 4, 4, 2), (6, 3, 3, 5)]) == 6
    for wrong in ([(6, 4, 4, 2), (5, 3, 3, 5)], [(6, 4, 3, 2), (6, 3, 3, 5)], [(6, 4, 4, 2), (6, 3, 3)], [(), ()]):
        with pytest.raises(errors.ShapeError, match="is not that of the plan"):
            images_of(values, wrong)
