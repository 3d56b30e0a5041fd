"""Bad input: each is an error of graphdock.errors that names the thing, what was expected and got, and the user's own line.

Whatever was refused, the session and its variables go on as if it had not been asked.
"""

from __future__ import annotations

import inspect
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock import errors

HERE = __file__.rpartition("/")[2]


def line() -> int:
    """The caller's line."""
    return inspect.currentframe().f_back.f_lineno


class World:
    """A graph with a variable that holds [1, 1, 1], and a session; ``check`` proves that both still work."""

    def __init__(self, **fields):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.x, self.x_line = tf.placeholder(tf.float32, [2, 3], name="x"), line()
            self.n, self.n_line = tf.placeholder(tf.int32, [], name="n"), line()
            self.rows = tf.placeholder(tf.float32, [None, 3], name="rows")
            self.flag = tf.placeholder(tf.bool, [], name="flag")
            self.text = tf.placeholder(tf.string, [], name="text")
            self.y = tf.multiply(self.x, 2.0, name="y")
            self.v = tf.Variable(tf.ones([3]), name="v")
            self.update, self.update_line = self.v.assign_add(tf.ones([3])), line()
            self.session = tf.Session(graph=self.graph, config=tf.SessionConfig(**fields))
        self.run = self.session.run
        self.updates = 0

    def check(self):
        if not self.updates:
            self.run(self.v.initializer)
        self.updates += 1
        before, _ = self.run([self.v, self.y], {self.x: np.ones((2, 3))})
        np.testing.assert_array_equal(before, np.full(3, self.updates))
        self.run(self.update)
        np.testing.assert_array_equal(self.run(self.v), np.full(3, self.updates + 1))


@pytest.fixture(params=[False, True], ids=["plain", "debug"])
def world(request):
    made = World(debug=request.param)
    with made.graph.as_default():
        made.check()
        yield made
        made.check()
        assert not made.session._closed


def assert_refused(kind, *parts, at=None):
    """Expects exactly this class of error, these parts of the message, and the line of this file."""

    class Expect:
        def __enter__(self):
            return self

        def __exit__(self, got, error, trace):
            assert got is kind, f"expected {kind.__name__}, got {got and got.__name__}: {error}"
            assert issubclass(got, errors.GraphdockError)
            message = str(error)
            for part in parts:
                assert part in message, message
            if at is not None:
                assert f"{HERE}:{at}" in message, message
            self.error = error
            return True

    return Expect()


# -- while the graph is built


def test_a_wrong_dtype(world):
    with assert_refused(errors.DTypeError, "Add", "'y' (n:0) is int32", "'x' is float32", "tf.cast", at=line() + 1):
        world.x + world.n
    with assert_refused(errors.DTypeError, "MatMul", "float64", "expected float32", at=line() + 1):
        tf.matmul(world.x, tf.zeros([3, 1], tf.float64))
    with assert_refused(errors.DTypeError, "no dtype named 'floot32'", "did you mean 'float32'"):
        tf.placeholder("floot32")
    wrong, made = tf.ones([3], tf.int32), line()
    with assert_refused(errors.DTypeError, "Variable v:0", "expected float32, got int32", at=made):
        world.v.assign(wrong)
    with assert_refused(errors.DTypeError, "pred must be a bool", "int32", at=world.n_line):
        tf.cond(world.n, lambda: world.x, lambda: world.x)
    with assert_refused(errors.DTypeError, "loop variable 0", "enters as int32", "float32", at=line() + 1):
        tf.while_loop(lambda i: i < 3, lambda i: tf.cast(i, tf.float32), [tf.constant(0)])


def test_a_wrong_shape(world):
    with assert_refused(errors.ShapeError, "Add", "[2,3] and [4]", at=line() + 1):
        world.x + tf.ones([4])
    with assert_refused(errors.ShapeError, "MatMul", "inner sizes differ: 3 (from a) and 2 (from b)", at=line() + 1):
        tf.matmul(world.x, world.x)
    with assert_refused(errors.ShapeError, "cannot reshape [2,3] (6 elements) to [4]", at=line() + 1):
        tf.reshape(world.x, [4])
    with assert_refused(errors.ShapeError, "[-3]", "negative"):
        tf.placeholder(tf.float32, [-3])
    wrong, made = tf.ones([4]), line()
    with assert_refused(errors.ShapeError, "Variable v:0", "expected [3], got [4]", at=made):
        world.v.assign(wrong)
    with assert_refused(errors.ShapeError, "loop variable 0", "[1]", "[2]", "shape_invariants", at=line() + 1):
        tf.while_loop(lambda a: tf.size(a) < 5, lambda a: tf.concat([a, a], 0), [tf.zeros([1])])


