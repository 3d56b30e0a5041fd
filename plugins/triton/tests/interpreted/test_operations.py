"""Ops that kernels of the library compute, in whole steps on the emulated device: what they give, report and refuse."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import errors
from graphdock.plugin.host import Host
from graphdock_cuda.testing import find_compiler, toolkit
from graphdock_cuda.testing.install import install
from graphdock_triton import compiling, tuning
from graphdock_triton.operations import choosing, launching
from graphdock_triton.testing.compiler import InterpretingCompiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler for the emulated CUDA")
BACKENDS = ("triton", "cuda", "cpu")
RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


@pytest.fixture
def session(process_host):
    """Makes sessions of one host."""
    host, tools = process_host(Host()), toolkit()
    install(host, tools)
    before = compiling.use(InterpretingCompiler())
    yield lambda backends=BACKENDS, **fields: tf.Session(
        config=tf.SessionConfig(backends=list(backends), **fields), host=host
    )
    compiling.use(before)
    tools.driver.verify()


def refused(session, fetch, kernel):
    """Why a kernel was not taken, as ``explain`` says it, and what was."""
    with session() as sess:
        row = next(r for r in sess.explain(fetch).rows if kernel in dict(r.lost))
        return dict(row.lost)[kernel].removeprefix("refused when it was prepared: "), row.kernel


@pytest.mark.exhaustive
def test_a_step_of_a_network_of_images_and_of_words(session):
    with tf.Graph().as_default():
        images, words = tf.placeholder(tf.float32, [2, 5, 6, 3]), tf.placeholder(tf.int32, [2, 4])
        labels = tf.placeholder(tf.int64, [2])
        weights, table = tf.Variable(0.3 * normal(3, 3, 3, 4)), tf.Variable(normal(9, 4))
        scale, offset = tf.Variable(1 + 0.1 * normal(4)), tf.Variable(normal(4))
        y = tf.nn.conv2d(images, weights, [1, 2, 1, 1], "SAME")
        y, mean, variance = tf.nn.fused_batch_norm(y, scale, offset, epsilon=1e-3)
        seen = tf.reduce_mean(tf.nn.relu(y), [1, 2]) + tf.reduce_mean(tf.gather(table, words), 1)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=seen))
        fetches = [loss, mean, variance, tf.train.GradientDescentOptimizer(0.5).minimize(loss)]
        feed = {images: normal(2, 5, 6, 3), words: [[0, 8, 0, 3], [1, 1, 2, 0]], labels: [3, 0]}
        results = []
        for backends in (["cpu"], BACKENDS):
            with session(backends) as sess:
                sess.run(tf.global_variables_initializer())
                results.append([sess.run(fetches, feed)[:3] for _ in range(2)])
                kernels = sess.explain(fetches, feed).kernels()
    for want, got in zip(*results, strict=True):
        for a, b in zip(want, got, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
    mine = ("conv2d", "batch_norm", "batch_norm_grad", "gather_rows", "sparse_loss_with_gradient")
    assert all(kernels[f"triton.{name}"] == 1 for name in mine)


@pytest.mark.parametrize(("fusion", "kernel"), [(False, "triton.batch_norm"), (True, "triton.region")])
def test_statistics_that_are_given_and_the_gradient_with_them(session, fusion, kernel):
    x, vectors = normal(2, 1, 3, 5), [normal(5), normal(5), normal(5), 0.5 + RNG.random(5, "f4")]
    with tf.Graph().as_default():
        given = tf.placeholder(tf.float32, x.shape)
        made = tf.nn.fused_batch_norm(given, *vectors, is_training=False)
        fetches = [*made, *tf.gradients(tf.sin(made[0]), [given])]
        results = []
        for backends in (["cpu"], BACKENDS):
            with session(backends, fusion=fusion) as sess:
                results.append(sess.run(fetches, {given: x}))
                kernels = sess.explain(fetches, {given: x}).kernels()
                alone = sess.run(made[0], {given: x})  # whose kernel copies no statistics
                np.testing.assert_array_equal(alone, results[-1][0])
    assert kernels[kernel] and kernels["triton.batch_norm_grad"] == 1
    for want, got in zip(*results, strict=True):
        np.testing.assert_allclose(want, got, rtol=1e-5, atol=1e-6)


def test_a_label_that_is_no_class_and_a_row_that_is_not_there_are_errors_of_their_nodes(session):
    with tf.Graph().as_default(), session() as sess:
        labels, rows = tf.placeholder(tf.int32, [3]), tf.placeholder(tf.int64, [2, 2])
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=normal(3, 4), name="loss")
        found = tf.gather(tf.constant(normal(5, 3)), rows, name="lookup")
        good = {labels: [0, 3, 1], rows: [[0, 4], [1, 2]]}
        kernels = sess.explain([loss, found], good).kernels()
        assert {"triton.sparse_cross_entropy", "triton.gather_rows"} <= set(kernels)
        with pytest.raises(errors.InvalidArgumentError, match=r"no class index[\s\S]*0 to 3[\s\S]*-2") as raised:
            sess.run([loss, found], {**good, labels: [0, -2, 1]})
        assert raised.value.op.name.startswith("loss")
        wrong = r"indices\[1\]\[0\] is 5, which is out of bounds for axis 0 of size 5"
        with pytest.raises(errors.InvalidArgumentError, match=wrong) as raised:
            sess.run([loss, found], {**good, rows: [[0, 4], [5, 2]]})
        assert raised.value.op.name.startswith("lookup")
        assert np.isfinite(sess.run(loss, good)).all()  # the session goes on


def test_what_a_kernel_cannot_do_it_refuses_with_the_reason(session):
    last = "it takes channels in the last dim"
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 3, 4, 4])
        point = tf.nn.conv2d(x, normal(1, 1, 4, 2), [1, 1, 1, 1], "VALID")
        assert "a product of matrices" in refused(session, point, "triton.conv2d")[0]
        normed = tf.nn.fused_batch_norm(x, normal(3), normal(3), data_format="NCHW")[0]
        assert refused(session, normed, "triton.batch_norm") == (last, "cuda.fused_batch_norm")
        columns = tf.gather(x, [1, 0], axis=1)
        assert "what axis 1 has are parts of rows" in refused(session, columns, "triton.gather_rows")[0]
        rows = tf.nn.softmax(tf.placeholder(tf.float32, [None, 5]))
        assert refused(session, rows, "triton.softmax") == ("shapes are not known", "cuda.softmax")
        nothing = tf.nn.log_softmax(tf.placeholder(tf.float32, [0, 5]))
        assert refused(session, nothing, "triton.log_softmax") == ("there are no elements", "cuda.log_softmax")


def test_where_triton_cannot_be_imported_the_cuda_plugin_computes(session, monkeypatch):
    def library():
        raise ImportError("no compiler here")

    launching.hand_written.cache_clear()
    monkeypatch.setattr(launching, "library", library)
    x = normal(3, 5)
    with tf.Graph().as_default():
        given = tf.placeholder(tf.float32, [3, 5])
        y = tf.nn.softmax(given)
        reason, kernel = refused(session, y, "triton.softmax")
        assert "triton, which can't be imported: no compiler here" in reason and kernel == "cuda.softmax"
        with session() as sess:
            np.testing.assert_allclose(sess.run(y, {given: x}), np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.sampled(2)
def test_channels_are_last_or_first(session, data_format):
    """A window of one element is a product of matrices where channels are last: of bias and activation the library's too."""
    first = data_format == "NCHW"
    x = normal(2, 3, 5, 4) if first else normal(2, 5, 4, 3)
    with tf.Graph().as_default():
        given = tf.placeholder(tf.float32, x.shape)
        steps = [1, 1, 2, 1] if first else [1, 2, 1, 1]
        wide = tf.nn.conv2d(given, normal(3, 2, 3, 4), steps, "SAME", data_format=data_format)
        point = tf.layers.conv2d(
            given, 4, 1, activation=tf.nn.relu6, data_format="channels_first" if first else "channels_last"
        )
        fetches, results = [wide, point], []
        for backends in (["cpu"], BACKENDS):
            with session(backends) as sess:
                sess.run([v.assign(normal_of(v)) for v in tf.global_variables()])
                results.append(sess.run(fetches, {given: x}))
                kernels = sess.explain(fetches, {given: x}).kernels()
    for want, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert kernels["triton.conv2d"] == kernels["triton.fused_conv2d"] == 1


