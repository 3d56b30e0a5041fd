"""tf.distributions is TensorFlow 1's: densities, statistics, divergences, shapes and gradients."""

from __future__ import annotations

import graphdock as tf
import pytest

from tests.oracle.peer_programs import compare, peer, run

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

HEAD = """
D = tf.distributions
def each(d, x, methods, parameters=(), other=None):
    facts['shapes'] = d.batch_shape.as_list(), d.event_shape.as_list(), d.dtype.name, d.name, d.sample([5, 2]).shape.as_list()
    made = {m: getattr(d, m)(x) for m in ('log_prob', 'prob')}
    for m in methods:
        made[m] = getattr(d, m)(x) if 'cdf' in m or 'survival' in m else getattr(d, m)()
    made['batch'], made['event'] = d.batch_shape_tensor(), d.event_shape_tensor()
    if other is not None: made['kl'], made['cross'] = D.kl_divergence(d, other), d.cross_entropy(other)
    if parameters: made['grads'] = tf.gradients(tf.reduce_sum(made['log_prob']), parameters)
    for m, t in made.items(): facts[m] = (t[0] if isinstance(t, list) else t).shape.as_list()
    with tf.Session() as s: values.update(s.run(made))
c = lambda *v: tf.constant(v, tf.float32)
moments = ['mean', 'variance', 'stddev', 'entropy', 'mode']
"""
PROGRAMS = {
    "Normal": """
m, s = c(0., 1., -2.), c(1., .5, 3.)
each(D.Normal(m, s), np.array([[.3, 1., 9.], [-40., 12., 0.]], 'f'), [*moments, 'cdf', 'log_cdf', 'survival_function',
     'log_survival_function'], [m, s], D.Normal(1., 2.))
q = D.Normal([[0.], [1.]], 2.); facts['q'] = q.batch_shape.as_list()
with tf.Session() as s: values['q'] = s.run([q.quantile([.1, .5]), q.mean(), q.stddev(), q.log_prob(1.5)])
""",
    "Uniform": """
each(D.Uniform([0., 1.], c(2., 4.)), np.array([[1., 1.], [3., 4.], [-1., 0.]], 'f'), [*moments[:-1], 'cdf'])
""",
    "Laplace": """
m, s = c(0., 1.), c(1., .5)
each(D.Laplace(m, s), np.array([[.3, 1.5], [-4., 0.]], 'f'), [*moments, 'cdf', 'survival_function'], [m, s])
""",
    "StudentT": """
f = c(.5, 1.5, 3.); each(D.StudentT(f, c(0.), c(2.)), np.array([.3, -1., 2.], 'f'), [*moments, 'cdf'], [f])
""",
    "Gamma": """
a, b = c(.5, 2., 5.), c(1., 2., .5)
each(D.Gamma(a, b), np.array([.3, 1., 2.], 'f'), [*moments, 'cdf', 'log_cdf'], [a, b], D.Gamma(2., 1.))
""",
    "Exponential": "r = c(.5, 2.); each(D.Exponential(r), np.array([.3, 1.], 'f'), ['mean', 'variance', 'entropy', 'cdf'], [r])",
    "Beta": """
a, b = c(.5, 2., 5.), c(1., 2., 3.)
each(D.Beta(a, b), np.array([.3, .9, .2], 'f'), [*moments, 'cdf'], [a, b], D.Beta(2., 1.))
""",
    "Dirichlet": """
a = tf.constant([[2., 3., 4.], [1., .5, 2.]])
each(D.Dirichlet(a), np.array([[.2, .3, .5], [.1, .1, .8]], 'f'), [*moments[:-1], 'covariance'], [a], D.Dirichlet([1., 2., 3.]))
""",
    "Bernoulli": """
l = c(.5, -2., 3.); each(D.Bernoulli(l), np.array([[0, 1, 1], [1, 0, 1]]), moments, [l], D.Bernoulli(probs=c(.2, .5, .9)))
""",
    "Bernoulli of probabilities": """
p = c(.1, .5, .9); each(D.Bernoulli(probs=p, dtype=tf.float32), np.float32([0, 1, 1]), moments, [p])
""",
    "Categorical": """
l = tf.constant([[1., 2., 3.], [0., 0., -1.]])
each(D.Categorical(l), np.array([0, 2]), ['entropy', 'mode', 'cdf'], [l], D.Categorical(probs=[[.2, .3, .5], [.1, .1, .8]]))
d = D.Categorical(probs=[.2, .3, .5])
with tf.Session() as s: values['more'] = s.run([d.prob([[0, 1], [2, 2]]), d.mode(), d.log_prob(1)])
""",
    "Multinomial": """
l = tf.constant([[1., 2., 3.], [0., 0., -1.]])
each(D.Multinomial(c(3., 5.), logits=l), np.array([[1., 2., 0.], [2., 2., 1.]], 'f'), ['mean', 'variance', 'covariance'], [l])
""",
    "DirichletMultinomial": """
a = tf.constant([[2., 3., 4.], [1., .5, 2.]])
each(D.DirichletMultinomial(4., a), np.array([[1., 2., 1.], [2., 2., 0.]], 'f'), ['mean', 'variance', 'covariance'], [a])
""",
    "refusals": """
def attempt(name, f):
    try: f(); facts[name] = None
    except (ValueError, NotImplementedError, tf.errors.OpError): facts[name] = 'refused'
attempt('both', lambda: D.Bernoulli(1., probs=.5)); attempt('neither', lambda: D.Categorical())
attempt('kl', lambda: D.kl_divergence(D.Normal(0., 1.), D.Uniform()))
attempt('quantile', lambda: D.Beta(1., 1.).quantile(.5))
with tf.Session() as s:
    attempt('scale', lambda: s.run(D.Normal(0., -1., validate_args=True).mean()))
    attempt('mode', lambda: s.run(D.Gamma(.5, 1., allow_nan_stats=False).mode()))
    attempt('probs', lambda: s.run(D.Categorical(probs=[.5, .9], validate_args=True).entropy()))
""",
}


@pytest.fixture(scope="module")
def theirs():
    found = peer({name: HEAD + text for name, text in PROGRAMS.items()})
    if found is None:
        pytest.skip("TensorFlow is not installed")
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(theirs, name):
    compare(run(tf, {name: HEAD + PROGRAMS[name]})[name], theirs[name])