def test_a_wrong_rank(world):
    with assert_refused(errors.ShapeError, "MatMul", "b must be of rank at least 2", "[3]", at=line() + 1):
        tf.matmul(world.x, tf.ones([3]))
    with assert_refused(errors.ShapeError, "different ranks", at=line() + 1):
        tf.concat([world.x, tf.ones([2, 3, 1])], 0)
    with assert_refused(errors.ShapeError, "pred must be a scalar"):
        tf.cond(tf.constant([True]), lambda: world.x, lambda: world.x)


def test_operands_of_another_graph_or_body(world):
    with tf.Graph().as_default():
        foreign, made = tf.constant(1.0, name="foreign"), line()
    with assert_refused(errors.InvalidArgumentError, "foreign:0", "another graph", at=made):
        world.y + foreign
    kept = []
    tf.cond(world.flag, lambda: kept.append(world.x * 3.0) or kept[0], lambda: world.x)
    with assert_refused(errors.InvalidArgumentError, "cond/then/mul:0"):
        kept[0] + 1.0


# -- feeds


@pytest.mark.parametrize(
    ("value", "kind", "parts"),
    [
        (np.ones((3, 2), np.float32), errors.ShapeError, ["expected [2,3]", "got [3,2]"]),
        (np.ones((3, 2)), errors.ShapeError, ["expected [2,3]", "got [3,2]"]),
        (np.ones(3), errors.ShapeError, ["expected [2,3]", "got [3]"]),
        (1.0, errors.ShapeError, ["expected [2,3]", "got []"]),
        (np.ones((2, 3)) * 1j, errors.DTypeError, ["expected float32", "got complex128"]),
        ("abc", errors.DTypeError, ["expected float32", "got text"]),
        (object(), errors.DTypeError, ["expected float32", "got object"]),
        (None, errors.DTypeError, ["expected float32"]),
        ([[1, 2], [3]], errors.InvalidArgumentError, ["not an array"]),
    ],
)
def test_a_feed_of_the_wrong_dtype_shape_or_rank(world, value, kind, parts):
    for _ in range(2):
        with assert_refused(kind, "x:0", *parts, at=world.x_line):
            world.run([world.update, world.y], {world.x: value})
    with assert_refused(kind, "x:0", *parts, at=world.x_line):
        world.session.make_callable([world.update, world.y], [world.x])(value)


def test_a_feed_that_does_not_fit_its_integer(world):
    for value in (1.5, np.float64(1.5)):
        with assert_refused(errors.DTypeError, "n:0", "expected int32, got float64", at=world.n_line):
            world.run([world.update, world.n], {world.n: value})
    for value in (2**40, np.int64(2**31)):
        with assert_refused(errors.OutOfRangeError, "n:0", "int32", str(int(value)), at=world.n_line):
            world.run([world.update, world.n], {world.n: value})
    with assert_refused(errors.DTypeError, "flag:0", "expected bool"):
        world.run(world.flag, {world.flag: 2})
    with assert_refused(errors.DTypeError, "expected string"):
        world.run(world.text, {world.text: 1})
    with assert_refused(errors.ShapeError, "rows:0", "expected [?,3], got [2,4]"):
        world.run(world.rows * 1.0, {world.rows: np.ones((2, 4))})


def test_a_feed_of_nothing_that_can_be_fed(world):
    whole = np.ones((2, 3))
    with assert_refused(errors.NotFoundError, "'nope:0'", "no operation 'nope'", at=line() + 1):
        world.run(world.y, {"nope:0": 1})
    with assert_refused(errors.ArgumentTypeError, "cannot feed 3", "int", at=line() + 1):
        world.run(world.y, {3: 1})
    with assert_refused(errors.ArgumentTypeError, "cannot feed", "Operation", at=line() + 1):
        world.run(world.y, {world.x.op: whole})
    with assert_refused(errors.InvalidArgumentError, "twice", "x:0", at=line() + 1):
        world.run(world.y, {world.x: whole, "x:0": whole})
    with assert_refused(errors.ArgumentTypeError, "feed_dict must be a dict", "[1]", at=line() + 1):
        world.run(world.y, [1])
    with assert_refused(errors.InvalidArgumentError, "v:0", "resource handle"):
        world.run(world.y, {world.v.handle: 1})
    with assert_refused(errors.ArgumentTypeError, "x:0", "y:0", "expected a number", at=world.x_line):
        world.run(world.y, {world.x: world.y})


