"""A linear layer with its cross-entropy: classes in chunks of many lengths, with the matrix library and without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.plugin.host import Host
from graphdock_cuda.driver.api import Toolkit
from graphdock_cuda.kernels import linear_cross_entropy as kernels
from graphdock_cuda.testing.install import install
from graphdock_cuda.work import Work
from graphdock_std.patterns import linear_cross_entropy

#: By dtype, what differs at most.
EXACT = {tf.float32: 2e-5, tf.float64: 2e-6, tf.float16: 4e-3, tf.bfloat16: 3e-2}
OP = "LinearSparseSoftmaxCrossEntropy"


@pytest.fixture
def host(request: pytest.FixtureRequest, cuda: Toolkit, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Chunks of 16 classes; without the matrix library where ``tiles`` is asked for."""
    monkeypatch.setattr(kernels, "LEAST", 16)
    monkeypatch.setattr(kernels, "ALIGNED", 8)
    cut = kernels.chunks_of
    monkeypatch.setattr(kernels, "chunks_of", lambda rows, classes, size, most: cut(rows, classes, size, 1))
    made = Host()
    install(made, cuda if getattr(request, "param", "library") == "library" else replace(cuda, blas=None))
    return made


def run(
    host: Host,
    x: Any,
    w: Any,
    labels: Any,
    bias: Any = None,
    dtype: Any = tf.float32,
    turned: bool = False,
    alone: bool = False,
) -> Any:
    """Loss, logarithm and, of a sum of losses with factors, the gradients. ``alone``: each in a step of its own too."""
    given = [x, w, labels, *([] if bias is None else [bias])]
    kinds = [dtype, dtype, labels.dtype, dtype]
    config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
    with tf.Graph(host=host).as_default():
        feeds = [tf.placeholder(k, a.shape) for k, a in zip(kinds, given, strict=False)]
        named = dict(zip(("x", "w", "labels", "bias"), feeds, strict=False))
        loss, log_sum = ops.apply_op(OP, **named, transpose_w=turned)
        smooth = [feeds[0], feeds[1], *feeds[3:]]
        slopes = tf.gradients(loss, smooth, tf.linspace(0.5, 2.0, len(x)))
        feed = dict(zip(feeds, given, strict=True))
        with tf.Session(config=config, host=host) as session:
            together = session.run([loss, log_sum, *slopes], feed)
            for slope, whole in zip(slopes, together[2:], strict=True) if alone else ():
                one, of_all = (np.asarray(a).astype(np.float64) for a in (session.run(slope, feed), whole))
                np.testing.assert_allclose(one, of_all, rtol=EXACT[dtype], atol=EXACT[dtype])
    return [np.asarray(a).astype(np.float64) for a in together]


def wanted(x: Any, w: Any, labels: Any, bias: Any = None) -> list[np.ndarray]:
    """In float64, of weights [inner, classes]."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    logits = x @ w + (0 if bias is None else bias.astype(np.float64))
    log_sum = np.log(np.exp(logits - logits.max(1)[:, None]).sum(1)) + logits.max(1)
    slope = np.exp(logits - log_sum[:, None])
    slope[np.arange(len(x)), labels] -= 1
    slope *= np.linspace(0.5, 2.0, len(x))[:, None]
    made = [log_sum - logits[np.arange(len(x)), labels], log_sum, slope @ w.T, x.T @ slope]
    return made if bias is None else [*made, slope.sum(0)]


def arrays(rows: int, inner: int, classes: int, kind: Any = np.int64) -> list[np.ndarray]:
    rng = np.random.default_rng(classes)
    x, w, bias = (rng.standard_normal(s).astype(np.float32) for s in ((rows, inner), (inner, classes), (classes,)))
    return [x, w, rng.integers(0, classes, rows).astype(kind), 2 * bias]


@pytest.mark.parametrize(
    ("host", "rows", "classes", "biased", "turned"),
    [
        ("library", 5, 1, True, False),
        ("library", 3, 16, False, True),
        ("library", 5, 17, True, True),
        ("library", 1, 33, False, False),
        ("library", 9, 80, True, False),
        ("tiles", 1, 16, True, False),
        ("tiles", 9, 41, True, True),
        ("tiles", 9, 41, False, False),
    ],
    indirect=["host"],
)
def test_chunks(host: Host, rows: int, classes: int, biased: bool, turned: bool) -> None:
    x, w, labels, bias = arrays(rows, 7, classes, np.int32 if turned else np.int64)
    labels[0], labels[-1] = 0, classes - 1
    last = bias if biased else None
    got = run(host, x, w.T.copy() if turned else w, labels, last, turned=turned, alone=rows == 9)
    want = wanted(x, w, labels, last)
    if turned:
        want[3] = want[3].T
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=EXACT[tf.float32], atol=EXACT[tf.float32])


@pytest.mark.parametrize(
    ("host", "dtype"),
    [("library", tf.float16), ("library", tf.float64), ("tiles", tf.bfloat16)],
    indirect=["host"],
)
def test_dtypes(host: Host, dtype: Any) -> None:
    """Rows' gradients are summed over chunks wider than they are."""
    x, w, labels, bias = arrays(4, 6, 70)
    x, w, bias = (a.astype(dtype.as_numpy_dtype) for a in (x, w, bias))
    exact = EXACT[dtype]
    for mine, theirs in zip(run(host, x, w, labels, bias, dtype), wanted(x, w, labels, bias), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=exact, atol=exact)


