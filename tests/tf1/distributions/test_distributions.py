"""tf.distributions: draws against the distribution's own moments and function, densities against SciPy, shapes, errors."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import AlreadyExistsError, InvalidArgumentError, UnimplementedError
from scipy import stats

D = tf.distributions


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        tf.set_random_seed(3)
        yield made


def value(tensors, feed=None):
    with tf.Session() as sess:
        return sess.run(tensors, feed)


#: Kind -> how it is made, and SciPy's.
CONTINUOUS = {
    "Normal": (lambda: D.Normal([0.0, 2.0], 1.5), [stats.norm(0, 1.5), stats.norm(2, 1.5)]),
    "Uniform": (lambda: D.Uniform([0.0, 1.0], 3.0), [stats.uniform(0, 3), stats.uniform(1, 2)]),
    "Laplace": (lambda: D.Laplace([0.0, 1.0], [1.0, 0.5]), [stats.laplace(0, 1), stats.laplace(1, 0.5)]),
    "Gamma": (lambda: D.Gamma([0.5, 3.0], 2.0), [stats.gamma(0.5, scale=0.5), stats.gamma(3, scale=0.5)]),
    "Exponential": (lambda: D.Exponential([0.5, 2.0]), [stats.expon(scale=2), stats.expon(scale=0.5)]),
    "Beta": (lambda: D.Beta([0.5, 2.0], 3.0), [stats.beta(0.5, 3), stats.beta(2, 3)]),
    "StudentT": (lambda: D.StudentT([5.0, 9.0], 1.0, 2.0), [stats.t(5, 1, 2), stats.t(9, 1, 2)]),
}


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_a_continuous_one_is_scipys(kind):
    make, peers = CONTINUOUS[kind]
    d = make()
    assert d.batch_shape.as_list() == [2] and d.event_shape.as_list() == [] and d.name == f"{kind}/"
    x = np.stack([p.ppf([0.1, 0.4, 0.9]) for p in peers], 1).astype(np.float32)
    got = value(
        [d.prob(x), d.log_prob(x), d.cdf(x), d.survival_function(x), d.mean(), d.stddev(), d.entropy(), d.variance()]
    )

    def wanted(f):
        return np.stack([f(p, x[:, i]) for i, p in enumerate(peers)], 1)

    for found, expected in zip(
        got,
        [
            wanted(lambda p, v: p.pdf(v)),
            wanted(lambda p, v: p.logpdf(v)),
            wanted(lambda p, v: p.cdf(v)),
            wanted(lambda p, v: p.sf(v)),
            *([getattr(p, m)() for p in peers] for m in ("mean", "std", "entropy", "var")),
        ],
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_draws_follow_the_function(kind):
    make, peers = CONTINUOUS[kind]
    draws = value(make().sample([40, 50], seed=1))
    assert draws.shape == (40, 50, 2)
    for i, peer in enumerate(peers):
        assert stats.kstest(draws[..., i].ravel(), peer.cdf).pvalue > 1e-3


def test_normal_tails_and_quantiles():
    d = D.Normal(0.0, 1.0)
    far = value([d.log_cdf([-30.0, -12.0, 7.0]), d.log_survival_function([30.0])])
    np.testing.assert_allclose(far[0], stats.norm.logcdf([-30, -12, 7]), rtol=1e-5)
    np.testing.assert_allclose(far[1], stats.norm.logsf([30]), rtol=1e-5)
    np.testing.assert_allclose(
        value(D.Normal(1.0, 2.0).quantile([0.1, 0.5, 0.99])), stats.norm(1, 2).ppf([0.1, 0.5, 0.99]), rtol=1e-5
    )


def test_gradients_flow_through_draws():
    loc, scale = tf.constant([1.0, 2.0]), tf.constant(0.5)
    draw = D.Normal(loc, scale).sample(100, seed=1)
    a, b, drawn = value([*tf.gradients(draw, [loc, scale]), draw])
    assert a.tolist() == [100.0, 100.0]
    np.testing.assert_allclose(b, ((drawn - [1.0, 2.0]) / 0.5).sum(), rtol=1e-3)
    assert D.Normal(0.0, 1.0).reparameterization_type is D.FULLY_REPARAMETERIZED
    assert D.Gamma(1.0, 1.0).reparameterization_type is D.NOT_REPARAMETERIZED


def test_classes():
    p = np.array([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]], np.float32)
    d, bits = D.Categorical(probs=p), D.Bernoulli(probs=p[0], dtype=tf.int64)
    draws, ones, prob, mode, entropy, below = value(
        [d.sample(4000, seed=1), bits.sample(4000, seed=2), d.prob([2, 0]), d.mode(), d.entropy(), d.cdf([1, 2])]
    )
    counted = np.stack([np.bincount(draws[:, i], minlength=3) for i in range(2)]) / 4000
    assert draws.shape == (4000, 2) and abs(counted - p).max() < 0.03 and abs(ones.mean(0) - p[0]).max() < 0.03
    np.testing.assert_allclose(prob, [0.5, 0.7], rtol=1e-5)
    np.testing.assert_allclose(entropy, [stats.entropy(r) for r in p], rtol=1e-5)
    assert mode.tolist() == [2, 0] and ones.dtype == np.int64
    np.testing.assert_allclose(below, [0.2, 0.9], rtol=1e-5)
    np.testing.assert_allclose(value(bits.log_prob([[1, 0, 1]])), [np.log([0.2, 0.7, 0.5])], rtol=1e-5)


def test_counts():
    p = np.array([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]], np.float32)
    d = D.Multinomial([3.0, 10.0], probs=p)
    draws, prob, mean = value([d.sample(3000, seed=1), d.prob([[1.0, 1, 1], [8, 1, 1]]), d.mean()])
    assert draws.shape == (3000, 2, 3) and (draws.sum(-1) == [3, 10]).all()
    assert abs(draws.mean(0) - mean).max() < 0.15
    np.testing.assert_allclose(
        prob, [stats.multinomial(3, p[0]).pmf([1, 1, 1]), stats.multinomial(10, p[1]).pmf([8, 1, 1])], rtol=1e-4
    )


def test_counts_of_drawn_probabilities():
    c = np.array([[2.0, 3.0, 5.0], [1.0, 1.0, 0.5]], np.float32)
    d = D.DirichletMultinomial([4.0, 9.0], c)
    draws, mean, cov, prob = value([d.sample(4000, seed=1), d.mean(), d.covariance(), d.prob([[1.0, 1, 2], [3, 3, 3]])])
    assert draws.shape == (4000, 2, 3) and (draws.sum(-1) == [4, 9]).all()
    np.testing.assert_allclose(draws.mean(0), mean, atol=0.12)
    np.testing.assert_allclose(np.cov(draws[:, 1].T), cov[1], atol=0.5)
    exact = [
        stats.dirichlet_multinomial(r, n).pmf(x) for r, n, x in zip(c, [4, 9], [[1, 1, 2], [3, 3, 3]], strict=True)
    ]
    np.testing.assert_allclose(prob, exact, rtol=1e-4)


def test_vectors_that_sum_to_one():
    c = np.array([2.0, 3.0, 5.0], np.float32)
    d = D.Dirichlet(c)
    draws, log_prob, cov = value([d.sample([2000], seed=1), d.log_prob([0.2, 0.3, 0.5]), d.covariance()])
    assert d.event_shape.as_list() == [3] and draws.shape == (2000, 3) and abs(draws.sum(-1) - 1).max() < 1e-5
    np.testing.assert_allclose(draws.mean(0), c / 10, atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T), cov, atol=0.005)
    np.testing.assert_allclose(log_prob, stats.dirichlet(c).logpdf([0.2, 0.3, 0.5]), rtol=1e-4)
    np.testing.assert_allclose(
        value(D.Dirichlet([[2.0, 3.0], [1.0, 2.0]]).mode()), [[1 / 3, 2 / 3], [np.nan, np.nan]], rtol=1e-5
    )


def test_divergences_are_means_of_log_ratios():
    pairs = [
        (D.Normal(0.0, 1.0), D.Normal(1.0, 2.0)),
        (D.Gamma(3.0, 2.0), D.Gamma(2.0, 1.0)),
        (D.Exponential(1.0), D.Gamma(2.0, 1.0)),
        (D.Beta(2.0, 3.0), D.Beta(1.0, 1.5)),
        (D.Dirichlet([2.0, 3.0]), D.Dirichlet([1.0, 2.0])),
        (D.Bernoulli(probs=0.3), D.Bernoulli(probs=0.6)),
        (D.Categorical(probs=[0.2, 0.8]), D.Categorical(probs=[0.6, 0.4])),
    ]
    made = []
    for a, b in pairs:
        x = a.sample(20000, seed=1)
        made.append((D.kl_divergence(a, b), tf.reduce_mean(a.log_prob(x) - b.log_prob(x))))
    for exact, drawn in value(made):
        assert abs(exact - drawn) < 0.03 * (1 + exact)


def test_a_divergence_of_ones_own():
    class Mine(D.Normal):
        pass

    @D.RegisterKL(Mine, D.Uniform)
    def _kl(a, b, name=None):
        return tf.constant(7.0)

    assert value(D.kl_divergence(Mine(0.0, 1.0), D.Uniform())) == 7
    D.RegisterKL(Mine, D.Normal)(_kl)  # nearer than that of two normal ones
    pairs = [(Mine(0.0, 1.0), D.Normal(0.0, 1.0)), (D.Normal(0.0, 1.0), Mine(0.0, 1.0))]
    assert value([D.kl_divergence(a, b) for a, b in pairs]) == [7, 0]
    with pytest.raises(AlreadyExistsError):
        D.RegisterKL(Mine, D.Uniform)(_kl)


def test_shapes_of_the_step_and_copies():
    loc = tf.placeholder(tf.float32, [None])
    n = tf.placeholder(tf.int32, [])
    d = D.Normal(loc, 1.0)
    assert d.batch_shape.as_list() == [None] and d.sample(2).shape.as_list() == [2, None]
    got = value([d.sample(tf.stack([n, 2])), d.batch_shape_tensor()], {loc: np.zeros(3), n: 4})
    assert got[0].shape == (4, 2, 3) and got[1].tolist() == [3]
    other = d.copy(scale=2.0)
    assert other.parameters["loc"] is loc and "Normal" in repr(other)
    assert value(other.stddev(), {loc: [0.0]}).tolist() == [2.0]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: D.Bernoulli(1.0, probs=0.5), InvalidArgumentError, "logits or probs, got both|got both"),
        (lambda: D.Categorical(), InvalidArgumentError, "logits or probs"),
        (lambda: D.kl_divergence(D.Normal(0.0, 1.0), D.Uniform()), UnimplementedError, "RegisterKL"),
        (lambda: D.Beta(1.0, 1.0).quantile(0.5), UnimplementedError, "Beta has no quantile"),
        (lambda: value(D.Normal(0.0, -1.0, validate_args=True).mean()), InvalidArgumentError, "."),
        (lambda: value(D.Uniform(2.0, 1.0, validate_args=True).mean()), InvalidArgumentError, "."),
        (lambda: value(D.Categorical(probs=[0.5, 0.9], validate_args=True).mode()), InvalidArgumentError, "."),
        (lambda: value(D.Gamma(0.5, 1.0, allow_nan_stats=False).mode()), InvalidArgumentError, "not defined"),
    ],
)
def test_what_they_refuse(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_of_laplace_are_right_in_both_tails(dtype) -> None:
    """log(cdf) is -inf 100 scales to the left, where the cdf underflows."""
    z = np.array([-1e4, -100.0, -20.0, -1.0, 0.0, 1.0, 20.0, 100.0, 1e4], dtype)
    x = tf.constant(2.0 * z + 1.0)
    d = tf.distributions.Laplace(np.array(1.0, dtype), np.array(2.0, dtype))
    left = np.where(z < 0, z - np.log(2.0), np.log1p(-0.5 * np.exp(-np.abs(z))))
    with tf.Session() as sess:
        below, above = d.log_cdf(x), d.log_survival_function(x)
        slopes = [tf.gradients(below, x)[0], tf.gradients(above, x)[0]]
        found = sess.run([below, above, *slopes])
    slope = np.where(z < 0, 0.5, 0.5 * np.exp(-np.abs(z)) / (2.0 - np.exp(-np.abs(z))))
    expected = [left, left[::-1], slope, -slope[::-1]]
    for mine, due in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, due, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-37)


def test_all_of_a_uniform_distribution_without_a_range_lies_below_its_end() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        point = tf.distributions.Uniform(2.0, 2.0)
        np.testing.assert_array_equal(session.run(point.cdf([1.0, 2.0, 3.0])), [0, 1, 1])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda d: d.Bernoulli(probs=[1.01], validate_args=True).probs, "probs has components greater than 1"),
        (lambda d: d.Bernoulli(probs=[-0.1], validate_args=True).probs, "Condition x >= 0"),
        (lambda d: d.Bernoulli(probs=[0.2], validate_args=True).prob([-1]), "must be non-negative."),
        (lambda d: d.Bernoulli(probs=[0.2], validate_args=True).prob([2]), "Elements cannot exceed 1."),
        (lambda d: d.Beta(1.0, 2.0, validate_args=True).prob([0.0]), "sample must be positive"),
        (lambda d: d.Beta(1.0, 2.0, validate_args=True).prob([1.0]), "sample must be less than `1`"),
        (lambda d: d.Beta(1.0, 2.0, allow_nan_stats=False).mode(), "Condition x < y"),
        (lambda d: d.StudentT(0.5, 0.0, 1.0, allow_nan_stats=False).variance(), "Condition x < y"),
        (lambda d: d.Dirichlet([1.0, 2.0], validate_args=True).prob([-1.0, 2.0]), "samples must be positive"),
        (lambda d: d.Dirichlet([1.0, 2.0], validate_args=True).prob([0.3, 0.3]), "must sum to `1`"),
        (lambda d: d.Multinomial(5.0, probs=[0.4, 0.6], validate_args=True).prob([3.0, 3.0]), "counts must sum to"),
        (lambda d: d.Multinomial(5.0, probs=[0.4, 0.6], validate_args=True).prob([2.5, 2.5]), "fractional components"),
        (lambda d: d.DirichletMultinomial(5.0, [1.0, 2.0], validate_args=True).prob([-1.0, 6.0]), "non-negative"),
        (lambda d: d.Normal(0.0, -1.0, validate_args=True).scale, "Condition x > 0"),
    ],
)
def test_words_of_what_is_not_valid(make, words):
    """TensorFlow's, which programs look for."""
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(make(tf.distributions))
    assert words in str(caught.value)
