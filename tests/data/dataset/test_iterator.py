"""Iterators: how they begin, what they say when they did not, one for several datasets, handles, and steps that they feed."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

Dataset = tf.data.Dataset


def drained(session, element):
    found = []
    while True:
        try:
            found.append(session.run(element))
        except tf.errors.OutOfRangeError:
            return found


def test_an_iterator_that_was_not_begun_says_what_to_run():
    it = Dataset.range(3).make_initializable_iterator()
    element = it.get_next()
    with tf.Session() as sess:
        with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized") as caught:
            sess.run(element)
        assert "session.run(iterator.initializer)" in str(caught.value) and "test_iterator.py" in str(caught.value)
        sess.run(it.initializer)
        assert drained(sess, element) == [0, 1, 2]
        with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
            sess.run(element)
        sess.run(it.initializer)
        assert drained(sess, element) == [0, 1, 2]


def test_placeholders_and_variables_are_read_when_an_iterator_begins():
    rows, scale = tf.placeholder(tf.float32, [None, 2]), tf.Variable(3.0)
    it = Dataset.from_tensor_slices(rows * scale).batch(2).make_initializable_iterator()
    element = it.get_next()
    assert element.shape.as_list() == [None, 2]
    with tf.Session() as sess:
        sess.run(scale.initializer)
        for given in (np.ones((3, 2)), np.zeros((1, 2))):
            sess.run(it.initializer, {rows: given})
            assert np.array_equal(np.concatenate(drained(sess, element)), given * 3)


def test_functions_see_variables_and_tables_as_they_are_at_each_element():
    v = tf.Variable(10, dtype=tf.int64)
    table = tf.contrib.lookup.HashTable(tf.contrib.lookup.KeyValueTensorInitializer([0, 1], ["a", "b"], tf.int64), "?")
    it = Dataset.range(3).map(lambda x: (x + v, table.lookup(x))).make_initializable_iterator()
    element = it.get_next()
    with tf.Session() as sess:
        sess.run([v.initializer, tf.tables_initializer()])
        sess.run(it.initializer)
        assert sess.run(element) == (10, b"a")
        sess.run(v.assign(20))
        assert drained(sess, element) == [(21, b"b"), (22, b"?")]


@pytest.mark.parametrize("what", ["placeholder", "variable", "read in a function"])
def test_a_one_shot_iterator_takes_nothing_of_a_step(what):
    if what == "placeholder":
        dataset = Dataset.from_tensor_slices(tf.placeholder(tf.float32, [None]))
    elif what == "variable":
        dataset = Dataset.from_tensors(tf.Variable(1.0) + 1.0)
    else:
        v = tf.Variable(1, dtype=tf.int64)
        dataset = Dataset.range(2).map(lambda x: x + v)
    with pytest.raises(ValueError, match="make_initializable_iterator"):
        dataset.make_one_shot_iterator()


def test_a_one_shot_iterator_begins_once_in_each_session_and_has_no_initializer():
    it = Dataset.from_tensor_slices(tf.range(4) * 2).make_one_shot_iterator()
    element = it.get_next()
    for _ in range(2):
        with tf.Session() as sess:
            assert drained(sess, element) == [0, 2, 4, 6]
    with pytest.raises(ValueError, match="does not have an initializer"):
        it.initializer  # noqa: B018 - the access raises


def test_one_iterator_for_two_datasets():
    it = tf.data.Iterator.from_structure((tf.int64, tf.float32), ([], [None]))
    one = it.make_initializer(Dataset.range(2).map(lambda x: (x, tf.ones([x]))))
    other = it.make_initializer(Dataset.from_tensors((np.int64(7), [1.0, 2.0])))
    number, row = it.get_next()
    with tf.Session() as sess:
        sess.run(one)
        assert [(n, r.tolist()) for n, r in drained(sess, (number, row))] == [(0, []), (1, [1.0])]
        sess.run(one)
        sess.run(other)
        assert [(n, r.tolist()) for n, r in drained(sess, (number, row))] == [(7, [1.0, 2.0])]
    for wrong in (Dataset.range(2), Dataset.from_tensors((1, [1.0])), Dataset.from_tensors((np.int64(1), [[1.0]]))):
        with pytest.raises(TypeError, match="Expected output"):
            it.make_initializer(wrong)


def test_an_iterator_that_is_chosen_by_a_string():
    handle = tf.placeholder(tf.string, [])
    train, test = Dataset.range(3).make_one_shot_iterator(), Dataset.range(10, 12).make_initializable_iterator()
    other = Dataset.from_tensors(1.5).make_one_shot_iterator()
    chosen = tf.data.Iterator.from_string_handle(handle, train.output_types, train.output_shapes).get_next()
    with tf.Session() as sess:
        a, b, wrong = sess.run([train.string_handle(), test.string_handle(), other.string_handle()])
        assert sess.run(chosen, {handle: a}) == 0
        with pytest.raises(tf.errors.FailedPreconditionError, match="initializer"):
            sess.run(chosen, {handle: b})
        sess.run(test.initializer)
        assert [sess.run(chosen, {handle: h}) for h in (b, a, b, a)] == [10, 1, 11, 2]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(chosen, {handle: b})
        with pytest.raises(tf.errors.InvalidArgumentError, match="other components"):
            sess.run(chosen, {handle: wrong})
        with pytest.raises(tf.errors.InvalidArgumentError, match="no iterator"):
            sess.run(chosen, {handle: b"iterator/nobody"})
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="no iterator"):
        sess.run(chosen, {handle: a})  # its session is closed


def test_sessions_share_an_iterator_of_a_container():
    with tf.container("shared by sessions"):
        it = Dataset.range(4).make_initializable_iterator(shared_name="numbers")
        element = it.get_next()
    with tf.Session() as one, tf.Session() as other:
        one.run(it.initializer)
        assert [one.run(element), other.run(element), one.run(element)] == [0, 1, 2]
    tf.Session.reset("", containers=["shared by sessions"])


def test_a_training_step_that_an_iterator_feeds_is_a_step_that_is_fed():
    """What waits runs first; the rest holds its variables, and one element is used for all that reads it."""
    rows = np.arange(24, dtype=np.float32).reshape(12, 2)
    x, y = Dataset.from_tensor_slices((rows, rows.sum(1))).repeat(50).batch(4).make_one_shot_iterator().get_next()
    w = tf.Variable([[0.0], [0.0]])
    loss = tf.reduce_mean(tf.square(tf.squeeze(tf.matmul(x, w), 1) - y))
    step = tf.train.GradientDescentOptimizer(0.002).minimize(loss)
    with tf.Session() as sess:
        sess.run(w.initializer)
        assert "inputs first" in str(sess.explain(step))
        count = 0
        while True:
            try:
                sess.run(step)
            except tf.errors.OutOfRangeError:
                break
            count += 1
        assert count == 150
        expected = np.zeros((2, 1))
        for at in [*range(0, 12, 4)] * 50:  # the same by NumPy
            part = rows[at : at + 4]
            error = part @ expected - part.sum(1, keepdims=True)
            expected -= 0.002 * 2 * part.T @ error / 4
        np.testing.assert_allclose(sess.run(w), expected, rtol=1e-4)


def test_what_a_step_gives_is_its_own():
    """Neither the slices of a constant nor cached rows are what the program gets to write."""
    table = np.ones((3, 2), np.float32)
    element = Dataset.from_tensor_slices(table).repeat().make_one_shot_iterator().get_next()
    changed = element * 2.0
    with tf.Session() as sess:
        for _ in range(7):
            got, twice = sess.run([element, changed])
            assert got.tolist() == [1, 1] and twice.tolist() == [2, 2]
            got[:] = 5.0
    assert (table == 1).all()


def test_errors_name_the_stage_and_the_line():
    dataset = Dataset.from_tensor_slices([1, 2, 3])
    dataset = dataset.map(lambda x: tf.fill([x], x))
    element = dataset.batch(2).make_one_shot_iterator().get_next()
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        sess.run(element)
    assert "BatchDataset (made at " in str(caught.value) and "test_iterator.py" in str(caught.value)

    def broken():
        yield 1
        raise KeyError("lost")

    element = Dataset.from_generator(broken, tf.int32).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert sess.run(element) == 1
        with pytest.raises(tf.errors.UnknownError, match=r"GeneratorDataset \(made at .*KeyError: 'lost'") as caught:
            sess.run(element)
        assert isinstance(caught.value.__cause__, KeyError)


def test_a_map_goes_on_after_an_element_that_failed():
    dataset = Dataset.from_tensor_slices([1.0, 0.0, 2.0]).map(lambda x: tf.check_numerics(1 / x, "division"))
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert sess.run(element) == 1
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"MapDataset \(made at .*division"):
            sess.run(element)
        assert sess.run(element) == 0.5


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda d: d.map(3), "function"),
        (lambda d: d.map(lambda x: None), "Unsupported return value"),
        (lambda d: d.flat_map(lambda x: x), "must return a `Dataset`"),
        (lambda d: d.apply(lambda x: 3), "must return a Dataset"),
        (lambda d: Dataset.zip([d, d]), "do not support Python lists"),
        (lambda d: d.concatenate(Dataset.from_tensors(1.0)), "different types"),
        (lambda d: Dataset.from_generator(3, tf.int32), "must be callable"),
    ],
)
def test_what_is_of_a_wrong_kind_is_a_type_error(make, error):
    with pytest.raises(TypeError, match=error):
        make(Dataset.range(3))


def test_a_predicate_gives_a_scalar_bool():
    with pytest.raises(ValueError, match="scalar boolean"):
        Dataset.range(3).filter(lambda x: x)


def test_each_iterator_draws_the_numbers_of_its_seeds():
    """TensorFlow: two iterators over one map with a seed give the same numbers, and so does one that begins anew."""
    tf.set_random_seed(3)
    dataset = Dataset.range(3).map(lambda x: tf.random_uniform([], seed=5)).repeat(2)
    one, other = dataset.make_initializable_iterator(), dataset.make_initializable_iterator()
    elements = [it.get_next() for it in (one, other)] + [dataset.make_one_shot_iterator().get_next()]
    with tf.Session() as sess:
        sess.run([one.initializer, other.initializer])
        in_turns = np.array([sess.run(elements) for _ in range(6)])
        assert len(set(in_turns[:, 0])) == 6 and (in_turns == in_turns[:, :1]).all()
        sess.run(one.initializer)
        assert drained(sess, elements[0]) == list(in_turns[:, 0])


def test_iterators_without_seeds_draw_numbers_of_their_own():
    dataset = Dataset.range(3).map(lambda x: tf.random_uniform([]))
    it = dataset.make_initializable_iterator()
    elements = it.get_next(), dataset.make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as sess:
        for _ in range(2):
            sess.run(it.initializer)
            found += drained(sess, elements[0]) + drained(sess, elements[1])
    assert len(set(found)) == 9