def test_a_missing_feed(world):
    for fetches in (world.y, [world.update, world.y], "y:0", world.y.op):
        with assert_refused(
            errors.InvalidArgumentError, "placeholder 'x'", "float32", "[2,3]", "feed_dict", at=world.x_line
        ):
            world.run(fetches)
    with assert_refused(errors.InvalidArgumentError, "placeholder 'x'", at=world.x_line):
        world.run(world.y, {world.n: 1})


# -- fetches


def test_an_unknown_fetch(world):
    with assert_refused(errors.NotFoundError, "'w:0'", "no operation 'w'", at=line() + 1):
        world.run("w:0")
    with assert_refused(errors.NotFoundError, "'Y'", "did you mean 'y'?", at=line() + 1):
        world.run(["y:0", "Y"])
    with assert_refused(errors.NotFoundError, "'x:1'", "1 outputs", at=line() + 1):
        world.run("x:1")
    for thing in (3, np.ones(2), {world.y}, object()):
        with assert_refused(errors.ArgumentTypeError, "cannot fetch", type(thing).__name__, at=line() + 1):
            world.run(thing)
    for nothing in (None, [world.y, None], {"a": None}):
        with assert_refused(errors.ArgumentTypeError, "None cannot be fetched", at=line() + 1):
            world.run(nothing)
    with assert_refused(errors.InvalidArgumentError, "v:0", "resource handle", "fetch the variable itself"):
        world.run(world.v.handle)
    assert world.run([]) == []


def test_a_fetch_from_another_graph_or_a_body(world):
    with tf.Graph().as_default():
        foreign, made = tf.constant(1.0, name="foreign"), line()
    with assert_refused(errors.InvalidArgumentError, "foreign:0", "another graph", at=made):
        world.run([world.update, foreign])
    with assert_refused(errors.InvalidArgumentError, "cannot feed", "foreign:0", "another graph", at=made):
        world.run(world.update, {foreign: 1.0})
    kept, made = [], line() + 1
    tf.while_loop(lambda i: i < 3, lambda i: kept.append(i * 2) or i + 1, [tf.constant(0)])
    with assert_refused(errors.InvalidArgumentError, "while/body/mul:0", "inside the body", at=made):
        world.run([world.update, kept[0]])


# -- the session


def test_a_closed_session():
    world = World()
    closed = tf.Session(graph=world.graph)
    assert closed.run(world.y, {world.x: np.zeros((2, 3))}).shape == (2, 3)
    call = closed.make_callable(world.y, [world.x])
    closed.close()
    closed.close()
    with assert_refused(errors.FailedPreconditionError, "the session is closed", at=line() + 1):
        closed.run(world.y, {world.x: np.zeros((2, 3))})
    for use in (closed.__enter__, lambda: closed.make_callable(world.y), lambda: closed.plan(world.y)):
        with assert_refused(errors.FailedPreconditionError, "the session is closed"):
            use()
    with assert_refused(errors.FailedPreconditionError, "the session is closed"):
        call(np.zeros((2, 3)))
    world.check()


def test_an_uninitialised_variable(world):
    with world.graph.as_default():
        other = tf.Variable(tf.zeros([2]), name="other")
        reads, made = other.read_value(), line()
        chosen = tf.cond(world.flag, lambda: other + 1.0, lambda: tf.zeros([2]))
    for fetches in (reads, [world.update, reads], [reads, world.v]):
        with assert_refused(errors.UninitializedError, "variable 'other'", "global_variables_initializer", at=made):
            world.run(fetches)
    with assert_refused(errors.UninitializedError, "variable 'other'", HERE):
        world.run(other.assign_add([1.0, 1.0]))
    assert world.run(chosen, {world.flag: False}).tolist() == [0, 0]
    with assert_refused(errors.UninitializedError, "variable 'other'", HERE):
        world.run(chosen, {world.flag: True})
    world.run(other.initializer)
    assert world.run(chosen, {world.flag: True}).tolist() == [1, 1]


def test_a_cyclic_graph(world):
    first, made = tf.identity(world.y, name="first"), line()
    last = tf.identity(first, name="last")
    first.op._add_control_input(last.op)
    for _ in range(2):
        with assert_refused(errors.InvalidArgumentError, "cycle", "first", "last", at=made):
            world.run([world.update, last], {world.x: np.ones((2, 3))})


