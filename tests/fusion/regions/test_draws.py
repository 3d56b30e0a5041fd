"""Random numbers within regions: those of the cpu's kernels, whatever is fused with what, in every step and iteration."""

from __future__ import annotations

import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import KernelRefused, Prepared, hookimpl
from graphdock.plugin.host import Host
from graphdock_testing.region_reference import ReferenceCompiler

RNG = np.random.default_rng(7)


class Compiler(ReferenceCompiler):
    """Takes no products: they stand between regions here."""

    products = False


@pytest.fixture
def same(process_host):
    """Runs steps of a function of ``x`` fused and not, in debug mode and not; the explanation."""
    host = process_host(Host())
    hook = hookimpl(specname="register_region_compilers")(lambda: [Compiler()])
    host.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))

    def run(build, x=None, steps=(None, None, None), debug=False):
        x = np.random.default_rng(1).uniform(-1, 1, (4, 6)).astype(np.float32) if x is None else x
        with tf.Graph().as_default():
            fed = tf.placeholder(x.dtype, x.shape, name="x")
            fetches, results = build(fed), []
            for backends in (["cpu"], ["lab", "cpu"]):
                config = tf.SessionConfig(backends=backends, debug=debug and "lab" in backends)
                with tf.Session(config=config, host=host) as sess:
                    results.append(
                        [sess.run([fetches[i] for i in step or range(len(fetches))], {fed: x}) for step in steps]
                    )
                    explained = sess.explain(fetches, {fed: x})
        for want, got in zip(*results, strict=True):
            for a, b in zip(want, got, strict=True):
                assert a.dtype == b.dtype and np.array_equal(a == 0, b == 0)
                a, b = (np.asarray(each, np.float64) for each in (a, b))
                # sums lose what their terms, as large as the largest result, were rounded by
                np.testing.assert_allclose(b, a, rtol=2e-6, atol=1e-6 * max(1.0, np.abs(a).max()))
        assert np.any(results[0][0][0] != results[0][-1][0]), "each step draws anew"
        return explained

    return run


def dropped(x, **kwargs):
    return tf.nn.dropout(tf.tanh(x * 2.0), rate=0.4, seed=3, **kwargs)


def test_dropout_is_one_region_with_its_neighbours_and_its_gradient(same):
    def build(x):
        y = dropped(x)
        return [y, *tf.gradients(tf.sin(y), [x])]

    explained = same(build)
    assert explained.kernels() == {"lab.reference": 1}
    assert "; draws from dropout/random_uniform" in str(explained)


def test_forward_and_backward_each_draw_the_mask_that_neither_keeps(same):
    weights = RNG.normal(size=(6, 6)).astype(np.float32)

    def build(x):
        y = tf.matmul(dropped(tf.matmul(x, weights)), weights)
        return [y, *tf.gradients(tf.sin(y), [x])]

    explained = same(build, debug=True)
    assert set(explained.kernels()) == {"lab.reference", "cpu.mat_mul", "cpu.cos"}
    assert str(explained).count("; draws from dropout/random_uniform") == 2
    shapes = [s for n in explained.plan.graph.nodes if n.op == "Region" for s in n.outputs]
    assert len(shapes) == 3, "y, what arrives, and what goes on: no mask"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_is_drawn_may_be_read_as_it_is(same, dtype):
    def build(x):
        drawn = tf.random_uniform([4, 6], dtype=dtype, seed=9)
        return [drawn, drawn * 2 + x, tf.cast(drawn >= 0.25, tf.float32)]

    assert same(build, RNG.uniform(size=(4, 6)).astype(dtype)).kernels() == {"lab.reference": 1}


@pytest.mark.parametrize("shape", [[4, 1], [1, 6], [6]])
def test_a_mask_that_is_repeated_is_a_region_of_its_own(same, shape):
    def build(x):
        y = dropped(x, noise_shape=shape)
        return [y, *tf.gradients(tf.sin(y), [x])]

    assert set(same(build).kernels()) == {"lab.reference"}


def test_regions_of_loops_draw_for_their_iterations_and_gradients_see_it(same):
    def build(x):
        def inner(j, a):
            return j + 1, dropped(a + x) + tf.random_uniform([6], seed=5)

        def outer(i, a):
            return i + 1, tf.while_loop(lambda j, _: j < 2, inner, [0, a])[1]

        y = tf.while_loop(lambda i, _: i < 3, outer, [0, x])[1]
        z = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, dropped(a) + tf.nn.dropout(a, 0.5, seed=8)), [0, x])[
            1
        ]
        return [y, z, *tf.gradients(z, [x])]

    explained = same(build)
    assert "; draws from" in str(explained)


def test_each_stream_counts_the_steps_that_draw_from_it(same):
    def build(x):
        return [dropped(x), tf.nn.dropout(x * 2.0, rate=0.5, seed=8), dropped(x) + tf.random_uniform([4, 6], seed=1)]

    explained = same(build, steps=((0,), (0, 1), (1,), (0, 1, 2), (2,), (0, 1, 2), (0,)))
    assert "; draws from" in str(explained)


WAYS = (
    lambda a, b, mask: tf.tanh(a * mask),
    lambda a, b, mask: a - tf.reduce_mean(b * mask, 1, keepdims=True),
    lambda a, b, mask: tf.nn.softmax(a) + b,
    lambda a, b, mask: tf.matmul(a, b, transpose_b=True)[:, :1] * mask,
    lambda a, b, mask: tf.where(mask > tf.reduce_mean(a), a, b),
)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sampled(2)
def test_random_programs_draw_the_same_numbers_fused(same, seed):
    rng = np.random.default_rng(seed)

    def build(x):
        values, drawn = [x], []
        for i in range(14):
            a, b = (values[int(rng.integers(max(0, len(values) - 4), len(values)))] for _ in range(2))
            roll = rng.random()
            if roll < 0.25 or not drawn:
                drawn.append(tf.random_uniform([4, 6], seed=i + 1))
            elif roll < 0.45:
                drawn.append(tf.cast(drawn[-1] >= rng.random(), tf.float32))
            mask = drawn[int(rng.integers(len(drawn)))]
            values.append(WAYS[int(rng.integers(len(WAYS)))](a, b, mask))
        total = tf.reduce_sum(tf.sin(values[-1] + values[-2]) * mask)
        return [mask, values[-1], values[7], *tf.gradients(total, [x])]

    assert any(row.kernel.startswith("lab.") for row in same(build).rows), "nothing was fused"


def test_regions_that_are_put_back_draw_what_they_drew(same, monkeypatch):
    """Copies of draws stay in the plan when a region's kernel refuses; later regions and kernels compute them."""
    tried = []

    def prepare(self, region, ctx):
        tried.append(len(region.graph.nodes))
        if len(tried) < 3:
            raise KernelRefused("not this time")
        return Prepared(lambda bind: self.build(region, bind))

    monkeypatch.setattr(ReferenceCompiler, "prepare", prepare)

    def build(x):
        weights = tf.constant(np.eye(6, dtype=np.float32))
        y = tf.matmul(dropped(tf.matmul(x, weights)), weights)
        return [y, *tf.gradients(tf.sin(y), [x])]

    same(build)
    assert len(tried) >= 3
