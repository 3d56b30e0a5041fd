"""Whole steps on the emulated cuda device, with every Triton launch interpreted, against cpu."""

from __future__ import annotations

import graphdock as tf
import graphdock_triton.plugin
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_cuda.testing import find_compiler, toolkit
from graphdock_cuda.testing.install import install
from graphdock_triton import compiling, tuning
from graphdock_triton.testing.compiler import InterpretingCompiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler for the emulated CUDA")
RNG = np.random.default_rng(5)
BACKENDS = ["triton", "cuda", "cpu"]


class Lab:
    def __init__(self, process_host):
        self.host = process_host(Host())
        self.tools = toolkit()
        install(self.host, self.tools)
        self.compiler = InterpretingCompiler()

    def session(self, backends=BACKENDS, **fields):
        return tf.Session(config=tf.SessionConfig(backends=backends, **fields), host=self.host)

    def same(self, build, feeds, steps=3, rtol=2e-5):
        """Runs both ways; returns the kernels of the step and how often each Triton kernel was launched in one step."""
        with tf.Graph().as_default():
            given = {name: tf.placeholder(a.dtype, a.shape, name=name) for name, a in feeds.items()}
            fetches, start = build(**given)
            feed = {given[name]: a for name, a in feeds.items()}
            results = []
            for backends in (["cpu"], BACKENDS):
                with self.session(backends) as sess:
                    sess.run(start)
                    results.append([sess.run(fetches, feed) for _ in range(steps)])
                    launched = dict(self.compiler.launched)
                    sess.run(fetches, feed)
                    after = self.compiler.launched
                    self.explained = sess.explain(fetches, feed)
                    kernels = self.explained.kernels()
        for want, got in zip(*results, strict=True):
            for a, b in zip(want, got, strict=True):
                if a is not None:
                    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
        return kernels, {k: n - launched.get(k, 0) for k, n in after.items() if n > launched.get(k, 0)}


@pytest.fixture
def lab(process_host):
    made = Lab(process_host)
    before = compiling.use(made.compiler)
    yield made
    compiling.use(before)
    made.tools.driver.verify()


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def nothing():
    return tf.no_op()


def test_gelu_by_hand_is_one_launch_forward_and_backward(lab):
    def build(x):
        y = 0.5 * x * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
        return [y, *tf.gradients(y, [x])], nothing()

    kernels, launched = lab.same(build, {"x": normal(33, 65)})
    assert kernels == {"triton.region": 1} and sum(launched.values()) == 1


def test_a_power_by_hand_is_one_launch_forward_and_backward(lab):
    kernels, launched = lab.same(
        lambda x: ([x * x * x * x, *tf.gradients(x * x * x * x, [x])], nothing()), {"x": normal(33, 65)}
    )
    assert kernels == {"triton.region": 1} and sum(launched.values()) == 1


def test_a_layer_norm_by_hand_is_the_library_s(lab):
    def build(x, g, b):
        m = tf.reduce_mean(x, -1, keepdims=True)
        d = x - m
        y = d * tf.rsqrt(tf.reduce_mean(d * d, -1, keepdims=True) + 1e-5) * g + b
        return [y, *tf.gradients(tf.reduce_sum(y * y), [x, g, b])], nothing()

    kernels, launched = lab.same(build, {"x": normal(4, 6, 40), "g": normal(40), "b": normal(40)})
    assert kernels == {"triton.region": 1, "triton.norm_grad": 1}  # forward it goes with what reads it
    assert launched["norm_grad_norm_backward"] == launched["norm_grad_norm_column_sums"] == 1


def test_an_rms_norm_by_hand_is_the_library_s(lab):
    def build(x, g):
        y = g * (x / tf.sqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-5))
        return [y, *tf.gradients(tf.reduce_sum(y * y), [x, g])], nothing()

    kernels, launched = lab.same(build, {"x": normal(4, 6, 40), "g": normal(40)})
    assert kernels == {"triton.region": 1, "triton.norm_grad": 1}
    assert launched["norm_grad_norm_backward"] == launched["norm_grad_norm_column_sums"] == 1


