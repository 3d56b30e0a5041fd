"""Fetches of any structure, and feeds: what is taken, what is cast without loss, what is refused by name."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DTypeError, InvalidArgumentError, NotFoundError, OutOfRangeError, ShapeError

Pair = namedtuple("Pair", "left right")


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


@pytest.fixture
def sess(graph):
    with tf.Session() as session:
        yield session


def test_results_have_the_structure_of_the_fetches(sess):
    a, b, nothing = tf.constant(1.0, name="a"), tf.constant(2.0), tf.no_op()
    got = sess.run({"x": [a, (b, nothing)], "y": Pair("a:0", [a]), "z": OrderedDict(k=b), "e": []})
    assert got == {"x": [1.0, (2.0, None)], "y": Pair(1.0, [1.0]), "z": {"k": 2.0}, "e": []}
    assert type(got["y"]) is Pair


def test_an_operation_gives_nothing_and_a_variable_its_value(sess):
    v = tf.Variable(3.0)
    assert sess.run(v.initializer) is None
    assert sess.run([v, v.op]) == [3.0, None]


@pytest.mark.parametrize(
    ("fetch", "error", "match"),
    [
        (None, InvalidArgumentError, "None cannot be fetched"),
        ([None], InvalidArgumentError, "None cannot be fetched"),
        ("nowhere:0", NotFoundError, "cannot fetch 'nowhere:0'"),
        ("aa:0", NotFoundError, "did you mean 'a"),
        (3, InvalidArgumentError, "cannot fetch 3"),
    ],
)
def test_what_can_not_be_fetched(sess, fetch, error, match):
    tf.constant(1.0, name="a")
    with pytest.raises(error, match=match) as caught:
        sess.run(fetch)
    assert "test_fetches.py" in caught.value.site


def test_a_handle_is_not_fetched(sess):
    v = tf.Variable(1.0)
    with pytest.raises(InvalidArgumentError, match="it is a resource handle") as caught:
        sess.run(v.handle)
    assert caught.value.hint == "fetch the variable itself"


@pytest.mark.parametrize(
    ("dtype", "value", "want"),
    [
        (tf.float32, np.float64(0.1), np.float32(0.1)),
        (tf.float32, 3, 3.0),
        (tf.float64, np.float32(0.5), 0.5),
        (tf.int8, np.int64(100), 100),
        (tf.int64, np.array([True, False]), [1, 0]),
        (tf.complex64, 2.5, 2.5 + 0j),
        (tf.float32, np.arange(6).reshape(2, 3)[:, ::2], [[0, 2], [3, 5]]),
        (tf.float32, [], []),
        (tf.string, "text", b"text"),
    ],
)
def test_feeds_are_cast_where_no_value_is_lost(sess, dtype, value, want):
    x = tf.placeholder(dtype)
    got = np.asarray(sess.run(tf.identity(x), {x: value}))
    np.testing.assert_array_equal(got, np.array(want, got.dtype))


@pytest.mark.parametrize(
    ("dtype", "shape", "value", "error"),
    [
        (tf.int32, [], 2.5, DTypeError),
        (tf.float32, [], 1j, DTypeError),
        (tf.float32, [], "text", DTypeError),
        (tf.bool, [], 2, DTypeError),
        (tf.int8, [], 300, OutOfRangeError),
        (tf.uint8, [], -1, OutOfRangeError),
        (tf.float32, [2], [1.0, 2.0, 3.0], ShapeError),
        (tf.float32, [None, 2], [1.0], ShapeError),
        (tf.float32, None, [[1.0], [1.0, 2.0]], InvalidArgumentError),
    ],
)
def test_feeds_that_do_not_fit_name_the_placeholder(sess, dtype, shape, value, error):
    x = tf.placeholder(dtype, shape, name="x")
    with pytest.raises(error, match="fed to x:0|x:0 is not") as caught:
        sess.run(tf.identity(x), {x: value})
    assert caught.value.op_name == "x"


def test_keys_that_can_not_be_fed(sess):
    x = tf.placeholder(tf.float32, [], name="x")
    v = tf.Variable(1.0)
    for key, error in (
        ("y:0", NotFoundError),
        (x.op, InvalidArgumentError),
        (v.handle, InvalidArgumentError),
        (3, InvalidArgumentError),
    ):
        with pytest.raises(error):
            sess.run(x, {x: 1.0, key: 1.0})
    with pytest.raises(InvalidArgumentError, match="is fed the tensor"):
        sess.run(x, {x: tf.constant(1.0)})


def test_any_tensor_may_be_fed(sess):
    x = tf.constant(2.0) * 3.0
    y = x + 1.0
    assert sess.run(y) == 7.0 and sess.run(y, {x: 10.0}) == 11.0


def test_an_operations_name_in_the_place_of_its_output_is_told_the_output(sess):
    x = tf.placeholder(tf.float32, [2], name="x")
    with pytest.raises(InvalidArgumentError, match="'x' names an operation, no tensor") as raised:
        sess.run(x, {"x": [1.0, 2.0]})
    assert raised.value.hint == "its output is 'x:0'"
    with pytest.raises(InvalidArgumentError, match="'y' names no tensor") as raised:
        sess.run(x, {"y": [1.0, 2.0]})
    assert raised.value.hint is None


def test_tensors_of_another_graph_are_told_how_graphs_are_kept_together():
    inside, other = tf.constant(1.0), tf.Graph()
    with other.as_default():
        made = tf.constant(1.0)
        branch = lambda: tf.cond(made > 0.0, lambda: inside, lambda: made)  # noqa: E731
        for build in (lambda: inside + made, lambda: tf.group(inside.op), branch):
            with pytest.raises(InvalidArgumentError, match="belongs to another graph") as raised:
                build()
            assert raised.value.hint == "make both inside of one `with graph.as_default():`"


class Couple:
    """Two tensors in one, as a session sees what is not one tensor."""

    def __init__(self, a: tf.Tensor, b: tf.Tensor) -> None:
        self.parts = [a, b]

    def _as_fetches(self):
        return self.parts, tuple

    def _as_feeds(self, value):
        return dict(zip(self.parts, value, strict=True))


def test_what_stands_for_several_tensors_is_fetched_and_fed() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        pair = Couple(tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, []))
        for _ in range(2):
            found = session.run({"pair": pair, "sum": pair.parts[0] + pair.parts[1]}, {pair: (1, 2)})
            assert found == {"pair": (1, 2), "sum": 3}
        assert session.run(pair, {pair: (3, 4)}) == (3, 4)


def test_strings_are_looked_at_in_every_step():
    """A session that had run once took numbers in an object array for strings, and a kernel met them."""
    text = tf.placeholder(tf.string, [2])
    out = tf.string_join([text, "!"])
    with tf.Session() as sess:
        for _ in range(2):
            assert sess.run(out, {text: np.array([b"a", b"b"], object)}).tolist() == [b"a!", b"b!"]
            with pytest.raises(tf.errors.DTypeError):
                sess.run(out, {text: np.array([7, 8], object)})


def test_a_nested_tuple_is_fed_a_like_structure_and_carries_a_state(sess):
    """A recurrent network's state is fed as it was fetched; it was refused as "not a Tensor or the name of one"."""
    state = (Pair(tf.zeros([2]), tf.zeros([])), (tf.constant(0),))
    after = (Pair(state[0].left + 1.0, state[0].right - 1.0), (state[1][0] + 2,))
    value = sess.run(state)
    for _ in range(3):
        value = sess.run(after, {state: value})
    assert value[0].left.tolist() == [3.0, 3.0] and value[0].right == -3.0 and value[1] == (6,)
    assert sess.run(state[0].left, {state: ([[7, 8], 0.0], [1])}).tolist() == [7.0, 8.0]  # lists, and lists of numbers
    assert sess.run(state[0].left, {(state[0].left.name,): [[9.0, 9.0]]}).tolist() == [9.0, 9.0]
    assert sess.explain(after, {state: value}).rows


def test_a_nested_feed_that_does_not_fit_names_the_tensors(sess):
    pair = (tf.zeros([2], name="a"), tf.zeros([2], name="b"))
    for value in ([1.0], np.zeros((2, 2)), {"a": 1, "b": 2}):
        with pytest.raises(InvalidArgumentError, match=r"the value fed to \(a:0, b:0\) does not have the structure"):
            sess.run(pair[0], {pair: value})
    with pytest.raises(InvalidArgumentError, match="feeds one tensor twice"):
        sess.run(pair[0], {pair: [[1, 2], [3, 4]], pair[0]: [5, 6]})
