"""Classes of errors that programs of TensorFlow 1 catch."""

from __future__ import annotations

import graphdock as tf
import pytest

errors = tf.errors


def _twice():
    tf.get_variable("a", [2])
    tf.get_variable("a", [2])


def _missing():
    with tf.variable_scope("q", reuse=True):
        tf.get_variable("a", [2])


def _enter(scope):
    with scope:
        pass


def _closed():
    sess = tf.Session()
    sess.close()
    sess.run(tf.constant(1))


def _finalized():
    graph = tf.Graph()
    graph.finalize()
    with graph.as_default():
        tf.constant(1)


def _two_steps():
    tf.train.create_global_step()
    tf.train.create_global_step()


def _of_a_function(kind):
    def fails():
        raise kind("blah")

    return lambda sess: sess.run(tf.py_func(fails, [], tf.float32))


PROGRAMS = {
    "a variable twice": (lambda sess: _twice(), ValueError),
    "a variable that is missing": (lambda sess: _missing(), ValueError),
    "no such tensor": (lambda sess: sess.graph.get_tensor_by_name("nope:0"), KeyError),
    "no such output": (lambda sess: sess.graph.get_tensor_by_name(tf.constant(1).op.name + ":1"), KeyError),
    "no such operation": (lambda sess: sess.graph.get_operation_by_name("nope"), KeyError),
    "no name of a tensor": (lambda sess: sess.graph.get_tensor_by_name("nope"), ValueError),
    "no such attribute": (lambda sess: tf.constant(1).op.get_attr("nope"), ValueError),
    "a number for a name": (lambda sess: sess.graph.get_tensor_by_name(1), TypeError),
    "a number for an operation": (lambda sess: sess.graph.get_operation_by_name(1), TypeError),
    "a number for an element": (lambda sess: sess.graph.as_graph_element(1), TypeError),
    "an operation where a tensor belongs": (
        lambda sess: sess.graph.as_graph_element(tf.no_op(), allow_operation=False),
        TypeError,
    ),
    "a number to fetch": (lambda sess: sess.run(1), TypeError),
    "a number to feed": (lambda sess: sess.run(tf.constant(1), {1: 1}), TypeError),
    "feeds that are no dict": (lambda sess: sess.run(tf.constant(1), 1), TypeError),
    "a tensor as a feed": (
        lambda sess: sess.run(tf.constant(1), {tf.placeholder(tf.int32): tf.constant(1)}),
        TypeError,
    ),
    "a graph that is none": (lambda sess: tf.Session(graph=1), TypeError),
    "a target that is no text": (lambda sess: tf.Session(target=1), TypeError),
    "waiting for a number": (lambda sess: _enter(tf.control_dependencies([1])), TypeError),
    "a group of numbers": (lambda sess: tf.group(1), TypeError),
    "a variable scope without a name": (lambda sess: _enter(tf.variable_scope(None)), TypeError),
    "a variable scope of a number": (lambda sess: _enter(tf.variable_scope(1)), TypeError),
    "reuse that is no flag": (lambda sess: _enter(tf.variable_scope("a", reuse=3)), ValueError),
    "text as an index": (lambda sess: tf.ones([3])["a"], TypeError),
    "a fraction as an index": (lambda sess: tf.ones([3])[1.5], TypeError),
    "a number as a function": (lambda sess: tf.py_func(1, [], tf.float32), ValueError),
    "a conversion of no class": (lambda sess: tf.register_tensor_conversion_function(1, tf.identity), TypeError),
    "a conversion by a number": (lambda sess: tf.register_tensor_conversion_function(int, 1), TypeError),
    "None as a dtype": (lambda sess: tf.as_dtype(None), TypeError),
    "a placeholder of None": (lambda sess: tf.placeholder(None), TypeError),
    "indices into nothing": (
        lambda sess: tf.scatter_nd(tf.zeros([2, 2], tf.int32), tf.zeros([2]), [0, 3]),
        ValueError,
    ),
    "a closed session": (lambda sess: _closed(), RuntimeError),
    "a finalized graph": (lambda sess: _finalized(), RuntimeError),
    "a second global step": (lambda sess: _two_steps(), ValueError),
    "shapes that do not fit": (lambda sess: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])), ValueError),
    "dtypes that do not fit": (lambda sess: tf.constant(1.0) + tf.constant(1), TypeError),
    "no dtype": (lambda sess: tf.as_dtype("nope"), TypeError),
    "nothing to fetch": (lambda sess: sess.run("nope"), ValueError),
    "a step that fails": (
        lambda sess: sess.run(tf.reshape(tf.placeholder_with_default([1.0], [None]), [3])),
        errors.OpError,
    ),
    "a placeholder that is not fed": (lambda sess: sess.run(tf.placeholder(tf.float32)), errors.InvalidArgumentError),
    "no variable yet": (lambda sess: sess.run(tf.Variable(1.0)), errors.FailedPreconditionError),
    "ValueError in a function": (_of_a_function(ValueError), errors.InvalidArgumentError),
    "TypeError in a function": (_of_a_function(TypeError), errors.InvalidArgumentError),
    "StopIteration in a function": (_of_a_function(StopIteration), errors.OutOfRangeError),
    "MemoryError in a function": (_of_a_function(MemoryError), errors.ResourceExhaustedError),
    "NotImplementedError in a function": (_of_a_function(NotImplementedError), errors.UnimplementedError),
    "another error in a function": (_of_a_function(KeyError), errors.UnknownError),
}


