"""Products that own code or the BLAS library computes, as it was measured: what is kept, and who does without."""

from __future__ import annotations

from dataclasses import replace

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import write_cache
from graphdock.planning import measure
from graphdock_llvm.tuning import PlainProduct

M, K, N = 130, 260, 140
KEPT, MEASURED = {}, {"llvm": {"tune": "measure"}}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path))
    with tf.Graph().as_default():
        yield tmp_path


@pytest.fixture
def seconds(monkeypatch):
    """Seconds that measured candidates take, each of which is called once all the same: own code, then the library."""
    taken, made = [2.0, 1.0], []

    def timed(candidate, queue, buffers, device):
        for buffer in buffers[:-1]:
            buffer[...] = np.random.default_rng(0).normal(size=buffer.shape)
        candidate(queue, *buffers)
        made.append(buffers[-1].copy())
        return taken[(len(made) - 1) % 2]

    monkeypatch.setattr(measure, "_seconds", timed)
    return taken, made


def product(turned=(False, False), m=M, k=K, n=N, dtype=tf.float32):
    a = tf.placeholder(dtype, (k, m) if turned[0] else (m, k))
    b = tf.placeholder(dtype, (n, k) if turned[1] else (k, n))
    rng = np.random.default_rng(m)
    feed = {t: rng.normal(size=t.shape.as_list()) for t in (a, b)}
    return tf.matmul(a, b, transpose_a=turned[0], transpose_b=turned[1]), feed


def session(options=KEPT, **fields):
    config = {"backends": ("llvm", "cpu"), "options": options, "intra_op_threads": 2}
    return tf.Session(config=tf.SessionConfig(**{**config, **fields}))


def kernels(y, feed, options=KEPT, **fields):
    """Names of the kernels that a step has run."""
    with session(options, **fields) as sess:
        metadata = tf.RunMetadata()
        made = sess.run(y, feed, run_metadata=metadata)
    a, b = feed.values()
    a, b = (
        x.T if t else x
        for x, t in zip((a, b), (y.op.get_attr("transpose_a"), y.op.get_attr("transpose_b")), strict=True)
    )
    np.testing.assert_allclose(made, a @ b, 1e-3, 1e-3)
    return {k.full_name for k in metadata.plan.placement.kernels.values()}


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_the_quicker_one_is_kept_for_later_sessions(seconds, cache, turned):
    taken, made = seconds
    y, feed = product(turned)
    assert kernels(y, feed) == {"llvm.region"} and not made  # nothing is measured unless it is asked for
    assert kernels(y, feed, MEASURED) == {"cpu.mat_mul"}
    np.testing.assert_allclose(made[0], made[1], 1e-4, 1e-4)  # they were given the same, and compute the same
    assert len(made) == 2 and len(list(cache.glob("llvm/*.choice"))) == 1
    for options in (KEPT, MEASURED):
        assert kernels(y, feed, options) == {"cpu.mat_mul"}
    with session() as sess:
        assert f"BLAS was measured to be quicker for {M}x{K}x{N}" in str(sess.explain(y, feed))
    assert len(made) == 2
    # another shape, number of threads, or dtype is another product
    taken[:] = [1.0, 2.0]
    other, its = product(turned, m=M + 1)
    assert kernels(other, its, MEASURED) == {"llvm.region"} and len(made) == 4
    with session(intra_op_threads=1) as sess, session() as same:
        assert sess.explain(y, feed).kernels() == {"llvm.region": 1}
        assert same.explain(y, feed).kernels() == {"cpu.mat_mul": 1}
    assert kernels(*product(turned, dtype=tf.float64)) == {"llvm.region"}


def test_explained_plans_and_deterministic_sessions_measure_nothing(seconds, cache):
    _, made = seconds
    y, feed = product()
    with session(MEASURED) as sess:
        assert sess.explain(y, feed).kernels() == {"llvm.region": 1}
    assert kernels(y, feed, MEASURED, deterministic=True) == {"llvm.region"}
    assert not made and not list(cache.glob("llvm/*.choice"))
    kernels(y, feed, MEASURED)
    assert kernels(y, feed, MEASURED, deterministic=True) == {"llvm.region"}
    assert kernels(y, feed) == {"cpu.mat_mul"}


@pytest.mark.parametrize(
    "damage", [lambda p: p.write_bytes(b"no"), lambda p: write_cache(p, b'"other"'), lambda p: p.unlink()]
)
def test_what_is_damaged_is_measured_again(seconds, cache, damage):
    taken, made = seconds
    y, feed = product()
    assert kernels(y, feed, MEASURED) == {"cpu.mat_mul"}
    (kept,) = cache.glob("llvm/*.choice")
    damage(kept)
    assert kernels(y, feed) == {"llvm.region"}
    taken[:] = [1.0, 2.0]
    assert kernels(y, feed, MEASURED) == {"llvm.region"} and len(made) == 4


def test_a_folder_that_cannot_be_written_costs_time_alone(seconds, cache, monkeypatch):
    (cache / "file").write_text("")
    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(cache / "file"))
    y, feed = product()
    for _ in range(2):
        assert kernels(y, feed, MEASURED) == {"cpu.mat_mul"}
    assert len(seconds[1]) > 4


def test_products_of_gathered_rows_are_measured_too(seconds):
    y, feed = product(m=4, k=1024, n=1000)
    assert kernels(y, feed) == {"llvm.mat_mul"}
    assert kernels(y, feed, MEASURED) == {"cpu.mat_mul"}
    np.testing.assert_allclose(seconds[1][0], seconds[1][1], 1e-3, 1e-3)
    assert kernels(y, feed) == {"cpu.mat_mul"}


def test_what_follows_a_product_keeps_it(seconds):
    y, feed = product()
    kernels(y, feed, MEASURED)
    with session(MEASURED) as sess:
        sess.run(tf.nn.relu(y), feed)
        assert sess.explain(tf.nn.relu(y), feed).kernels() == {"llvm.region": 1}
    assert len(seconds[1]) == 2


def test_a_matrix_by_itself_is_measured(seconds):
    x = tf.placeholder(tf.float32, [M, K])
    y, fed = tf.matmul(x, x, transpose_b=True), np.random.default_rng(0).normal(size=(M, K))
    with session(MEASURED) as sess:
        np.testing.assert_allclose(sess.run(y, {x: fed}), fed @ fed.T, 1e-3, 1e-3)
        assert sess.explain(y, {x: fed}).kernels() == {"cpu.mat_mul": 1}
    assert len(seconds[1]) == 2


def test_measured_for_real_it_computes_the_same():
    for shape in ((M, K, N), (64, 500, 90), (4, 1024, 1000)):
        y, feed = product(m=shape[0], k=shape[1], n=shape[2])
        first = kernels(y, feed, MEASURED)
        assert kernels(y, feed) == first <= {"llvm.region", "llvm.mat_mul", "cpu.mat_mul"}


def test_the_library_gets_what_the_kernel_would():
    rng = np.random.default_rng(0)
    a, b, out = rng.normal(size=(5, 3)), rng.normal(size=(4, 5)), np.empty((3, 4))
    plain = PlainProduct(0, 1, 2, (True, True), (3, 5, 4), "float64")
    plain.by_library(None, a, b, out)
    np.testing.assert_allclose(out, a.T @ b.T)
    replace(plain, left=1, right=0, turned=(False, False)).by_library(None, a, b, out := np.empty((4, 3)))
    np.testing.assert_allclose(out, b @ a)
