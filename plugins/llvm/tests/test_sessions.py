"""Sessions whose backends are ``("llvm", "cpu")``: what becomes one kernel, and the same results as without."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock_testing.conformance import Conformance

LLVM = {"backends": ("llvm", "cpu")}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def both(fetches, feed, near=2e-5):
    """Results and kernels with the plugin; the results are those of the cpu alone."""
    found = []
    for fields in (LLVM, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run(tf.global_variables_initializer())
            found.append((sess.run(fetches, feed), sess.explain(fetches, feed).kernels()))
    (got, kernels), (want, _) = found
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, near, near)
    return kernels


def gelu(x):
    return 0.5 * x * (1.0 + tf.erf(x * np.float32(2**-0.5)))


@pytest.mark.parametrize("dims", [[33], [4, 70], [2, 3, 5]])
def test_a_hand_written_gelu_its_gradient_and_a_power_are_one_kernel_each(dims):
    x = tf.placeholder(tf.float32, dims)
    feed = {x: numbers(*dims)}
    assert both([gelu(x)], feed) == {"llvm.region": 1}
    assert both([tf.gradients(gelu(x), x)[0]], feed) == {"llvm.region": 1}
    assert both([x * x * x * x], feed) == {"llvm.region": 1}


def test_explain_shows_the_program_and_the_code_of_a_region_and_of_a_loop():
    x = tf.placeholder(tf.float32, [33])
    y = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 0.5), [0, gelu(x)])[1]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        texts = list(sess.explain(y, {x: numbers(33)}).compiled().values())
    assert len(texts) == 2 and all("define void @region(ptr %table" in text for text in texts)
    assert sorted(text.split(" (")[0] for text in texts) == ["loop while", "region mul"]


def test_a_long_chain_is_few_kernels():
    x = tf.placeholder(tf.float32, [16])
    y = x
    for i in range(1000):
        y = y * 1.0001 if i % 2 else y + 0.5
    kernels = both([y], {x: numbers(16)}, 1e-3)
    assert set(kernels) == {"llvm.region"} and kernels["llvm.region"] <= 2


def test_rows_biases_and_masks_are_fused_and_what_is_not_compiled_stays():
    x, b = tf.placeholder(tf.float32, [6, 50]), tf.placeholder(tf.float32, [50])
    mask = tf.placeholder(tf.bool, [6, 1])
    h = tf.nn.relu(x + b)
    centred = h - tf.reduce_mean(h, 1, keepdims=True)
    scaled = centred / (1.0 + tf.reduce_sum(tf.abs(centred), 1, keepdims=True))
    y = tf.where(tf.logical_and(mask, x > 0.0), scaled, tf.tanh(x))
    z = tf.tan(y) + 1.0
    feed = {x: numbers(6, 50), b: numbers(50, seed=1), mask: numbers(6, 1, seed=2) > 0}
    kernels = both([y, z], feed)
    assert kernels.get("cpu.tan") == 1 and kernels["llvm.region"] >= 1 and "cpu.tanh" not in kernels


def test_a_network_trains_to_the_same_weights_in_loops_and_branches():
    x, y = tf.placeholder(tf.float32, [10, 8]), tf.placeholder(tf.float32, [10, 3])
    w, b = tf.Variable(numbers(8, 3)), tf.Variable(tf.zeros([3]))
    h = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(h * 1.1 + 0.1) * 0.5), [0, tf.matmul(x, w) + b])[
        1
    ]
    h = tf.cond(tf.reduce_sum(h) > 0, lambda: tf.sigmoid(h) * 2.0 - 1.0, lambda: tf.exp(-h * h) + h)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=h, labels=y))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    seen = []
    for fields in (LLVM, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run(tf.global_variables_initializer())
            for step in range(20):
                sess.run(train, {x: numbers(10, 8, seed=step), y: np.eye(3, dtype=np.float32)[np.arange(10) % 3]})
            seen.append(sess.run([w, b]))
            kernels = sess.explain(train, {x: numbers(10, 8), y: numbers(10, 3)}).kernels()
            assert ("llvm.region" in kernels) == (fields is LLVM)
    for got, want in zip(*seen, strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-5)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.bfloat16])
@pytest.mark.parametrize(
    "optimizer",
    [
        tf.train.GradientDescentOptimizer(0.1),
        tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        tf.train.AdagradOptimizer(0.1),
        tf.train.AdamOptimizer(0.01),
        tf.train.RMSPropOptimizer(0.01),
        tf.train.AdadeltaOptimizer(0.1),
        tf.train.ProximalAdagradOptimizer(0.1, 0.1, 0.01, 0.02),
        tf.train.FtrlOptimizer(0.1, -0.4, l1_regularization_strength=0.01),
    ],
    ids=lambda o: o.get_name(),
)
@pytest.mark.sampled(2)
def test_an_optimizers_update_is_computed_with_the_gradient_that_it_takes(optimizer, dtype):
    w, x = tf.Variable(numbers(5, 33).astype(dtype.np)), tf.placeholder(dtype, [5, 33])
    train = optimizer.apply_gradients([(tf.tanh(x) * 2.0, w)])
    seen = []
    for fields in (LLVM, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run(tf.global_variables_initializer())
            kernels = sess.explain(train, {x: numbers(5, 33)}).kernels()
            assert kernels.get("llvm.region", 0) == (fields is LLVM)
            assert any("apply" in kernel for kernel in kernels) != (fields is LLVM)
            for step in range(4):
                sess.run(train, {x: numbers(5, 33, seed=step).astype(dtype.np)})
            seen.append(sess.run(w).astype(np.float64))
    near = 3e-2 if dtype.size == 2 else 1e-5
    np.testing.assert_allclose(*seen, near, near)


def test_sums_over_rows_are_fused_with_what_makes_them_and_what_reads_them():
    x, g = tf.placeholder(tf.float32, [6, 50]), tf.placeholder(tf.float32, [6, 50])
    masked = tf.where(x > 0.0, g, tf.zeros_like(g)) * 2.0
    fetches = [masked, tf.tanh(tf.reduce_sum(masked, 0) * 0.1), tf.reduce_max(masked, 0), tf.reduce_sum(masked, 1)]
    assert both(fetches, {x: numbers(6, 50), g: numbers(6, 50, seed=1)}) == {"llvm.region": 1}


def test_what_goes_along_rows_again_behind_a_sum_over_them_is_another_kernels():
    x = tf.placeholder(tf.float32, [6, 50])
    y = tf.tanh(x) - tf.reduce_mean(tf.tanh(x), 0, keepdims=True)
    kernels = both([y * 2.0], {x: numbers(6, 50)})
    assert "llvm.region" in kernels


@pytest.mark.plain  # debug mode makes no runs
def test_a_step_of_softmax_regression_is_one_call_of_native_code():
    x, y = tf.placeholder(tf.float32, [10, 784]), tf.placeholder(tf.float32, [10, 10])
    w, b = tf.Variable(numbers(784, 10) * 0.1), tf.Variable(tf.zeros([10]))
    loss = tf.nn.softmax_cross_entropy_with_logits(logits=tf.matmul(x, w) + b, labels=y)
    train = tf.train.AdagradOptimizer(0.01).minimize(loss)
    feed = {x: numbers(10, 784), y: np.full((10, 10), 0.1, np.float32)}
    seen = []
    for fields in (LLVM, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run(tf.global_variables_initializer())
            metadata = tf.RunMetadata()
            for _ in range(5):
                result = sess.run([loss, train], feed, run_metadata=metadata)[0]
            seen.append([result, *sess.run([w, b])])
            if fields is LLVM:
                step = metadata.plan.program.source.partition("def step")[2]
                kernels = sess.explain([loss, train], feed).kernels()
    for got, want in zip(*seen, strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-5)
    assert set(kernels) == {"llvm.region"}
    # the bias that is read before it is written, the memory of the result, and the step
    assert [line.strip()[:2] for line in step.splitlines()[1:]] == ["d0", "e0", "a0", "re"]


@pytest.mark.plain  # debug mode makes no runs
def test_updates_of_several_variables_are_one_call():
    variables = [tf.Variable(numbers(*dims)) for dims in ([5, 33], [33], [4])]
    feeds = [tf.placeholder(tf.float32, v.shape) for v in variables]
    train = tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients(list(zip(feeds, variables, strict=True)))
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        sess.run(tf.global_variables_initializer())
        metadata = tf.RunMetadata()
        want = [numbers(*v.shape.as_list()) for v in variables]
        moved = [np.zeros_like(w) for w in want]
        for step in range(3):
            grads = [numbers(*v.shape.as_list(), seed=step) for v in variables]
            sess.run(train, dict(zip(feeds, grads, strict=True)), run_metadata=metadata)
            moved = [0.9 * m + g for m, g in zip(moved, grads, strict=True)]
            want = [w - 0.1 * m for w, m in zip(want, moved, strict=True)]
        for v, w in zip(sess.run(variables), want, strict=True):
            np.testing.assert_allclose(v, w, 1e-5, 1e-6)
    step = metadata.plan.program.source.partition("def step")[2]
    assert "    a0(f0, f1, f2)" in step and "k0(" not in step


def test_a_bias_is_updated_though_its_gradient_is_no_part_of_the_region():
    b, x = tf.Variable(numbers(33)), tf.placeholder(tf.float32, [5, 33])
    train = tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients([(tf.reduce_sum(x, 0), b)])
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        sess.run(tf.global_variables_initializer())
        assert "cpu.resource_apply_momentum" not in sess.explain(train, {x: numbers(5, 33)}).kernels()
        sess.run(train, {x: numbers(5, 33, seed=1)})
        np.testing.assert_allclose(sess.run(b), numbers(33) - 0.1 * numbers(5, 33, seed=1).sum(0), 1e-5, 1e-6)


@pytest.mark.parametrize("dtype", [tf.float64, tf.float16, tf.bfloat16, tf.int32])
def test_other_dtypes(dtype):
    x = tf.placeholder(dtype, [3, 40])
    y = tf.maximum(x * x - x, x + x)
    kernels = both(
        [tf.cast(y, tf.float64)], {x: numbers(3, 40).astype(dtype.as_numpy_dtype)}, 2e-2 if dtype.size == 2 else 1e-6
    )
    assert "llvm.region" in kernels


def test_a_constant_that_waits_for_a_node_of_its_own_group_stays_between():
    """It reads nothing, but its control edge makes it one of those that no way may lead over and back."""
    x = tf.placeholder(tf.float32, [3])
    first = x * 2.0 + 1.0
    with tf.control_dependencies([first]):
        halves = tf.constant(numbers(3), name="waits")
    kernels = both([tf.tanh(first - halves) * first], {x: numbers(3)})
    assert kernels["llvm.region"] >= 1


def test_no_rows_and_no_columns():
    for shape in ([0, 5], [5, 0], [0]):
        x = tf.placeholder(tf.float32, shape)
        kernels = both([tf.tanh(x) * 2.0 + 1.0, tf.reduce_sum(x * x + 1.0, -1)], {x: np.zeros(shape, np.float32)})
        assert sum(kernels.values()) >= 1


def test_special_numbers_pass_as_they_do_unfused():
    x = tf.placeholder(tf.float32, [12])
    special = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-42, -1e-42, 1.0, -1.0, 88.8])
    y = [
        tf.exp(x) + 0.0,
        tf.log(x) * 1.0,
        tf.tanh(x) * 1.0,
        tf.maximum(x, 0.0) * 1.0,
        tf.sigmoid(x) * 1.0,
        1.0 / x + 0.0,
    ]
    both(y, {x: special})


def test_steps_on_many_threads():
    x = tf.placeholder(tf.float32, [7, 33])
    y = tf.exp(-x * x) + x / (1.0 + tf.abs(x))
    wrong = []
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:

        def work(seed):
            for i in range(50):
                v = numbers(7, 33, seed=seed * 100 + i)
                if not np.allclose(sess.run(y, {x: v}), np.exp(-v * v) + v / (1 + np.abs(v)), 1e-4, 1e-5):
                    wrong.append((seed, i))

        threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_nothing_heavy_is_imported_before_a_session_compiles():
    text = """