def normal_of(variable):
    """The same for each session."""
    return np.random.default_rng(len(variable.name)).normal(size=variable.shape.as_list()).astype(np.float32)


def product():
    x, w, b = (tf.placeholder(tf.float32, shape) for shape in ([70, 40], [40, 80], [80]))
    return (x, w, b), tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b)), "matmul"


def many_tiles(kind=tf.float16, height=640):
    """More tiles of C than the GPU has multiprocessors, which are 4."""
    x, w, b = (tf.placeholder(kind, shape) for shape in ([height, 136], [136, 24], [24]))
    return (x, w, b), tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))


def test_products_of_many_tiles_stay_on_their_multiprocessors(session):
    """What a launch is told of memory for descriptors is written over by the interpreter's compiler; the option decides."""
    with tf.Graph().as_default():
        given, y = many_tiles()
        feed = {x: normal(*x.shape.as_list()).astype(np.float16) for x in given}
        found = []
        for how, kernel in (("auto", "matmul_persistent"), ("always", "matmul_persistent"), ("never", "matmul")):
            with session(options={"triton": {"persistent": how}}) as sess:
                found += [sess.run(y, feed) for _ in range(2)]
                assert sess.explain(y).kernels() == {f"triton.{kernel}": 1}
        # the interpreter's products sum in an order that tiles, addresses and the processor decide
        for got in found[1:]:
            np.testing.assert_allclose(got, found[0], rtol=2**-10, atol=1e-5)
        given, few = many_tiles(height=128)
        why, kernel = refused(session, few, "triton.matmul_persistent")
        assert kernel == "triton.matmul" and why.startswith("matmul is the better guess: the result has 1 tiles for 4")
        given, exact = many_tiles(tf.float32)
        assert "float32 operands are not rounded" in refused(session, exact, "triton.matmul_persistent")[0]