def test_an_lstm_s_cells_are_the_library_s(lab):
    """The last state's gradient is zeros: nothing is launched for them."""

    def build(x, w):
        c = h = tf.zeros([3, 6])
        for _ in range(2):
            i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), w), 4, 1)
            c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            h = tf.sigmoid(o) * tf.tanh(c)
        return [h, *tf.gradients(tf.sin(h), [x, w])], nothing()

    kernels, launched = lab.same(build, {"x": normal(3, 4), "w": normal(10, 24)})
    assert kernels["triton.lstm_cell"] == kernels["triton.lstm_cell_grad"] == 2
    assert launched["lstm_cell_lstm_forward"] == launched["lstm_cell_grad_lstm_backward"] == 2
    assert {"cuda.split", "cuda.sigmoid", "cuda.fill"}.isdisjoint(kernels), kernels


@pytest.mark.sampled(2)
@pytest.mark.parametrize("pairs", [False, True])
def test_rotary_embedding_by_hand_is_one_kernel_each_way(lab, pairs):
    angles = np.outer(np.arange(5), 0.5 ** np.arange(4)).astype(np.float32)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]

    def build(x):
        a, b = (x[..., ::2], x[..., 1::2]) if pairs else tf.split(x, 2, -1)
        turned = [a * cos - b * sin, a * sin + b * cos]
        y = tf.reshape(tf.stack(turned, -1), [2, 5, 3, 8]) if pairs else tf.concat(turned, -1)
        return [y, *tf.gradients(tf.sin(y), [x])], nothing()

    kernels, launched = lab.same(build, {"x": normal(2, 5, 3, 8)})
    assert kernels["triton.rotary"] == 2 and launched["rotary_rotary_tokens"] == 2
    assert set(kernels) <= {"triton.rotary", "triton.region", "cuda.cos", "cuda.mul"}


def test_a_training_step_of_two_layers(lab):
    def build(x, y):
        w1, w2 = tf.Variable(normal(8, 16)), tf.Variable(normal(16, 4))
        b1, b2 = tf.Variable(np.zeros(16, np.float32)), tf.Variable(np.zeros(4, np.float32))
        hidden = tf.nn.relu(tf.matmul(x, w1) + b1)
        logits = tf.matmul(hidden, w2) + b2
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        return [loss, train], tf.global_variables_initializer()

    labels = np.eye(4, dtype=np.float32)[RNG.integers(4, size=12)]
    kernels, launched = lab.same(build, {"x": normal(12, 8), "y": labels}, rtol=1e-4)
    assert (
        kernels["triton.loss_with_gradient"] == 1 and kernels["cuda.mat_mul_with_sums"] == 2 and sum(launched.values())
    )


def test_blocks_share_a_long_reduction(lab):
    def build(x):
        return [tf.reduce_sum(tf.square(x) * 0.5), tf.reduce_mean(tf.tanh(x * 2.0), 0)], nothing()

    _, launched = lab.same(build, {"x": normal(500, 40)}, rtol=1e-4)
    assert any(name.endswith("put_together") for name in launched)


def test_without_triton_nothing_changes_but_the_launches(lab):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [8, 8])
        y = tf.tanh(x * 2.0) + 1.0
        value = normal(8, 8)
        with lab.session(["cuda", "cpu"]) as sess:
            assert "triton.region" not in sess.explain(y, {x: value}).kernels()
            np.testing.assert_allclose(sess.run(y, {x: value}), np.tanh(value * 2) + 1, rtol=1e-5, atol=1e-6)
    assert graphdock_triton.plugin.__all__


@pytest.mark.sampled(2)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_by_hand_is_one_kernel_each_way(lab, causal):
    def build(q, k, v):
        scores = tf.matmul(q * 0.25, k, transpose_b=True)
        if causal:
            seen = tf.matrix_band_part(tf.ones([20, 20]), -1, 0)
            scores = scores * seen - 1e9 * (1.0 - seen)
        y = tf.matmul(tf.nn.softmax(scores), v)
        return [y, *tf.gradients(tf.sin(y), [q, k, v])], nothing()

    kernels, launched = lab.same(build, {n: normal(1, 2, 20, 16) for n in "qkv"})
    assert kernels["triton.attention"] == kernels["triton.attention_grad"] == 1
    assert {"cuda.mat_mul", "cuda.softmax"}.isdisjoint(kernels) and launched["attention_attention_forward"] == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fed", [False, True])