import sys, graphdock as tf
tf.default_host().backend("llvm")
assert "llvmlite" not in sys.modules
"""
    subprocess.run(
        [
            sys.executable,
            "-c",
            text.replace("tf.default_host", "__import__('graphdock.plugin.host').plugin.host.default_host"),
        ],
        check=True,
    )


def test_a_sum_whose_result_has_an_unknown_shape_stays_a_kernel():
    x, b = tf.placeholder(tf.float32, [4, 5]), tf.placeholder(tf.float32, [None, None])
    gradient = tf.gradients(tf.reduce_sum(x * b), b)[0]
    feed = {x: numbers(4, 5), b: numbers(1, 5)}
    for policy in ("exact", "generic"):
        with tf.Session(config=tf.SessionConfig(**LLVM, shape_policy=policy)) as sess:
            np.testing.assert_allclose(sess.run(gradient, feed), numbers(4, 5).sum(0, keepdims=True), 1e-5)


def test_reductions_by_themselves_are_regions_and_trigonometry_and_powers_are_fused():
    x, y = tf.placeholder(tf.float32, [6, 50]), tf.placeholder(tf.float32, [6, 50])
    feed = {x: numbers(6, 50), y: np.abs(numbers(6, 50, seed=1))}
    assert both([tf.nn.softmax(x)], feed) == {"llvm.region": 1}
    assert both([tf.sin(x) * tf.cos(x) + tf.pow(y, x)], feed, 1e-4) == {"llvm.region": 1}


def test_what_reads_more_than_two_tensors_is_a_region_by_itself():
    x, y, z, w = (tf.placeholder(tf.float32, [30, 41]) for _ in range(4))
    feed = {p: numbers(30, 41, seed=i) for i, p in enumerate((x, y, z, w))}
    assert both([tf.add_n([x, y, z, w])], feed) == {"llvm.region": 1}
    flag = tf.placeholder(tf.bool, [30, 41])
    assert both([tf.where(flag, x, y)], {x: feed[x], y: feed[y], flag: feed[x] > 0}) == {"llvm.region": 1}
    assert both([x * y], {x: feed[x], y: feed[y]}) == {"cpu.mul": 1}


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_fed_arrays_may_lie_anywhere(offset):
    """Arrays with an odd address, with strides, read-only, and fed twice."""
    x, y = tf.placeholder(tf.float32, [40]), tf.placeholder(tf.float32, [40])
    z = tf.tanh(x) * y + x
    raw = np.zeros(40 * 4 + offset, np.uint8)
    odd = raw[offset:].view(np.float32)
    odd[:] = numbers(40)
    fixed = numbers(40, seed=1)
    fixed.flags.writeable = False
    strided = np.repeat(numbers(40, seed=2), 3)[::3]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        for a, b in ((odd, fixed), (fixed, odd), (odd, odd), (strided, odd), (strided[::-1], fixed)):
            for _ in range(2):
                np.testing.assert_allclose(sess.run(z, {x: a, y: b}), np.tanh(a) * b + a, 1e-5, 1e-6)


def test_processes_that_compile_one_key_at_once_get_the_same(tmp_path):
    text = """
