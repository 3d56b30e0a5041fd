"""Random programs over infinities, NaN and the ends of dtypes give what NumPy gives, whatever passes and backends do to them."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.passes.pipeline import simplifications
from graphdock.plugin.host import Host
from graphdock_testing import queued

OFF = dict.fromkeys(simplifications(), False)
pytestmark = pytest.mark.modes  # every program runs in debug mode, too
VARIANTS = {
    "no passes": {"passes": OFF},
    "all passes": {},
    "generic": {"shape_policy": "generic"},
    "debug": {"debug": True},
    "queued": {"backends": ("queued", "cpu")},
}


def same(got, want, what):
    """Equal, and NaN where NaN is; functions of libraries may differ by the last bits."""
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    if want.dtype.kind == "f":
        rtol = 4 * float(np.finfo(want.dtype).eps)
        np.testing.assert_allclose(got, want, rtol=rtol, atol=0, err_msg=what)
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)


def check(extremes, seed):
    made = extremes.Extremes(seed)
    program = made.grow(10 + seed % 30)
    expected = program.evaluate(program.feeds)
    numbers = [i for i in sorted(expected) if expected[i].dtype == np.float64]
    by = [i for i in program.feeds if program.feeds[i].dtype == np.float64]
    host = Host()
    queued.install(host, seed=seed)
    with tf.Graph().as_default() as graph:
        tensors = program.build()
        feeds = {tensors[i]: a for i, a in program.feeds.items()}
        slopes = tf.gradients([tensors[i] for i in numbers[-4:]], [tensors[i] for i in by]) if numbers and by else []
        slopes, plain = [g for g in slopes if g is not None], None
        for name, fields in VARIANTS.items():
            given = {"host": host} if "backends" in fields else {}
            with tf.Session(graph=graph, config=tf.SessionConfig(**fields), **given) as sess:
                got = sess.run([tensors[i] for i in sorted(expected)], feeds)
                for i, value in zip(sorted(expected), got, strict=True):
                    same(value, expected[i], f"{name}: v{i} of\n{program.listing()}")
                found = sess.run(slopes, feeds)
                plain = plain if plain is not None else found
                for value, want in zip(found, plain, strict=True):
                    same(value, want, f"{name}: a gradient of\n{program.listing()}")
    host.close()


@pytest.mark.parametrize("start", range(0, 400, 4))
@pytest.mark.sampled(100)
def test_extreme_numbers_are_what_they_are_in_numpy(extremes, start):
    for seed in range(start, start + 4):
        check(extremes, seed)