def test_addresses_that_descriptors_cannot_have_are_the_other_kernels(session):
    """A view of the second row of an array, say, lies where 16 does not divide."""
    compiler = InterpretingCompiler()
    compiling.use(compiler)
    with tf.Graph().as_default(), session() as sess:
        whole = tf.placeholder(tf.float16, [3, 640 * 136 + 4])
        (_, w, b), _ = many_tiles()
        y = tf.nn.relu(tf.nn.bias_add(tf.matmul(tf.reshape(whole[1, : 640 * 136], [640, 136]), w), b))
        feed = {whole: normal(3, 640 * 136 + 4), w: normal(136, 24), b: normal(24)}
        feed = {x: value.astype(np.float16) for x, value in feed.items()}
        got = sess.run(y, feed)
        assert sess.explain(y).kernels()["triton.matmul_persistent"] == 1
    want = feed[whole][1, : 640 * 136].reshape(640, 136).astype(np.float32) @ feed[w].astype(np.float32) + feed[b]
    np.testing.assert_allclose(got, np.maximum(want, 0), rtol=4e-3, atol=2e-2)
    assert compiler.launched == {"matmul_matmul_tiles": 1}


def test_the_kernel_that_was_found_quicker_is_taken(session, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    with tf.Graph().as_default():
        given, y = many_tiles()
        feed = {x: normal(*x.shape.as_list()).astype(np.float16) for x in given}
        with session(deterministic=True) as sess:
            guess = sess.run(y, feed)
        compiler = InterpretingCompiler()
        compiling.use(compiler)
        monkeypatch.setattr(tuning, "_MEASURED", 2)
        with session(options={"triton": {"tune": "measure"}}) as sess:
            np.testing.assert_allclose(sess.run(y, feed), guess, rtol=2e-3, atol=2e-3)
        tried = {job.name for job in compiler.compiled}
        assert {"matmul_matmul_tiles", "matmul_persistent_matmul_walk"} <= tried
        (path,) = tmp_path.rglob("matmul-*.choice")
        assert tuning._read(path)[1] == "measured"
        kernel = launching.hand_written()["matmul"]
        dims = {"batch": 1, "m": 640, "n": 24, "k": 136, "c_m": 24}
        config = kernel.configs(choosing.Problem(dims, dict.fromkeys("TCB", "fp16"), multiprocessors=4))[-1]
        tuning._write(path, choosing._name(kernel, config), "measured")
        why, taken = refused(session, y, "triton.matmul_persistent")
        assert (why, taken) == ("matmul was found quicker", "triton.matmul")


def convolution():
    x, w, b = (tf.placeholder(tf.float32, shape) for shape in ([1, 9, 8, 3], [3, 3, 3, 40], [40]))
    return (x, w, b), tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b)), "conv2d"


def scores():
    q, k, v = (tf.placeholder(tf.float32, [1, 40, 16]) for _ in range(3))
    return (q, k, v), tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.25), v), "attention"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", [product, convolution, scores])
def test_configurations_are_chosen_kept_and_not_for_deterministic_sessions(session, program, tmp_path, monkeypatch):
    """What is kept is taken by sessions that ask for nothing, what is estimated is measured where that is asked for."""
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    with tf.Graph().as_default():
        given, y, name = program()
        feed = {x: normal(*x.shape.as_list()) for x in given}

        def run(how, **fields):
            compiler = InterpretingCompiler()
            compiling.use(compiler)
            with session(options={"triton": {"tune": how}}, **fields) as sess:
                found = sess.run(y, feed)
            jobs = [j for j in compiler.compiled if j.name.startswith(name)]
            return found, [{n: v for n, v in j.constants.items() if n.startswith("BLOCK")} for j in jobs]

        problems = []
        look = choosing._subject
        monkeypatch.setattr(choosing, "_subject", lambda kernels, p: problems.append(p) or look(kernels, p))
        guess, guessed = run("measure", deterministic=True)
        assert not list(tmp_path.rglob("*.choice")) and len(guessed) == 1
        for how, by in (("estimate", "estimated"), ("measure", "measured")):
            found, tried = run(how)
            (path,) = tmp_path.rglob(f"{name}-*.choice")
            assert tuning._read(path)[1] == by and len(tried) > 1
            np.testing.assert_allclose(found, guess, rtol=1e-5, atol=1e-5)
        kernel = launching.hand_written()[name]
        others = [
            c for c in kernel.configs(problems[-1]) if dict(c.blocks) != dict(kernel.configs(problems[-1])[0].blocks)
        ]
        tuning._write(path, choosing._name(kernel, others[-1]), "measured")
        found, taken = run("kept")
        blocks = {n: v for n, v in others[-1].blocks.items() if n.startswith("BLOCK")}
        assert taken == [blocks] != guessed
        np.testing.assert_allclose(found, guess, rtol=1e-5, atol=1e-5)
        assert run("kept", deterministic=True)[1] == guessed
