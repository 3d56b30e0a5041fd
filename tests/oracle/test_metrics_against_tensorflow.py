"""tf.metrics is TensorFlow 1's: names, local variables, collections, and values over several steps."""

from __future__ import annotations

import graphdock as tf
import pytest

from tests.oracle.peer_programs import compare, peer, run

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

#: A metric over three batches, with each kind of weights: what its update gives, and its value after.
HEAD = """
M = tf.metrics
def classes(i, *shape): return np.random.RandomState(i).randint(0, 4, shape)
def bits(i, *shape): return np.random.RandomState(i + 10).randint(0, 2, shape)
def parts(i, *shape): return np.random.RandomState(i + 20).uniform(0, 1, shape).astype('f')
def each(metric, *sources, weights=((), (6,))):
    made = []
    for kind in (None, *weights):
        x = [tf.placeholder(s(0).dtype, s(0).shape) for s in sources]
        w = None if kind is None else tf.placeholder(tf.float32, kind)
        value, update = metric(*x, weights=w, metrics_collections=['mine'], updates_collections='ups')
        made.append((kind, x, w, value, update))
        facts[str(kind)] = plain(value.name), value.shape.as_list(), value.dtype.name.replace('_ref', ''), update.shape.as_list()
    facts['update'] = [plain(u.name) for u in tf.get_collection('ups') if 'Assign' not in u.name]
    recorder.graph()
    assert [t.name for t in tf.get_collection('mine')] == [m[3].name for m in made]
    with tf.Session() as s:
        s.run(tf.local_variables_initializer())
        for kind, x, w, value, update in made:
            steps = [s.run(value)]
            for i in range(3):
                feed = {p: f(i) for p, f in zip(x, sources)}
                if w is not None: feed[w] = np.random.RandomState(i + 30).randint(0, 3, kind) * 0.5
                steps += [s.run(update, feed), s.run(value)]
            values[str(kind)] = steps
        values['variables'] = s.run(tf.local_variables())
"""
P = "lambda i: parts(i, 6)"
C = "lambda i: classes(i, 6)"
B = "lambda i: bits(i, 6)"
TOP = "lambda i: classes(i, 6, 2), lambda i: parts(i, 6, 4)"
PROGRAMS = {
    "mean": f"each(M.mean, {P}); ",
    "mean of rows": "each(M.mean, lambda i: parts(i, 6, 2), weights=((), (6, 1), (6, 2), (1, 2)))",
    "mean_tensor": f"each(M.mean_tensor, {P})",
    "accuracy": f"each(M.accuracy, {C}, {C}); ",
    "accuracy of parts": "each(M.accuracy, lambda i: bits(i, 6, 1), lambda i: parts(i, 6).round(), weights=((), (6,), (6, 1)))",
    **{
        m: f"each(M.{m}, {P}, lambda i: parts(i + 1, 6))"
        for m in (
            "mean_absolute_error",
            "mean_squared_error",
            "root_mean_squared_error",
        )
    },
    "mean_relative_error": f"""
each(lambda l, p, **k: M.mean_relative_error(l, p, tf.constant([1., 2, 0, 4, 5, 6]), **k), {P}, lambda i: parts(i + 1, 6))
""",
    "mean_cosine_distance": """
distance = lambda l, p, **k: M.mean_cosine_distance(l, p, 1, **k)
each(distance, lambda i: parts(i, 6, 3), lambda i: parts(i + 1, 6, 3), weights=((), (6, 1)))
""",
    "percentage_below": f"each(lambda v, **k: M.percentage_below(v, 0.4, **k), {P})",
    "mean_iou": f"each(lambda l, p, **k: M.mean_iou(l, p, 5, **k), {C}, lambda i: classes(i + 1, 6), weights=((6,),))",
    "mean_per_class_accuracy": f"""
each(lambda l, p, **k: M.mean_per_class_accuracy(l, p, 5, **k), {C}, lambda i: classes(i + 1, 6), weights=((6,),))
""",
    **{
        m: f"each(M.{m}, {B}, lambda i: bits(i + 1, 6))"
        for m in (
            "true_positives",
            "true_negatives",
            "false_positives",
            "false_negatives",
            "precision",
            "recall",
        )
    },
    **{
        m: f"each(lambda l, p, **k: M.{m}(l, p, [0.1, 0.5, 0.8], **k), {B}, {P})"
        for m in (
            "true_positives_at_thresholds",
            "true_negatives_at_thresholds",
            "false_positives_at_thresholds",
            "false_negatives_at_thresholds",
            "precision_at_thresholds",
            "recall_at_thresholds",
        )
    },
    "auc": f"each(M.auc, {B}, {P})",
    **{
        f"auc {c} {m}": f"""
each(lambda l, p, **k: M.auc(l, p, num_thresholds=20, curve='{c}', summation_method='{m}', **k), {B}, {P})
"""
        for c in ("ROC", "PR")
        for m in ("trapezoidal", "careful_interpolation", "minoring", "majoring")
    },
    "auc of thresholds": f"each(lambda l, p, **k: M.auc(l, p, thresholds=[0.7, 0.2], **k), {B}, {P})",
    "sensitivity": f"each(lambda l, p, **k: M.sensitivity_at_specificity(l, p, 0.7, **k), {B}, {P})",
    "specificity": f"each(lambda l, p, **k: M.specificity_at_sensitivity(l, p, 0.6, num_thresholds=9, **k), {B}, {P})",
    **{
        f"{m} {c}": f"each(lambda l, p, **k: M.{m}(l, p, 2, class_id={c}, **k), {TOP})"
        for m in ("precision_at_k", "recall_at_k")
        for c in (None, 1)
    },
    "one label": "each(lambda l, p, **k: M.recall_at_k(l, p, 3, **k), lambda i: classes(i, 6), lambda i: parts(i, 6, 4))",
    "precision_at_top_k": "each(M.precision_at_top_k, lambda i: classes(i, 6, 2), lambda i: classes(i + 1, 6, 3))",
    "average_precision_at_k": f"each(lambda l, p, **k: M.average_precision_at_k(l, p, 3, **k), {TOP})",
    "average precision of what is no class": """
each(lambda l, p, **k: M.average_precision_at_k(l, p, 2, **k), lambda i: classes(i, 6, 3) + 1, lambda i: parts(i, 6, 4))
""",
    "sparse": """
wide = lambda v: tf.constant(v, tf.int64)
l = tf.SparseTensor(wide([[0, 0], [0, 1], [1, 0], [2, 0]]), wide([1, 3, 0, 2]), wide([3, 2]))
p = parts(0, 3, 4)
made = [M.precision_at_k(l, p, 2), M.recall_at_k(l, p, 2, class_id=3), M.average_precision_at_k(l, p, 2)]
with tf.Session() as s:
    s.run(tf.local_variables_initializer()); values['all'] = [s.run(u) for _, u in made]
""",
    "refusals": """
def attempt(name, f):
    try: f(); facts[name] = None
    except ValueError: facts[name] = 'ValueError'
p, l = parts(0, 6), tf.constant(bits(0, 6))
attempt('shapes', lambda: M.accuracy(l, parts(0, 5)))
attempt('weights', lambda: M.mean(p, weights=np.ones(5)))
attempt('curve', lambda: M.auc(l, p, curve='RO'))
attempt('method', lambda: M.auc(l, p, summation_method='up'))
attempt('k', lambda: M.average_precision_at_k(l, parts(0, 6, 4), 0))
attempt('part', lambda: M.sensitivity_at_specificity(l, p, 1.5))
v, u = M.auc(l, tf.placeholder_with_default(p * 2, [6]))
with tf.Session() as s:
    s.run(tf.local_variables_initializer())
    try: s.run(u); facts['range'] = None
    except tf.errors.InvalidArgumentError: facts['range'] = 'refused'
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
