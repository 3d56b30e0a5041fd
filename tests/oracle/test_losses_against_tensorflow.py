"""tf.losses is TensorFlow 1's: names, collections, values and gradients of the same losses under both."""

from __future__ import annotations

import graphdock as tf
import pytest

from tests.oracle.peer_programs import compare, peer, run

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

#: Each loss with each kind of weights and reduction; what it says where it refuses.
HEAD = """
r = np.random.RandomState(0)
p0, t0 = r.uniform(0.1, 0.9, (4, 3)).astype('f'), r.randint(0, 2, (4, 3)).astype('f')
kinds = {'none': {}, 'number': {'weights': 0.7}, 'zero': {'weights': 0.0},
         'rows': {'weights': np.array([[1.], [0], [2], [0.5]], 'f')},
         'all': {'weights': r.randint(0, 2, (4, 3)).astype('f')}, 'all zero': {'weights': np.zeros((4, 3), 'f')},
         'tensor': {'weights': tf.constant(0.5)}, 'ints': {'weights': np.array([[1], [0], [2], [0]])}}
per_row = {'rows': {'weights': np.array([1., 0, 2, 0.5], 'f')}, 'all': {'weights': r.randint(0, 2, 4).astype('f')}}
modes = tf.losses.Reduction
modes = modes.NONE, modes.SUM, modes.MEAN, modes.SUM_OVER_BATCH_SIZE, modes.SUM_BY_NONZERO_WEIGHTS
def each(loss, targets, given, kinds, modes=modes):
    x = tf.Variable(given, name='x')
    for kind, weights in kinds.items():
        for mode in modes:
            more = {} if mode is None else {'reduction': mode}
            made = loss(targets, x, **weights, **more)
            facts[kind, mode] = made.name, made.shape.as_list(), made.dtype.name
            g = tf.gradients(made, x)[0]
            with tf.Session() as s:
                s.run(tf.global_variables_initializer())
                values[kind, mode] = s.run([made, g])
    facts['losses'] = [t.name for t in tf.get_collection('losses')]
"""
PROGRAMS = {
    **{
        name: f"each(tf.losses.{name}, t0, p0, kinds)"
        for name in (
            "absolute_difference",
            "mean_squared_error",
            "huber_loss",
            "log_loss",
            "hinge_loss",
            "sigmoid_cross_entropy",
        )
    },
    "delta": "each(lambda l, p, **k: tf.losses.huber_loss(l, p, delta=0.3, **k), t0, p0 * 3, kinds)",
    "smoothed": "each(lambda l, p, **k: tf.losses.sigmoid_cross_entropy(l, p, label_smoothing=0.2, **k), t0, p0, kinds)",
    "mean_pairwise_squared_error": "each(tf.losses.mean_pairwise_squared_error, t0, p0, kinds, [None])",
    "cosine_distance": """
one = {k: kinds[k] for k in ('none', 'number', 'rows', 'zero')}
each(lambda l, p, **k: tf.losses.cosine_distance(l, p, axis=1, **k), t0, p0, one)
""",
    "softmax_cross_entropy": """
more = {k: {**kinds, **per_row}[k] for k in ('none', 'number', 'zero', 'rows', 'all', 'tensor')}
each(tf.losses.softmax_cross_entropy, np.eye(3)[[0, 2, 1, 1]], p0, more)
each(lambda l, p, **k: tf.losses.softmax_cross_entropy(l, p, label_smoothing=0.1, **k), np.eye(3)[[0, 2, 1, 1]], p0, more)
""",
    "sparse_softmax_cross_entropy": """
more = {**kinds, **per_row}
more = {k: more[k] for k in ('none', 'number', 'zero', 'rows', 'all', 'tensor')}
more['column'] = {'weights': np.array([[1.], [0], [2], [0.5]], 'f')}
each(tf.losses.sparse_softmax_cross_entropy, np.array([0, 2, 1, 1]), p0, more)
each(tf.losses.sparse_softmax_cross_entropy, np.array([[0], [2], [1], [1]]), p0, more)
""",
    "in the step": """
x = tf.placeholder(tf.float32, [None, None]); w = tf.placeholder(tf.float32, [None, None]); l = tf.placeholder(tf.int32)
made = [tf.losses.mean_squared_error(x * 2, x, w), tf.losses.mean_pairwise_squared_error(x * x, x, w),
        tf.losses.sparse_softmax_cross_entropy(l, x, w)]
with tf.Session() as s:
    for weights in (np.ones((4, 1)), np.ones((1, 1)), t0[:, :1]):
        values[str(weights)] = s.run(made[:2], {x: p0, w: weights})
    for classes in (np.array([[0], [1], [2], [0]]), np.array([0, 1, 2, 0])):
        values[str(classes.shape)] = s.run(made[2], {x: p0, w: t0[:, :1], l: classes})
    for weights in (np.ones((4, 2)), np.ones((3, 1)), np.ones((8, 1))):
        try: s.run(made[0], {x: p0, w: weights}); facts[str(weights.shape)] = None
        except tf.errors.InvalidArgumentError: facts[str(weights.shape)] = 'refused'
""",
    "refusals": """
def attempt(name, f):
    try: f(); facts[name] = None
    except ValueError: facts[name] = 'ValueError'
L = tf.losses
attempt('rank', lambda: L.mean_squared_error(t0, p0, np.ones(4, 'f')))
attempt('row', lambda: L.mean_squared_error(t0, p0, np.ones(3, 'f')))
attempt('size', lambda: L.mean_squared_error(t0, p0, np.ones((4, 2), 'f')))
attempt('labels', lambda: L.mean_squared_error(t0[:3], p0))
attempt('none', lambda: L.mean_squared_error(None, p0))
attempt('no logits', lambda: L.sparse_softmax_cross_entropy([0], None))
attempt('reduction', lambda: L.hinge_loss(t0, p0, reduction='mean'))
attempt('axis', lambda: L.cosine_distance(t0, p0))
attempt('total', lambda: L.get_total_loss())
""",
    "collections": """
L = tf.losses
facts['none'] = float(tf.Session().run(L.get_regularization_loss()))
w = tf.Variable(p0, name='w')
with tf.variable_scope('net'):
    a = L.mean_squared_error(t0, w, scope='mine'); b = L.absolute_difference(t0, w, loss_collection=None)
    c = L.hinge_loss(t0, w, loss_collection='others')
L.add_loss(tf.reduce_sum(w, name='own')); L.add_loss(tf.reduce_sum(w), None)
tf.add_to_collection('regularization_losses', tf.reduce_sum(w * w, name='reg'))
total, regs = L.get_total_loss(), L.get_regularization_loss()
facts['names'] = [t.name for t in (a, b, c, total, regs, *L.get_losses(), *L.get_losses('net'),
                  *L.get_losses(loss_collection='others'), *L.get_regularization_losses())]
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    values['all'] = s.run([a, b, c, total, regs, L.get_total_loss(False), L.get_total_loss(scope='net')])
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
