"""What scripts of TensorFlow 1 do every day, and its answers: losses of unlike ranks, flags, templates, reads as variables."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

LOGITS = np.arange(42, dtype=np.float32).reshape(6, 7) % 5
LABELS = np.eye(7, dtype=np.float32)[[0, 6, 2, 3, 1, 4]]


@pytest.mark.parametrize(
    ("labels", "logits", "static"),
    [
        ((1, None, 7), (None, 7), [None]),
        ((None, 7), (1, None, 7), [1, None]),
        ((2, 3, 7), (6, 7), [6]),
        ((6, 7), (2, 3, 7), [2, 3]),
        ((None, None), (None, None, None), [None, None]),
        (None, (2, 3, 7), [2, 3]),
        (None, None, None),
    ],
)
@pytest.mark.parametrize("policy", ["exact", "generic"])
def test_a_softmax_loss_takes_outer_dims_as_rows(labels, logits, static, policy):
    y, x = tf.placeholder(tf.float32, labels), tf.placeholder(tf.float32, logits)
    loss = tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=x)
    assert loss.shape.rank is None if static is None else loss.shape.as_list() == static
    shapes = [{2: (6, 7), 3: (1, 6, 7) if s and s[0] == 1 else (2, 3, 7)}[len(s) if s else 2] for s in (labels, logits)]
    plain = LOGITS - np.log(np.exp(LOGITS).sum(-1, keepdims=True))
    with tf.Session(config=tf.SessionConfig(shape_policy=policy)) as sess:
        got, grad = sess.run(
            [loss, tf.gradients(loss, x)[0]], {y: LABELS.reshape(shapes[0]), x: LOGITS.reshape(shapes[1])}
        )
    np.testing.assert_allclose(got, -(plain * LABELS).sum(-1).reshape(shapes[1][:-1]), rtol=1e-5)
    np.testing.assert_allclose(grad, (np.exp(plain) - LABELS).reshape(shapes[1]), rtol=1e-5, atol=1e-6)


def test_a_softmax_loss_of_other_classes_is_refused():
    with pytest.raises(tf.errors.ShapeError):
        tf.nn.softmax_cross_entropy_with_logits(labels=tf.ones([1, 6, 5]), logits=tf.ones([6, 7]))


def test_a_dtype_in_the_place_of_trainable():
    given = [tf.Variable([0.3], t) for t in (tf.float32, "w", np.float32, 1, None, False, 0)]
    assert [v.trainable for v in given] == [True, True, True, True, True, False, False]
    assert (
        all(v.dtype == tf.float32 for v in given) and tf.get_variable("v", [1], trainable=1) in tf.trainable_variables()
    )


def test_a_flag_by_its_name():
    tf.flags.DEFINE_integer("everyday_steps", 3, "how many")
    try:
        flag = tf.flags.FLAGS["everyday_steps"]
        assert (flag.name, flag.value, flag.default, flag.help) == ("everyday_steps", 3, 3, "how many")
        tf.flags.FLAGS.everyday_steps = 5
        assert flag.value == 5
    finally:
        del tf.flags.FLAGS.everyday_steps
    with pytest.raises(KeyError):
        tf.flags.FLAGS["everyday_nope"]


def test_a_template_makes_its_variables_once():
    one = tf.make_template("one", lambda: tf.Variable(1.0, name="w"))
    kept = tf.make_template("kept", lambda: tf.Variable(1.0, trainable=False))
    assert kept().name == "kept/Variable:0" and kept().name == "kept_1/Variable:0" and one().trainable
    with pytest.raises(ValueError, match="made a trainable variable after its first call"):
        one()
    with pytest.raises(ValueError):
        tf.make_template(None, lambda: 1)


def test_whether_a_variable_is_initialised_by_a_read_of_it(session):
    v = tf.Variable(1.0, name="seen")
    found = tf.is_variable_initialized(session.graph.get_tensor_by_name("seen:0"))
    assert not session.run(found)
    session.run(v.initializer)
    assert session.run(found)


def test_sparse_tensors_meet_dense_ones(session):
    sp = tf.SparseTensor([[0, 0], [1, 2]], [2.0, 3.0], [2, 3])
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for made, values in ((x * sp, [2, 18]), (sp * x, [2, 18]), (sp / x, [2, 0.5])):
        assert isinstance(made, tf.SparseTensor) and session.run(made.values).tolist() == values
    assert session.run([tf.shape(sp), tf.shape(sp, out_type=tf.int64)[1]])[0].tolist() == [2, 3]
    for shape in ([4, 2], [-1, -1], [4, -1]):
        with pytest.raises(ValueError):
            tf.sparse_reshape(sp, shape)
    assert session.run(tf.sparse_reshape(sp, [3, -1]).dense_shape).tolist() == [3, 2]


def test_an_edit_distance_goes_by_the_places_of_sequences(session):
    hypothesis = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [1, 2])
    distance = tf.edit_distance(hypothesis, tf.SparseTensor([[0, 0], [1, 7]], [1, 2], [2, 3]))
    assert distance.shape == [2] and session.run(distance).tolist() == [1, 1]
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.edit_distance(hypothesis, tf.SparseTensor([[0, 0]], [1], [1, 3])))


def test_products_of_bfloat16_and_float32(session):
    a, b = tf.ones([2, 3], tf.bfloat16), tf.fill([3, 2], 0.1)
    made = [tf.matmul(a, b, b_is_sparse=True), tf.matmul(b, a, a_is_sparse=True), tf.gradients(tf.matmul(a, b), a)[0]]
    assert [m.dtype for m in made] == [tf.float32, tf.float32, tf.bfloat16]
    np.testing.assert_allclose(session.run(made[0]), np.full((2, 2), 0.3), rtol=1e-6)


def test_iterables_of_variables(session):
    v, w = tf.Variable(2.0), tf.Variable(3.0)
    named = {"v": v, "w": w}
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    forms = (named.values(), named, (n for n in (v, w)), (v, [w]), {v, w})
    steps = [optimizer.minimize(v * w, var_list=form) for form in forms]
    session.run([tf.variables_initializer(n for n in named.values()), tf.group(named.values())])
    for step in steps:
        before = session.run([v, w])
        session.run(step)
        np.testing.assert_allclose(
            session.run([v, w]), [before[0] - 0.1 * before[1], before[1] - 0.1 * before[0]], rtol=1e-6
        )
    clipped = tf.clip_by_global_norm((t for t in (tf.constant([3.0]), tf.constant([4.0]))), 1.0)
    assert len(clipped[0]) == 2 and session.run(clipped[1]) == 5 and session.run(tf.add_n(named.values())) is not None
    assert len(tf.tuple(n.value() for n in (v, w))) == 2 and session.run(tf.global_norm([])) == 0