def test_attention_with_dropout_is_one_kernel_each_way_and_drops_what_the_cpu_drops(lab, fed):
    def build(q, k, v, rate):
        scores = tf.matmul(q, k, transpose_b=True) * 0.25
        weights = tf.nn.dropout(tf.nn.softmax(scores), rate=tf.reshape(rate, []) if fed else 0.3, seed=7)
        y = tf.matmul(weights, v)
        return [y, *tf.gradients(tf.sin(y), [q, k, v])], nothing()

    rate = np.array([0.4], np.float32)
    kernels, launched = lab.same(build, {n: normal(1, 2, 20, 16) for n in "qkv"} | {"rate": rate}, rtol=1e-4)
    assert kernels["triton.dropped_attention"] == kernels["triton.dropped_attention_grad"] == 1
    assert kernels["cuda.random_stream"] == 1 and {"cuda.mat_mul", "cuda.random_uniform"}.isdisjoint(kernels), kernels
    assert launched["attention_attention_forward"] == 1


@pytest.mark.exhaustive
def test_attention_with_a_mask_of_the_batch_is_one_kernel_each_way(lab):
    """As BERT has it: what is added follows from which tokens there are."""

    def build(q, k, v, seen):
        low = (1.0 - seen[:, None, None, :]) * -10000.0
        y = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.25 + low), v)
        return [y, *tf.gradients(tf.sin(y), [q, k, v])], nothing()

    seen = (np.arange(20) < np.array([[20], [13]])).astype(np.float32)
    kernels, launched = lab.same(build, {n: normal(2, 2, 20, 16) for n in "qkv"} | {"seen": seen})
    assert kernels["triton.attention"] == kernels["triton.attention_grad"] == 1
    assert {"cuda.mat_mul", "cuda.softmax"}.isdisjoint(kernels) and launched["attention_attention_forward"] == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid", "gelu", "gelu_tanh", None])
def test_a_dense_layer_is_one_launch(lab, activation):
    from graphdock_std.nn import fused

    def build(x, w, b):
        y = tf.nn.bias_add(tf.matmul(x, w), b)
        if activation is not None:
            y = tf.reshape(y, [3, 11, 20])
            y = fused.activate(y, activation)
        return [y, *tf.gradients(tf.sin(y), [x, w, b])], nothing()

    kernels, launched = lab.same(build, {"x": normal(33, 18), "w": normal(18, 20), "b": normal(20)}, rtol=1e-4)
    assert kernels["triton.matmul"] == 1 and launched["matmul_matmul_tiles"] == 1
    assert (kernels["cuda.matmul_lt"], kernels["cuda.mat_mul_with_sums"]) == (1, 1)  # of the gradients


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("activation", "data_format"), [("gelu_tanh", "NHWC"), ("relu", "NCHW"), (None, "NHWC")])
def test_a_convolutional_layer_is_one_launch(lab, activation, data_format):
    """Whatever its window is: patterns are told strides and padding."""
    from graphdock_std.nn import fused

    def build(x, w, b):
        steps = [1, 2, 1, 1] if data_format == "NHWC" else [1, 1, 1, 2]
        y = tf.nn.conv2d(x, w, steps, "VALID", data_format=data_format)
        y = tf.nn.bias_add(y, b, data_format)
        if activation is not None:
            y = fused.activate(y, activation)
        return [y, *tf.gradients(tf.sin(y), [x, w, b])], nothing()

    x = normal(2, 6, 5, 3) if data_format == "NHWC" else normal(2, 3, 6, 5)
    kernels, launched = lab.same(build, {"x": x, "w": normal(3, 2, 3, 4), "b": normal(4)}, rtol=1e-4)
    assert kernels["triton.fused_conv2d"] == 1 and launched["conv2d_conv_tiles"] == 1
    assert kernels["cuda.conv2d_backprop_input"] == kernels["cuda.conv2d_backprop_filter"] == 1