def test_an_unknown_backend():
    for name, hint in (("cpuu", "did you mean 'cpu'?"), ("nosuch", "pip install graphdock-nosuch")):
        with assert_refused(errors.UnknownBackendError, repr(name), hint):
            tf.Session(config=tf.SessionConfig(backends=(name,)))


def test_an_unknown_configuration_key():
    with assert_refused(errors.ConfigError, "'backend'", "did you mean 'backends'?"):
        tf.SessionConfig(backend="cpu")
    with assert_refused(errors.ConfigError, "'allow_soft_placement'", "fallback='allow'"):
        tf.SessionConfig(allow_soft_placement=True)
    with assert_refused(errors.ConfigError, "'fld'", "did you mean 'fold'?"):
        tf.Session(config=tf.SessionConfig(passes={"fld": False}))
    with assert_refused(errors.ConfigError, "debug", "expected true or false", "'maybe'"):
        tf.SessionConfig(debug="maybe")


def test_an_unknown_environment_name(monkeypatch):
    monkeypatch.setenv("GRAPHDOCK_BACKEDNS", "cpu")
    with assert_refused(errors.ConfigError, "GRAPHDOCK_BACKEDNS", "did you mean 'GRAPHDOCK_BACKENDS'?"):
        tf.Session()
    monkeypatch.delenv("GRAPHDOCK_BACKEDNS")
    tf.Session().close()


def test_a_device_that_is_not_there(world):
    with tf.device("/tpu:0"):
        away, made = tf.identity(world.y, name="away"), line()
    with assert_refused(errors.InvalidArgumentError, "away", "tpu:0", "cpu:0", at=made):
        world.run([world.update, away], {world.x: np.ones((2, 3))})


# -- kernels that raise


def test_a_kernel_that_raises_while_the_step_runs(world):
    indices = tf.placeholder(tf.int32, [None], name="indices")
    picked, made = tf.gather(tf.constant([1.0, 2.0]), indices), line()
    with tf.control_dependencies([picked]):
        after = world.v.assign_add(tf.ones([3]))
    for _ in range(3):
        with assert_refused(errors.InvalidArgumentError, "5", "out of bounds", "size 2", at=made):
            world.run([picked, after], {indices: [0, 5]})
    assert world.run(picked, {indices: [1, 0]}).tolist() == [2.0, 1.0]


def test_a_python_function_that_raises(world):
    def broken(_):
        raise RuntimeError("no luck")

    result, made = tf.py_func(broken, [world.x], tf.float32), line()
    with pytest.raises(errors.GraphdockError, match="no luck") as caught:
        world.run(result, {world.x: np.ones((2, 3))})
    assert f"{HERE}:{made}" in str(caught.value)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_locks_are_free_after_a_step_that_raised(world):
    """A step that held the variable exclusively and raised midway; others run from another thread."""
    indices = tf.placeholder(tf.int32, [], name="one_index")
    with tf.control_dependencies([world.v.assign_add(tf.zeros([3]))]):
        bad = tf.gather(world.v.read_value(), indices)
    with tf.control_dependencies([bad]):
        late = world.v.assign_add(tf.zeros([3]))
    for _ in range(20):  # more than the instances that a plan keeps idle
        with pytest.raises(errors.InvalidArgumentError):
            world.run(late, {indices: 7})
    done = []
    thread = threading.Thread(target=lambda: done.append(world.run(late, {indices: 1})), daemon=True)
    thread.start()
    thread.join(60)
    assert len(done) == 1


@pytest.mark.parametrize("setting", [{"device_count": {"cpuu": 2}}, {"kernels": {"MatMul@cpuu": "cpu.mat_mul"}}])
def test_a_misspelt_device_type_in_the_configuration(setting):
    with pytest.raises(tf.errors.ConfigError, match="'cpuu'") as caught:
        tf.Session(config=tf.SessionConfig(**setting))
    assert caught.value.hint == "did you mean 'cpu'?"


def test_a_device_type_of_another_machine_is_left_alone():
    config = tf.SessionConfig(device_count={"tpu9": 2}, kernels={"MatMul@tpu9": "tpu9.matmul"})
    with tf.Session(config=config) as sess:
        assert sess.list_devices() == ["/job:localhost/task:0/device:cpu:0"]
