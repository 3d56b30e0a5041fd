"""TensorArrays: what TensorFlow 2.20's ``tf.compat.v1`` gave for the same programs, in both executors."""

import graphdock as tf
import numpy as np
import pytest
from graphdock import errors

F = tf.float32


def array(size=3, **more):
    return tf.TensorArray(F, size, **more)


def fed(value):
    """A tensor of which nothing but the rank is known before the step."""
    return tf.placeholder_with_default(value, [None] * np.ndim(value))


def again(first, read):
    """A read behind another one."""
    with tf.control_dependencies([first]):
        return read()


ROWS = [[1.0], [2.0], [3.0]]
GIVES = {
    "an element": (lambda: array().write(0, [1.0, 2.0]).read(0), [1, 2]),
    "zeros for what nobody wrote, where the shape is known": (lambda: array().write(0, [1.0, 2.0]).read(1), [0, 0]),
    "zeros in a stack": (lambda: array().write(0, [1.0, 2.0]).stack(), [[1, 2], [0, 0], [0, 0]]),
    "an element twice": (lambda: _read_twice(clear_after_read=False), [1, 2]),
    "a longer array": (lambda: array(0, dynamic_size=True).write(4, 1.0).stack(), [0, 0, 0, 0, 1]),
    "its size": (lambda: array(0, dynamic_size=True).write(4, 1.0).size(), 5),
    "ragged elements, joined": (
        lambda: array(2, infer_shape=False).write(0, [1.0]).write(1, [1.0, 2.0]).concat(),
        [1, 1, 2],
    ),
    "elements, joined": (lambda: array(2).write(0, [[1.0, 2.0]]).write(1, [[3.0, 4.0]]).concat(), [[1, 2], [3, 4]]),
    "what is missing, joined": (lambda: array(2).write(0, [1.0]).concat(), [1, 0]),
    "rows": (lambda: array().unstack(ROWS).stack(), ROWS),
    "fewer rows than there is room": (lambda: array(4).unstack(ROWS).stack(), [*ROWS, [0]]),
    "rows where they belong": (lambda: array().scatter([2, 0, 1], ROWS).stack(), [[2], [3], [1]]),
    "some": (lambda: array().unstack(ROWS).gather([2, 0]), [[3], [1]]),
    "none": (lambda: array().unstack(ROWS).gather(tf.constant([], tf.int32)), np.empty((0, 1))),
    "parts": (lambda: array(infer_shape=False).split([1.0, 2.0, 3.0], [1, 2, 0]).concat(), [1, 2, 3]),
    "a part": (lambda: array(infer_shape=False).split([1.0, 2.0, 3.0], [1, 2, 0]).read(1), [2, 3]),
    "nothing of a known shape": (lambda: array(0, element_shape=[2]).stack(), np.empty((0, 2))),
    "nothing, joined": (lambda: array(0, element_shape=[None, 2]).concat(), np.empty((0, 2))),
    "strings": (lambda: tf.TensorArray(tf.string, 2).write(1, "a").write(0, b"b").stack(), [b"b", b"a"]),
    "the same behind identity": (lambda: array().unstack(ROWS).identity().stack(), ROWS),
    "what its flow is": (lambda: tf.TensorArray(F, flow=array().unstack(ROWS).flow).stack(), ROWS),
}


@pytest.mark.parametrize("name", GIVES)
def test_gives(run, name):
    build, expected = GIVES[name]
    np.testing.assert_array_equal(run(build), expected)


def _read_twice(read=lambda a: a.read(0), **more):
    made = array(1, **more).write(0, [1.0, 2.0])
    return again(read(made), lambda: read(made))


def _write_after_read():
    made = array().write(0, [1.0])
    return again(made.read(0), lambda: made.write(0, [2.0]).read(0))


def _closed():
    made = array().write(0, 1.0)
    return again(made.close(), lambda: made.read(0))