@pytest.mark.parametrize(("program", "kind"), PROGRAMS.values(), ids=PROGRAMS)
def test_is_caught_by_its_class(session, program, kind):
    with pytest.raises(kind) as caught:
        program(session)
    assert isinstance(caught.value, errors.OpError)


def test_no_default_session():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="no default session"):
        tf.constant(1).eval()


def test_an_error_of_a_step_carries_its_operation(session):
    bad = tf.reshape(tf.placeholder_with_default([1.0], [None]), [3], name="bad")
    with pytest.raises(errors.InvalidArgumentError) as caught:
        session.run(bad)
    error = caught.value
    assert error.op is bad.op and error.node_def.op == "Reshape" and error.error_code == errors.INVALID_ARGUMENT
    assert "op: bad, made at" in str(error)


def test_an_error_of_a_function_keeps_it_as_its_cause(session):
    with pytest.raises(errors.UnknownError, match="raised KeyError: 'blah'") as caught:
        PROGRAMS["another error in a function"][0](session)
    assert isinstance(caught.value.__cause__, KeyError)


def test_errors_are_made_as_tensorflow_makes_them(session):
    op = tf.constant(1).op
    error = errors.OutOfRangeError(op.node_def, op, "no more")
    assert (error.message, str(error), error.op, error.node_def) == ("no more", "no more", op, op.node_def)
    assert (
        errors.OutOfRangeError(None, None, "msg").op is None and errors.UnknownError(None, None, "m", 2).message == "m"
    )


def test_numbers_of_statuses():
    kinds = {
        errors.CancelledError: 1,
        errors.UnknownError: 2,
        errors.InvalidArgumentError: 3,
        errors.DeadlineExceededError: 4,
        errors.NotFoundError: 5,
        errors.AlreadyExistsError: 6,
        errors.ResourceExhaustedError: 8,
        errors.FailedPreconditionError: 9,
        errors.AbortedError: 10,
        errors.OutOfRangeError: 11,
        errors.UnimplementedError: 12,
        errors.InternalError: 13,
        errors.UnavailableError: 14,
    }
    for kind, number in kinds.items():
        assert kind(None, None, "m").error_code == number
    assert (errors.OK, errors.OUT_OF_RANGE, errors.DATA_LOSS, errors.UNAUTHENTICATED) == (0, 11, 15, 16)