def test_a_dense_layer_whose_gradient_nobody_asks_for_keeps_nothing_for_it(lab, monkeypatch):
    from graphdock_triton.operations import calls

    told = []
    find = calls._problem
    monkeypatch.setattr(calls, "_problem", lambda *args, **more: told.append(more["present"]) or find(*args, **more))

    def build(x, w, b, wanted=()):
        y = 0.5 * (h := tf.nn.bias_add(tf.matmul(x, w), b)) * (1.0 + tf.erf(h * 0.7071067811865476))
        return [y, *(tf.gradients(tf.sin(y), [x]) if wanted else [])], nothing()

    feeds = {"x": normal(9, 6), "w": normal(6, 8), "b": normal(8)}
    kernels, _ = lab.same(build, feeds, steps=1, rtol=1e-4)
    assert kernels["triton.matmul"] == 1 and set(told) == {frozenset({"bias"})}
    told.clear()
    lab.same(lambda **given: build(**given, wanted=True), feeds, steps=1, rtol=1e-4)
    assert set(told) == {frozenset({"bias", "pre"})}


@pytest.mark.exhaustive
def test_a_transformer_s_layer(lab):
    """Norm, attention, residual ways and a dense pair, trained: what is left are products, regions and the library's kernels."""

    def norm(x, name):
        g, b = tf.Variable(np.ones(16, np.float32)), tf.Variable(np.zeros(16, np.float32))
        d = x - tf.reduce_mean(x, axis=-1, keepdims=True)
        return d * tf.rsqrt(tf.reduce_mean(tf.square(d), axis=-1, keepdims=True) + 1e-5) * g + b

    def dense(x, n):
        w, b = tf.Variable(0.3 * normal(int(x.shape[-1]), n)), tf.Variable(np.zeros(n, np.float32))
        y = tf.nn.bias_add(tf.matmul(tf.reshape(x, [-1, int(x.shape[-1])]), w), b)
        return tf.reshape(y, [2, 12, n])

    def build(x):
        parts = tf.reshape(dense(norm(x, "a"), 48), [2, 12, 3, 2, 8])
        q, k, v = tf.unstack(tf.transpose(parts, [2, 0, 3, 1, 4]))
        y = tf.matmul(tf.nn.softmax(tf.matmul(q * 8**-0.5, k, transpose_b=True)), v)
        h = x + dense(tf.reshape(tf.transpose(y, [0, 2, 1, 3]), [2, 12, 16]), 16)
        up = dense(norm(h, "b"), 32)
        out = h + dense(0.5 * up * (1.0 + tf.erf(up * 0.7071067811865476)), 16)
        loss = tf.reduce_mean(tf.square(out))
        return [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)], tf.global_variables_initializer()

    kernels, launched = lab.same(build, {"x": normal(2, 12, 16)}, rtol=2e-4)
    assert kernels["triton.norm_grad"] == 2 and {"cuda.softmax", "cuda.rsqrt"}.isdisjoint(kernels)
    assert (kernels["triton.attention"], kernels["triton.attention_grad"], kernels["triton.matmul"]) == (1, 1, 4)


def test_tiles_that_were_measured_best_are_taken_by_sessions_that_are_not_deterministic(lab, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    options = {"triton": {"tune": "measure"}}
    value = normal(40, 50)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [40, 50])
        y = tf.reduce_sum(tf.tanh(x) * 2.0, 1)
        want = np.sum(np.tanh(value) * 2, 1)
        with lab.session(deterministic=True, options=options) as sess:
            np.testing.assert_allclose(sess.run(y, {x: value}), want, rtol=1e-5, atol=1e-5)
        assert not list(tmp_path.rglob("*.choice"))
        with lab.session(options=options) as sess:
            np.testing.assert_allclose(sess.run(y, {x: value}), want, rtol=1e-5, atol=1e-5)
        (path,) = tmp_path.rglob("*.choice")
        other = (32, 64, 1)  # not the guess
        assert tuning._read(path)[1] == "measured"
        tuning._write(path, other, "measured")
        used = []
        for deterministic in (False, True):
            compiling.use(lab.compiler)  # forgets what was compiled
            lab.compiler.compiled.clear()
            with lab.session(deterministic=deterministic) as sess:
                np.testing.assert_allclose(sess.run(y, {x: value}), want, rtol=1e-5, atol=1e-5)
            used.append({(j.constants["BLOCK_K"], j.constants["BLOCK_R"]) for j in lab.compiler.compiled})
        assert used[0] == {other[:2]} and used[1].isdisjoint(used[0])