REFUSES = {
    "an element that nobody wrote": (
        lambda: array(infer_shape=False).write(0, [1.0]).read(1),
        "Could not read.*index 1",
    ),
    "an element of no known shape": (lambda: array().read(1), "element shape is not fully defined"),
    "a stack of elements that nobody wrote": (lambda: array(infer_shape=False).write(0, [1.0]).stack(), "index 1"),
    "a second write": (
        lambda: array().write(0, 1.0).write(0, 1.0).stack(),
        "index 0 because it has already been written to",
    ),
    "a second read": (_read_twice, "Could not read index 0 twice because it was cleared"),
    "a second stack": (lambda: _read_twice(lambda a: a.stack()), "Could not read index 0 twice"),
    "a write after a read": (_write_after_read, "index 0 because it has already been read"),
    "a read past the end": (lambda: array().read(7), "read from index 7 but array size is: 3"),
    "a write past the end": (
        lambda: array().write(7, 1.0).read(7),
        "write to index 7 but array is not resizeable and size is: 3",
    ),
    "a write before the beginning": (lambda: array(dynamic_size=True).write(-1, 1.0).read(0), "write to index -1"),
    "too many rows": (lambda: array(2).unstack(ROWS).stack(), "write to index 2"),
    "two rows for one place": (lambda: array().scatter([2, 2, 1], ROWS).stack(), "index 2 because"),
    "fewer indices than rows": (lambda: array().scatter(fed([2, 1]), fed(ROWS)).stack(), "3"),
    "elements of several shapes": (
        lambda: array(2, infer_shape=False).write(0, [1.0]).write(1, [1.0, 2.0]).stack(),
        r"Index 0 has shape: \[1\] but index 1 has shape: \[2\]",
    ),
    "an element of another shape": (
        lambda: array(2).write(0, fed([1.0])).write(1, fed([1.0, 2.0])).stack(),
        r"index 1 .*\[2\].*\[1\]",
    ),
    "an element of another shape than was said": (
        lambda: array(2, element_shape=[2], infer_shape=False).write(0, fed([1.0])).stack(),
        r"\[1\] which is incompatible with the TensorArray's element shape: \[2\]",
    ),
    "scalars, joined": (lambda: array(2).unstack([1.0, 2.0]).concat(), "Concat saw a scalar shape at index 0"),
    "ragged rows, joined": (
        lambda: array(2, infer_shape=False).write(0, [[1.0]]).write(1, [[1.0, 2.0]]).concat(),
        r"excepting dimension 0\) shape: \[1\] but index 1",
    ),
    "lengths that are not the whole": (
        lambda: array(infer_shape=False).split([1.0, 2.0], [1, 0, 0]).concat(),
        "sum of lengths is 1",
    ),
    "as many parts as there is no room for": (
        lambda: array(2, infer_shape=False).split([1.0, 2.0, 3.0], [1, 1, 1]).concat(),
        r"size of lengths \(2 vs. 3\)",
    ),
    "parts of a scalar": (lambda: array(1, infer_shape=False).split(1.0, [1]).concat(), "at least a vector"),
    "what is closed": (_closed, "closed"),
    "a negative size": (lambda: array(-3).size(), "-3"),
    "a name in the message": (lambda: array(tensor_array_name="foo").read(7), "TensorArray foo"),
}


@pytest.mark.parametrize("name", REFUSES)
def test_refuses(run, name):
    build, message = REFUSES[name]
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run(build)


def test_nothing_of_no_known_shape_can_not_be_stacked(run):
    for read in (tf.TensorArray.stack, tf.TensorArray.concat):
        with pytest.raises(errors.UnimplementedError, match="size zero"):
            run(lambda read=read: read(array(0)))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: array(2).write(0, [1.0]).write(1, [1.0, 2.0]), r"saw \(2,\) but expected \(1,\)"),
        (lambda: array(2, element_shape=[2]).write(0, [1.0]), r"saw \(1,\) but expected \(2,\)"),
        (lambda: array(2).write(0, tf.constant(1)), "another dtype"),
        (lambda: tf.TensorArray(F), "size"),
        (lambda: tf.TensorArray(F, 2, flow=array().flow), "size"),
        (lambda: tf.TensorArray(F, flow=array().flow, dynamic_size=True), "dynamic_size"),
        (lambda: array().grad("x"), "tf.gradients"),
    ],
)
def test_is_refused_while_the_graph_is_made(build, message):
    with tf.Graph().as_default(), pytest.raises((errors.GraphdockError, TypeError), match=message):
        build()


def test_static_shapes():
    with tf.Graph().as_default():
        made = array().write(0, [1.0, 2.0])
        assert made.read(1).shape.as_list() == [2]
        assert made.stack().shape.as_list() == [3, 2]
        assert made.gather([0, 1]).shape.as_list() == [2, 2]
        assert made.concat().shape.as_list() == [None]
        assert array(0, dynamic_size=True).write(0, [1.0]).stack().shape.as_list() == [None, 1]
        assert made.element_shape.as_list() == [2] and made.dtype == F and not made.dynamic_size


# -- in loops and branches


def _fibonacci(count):
    made = tf.TensorArray(tf.int32, count, clear_after_read=False).write(0, 1).write(1, 1)
    return tf.while_loop(
        lambda i, a: i < count, lambda i, a: (i + 1, a.write(i, a.read(i - 1) + a.read(i - 2))), [2, made]
    )[1]


def test_a_loop_reads_what_it_has_written(run):
    assert run(lambda: _fibonacci(10).stack()).tolist() == [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


def test_a_loop_makes_an_array_as_long_as_it_runs(run):
    def build():
        count = tf.placeholder_with_default(5, [])
        body = lambda i, a: (i + 1, a.write(i, tf.fill([i], i)))  # noqa: E731
        made = tf.TensorArray(tf.int32, 0, dynamic_size=True, infer_shape=False)
        return tf.while_loop(lambda i, a: i < count, body, [0, made])[1].concat()

    assert run(build).tolist() == [1, 2, 2, 3, 3, 3, 4, 4, 4, 4]


@pytest.mark.parametrize("taken", [True, False])
def test_branches_write_each_their_own(run, taken):
    def build():
        before = array(2, clear_after_read=False).write(0, 1.0)
        after = tf.cond(
            tf.placeholder_with_default(taken, []), lambda: before.write(1, 3.0), lambda: before.write(1, 4.0)
        )
        return [after.stack(), before.write(1, 9.0).stack()]

    after, other = run(build)
    assert after.tolist() == [1, 3 if taken else 4] and other.tolist() == [1, 9]


def test_a_loop_takes_arrays_of_one_origin_only():
    with tf.Graph().as_default(), pytest.raises(errors.InvalidArgumentError, match="body"):
        tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, array()), [0, array()])


