"""Random programs that share what they read, with each pass off and alone, on other backends, and as if nothing were shared."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.passes.pipeline import simplifications

OFF = dict.fromkeys(simplifications(), False)
pytestmark = pytest.mark.modes  # every program runs in debug mode, too


def agree(got, want, what):
    """Equal but for what another order of summation makes of a hundred operations."""
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    if want.dtype.kind == "f":
        tolerance = 1e-8 if want.dtype == np.float64 else 2e-3
        size = np.abs(want[np.isfinite(want)]).max(initial=1)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * size, err_msg=what)
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)


def check(sharing, ways_to_run, seed):
    """Whether the slope could be compared with central differences: near a kink it can't."""
    made = sharing.Sharing(seed)
    program = made.grow(6 + seed % 20)
    # steps at the end of a program are read by nobody else; most are fetched, some twice
    fetched = [int(i) for i in made.rng.integers(len(program.values) // 2, len(program.values), 8)]
    numbers = sharing.differentiable(program, made.hidden)
    with tf.Graph().as_default() as graph:
        tensors, extra = program.build(), {}
        single = program.build(use=sharing.unshared(extra))
        feeds = {tensors[i]: a for i, a in program.feeds.items()}
        apart = {**{single[i]: a for i, a in program.feeds.items()}, **extra}
        by = [i for i in program.feeds if program.feeds[i].dtype == np.float64]
        slopes = [gradients(sharing, t, numbers, by) for t in (tensors, single)]
        fetches = [tensors[i] for i in fetched], *slopes[0]
        expected = program.evaluate(program.feeds)
        with tf.Session(graph=graph, config=tf.SessionConfig(passes=OFF)) as sess:
            first, second = sess.run(slopes[1], apart)
        with ways_to_run.elsewhere(seed) as others:
            runs = {
                "all passes": (None, {}),
                **{name: (None, fields) for name, fields in ways_to_run.WAYS.items()},
                **others,
            }
            third = list(runs.items())[seed % 3 :: 3]  # the programs of one test go every way
            for name, (host, fields) in third:
                given = {} if host is None else {"host": host}
                with tf.Session(graph=graph, config=tf.SessionConfig(**fields), **given) as sess:
                    got = sess.run(fetches, feeds)
                of = f"of\n{program.listing()}"
                for i, value in zip(fetched, got[0], strict=True):
                    agree(value, expected[i], f"{name}: v{i} {of}")
                for i, value, want in zip(by, got[1], first, strict=True):
                    agree(value, want, f"{name}: the gradient by v{i} {of}")
                for i, value, want in zip(by, got[2], second, strict=True):
                    agree(value, want, f"{name}: the second gradient by v{i} {of}")
    way = {i: made.rng.normal(size=program.feeds[i].shape) for i in by}
    numeric = [sharing.slope_along(program, numbers, way, h) for h in (1e-5, 1e-6)]
    mine = sum(float((way[i] * g).sum()) for i, g in zip(by, first, strict=True))
    scale = 1 + max(map(abs, numeric))
    if abs(numeric[0] - numeric[1]) > 1e-5 * scale:
        return False
    assert abs(mine - numeric[1]) < 1e-4 * scale, f"{mine}, by differences {numeric} of\n{program.listing()}"
    return True


def gradients(sharing, tensors, numbers, by):
    """The gradients by the feeds, and those of a sum of theirs; zeros where there is none."""
    given = [tensors[i] for i in by]
    first = dense(tf.gradients(sharing.loss(tensors, numbers), given), given)
    return first, dense(tf.gradients(tf.add_n([tf.reduce_sum(tf.sin(g)) for g in first]), given), given)


def dense(found, given):
    return [tf.zeros_like(x) if g is None else tf.convert_to_tensor(g) for g, x in zip(found, given, strict=True)]


@pytest.mark.parametrize("start", range(0, 400, 4))
@pytest.mark.sampled(150)
def test_what_is_shared_is_as_if_it_were_not(sharing, ways_to_run, start):
    smooth = [check(sharing, ways_to_run, seed) for seed in range(start, start + 4)]
    assert any(smooth), "central differences say nothing of any"