def test_a_label_that_is_no_class(host: Host) -> None:
    x, w, labels, _ = arrays(3, 4, 40)
    for wrong in (-1, 40):
        labels[1] = wrong
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"labels from 0 to 39.*got {wrong}"):
            run(host, x, w, labels)


def test_logits_that_are_not_finite(host: Host) -> None:
    """The first chunks have none that is finite; NaN and infinity in any chunk reach the row."""
    one, labels = np.ones((1, 1), np.float32), np.array([35])
    w = np.zeros((1, 40), np.float32)
    w[0, :32] = -np.inf
    loss, log_sum, _, dw = run(host, one, w, labels)
    np.testing.assert_allclose([*loss, *log_sum], [np.log(8)] * 2, rtol=1e-5)
    np.testing.assert_allclose(dw[0] / 0.5, np.where(np.arange(40) < 32, 0, 0.125) - (np.arange(40) == 35), atol=1e-6)
    for at, value in ((39, np.nan), (3, np.inf), (slice(None), -np.inf)):
        w[:] = 0
        w[0, at] = value
        loss, _, _, dw = run(host, one, w, labels)
        assert not np.isfinite(loss).any() and np.isnan(dw).any()


def test_many_classes(cuda: Toolkit) -> None:
    """As many as GPT-2 has, in chunks of the length that they have by themselves."""
    made = Host()
    install(made, cuda)
    x, w, labels, bias = arrays(2, 3, 50257)
    for mine, theirs in zip(run(made, x, w, labels, bias), wanted(x, w, labels, bias), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-6)


def test_lengths_of_chunks() -> None:
    """As few as memory wants, alike, of 64 classes each; never fewer than 1024 classes."""
    assert kernels.chunks_of(8192, 50257, 2, 1 << 25) == [(i, min(i + 2048, 50257)) for i in range(0, 50257, 2048)]
    assert kernels.chunks_of(4, 3000, 4, 1 << 25) == [(0, 3000)]
    lengths = [end - begin for begin, end in kernels.chunks_of(65536, 32000, 2, 1 << 25)]
    assert sum(lengths) == 32000 and max(lengths) == 1024 and set(lengths[:-1]) == {1024}
    assert kernels.chunks_of(4, 0, 4, 1 << 25) == [(0, 0)] and kernels.chunks_of(0, 70, 4, 1) == [(0, 70)]


