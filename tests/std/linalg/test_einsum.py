"""einsum, trace and accumulate_n against NumPy."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, ShapeError

SIZES = dict(zip("abcdij", (2, 3, 4, 5, 6, 7), strict=True))
EQUATIONS = (
    "ij,jc->ic",
    "ij,jc",
    "ij,cj->ic",
    "bij,bjc->bic",
    "bij,bjc->icb",
    "abij,abcj->abic",
    "aibj,jbc->aic",
    "i,j->ij",
    "i,i->",
    "ij,ij->ij",
    "ij,ji->ij",
    "ij,ij->i",
    "ij,j->i",
    "ij->ji",
    "ij->",
    "abc->b",
    "ia,ib,ic->abc",
    "ij,jc,cd->id",
    "abij,i->ab",
    "ii->i",
    "iij->j",
    "aia,ib->ab",
    "ii,jj->",
    "a,b,c,d->dcba",
)
#: Equation, shapes of the inputs.
ELLIPSES = (
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("...ij,...jk->...ik", (5, 1, 2, 3), (6, 3, 4)),
    ("...ij,...jk", (5, 2, 3), (5, 3, 4)),
    ("i...->...", (3, 2, 4)),
    ("b...i,i->b...", (2, 3, 4), (4,)),
    ("...i,...i->...", (1, 3), (1, 3)),
    ("...ii->...i", (2, 3, 3)),
)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def arrays(equation: str) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [np.asarray(rng.standard_normal([SIZES[c] for c in g])) for g in equation.partition("->")[0].split(",")]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_values_and_gradients(equation: str) -> None:
    values = arrays(equation)
    want = np.einsum(equation, *values)
    dy = np.asarray(np.random.default_rng(4).standard_normal(want.shape))
    for static in (True, False):
        xs = [tf.placeholder(tf.float64, v.shape if static else [None] * v.ndim) for v in values]
        y = tf.einsum(equation, *xs)
        grads = tf.gradients(y, xs, grad_ys=[tf.constant(dy)])
        with tf.Session() as session:
            got, *got_grads = session.run([y, *grads], dict(zip(xs, values, strict=True)))
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
        for i, grad in enumerate(got_grads):
            # einsum is linear in each input, so that one difference is exact
            moved = np.asarray(np.random.default_rng(5).standard_normal(values[i].shape))
            slope = np.sum(dy * np.einsum(equation, *values[:i], moved, *values[i + 1 :]))
            np.testing.assert_allclose(np.sum(grad * moved), slope, rtol=1e-9)


@pytest.mark.parametrize(
    ("equation", "count", "match"),
    [
        ("ij,jk->ik", 1, "2 groups for 1 inputs"),
        ("ij->ijj", 1, "twice in the result"),
        ("...i...->i", 1, "ellipsis stands twice"),
        ("ij->ik", 1, "k of the result is in no input"),
        ("i.j->ij", 1, "letters and ... only"),
        ("ijk->i", 1, "must have rank 3"),
    ],
)
def test_equations_that_do_not_fit(equation: str, count: int, match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        tf.einsum(equation, *[np.ones((2, 2))] * count)


def test_sizes_that_do_not_agree() -> None:
    with pytest.raises(ShapeError, match="j stands for dims of 3 and 4"):
        tf.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((4, 5)))


@pytest.mark.parametrize(("equation", "shapes"), [(e, s) for e, *s in ELLIPSES])
def test_ellipses_broadcast(equation: str, shapes: list[tuple[int, ...]]) -> None:
    values = [np.asarray(np.random.default_rng(6).standard_normal(s)) for s in shapes]
    with tf.Session() as session:
        got = session.run(tf.einsum(equation, *values))
    np.testing.assert_allclose(got, np.einsum(equation, *values), rtol=1e-10, atol=1e-12)


def test_trace_and_accumulate_n() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 3))
    with tf.Session() as session:
        trace, total = session.run([tf.trace(x), tf.accumulate_n([x, x, x])])
    np.testing.assert_allclose(trace, np.trace(x, axis1=1, axis2=2))
    np.testing.assert_allclose(total, 3 * x)
