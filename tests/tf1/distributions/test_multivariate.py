"""The diagonal normal distribution beside SciPy's."""

import graphdock as tf
import numpy as np
from graphdock_tf1.distributions.kullback_leibler import kl_divergence
from graphdock_tf1.distributions.multivariate import MultivariateNormalDiag
from scipy import stats

LOC, SCALE = np.array([[0.0, 1.0], [2.0, -1.0]], np.float32), np.array([0.5, 2.0], np.float32)


def test_densities_and_statistics():
    made = MultivariateNormalDiag(LOC, SCALE)
    assert made.batch_shape.as_list() == [2] and made.event_shape.as_list() == [2]
    with tf.Session() as sess:
        log, entropy, covariance, drawn = sess.run(
            [made.log_prob([0.5, 0.0]), made.entropy(), made.covariance(), made.sample(5000, seed=1)]
        )
    for row in range(2):
        peer = stats.multivariate_normal(LOC[row], np.diag(SCALE**2))
        np.testing.assert_allclose(log[row], peer.logpdf([0.5, 0.0]), rtol=1e-5)
        np.testing.assert_allclose(entropy[row], peer.entropy(), rtol=1e-5)
        np.testing.assert_allclose(covariance[row], np.diag(SCALE**2), rtol=1e-6)
        np.testing.assert_allclose(drawn[:, row].mean(0), LOC[row], atol=0.1)


def test_the_divergence_of_two():
    a, b = MultivariateNormalDiag(LOC, SCALE), MultivariateNormalDiag(scale_identity_multiplier=[1.5, 1.0])
    assert b.event_shape.as_list() == [1]
    b = MultivariateNormalDiag(np.zeros(2, np.float32), np.ones(2, np.float32))
    want = 0.5 * (np.square(SCALE) + np.square(LOC) - 1 - 2 * np.log(SCALE)).sum(1)
    np.testing.assert_allclose(tf.Session().run(kl_divergence(a, b)), want, rtol=1e-5)