import graphdock as tf, numpy as np
x = tf.placeholder(tf.float32, [37])
with tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as sess:
    print(float(sess.run(tf.reduce_sum(tf.tanh(x) * 2.0), {x: np.linspace(0, 1, 37)})))
"""
    environment = {**os.environ, "GRAPHDOCK_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", text], env=environment, stdout=subprocess.PIPE) for _ in range(2)
    ]
    printed = {process.communicate(timeout=120)[0] for process in started}
    assert len(printed) == 1 and printed != {b""}
    assert len(list(tmp_path.rglob("*.o"))) >= 1 and not list(tmp_path.rglob("*.tmp*"))


@pytest.mark.parametrize("check", ["regions", "products", "updates"])
@pytest.mark.sampled(2)
def test_the_kits_random_graphs_give_what_their_nodes_do(check):
    kit = Conformance("llvm")
    (case,) = [c for c in kit.cases("compiler llvm.region") if c.data["check"] == check]
    kit.check(case, brief=check == "regions")


def test_a_batch_norm_with_given_statistics_is_one_kernel_with_what_follows():
    x = tf.placeholder(tf.float32, [2, 5, 3, 20])
    scale, offset, mean, variance = (tf.placeholder(tf.float32, [20]) for _ in range(4))
    y, *_ = tf.nn.fused_batch_norm(x, scale, offset, mean, variance, epsilon=0.001, is_training=False)
    feed = {v: numbers(*v.shape.as_list(), seed=i) for i, v in enumerate((x, scale, offset, mean))}
    feed[variance] = numbers(20, seed=9) ** 2 + 0.5
    assert both([tf.nn.relu(y)], feed) == {"llvm.region": 1}
    both([y, *tf.gradients(tf.nn.relu(y), [x, scale, offset])], feed)


@pytest.mark.parametrize("channels", [7, 16, 20, 5000])
def test_what_is_dear_and_the_same_for_all_rows_is_computed_before_them(channels):
    x = tf.placeholder(tf.float32, [2, 3, 2, channels])
    scale, offset, mean, variance = (tf.placeholder(tf.float32, [channels]) for _ in range(4))
    y, *_ = tf.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=False)
    feed = {v: numbers(*v.shape.as_list(), seed=i) for i, v in enumerate((x, scale, offset, mean))}
    feed[variance] = numbers(channels, seed=9) ** 2 + 0.5
    both([y, tf.reduce_mean(tf.nn.relu(y), 3), tf.reduce_max(y, [0, 1, 2])], feed)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        (text,) = sess.explain(tf.tanh(y), feed).compiled().values()
    assert (text.index("@llvm.sqrt", text.index("define")) < text.index("outer0:")) is (channels < 5000)


def test_a_layer_norm_and_its_gradient_are_one_kernel():
    x, arriving = tf.placeholder(tf.float32, [70, 24]), tf.placeholder(tf.float32, [70, 24])
    gamma, beta = tf.placeholder(tf.float32, [24]), tf.placeholder(tf.float32, [24])
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    y = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-6)
    feed = {v: numbers(*v.shape.as_list(), seed=i) for i, v in enumerate((x, arriving, gamma, beta))}
    assert both([y, *tf.gradients(y, [x, gamma, beta], grad_ys=[arriving])], feed) == {"llvm.region": 1}
    assert both(tf.gradients(y, [x, gamma, beta], grad_ys=[arriving]), feed)["llvm.region"] >= 1
