"""TensorShape and Dimension, as TensorFlow 1 answers."""

from __future__ import annotations

import pickle

import graphdock as tf
import numpy as np
import pytest
from graphdock.tensor_shape import TensorShapeProto, as_dimension, as_shape, unknown_shape

D, S = tf.Dimension, tf.TensorShape

ANSWERS = {
    "value": (lambda: (D(3).value, D(None).value), (3, None)),
    "a dim is an int": (
        lambda: (isinstance(D(3), int), isinstance(D(3), D), isinstance(D(None), D)),
        (True, True, True),
    ),
    "values of a shape": (lambda: [d.value for d in S([None, 4]).dims], [None, 4]),
    "one dim": (lambda: (S([None, 4])[1].value, S([None, 4])[0].value, S(None)[2].value), (4, None, None)),
    "sums": (
        lambda: ((D(3) + 4).value, (4 + D(3)).value, (D(3) + None).value, (D(3) + D(None)).value),
        (7, 7, None, None),
    ),
    "differences": (lambda: ((D(9) - 4).value, (9 - D(4)).value, (D(None) - 4).value), (5, 5, None)),
    "products": (lambda: ((D(3) * 4).value, (4 * D(3)).value, (4 * D(None)).value), (12, 12, None)),
    "quotients": (
        lambda: ((D(9) // 4).value, (9 // D(4)).value, (D(9) // None).value, (9 // D(None)).value),
        (2, 2, None, None),
    ),
    "remainders": (lambda: ((D(9) % 4).value, (9 % D(4)).value, (D(None) % 4).value), (1, 1, None)),
    "comparisons": (
        lambda: (D(3) == 3, D(3) < 4, D(3) >= D(4), D(None) < 3, D(None) == 3),
        (True, True, False, None, None),
    ),
    "merged dims": (lambda: (D(None).merge_with(3).value, D(3).merge_with(None).value), (3, 3)),
    "as text": (lambda: (str(D(3)), str(D(None)), repr(D(None)), f"{D(3):03d}"), ("3", "?", "Dimension(None)", "003")),
    "a shape as text": (lambda: [str(S(s)) for s in (None, [], [4], [None, 3])], ["<unknown>", "()", "(4,)", "(?, 3)"]),
    "repr": (lambda: repr(S([None, 3])), "TensorShape([Dimension(None), Dimension(3)])"),
    "slices": (
        lambda: (S([1, 2, 3])[1:].as_list(), S(None)[1:].ndims, S(None)[1:3].as_list()),
        ([2, 3], None, [None, None]),
    ),
    "with_rank": (lambda: (S(None).with_rank(2).as_list(), S([3]).with_rank(1).as_list()), ([None, None], [3])),
    "bounds of rank": (
        lambda: (S([3]).with_rank_at_least(1), S([3]).with_rank_at_most(1), S(None).with_rank_at_least(3).ndims),
        ([3], [3], None),
    ),
    "merge_with": (lambda: S([None, 3]).merge_with([2, None]).as_list(), [2, 3]),
    "most specific": (lambda: S([2, 3]).most_specific_compatible_shape([2, 4]).as_list(), [2, None]),
    "concatenate": (
        lambda: ((S([1]) + [2]).as_list(), ([1] + S([2])).as_list(), S([1]).concatenate(None).ndims),
        ([1, 2], [1, 2], None),
    ),
    "num_elements": (lambda: (S([2, 3]).num_elements(), S([2, None]).num_elements()), (6, None)),
    "as_proto": (lambda: S(S([None, 3]).as_proto()).as_list(), [None, 3]),
    "of an array": (lambda: (S(np.array([2, 3])).as_list(), S(5).as_list()), ([2, 3], [5])),
    "the only dim": (
        lambda: [
            S([2]) == 2,
            (2).__eq__(S([2])) is NotImplemented,
            S([2]) == D(2),
            D(None) == S([None]),
            S([2]) != 2,
            S([2, 3]) == 2,
            S([]) == 2,
        ],
        [True, True, True, True, False, False, False],
    ),
    "an array of dims": (
        lambda: (S([2, 3]) == np.array([2, 3]), S([2]) == np.int64(3), S([]) == np.array([2])),
        (True, False, False),
    ),
    "what is no shape": (
        lambda: (S([2]) == "ab", S([2]) != 2.5, S([2]) == [2.5], S([2]) == object()),
        (False, True, False, False),
    ),
    "of an unknown dim": (lambda: (S(D(None)).as_list(), S([2]).concatenate(D(None)).as_list()), ([None], [2, None])),
    "helpers": (
        lambda: (unknown_shape().ndims, unknown_shape(2).as_list(), as_shape([1]).as_list(), as_dimension(2).value),
        (None, [None, None], [1], 2),
    ),
    "through pickle": (lambda: pickle.loads(pickle.dumps((S([None, 3]), D(3), D(None)))), (S([None, 3]), 3, None)),
    "NumPy takes dims": (lambda: np.zeros([S([2, 3])[0], S([2, 3])[1]]).shape, (2, 3)),
}

REFUSED = {
    "a negative dim": lambda: S([-1, 10]),
    "a placeholder of one": lambda: tf.placeholder(tf.float32, [-1, 10]),
    "no integer": lambda: D("3"),
    "dims that clash": lambda: D(3).merge_with(4),
    "incompatible dims": lambda: D(3).assert_is_compatible_with(4),
    "incompatible shapes": lambda: S([3]).assert_is_compatible_with([4]),
    "another rank": lambda: S([3]).assert_has_rank(2),
    "with another rank": lambda: S([3]).with_rank(2),
    "less rank": lambda: S([3]).with_rank_at_least(2),
    "more rank": lambda: S([3, 4]).with_rank_at_most(1),
    "two ranks": lambda: S([3]).assert_same_rank([3, 4]),
    "unknown dims": lambda: S([None]).assert_is_fully_defined(),
    "a list of no rank": lambda: S(None).as_list(),
    "the length of no rank": lambda: len(S(None)),
    "dims of no rank": lambda: [*S(None)],
    "a tensor of an unknown shape": lambda: tf.convert_to_tensor(S([None, 2])),
}


@pytest.mark.parametrize(("program", "answer"), ANSWERS.values(), ids=ANSWERS)
def test_answers(program, answer, assert_agrees):
    assert_agrees(program(), answer)


@pytest.mark.parametrize("program", REFUSED.values(), ids=REFUSED)
def test_refused_with_a_value_error(session, program):
    with pytest.raises(ValueError):
        program()


def test_a_shape_becomes_an_int32_vector(session, assert_agrees):
    for dims in ([], [1, 2]):
        assert_agrees(session.run(tf.convert_to_tensor(S(dims))), np.array(dims, np.int32))
    assert tf.convert_to_tensor(S([1]), tf.int64).dtype == tf.int64 == tf.convert_to_tensor(S([2**40])).dtype


def test_dims_work_where_integers_do(session):
    x = tf.placeholder(tf.float32, [None, 4])
    width = x.get_shape()[1]
    assert tf.zeros([width, width // 2]).shape == [4, 2] and tf.reshape(x, [-1, width * 2]).shape == [None, 8]
    assert tf.Variable(tf.zeros([width])).shape == [4] and tf.placeholder(tf.float32, x.shape[1:]).shape == [4]
    assert tf.get_variable("w", x.shape[1:]).shape == [4] == tf.get_variable("v", [x.shape[1]]).shape


def test_a_bias_tells_the_channels(session):
    x = tf.placeholder(tf.float32, [None, None])
    y = tf.placeholder(tf.float32, [None, None, None, 4])
    assert tf.nn.bias_add(x, [1.0, 2.0]).shape.as_list() == [None, 2]
    assert tf.nn.bias_add(y, [1.0, 2.0], data_format="NCHW").shape.as_list() == [None, 2, None, 4]


def test_arrays_are_shapes(session):
    assert tf.placeholder(tf.float32, np.array([2, 3])).shape == [2, 3] == tf.get_variable("x", np.array([2, 3])).shape
    assert session.run(tf.constant(1.0, shape=np.array([2, 3]))).shape == (2, 3)


def test_static_shapes_that_are_known(session):
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    assert (
        tf.reduce_sum(x).shape == [] == tf.reduce_mean(x).shape and tf.reduce_sum(x, keepdims=True).shape.ndims is None
    )
    a, b = np.arange(24.0).reshape(2, 3, 4), np.arange(60.0).reshape(4, 3, 5)
    for axes in (1, [[1, 2], [1, 0]], [[-1], [0]], 0):
        got = session.run(tf.tensordot(x, y, axes), {x: a, y: b})
        np.testing.assert_allclose(got, np.tensordot(a, b, axes), rtol=1e-6)


def test_a_tensor_as_text(session):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    assert (
        repr(x) == "<tf.Tensor 'x:0' shape=(?, 3) dtype=float32>"
        and str(x) == 'Tensor("x:0", shape=(?, 3), dtype=float32)'
    )
    assert str(tf.placeholder(tf.int32, name="y")) == 'Tensor("y:0", dtype=int32)'


def test_the_plain_form_of_a_shape():
    assert S([2, None]).as_proto() == TensorShapeProto((2, -1), False) and S(None).as_proto().unknown_rank


#: From, to, and what TensorFlow makes of it: dims of size 0 do not count for -1 where another dim is 0. ``None``: refused.
RESHAPES = [
    ([0, 3, 4], [0, -1], (0, 12)),
    ([0, 3, 4], [-1, 0], (12, 0)),
    ([3, 0, 4], [0, -1], (0, 12)),
    ([0, 3, 4], [0, -1, 6], (0, 2, 6)),
    ([0, 3, 4], [-1, 5], (0, 5)),
    ([0, 3, 4], [-1, 0, 5], (2, 0, 5)),
    ([0], [0, -1], (0, 1)),
    ([0, 0, 5], [-1, 0], (5, 0)),
    ([0, 3, 4], [3, -1], (3, 0)),
    ([0, 3, 4], [3, 0, -1], (3, 0, 4)),
    ([0, 3, 4], [-1], (0,)),
    ([2, 0, 6], [0, 5, -1], (0, 5, 2)),
    ([2, 0], [0, 0, -1], (0, 0, 2)),
    ([0, 1, 7], [0, 0, -1], (0, 0, 7)),
    ([2, 3], [0, -1], None),
    ([0, 3], [-1, -1], None),
]


@pytest.mark.parametrize("policy", ["exact", "generic"])
@pytest.mark.parametrize(("dims", "to", "answer"), RESHAPES)
def test_reshape_of_no_elements(policy, dims, to, answer):
    x, shape = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [None])
    open_dims = tf.placeholder(tf.float32, [None] * len(dims))
    shaped = tf.stack([d if d < 1 else tf.shape(open_dims)[dims.index(d)] if d in dims else d for d in to])
    zeros = np.zeros(dims, np.float32)
    programs = [
        (lambda: tf.reshape(zeros, to), {}),
        (lambda: tf.reshape(x, shape), {x: zeros, shape: to}),
        (lambda: tf.reshape(open_dims, to), {open_dims: zeros}),
        (lambda: tf.reshape(open_dims, shaped), {open_dims: zeros}),
    ]
    with tf.Session(config=tf.SessionConfig(shape_policy=policy)) as sess:
        for program, feeds in programs:
            if answer is None:
                with pytest.raises(tf.errors.InvalidArgumentError):
                    sess.run(program(), feeds)
            else:
                assert sess.run(program(), feeds).shape == answer


def test_an_empty_batch_in_a_plan_for_any_batch():
    x = tf.placeholder(tf.float32, [None, 3, 4])
    rows = tf.reshape(x, [tf.shape(x)[0], -1])
    with tf.Session(config=tf.SessionConfig(shape_policy="generic")) as sess:
        for batch in (2, 0, 1, 0):
            assert sess.run(rows, {x: np.zeros([batch, 3, 4])}).shape == (batch, 12)