def _traced(kit: Any, monkeypatch: pytest.MonkeyPatch, turned: bool, unused: tuple[int, ...]) -> tuple[list[str], int]:
    class Node:
        op, origin, site, attrs = f"{OP}Grad", None, None, {"transpose_w": turned}  # noqa: RUF012

    monkeypatch.setattr(kernels, "chunks_of", lambda *_: [(0, 64), (64, 128), (128, 150)])
    shapes = {
        "loss_backprop": (6,),
        "x": (6, 8),
        "w": (150, 8) if turned else (8, 150),
        "labels": (6,),
        "log_sum": (6,),
    }
    inputs = [(n, tf.int64 if n == "labels" else tf.float32, s) for n, s in (shapes | {"bias": (150,)}).items()]
    outputs = [(n, tf.float32, None) for n in ("dx", "dw", "dbias")]
    w = Work(Node(), kit.host.open_device("/device:cuda:0"), inputs, outputs, {}, {}, unused)  # type: ignore[arg-type]
    kernels.linear_cross_entropy_grad(w)
    told = [s.what.gemm.epilogue if s.kind == "gemm" else s.entry.partition("_")[0] or s.kind for s in w.steps]
    assert len(told) % 3 == 0 and told == told[: len(told) // 3] * 3
    return told[: len(told) // 3], w.scratch_bytes


def test_what_is_told_of_a_chunk(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums come with the weights' product; nothing that is not read is made; chunks share their scratch."""
    moved = _traced(kit, monkeypatch, False, ())[0]
    assert [t for t in moved if not t.startswith("move")] == ["bias", "slope", "none", "sums_b"] and len(moved) == 6
    assert _traced(kit, monkeypatch, True, ())[0] == ["bias", "slope", "none", "sums_a"]
    assert _traced(kit, monkeypatch, True, (0,))[0] == ["bias", "slope", "sums_a"]
    assert _traced(kit, monkeypatch, True, (0, 2))[0] == ["bias", "slope", "none"]
    assert _traced(kit, monkeypatch, True, (1, 2))[0] == ["bias", "slope", "none"]
    assert _traced(kit, monkeypatch, True, (1,))[1] < 2 * 4 * 64 * 8 + 4096  # logits of a chunk, and what the sums take


def test_training_in_recordings(host: Host, cuda: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network whose last layer is made in chunks learns what it learns without; its steps are one recording."""
    monkeypatch.setattr(linear_cross_entropy, "LEAST_BYTES", 0)
    monkeypatch.setattr(linear_cross_entropy, "LEAST_CLASSES", 0)
    driver: Any = cuda.driver
    rng = np.random.default_rng(8)
    found, started = [], tf.random_uniform_initializer(-1.0, 1.0, seed=3)
    with tf.Graph(host=host).as_default():
        x, labels = tf.placeholder(tf.float32, [6, 5]), tf.placeholder(tf.int32, [6])
        with tf.variable_scope("net", initializer=started):
            logits = tf.layers.dense(tf.layers.dense(x, 8, tf.tanh), 40)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
        feed = {x: rng.standard_normal((6, 5)), labels: rng.integers(0, 40, 6)}
        for fusion in (True, False):
            config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid", fusion=fusion)
            with tf.Session(config=config, host=host) as session:
                session.run(tf.global_variables_initializer())
                computed = session.explain([loss, step], feed).kernels()
                costs = [session.run([loss, step], feed)[0] for _ in range(4)]
                driver.log.reset()
                costs.append(session.run([loss, step], feed)[0])
                table = driver.log.table()
                assert (table["graph launches"], table["allocations"]) == (1, 0)
                found.append((costs, session.run(tf.trainable_variables())))
            assert ("cuda.linear_sparse_softmax_cross_entropy_grad" in computed) == fusion, computed
    driver.verify()
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4)
    for got, want in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


class Compiler:
    """Compiles nothing."""

    version = "none"

    def compile(self, source: str, name: str, architecture: str) -> bytes:
        return b"image"


def test_memory_of_a_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The last layer of GPT-2 with 8192 tokens, trained on a GPU that is not here: without the pattern, and with it."""
    monkeypatch.setattr("graphdock_cuda.driver.nvrtc.Nvrtc", Compiler)
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    host, planned = Host(), {}
    with tf.Graph(host=host).as_default():
        x, labels = tf.placeholder(tf.bfloat16, [8192, 768]), tf.placeholder(tf.int32, [8192])
        w = tf.get_variable("w", [50257, 768], tf.bfloat16)
        logits = tf.cast(tf.matmul(x, w, transpose_b=True), tf.float32)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        slopes = tf.gradients(loss, [x, w])
        for fusion in (False, True):
            config = tf.SessionConfig(backends=["cuda", "cpu"], plan_for={"cuda": "sm_90"}, fusion=fusion)
            with tf.Session(config=config, host=host) as session:
                explained = session.explain([loss, *slopes])
                planned[fusion] = explained.plan.arena_bytes["cuda:0"] >> 20
    (note,) = explained.plan.placement.notes
    assert note.what.endswith("became LinearSparseSoftmaxCrossEntropy, LinearSparseSoftmaxCrossEntropyGrad")
    assert planned == {False: 3938, True: 153}  # MiB, of which the gradients of weights and rows are 86
