"""A kernel that is a Python function: it is given read-only arrays, and what it returns is held to the op's declaration."""

from __future__ import annotations

from typing import TypeVar

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.plugin.host import Host
from graphdock_testing import fake
from numpy.typing import NDArray

F = TypeVar("F", np.float32, np.float64)
SAME = {"x": "[*S]", "y": "[*S]"}


@pytest.fixture(autouse=True)
def host(process_host):
    host = process_host(Host())
    with tf.Graph().as_default():
        yield host


def op_of(body, shapes=SAME):
    @tf.custom_op("lab::op", shapes=shapes)
    def op(x: NDArray[F]) -> NDArray[F]:
        return body(x)

    return op


def one(body, shapes=SAME, shape=(2,)):
    """The result for a fed vector [1, 2], with that static shape."""
    x = tf.placeholder(tf.float32, shape)
    with tf.Session() as sess:
        return sess.run(op_of(body, shapes)(x) + 0.0, {x: np.array([1, 2], np.float32)})


WRONG = {
    "None": (lambda x: None, InvalidArgumentError, "returned no array for its output 'y'"),
    "two results": (lambda x: (x, x), InvalidArgumentError, "returned no array for its output 'y'"),
    "another dtype": (lambda x: x.astype(np.float64), DTypeError, "returned the wrong dtype for its output 'y'"),
    "text": (lambda x: "abc", DTypeError, "returned the wrong dtype"),
    "another shape": (lambda x: np.zeros(3, np.float32), ShapeError, "returned the wrong shape for its output 'y'"),
    "another rank": (lambda x: np.float32(1), ShapeError, "returned the wrong shape"),
}


@pytest.mark.parametrize("shape", [(2,), (None,), None], ids=["known", "unknown dim", "unknown rank"])
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_result_is_named(case, shape):
    body, kind, message = WRONG[case]
    with pytest.raises(kind) as caught:
        one(body, SAME, shape)
    text = str(caught.value)
    assert (
        message in text
        and "op, a kernel of lab.Op," in text
        and "made at" in text
        and __file__.rpartition("/")[2] in text
    )


def test_a_write_to_an_input_is_named_and_changes_nothing():
    def body(x):
        x += 1
        return x

    v = tf.Variable(np.array([1, 2], np.float32))
    y = op_of(body)(v)
    with tf.Session() as sess:
        sess.run(v.initializer)
        with pytest.raises(InvalidArgumentError, match="read-only") as caught:
            sess.run(y)
        assert "copy it before writing" in caught.value.hint
        assert sess.run(v).tolist() == [1, 2]


def test_what_the_body_raises_is_the_cause():
    def body(x):
        raise ZeroDivisionError("by zero")

    with pytest.raises(InvalidArgumentError, match="raised ZeroDivisionError: by zero") as caught:
        one(body)
    assert isinstance(caught.value.__cause__, ZeroDivisionError) and caught.value.op.name == "Op"


@pytest.mark.parametrize("shapes", [SAME, {"x": "[*S]", "y": "?"}], ids=["planned", "fresh"])
def test_what_the_body_keeps_is_not_changed_by_the_step(shapes):
    kept = np.array([5, 6], np.float32)
    y = op_of(lambda x: kept, shapes)(tf.placeholder(tf.float32, [2], name="x"))
    z = y + y * 2.0
    with tf.Session() as sess:
        for _ in range(3):
            fetched, total = sess.run([y, z], {"x:0": [1, 2]})
            fetched[:] = 0
            assert total.tolist() == [15, 18]
    assert kept.tolist() == [5, 6]


@pytest.mark.parametrize("shapes", [SAME, {"x": "[*S]", "y": "?"}], ids=["planned", "fresh"])
def test_an_input_may_be_returned(shapes):
    x = tf.placeholder(tf.float32, [2])
    fed = np.array([1, 2], np.float32)
    with tf.Session() as sess:
        got = sess.run(op_of(lambda x: x, shapes)(x), {x: fed})
        got[:] = 9
    assert fed.tolist() == [1, 2]


@pytest.mark.parametrize("shapes", [SAME, {"x": "[*S]", "y": "?"}], ids=["planned", "fresh"])
def test_an_input_that_is_returned_is_a_value_of_its_own(shapes):
    """A variable that is written later in the step does not change what was returned of it before."""
    v = tf.Variable(np.array([1, 2], np.float32))
    y = op_of(lambda x: x, shapes)(v.value())
    with tf.control_dependencies([y]):
        update = v.assign([7, 8], read_value=False)
    with tf.control_dependencies([update]):
        z = y + 0.0
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(z).tolist() == [1, 2]


def test_scalars_and_strided_arrays_are_taken():
    x = tf.placeholder(tf.float32, [2, 3])
    op = op_of(lambda x: x * np.float32(1))
    with tf.Session() as sess:
        value = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(sess.run(op(tf.transpose(x)), {x: value}), value.T)
        assert sess.run(op(tf.constant(2.0))) == 2.0


def test_a_view_of_an_input_may_be_returned():
    assert one(lambda x: x[::-1]).tolist() == [2, 1]


def test_strings_go_through():
    @tf.custom_op("lab::upper", shapes=SAME)
    def upper(x: NDArray[np.object_]) -> NDArray[np.object_]:
        return np.array([s.upper() for s in x], object)

    with tf.Session() as sess:
        assert sess.run(upper(["ab", "c"])).tolist() == [b"AB", b"C"]


def test_an_op_without_outputs_returns_none():
    @tf.custom_op("lab::effect", effects=("io",))
    def effect(x: NDArray[F]) -> None:
        return x  # type: ignore[return-value]

    with tf.Session() as sess, pytest.raises(InvalidArgumentError, match="has no outputs, but it returned ndarray"):
        sess.run(effect([1.0]))


def test_the_number_of_results_is_the_number_of_outputs():
    @tf.custom_op("lab::two", shapes={"x": "[*S]", "y0": "[*S]", "y1": "[*S]"})
    def two(x: NDArray[F]) -> tuple[NDArray[F], NDArray[F]]:
        return (x,) if x[0] else x  # type: ignore[return-value]

    x = tf.placeholder(tf.float32, [1])
    with tf.Session() as sess:
        for value, got in ((1, "1"), (0, "ndarray")):
            with pytest.raises(InvalidArgumentError, match="returned the wrong number of arrays") as caught:
                sess.run(two(x), {x: [value]})
            assert (caught.value.expected, caught.value.got) == ("2 (y0, y1)", got)


def test_a_device_with_its_own_memory_needs_a_kernel_of_its_own(host):
    fake.install(host)
    op = op_of(lambda x: x)

    @op.register_kernel("fake")
    def on_fake(x):
        return x

    x = tf.placeholder(tf.float32, [1])
    with tf.device("fake"):
        y = op(x)
    with (
        tf.Session(config=tf.SessionConfig(backends=("fake", "cpu"))) as sess,
        pytest.raises(InvalidArgumentError) as caught,
    ):
        sess.run(y, {x: [1.0]})
    assert "takes NumPy arrays" in str(caught.value) and "build=True" in str(caught.value)