def test_dropout_is_drawn_where_it_is_read_forward_and_backward(lab):
    """No mask is written: both regions draw it, the same numbers as the cpu, anew in each step, recorded as it is."""

    def build(x, w, rate):
        y = tf.nn.dropout(tf.tanh(tf.matmul(x, w)), rate=0.25, seed=3)
        z = tf.nn.dropout(tf.matmul(y, w) * 2.0, rate=tf.reshape(rate, []), seed=4)
        return [z, *tf.gradients(tf.reduce_sum(tf.matmul(z, w)), [x, w])], nothing()

    kernels, launched = lab.same(build, {"x": normal(6, 8), "w": normal(8, 8), "rate": np.array([0.5], np.float32)}, 4)
    assert not [k for k in kernels if "random" in k or k in ("cuda.cast", "cuda.greater_equal")], kernels
    assert str(lab.explained).count("; draws from dropout/random_uniform") == 2
    assert str(lab.explained).count("; draws from dropout_1/random_uniform") == 2


@pytest.mark.exhaustive
def test_ops_that_ran_in_different_numbers_of_steps_draw_each_with_its_own(lab):
    """Each reads its own ordinal, in a region and as a kernel of its own; in a loop the iteration is told at each launch."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3, 8])
        a = tf.nn.dropout(x, rate=0.5, seed=3) * 2.0
        b = tf.nn.dropout(x, rate=0.5, seed=4) + tf.random_uniform([8], seed=5)
        c = tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, tf.nn.dropout(t + x, rate=0.5, seed=6)), [0, x])[1]
        d = tf.random_uniform([5], seed=7)
        results = []
        for backends in (["cpu"], BACKENDS):
            with lab.session(backends) as sess:
                steps = [[a], [a, d], [b], [a, b, c, d], [c], [a, b, c, d]]
                results.append([sess.run(fetches, {x: np.ones([3, 8])}) for fetches in steps])
    for want, got in zip(*results, strict=True):
        for left, right in zip(want, got, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-6)


def test_a_branch_that_no_step_took_is_recorded_with_its_regions(lab):
    """A region that reads a variable, or a part of one that lies oddly, or that draws, is bound to addresses when it first runs."""
    with tf.Graph().as_default():
        x, p = tf.Variable(normal(24)), tf.placeholder(tf.float32, [])
        cut = tf.reshape(x, [4, 6])
        going = tf.reduce_sum(x * x) * p > 0
        fetches = tf.cond(
            going,
            lambda: [tf.tanh(x[1:9]) * 2.0, tf.nn.dropout(cut * 3.0, rate=0.5, seed=1)],
            lambda: [tf.sin(x[3:11]) * 2.0, tf.nn.dropout(cut, rate=0.4, seed=2)],
        )
        results = []
        for backends in (["cpu"], BACKENDS):
            with lab.session(backends) as sess:
                sess.run(x.initializer)
                results.append([sess.run(fetches, {p: sign}) for sign in (1.0, 1.0, -1.0, 1.0)])
    for want, got in zip(*results, strict=True):
        for left, right in zip(want, got, strict=True):
            np.testing.assert_allclose(left, right, rtol=2e-5)


@pytest.mark.exhaustive
def test_tiles_of_a_region_that_draws_are_measured_and_draw_the_same(lab, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [40, 50])
        y = tf.reduce_sum(tf.nn.dropout(x * 2.0, rate=0.5, seed=3), 1)
        results = []
        for backends, options in ((["cpu"], {}), (BACKENDS, {"triton": {"tune": "measure"}})):
            with lab.session(backends, options=options) as sess:
                results.append([sess.run(y, {x: np.ones([40, 50])}) for _ in range(2)])
    assert list(tmp_path.rglob("*.choice"))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
