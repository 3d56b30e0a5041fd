"""Laws of random distributions: static shapes, refusals of what does not fit, and TensorFlow's answers."""

from __future__ import annotations

import json
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest

from tests.tf1.distributions.random_distributions import (
    KINDS,
    OF_SAMPLES,
    STATISTICS,
    SUPPORT,
    VECTORS,
    answer,
    broadcast_in,
    case,
    whole_shape,
)

#: Seed of a case, and what TensorFlow 2.21 answered, a line each.
RECORDED = [json.loads(line) for line in Path(__file__).with_name("answers.jsonl").read_text("utf-8").splitlines()]


def differs(ours, theirs) -> str | None:
    """What is otherwise than it is there: refusals, shape, dtype or values."""
    if "refused" in theirs or "refused" in ours:
        return None if "refused" in theirs and "refused" in ours else "refusal"
    if (ours["shape"], ours["dtype"]) != (theirs["shape"], theirs["dtype"]):
        return "shape or dtype"
    if "values" in theirs and not np.allclose(ours["values"], theirs["values"], 2e-4, 2e-5, equal_nan=True):
        return "values"
    return None


@pytest.mark.parametrize("part", [pytest.param(i, marks=pytest.mark.sampled(6), id=f"part {i}") for i in range(6)])
def test_they_answer_as_recorded(part):
    found = [(seed, differs(answer(tf, case(seed)), theirs)) for seed, theirs in RECORDED[part::6]]
    assert not [(seed, what) for seed, what in found if what]


def told(asked):
    """The static shape that follows from what the graph is told of parameters and sample."""
    batch, event = tf.TensorShape([]), tf.TensorShape([None])
    for name, t in broadcast_in(asked).items():
        known = tf.TensorShape(t["shape"] if t["known"] == "constant" else t["known"])
        if (SUPPORT[asked["kind"]] if name == "value" else KINDS[asked["kind"]][name]) in VECTORS:
            known, event = known[:-1], known[-1:] if known.rank else event
        batch = tf.broadcast_static_shape(batch, known)
    of_event = len(whole_shape({**asked, "method": "mean"})) - len(whole_shape({**asked, "method": "entropy"}))
    events = {"covariance": 2, "entropy": 0, **dict.fromkeys(OF_SAMPLES, 0)}.get(asked["method"], 1)
    for _ in range(events * of_event):
        batch = batch.concatenate(event)
    return tf.TensorShape([2]).concatenate(batch) if asked["method"] == "sample" else batch


@pytest.mark.parametrize("part", [pytest.param(i, marks=pytest.mark.sampled(20), id=f"part {i}") for i in range(20)])
def test_static_shapes_are_as_known_as_what_they_follow_from(part):
    seen = 0
    for seed in range(10_000 + 100 * part, 10_100 + 100 * part):
        asked = case(seed)
        left = answer(tf, asked)
        if "refused" in left:
            assert left["refused"] == "unimplemented" or asked["validate"], (seed, asked)
            continue
        seen += 1
        static, real = tf.TensorShape(left["static"]), left["shape"]
        assert static.is_compatible_with(real), (seed, static, real)
        assert real == whole_shape(asked), (seed, real)
        least = told(asked)
        assert least.rank is None or static.rank == least.rank, (seed, static, least)
        assert all(b.value in (None, a.value) for a, b in zip(static.dims or (), least.dims or (), strict=False)), (
            seed,
            static,
            least,
        )
    assert seen > 40


def alone(kind, method, wide):
    """A case in which one tensor alone has the shape of the batch."""
    domains = {
        **KINDS[kind],
        **({"value": "unit" if method == "quantile" else SUPPORT[kind]} if method in OF_SAMPLES else {}),
    }
    plain = {
        "real": 0.5,
        "low": 0.0,
        "high": 1.0,
        "count": 2.0,
        "simplex": 0.5,
        "counts": 1.0,
        "bit": 1.0,
        "class": 1.0,
    }
    tensors = {}
    for name, domain in domains.items():
        shape = ([2, 3] if name == wide else []) + ([2] if domain in VECTORS else [])
        value = plain.get(domain, 0.5 if domain in ("unit", "inside") else 3.0)
        tensors[name] = {"known": "constant", "shape": shape, "values": [value] * int(np.prod(shape))}
    return {"kind": kind, "method": method, "validate": True, "allow_nan": True, "dtype": "float32", "tensors": tensors}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled(4)
def test_each_tensor_alone_broadcasts(kind):
    for method in (*OF_SAMPLES, *STATISTICS):
        for wide in (*KINDS[kind], *(["value"] if method in OF_SAMPLES else [])):
            asked = alone(kind, method, wide)
            left = answer(tf, asked)
            if left.get("refused") != "unimplemented":
                assert left["static"] == left["shape"] == whole_shape(asked), (method, wide, left)


@pytest.mark.parametrize(
    ("make", "method", "wrong"),
    [
        (lambda: tf.distributions.Bernoulli(probs=0.5, validate_args=True), "prob", [2, -1]),
        (lambda: tf.distributions.Bernoulli(probs=0.5, validate_args=True), "log_prob", [0.5]),
        (lambda: tf.distributions.Categorical(probs=[0.5, 0.5], validate_args=True), "cdf", [-1, 0.5]),
        (lambda: tf.distributions.Gamma(2.0, 1.0, validate_args=True), "log_cdf", [0.0, -1.0]),
        (lambda: tf.distributions.Exponential(2.0, validate_args=True), "log_survival_function", [-1.0]),
        (lambda: tf.distributions.Beta(2.0, 1.0, validate_args=True), "prob", [0.0, 1.0, 2.0]),
        (lambda: tf.distributions.Dirichlet([2.0, 1.0], validate_args=True), "prob", [[0.5, 0.6], [1.0, 0.0]]),
        (lambda: tf.distributions.Multinomial(2.0, [1.0, 1.0], validate_args=True), "prob", [[1.0, 2.0], [0.5, 1.5]]),
        (
            lambda: tf.distributions.DirichletMultinomial(2.0, [1.0, 1.0], validate_args=True),
            "prob",
            [[-1.0, 3.0], [1.0, 0.0]],
        ),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_samples_out_of_support_are_refused(make, method, wrong):
    for sample in wrong:
        with tf.Graph().as_default(), tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
            session.run(getattr(make(), method)(sample))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_of_quantiles_at_the_ends(dtype):
    with tf.Graph().as_default(), tf.Session() as session:
        p = tf.constant(np.array([0, np.exp(-32.0), 0.2, 0.9, 1], dtype))
        loc = tf.constant(dtype(1))
        value = tf.distributions.Normal(loc, dtype(2)).quantile(p)
        made, *grads = session.run([value, *tf.gradients(value, [loc, p])])
    np.testing.assert_allclose(made[[0, 4]], [-np.inf, np.inf])
    assert grads[0] == 5
    np.testing.assert_allclose(grads[1], [0, 2 * 1.01923772e13, 7.1440, 11.3962, 0], rtol=1e-4)  # TensorFlow's


def test_what_has_no_closed_form_is_not_implemented():
    with tf.Graph().as_default(), pytest.raises(NotImplementedError):
        tf.distributions.Beta(1.0, 1.0).quantile(0.5)


@pytest.mark.parametrize("kind", ["Dirichlet", "Categorical"])
def test_one_class_is_refused(kind):
    with tf.Graph().as_default(), pytest.raises(ValueError, match="2 or more"):
        getattr(tf.distributions, kind)([1.0], validate_args=True)