# -- gradients, beside differences of the function itself


def _later(x, w):
    made = tf.TensorArray(tf.float64, 4)
    _, made = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a.write(i, x[i] * x[3 - i])), [0, made])
    return tf.reduce_sum(made.stack() * w)


def _earlier(x, w):
    rows = tf.TensorArray(tf.float64, 4, clear_after_read=False).unstack(x)

    def body(i, total, out):
        v = rows.read(i) * rows.read(3 - i)
        return i + 1, total * 0.5 + v, out.write(i, total * v)

    start = [0, tf.zeros([2], tf.float64), tf.TensorArray(tf.float64, 4)]
    _, total, out = tf.while_loop(lambda i, *_: i < 4, body, start)
    return tf.reduce_sum(out.stack() * w) + tf.reduce_sum(total)


def _recurrence(x, w):
    made = tf.TensorArray(tf.float64, 6, clear_after_read=False, element_shape=[2]).write(0, x[0]).write(1, x[1])

    def body(i, a):
        return i + 1, a.write(i, a.read(i - 1) * a.read(i - 2) + tf.gather(x, tf.minimum(i, 3)))

    _, made = tf.while_loop(lambda i, a: i < 6, body, [2, made])
    return tf.reduce_sum(made.read(5)) + tf.reduce_sum(made.gather([2, 2, 4]))


def _nested(x, w):
    made = tf.TensorArray(tf.float64, 0, dynamic_size=True, clear_after_read=False)

    def outer(i, a):
        _, a = tf.while_loop(lambda j, a: j < 2, lambda j, a: (j + 1, a.write(i * 2 + j, x[i] * x[j])), [0, a])
        return i + 1, a

    return tf.reduce_sum(tf.sin(tf.while_loop(lambda i, a: i < 4, outer, [0, made])[1].stack()))


def _branches(x, w):
    def body(i, a):
        even = tf.equal(i % 2, 0)
        return i + 1, tf.cond(even, lambda: a.write(i, x[i] * x[i]), lambda: a.write(i, tf.sin(x[i])))

    made = tf.TensorArray(tf.float64, 4)
    return tf.reduce_sum(tf.while_loop(lambda i, a: i < 4, body, [0, made])[1].stack() * w)


def _parts(x, w):
    parts = tf.TensorArray(tf.float64, 3, infer_shape=False).split(tf.reshape(x, [-1]), [3, 1, 4])
    made = tf.TensorArray(tf.float64, 3, infer_shape=False)
    _, made = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, tf.square(parts.read(i)))), [0, made])
    return tf.reduce_sum(tf.reshape(made.concat(), [4, 2]) * w)


def _no_iteration(x, w):
    made = tf.TensorArray(tf.float64, 1).write(0, x)
    never = tf.placeholder_with_default(0, [])
    _, made = tf.while_loop(lambda i, a: i < never, lambda i, a: (i + 1, a.write(i, x)), [0, made])
    return tf.reduce_sum(made.stack() * w)


def _second(first):
    def function(x, w):
        return tf.reduce_sum(tf.gradients(first(x, w), x)[0] * w)

    return function


SMOOTH = [
    _later,
    _earlier,
    _recurrence,
    _nested,
    _branches,
    _parts,
    _no_iteration,
    _second(_later),
    _second(_recurrence),
]


@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
@pytest.mark.parametrize("function", SMOOTH, ids=lambda f: f.__qualname__)
def test_gradients(function, executor):
    drawn = np.random.default_rng(5)
    at, weight = drawn.random((4, 2)), drawn.random((4, 2))
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(executor=executor)) as session:
        x = tf.placeholder(tf.float64, [4, 2])
        y = function(x, weight)
        found = session.run(tf.gradients(y, x)[0], {x: at})
        differences = np.empty_like(at)
        for place in np.ndindex(at.shape):
            step = np.zeros_like(at)
            step[place] = 1e-6
            differences[place] = (session.run(y, {x: at + step}) - session.run(y, {x: at - step})) / 2e-6
    np.testing.assert_allclose(found, differences, rtol=1e-6, atol=1e-7)


def test_a_list_of_whole_numbers_has_no_gradient(run):
    def build():
        x = tf.constant([1.0, 2.0])
        indices = tf.TensorArray(tf.int32, 2).unstack([1, 0])
        total = tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s + x[indices.read(i)] * x[i]), [0, 0.0])[1]
        return tf.gradients(total, x)[0]

    assert run(build).tolist() == [4, 2]
