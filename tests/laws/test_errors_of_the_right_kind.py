"""What a user does wrong is a user's error, whenever it is found: never InternalError, never an exception of NumPy's own.

Each program runs with shapes that are known when the graph is made, with shapes that only the feeds tell, and with a plan for any
shape, where the kernel itself is the first to stumble.
"""

from __future__ import annotations

import inspect

import graphdock as tf
import numpy as np
import pytest
from graphdock import errors
from graphdock.plugin.host import Host
from graphdock_testing import fake, queued

HERE = __file__.rpartition("/")[2]
F, I, B = tf.float32, tf.int32, tf.bool
TWO = np.ones((2, 3))

#: Name -> (what it does with its placeholders, their dtypes, what is fed).
WRONG = {
    "broadcast": (lambda a, b: a + b, [F, F], [TWO, np.ones(4)]),
    "matrices": (lambda a, b: tf.matmul(a, b), [F, F], [TWO, np.ones((4, 2))]),
    "a vector as a matrix": (lambda a, b: tf.matmul(a, b), [F, F], [np.ones(3), np.ones((3, 2))]),
    "the largest of nothing": (lambda a: tf.argmax(a, 0), [F], [np.ones((0, 3))]),
    "the largest of a scalar": (lambda a: tf.argmax(a, 0), [F], [np.ones(())]),
    "an axis of a sum": (lambda a: tf.reduce_sum(a, 3), [F], [TWO]),
    "a negative axis": (lambda a: tf.reduce_max(a, -4), [F], [TWO]),
    "softmax of a scalar": (lambda a: tf.nn.softmax(a), [F], [np.ones(())]),
    "cumsum's axis": (lambda a: tf.cumsum(a, 1), [F], [np.ones(3)]),
    "a predicate": (lambda p: tf.cond(p, lambda: tf.constant(1.0), lambda: tf.constant(2.0)), [B], [[True, False]]),
    "a predicate of one element": (lambda p: tf.cond(p, lambda: tf.constant(1.0), lambda: tf.constant(2.0)), [B], [[True]]),
    "a loop's condition": (lambda p: tf.while_loop(lambda i: tf.logical_and(p, i < 3), lambda i: i + 1, [0]), [B], [[True, False]]),
    "an update": (lambda a: tf.assign_add(tf.get_variable("v", [2]), a), [F], [np.ones(3)]),
    "an assignment": (lambda a: tf.assign(tf.get_variable("v", [2]), a), [F], [np.ones(3)]),
    "an update that NumPy would stretch": (lambda a: tf.assign_sub(tf.get_variable("v", [2, 3]), a), [F], [np.ones(3)]),
    "a range": (lambda a: tf.range(0, 5, a), [I], [0]),
    "rows": (lambda a, b: tf.concat([a, b], 1), [F, F], [TWO, np.ones((3, 3))]),
    "gathered": (lambda a, b: tf.gather(a, b), [F, I], [np.ones(3), [7]]),
}  # fmt: skip


def _run(name, static, policy):
    build, kinds, fed = WRONG[name]
    with tf.Graph().as_default():
        shapes = {
            "known": [np.shape(v) for v in fed],
            "rank": [[None] * np.ndim(v) for v in fed],
            "nothing": [None] * len(fed),
        }
        inputs = [tf.placeholder(t, shape) for t, shape in zip(kinds, shapes[static], strict=True)]
        made = build(*inputs)
        with tf.Session(config=tf.SessionConfig(shape_policy=policy)) as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(made, dict(zip(inputs, fed, strict=True)))


@pytest.mark.parametrize("policy", ["exact", "generic"])
@pytest.mark.parametrize("static", ["known", "rank", "nothing"])
@pytest.mark.parametrize("name", WRONG)
def test_it_is_the_users_error(name, static, policy):
    with pytest.raises((errors.InvalidArgumentError, errors.OutOfRangeError)) as caught:
        _run(name, static, policy)
    error = caught.value
    line = inspect.getsourcelines(WRONG[name][0])[1]
    assert error.site is None or error.site.rpartition("/")[2].split(":")[0] == HERE
    assert error.op is None or error.site is not None
    assert line


def test_a_predicate_whose_shape_is_known_is_refused_before_anything_runs():
    with tf.Graph().as_default():
        v, p = tf.Variable(0.0), tf.placeholder(B)
        bump = v.assign_add(1.0, read_value=False)
        with tf.control_dependencies([bump]):
            y = tf.cond(p, lambda: tf.constant(1.0), lambda: tf.constant(2.0), name="choice")
        with tf.Session() as sess:
            sess.run(v.initializer)
            for call in (sess.explain, sess.run):
                with pytest.raises(errors.ShapeError, match="pred must be a scalar") as caught:
                    call([y, bump], {p: [True, False]})
                assert caught.value.op_name == "choice"
            assert sess.run(v) == 0.0


# -- memory


@pytest.mark.parametrize(
    "shape", [[2**46], [2**40, 2**40], [2**62, 2**62], [2**31 - 1, 2**31 - 1]], ids=lambda s: "x".join(map(str, s))
)
@pytest.mark.parametrize(
    "make",
    [tf.ones, lambda s: tf.zeros(s)[(0,) * len(s)], lambda s: tf.reduce_sum(tf.ones(s)), lambda s: tf.ones(s) + 1.0],
    ids=["fetched", "an element", "a sum", "added"],
)
@pytest.mark.parametrize("policy", ["exact", "generic"])
def test_an_allocation_that_fails_is_no_fault_of_graphdocks(shape, make, policy):
    with tf.Graph().as_default():
        y = make(shape)
        with tf.Session(config=tf.SessionConfig(shape_policy=policy)) as sess:
            with pytest.raises(errors.ResourceExhaustedError) as caught:
                sess.run(y)
            assert sess.run(tf.constant(1.0)) == 1.0, "the session goes on"
    assert caught.value.site is not None and HERE in caught.value.site


@pytest.mark.parametrize("device", [fake, queued], ids=["fake", "queued"])
@pytest.mark.parametrize("shape", [[2**46], [2**40, 2**40]], ids=["2^46", "2^80"])
def test_on_other_devices_too(device, shape):
    host = Host()
    device.install(host)
    with tf.Graph(host=host).as_default():
        y = tf.reduce_sum(tf.ones(shape) * 2.0)
        config = tf.SessionConfig(backends=(device.DEVICE, "cpu"))
        with tf.Session(host=host, config=config) as sess, pytest.raises(errors.ResourceExhaustedError) as caught:
            sess.run(y)
    assert caught.value.site is not None and HERE in caught.value.site
    host.close()


# -- numbers that nothing can hold


HUGE = 10**30
UNFIT = {
    "a range of bytes": lambda x: tf.range(250, 260, dtype=tf.uint8),
    "a range of text": lambda x: tf.range("a"),
    "a range of halves": lambda x: tf.range(2.5, dtype=tf.int32),
    "a range without end": lambda x: tf.range(0.0, float("inf")),
    "a range of nothing": lambda x: tf.range(0.0, float("nan")),
    "zeros": lambda x: tf.zeros([HUGE]),
    "drawn": lambda x: tf.random_uniform([HUGE]),
    "drawn text": lambda x: tf.random_uniform(["a"]),
    "drawn halves": lambda x: tf.random_uniform([1.5]),
    "an axis": lambda x: tf.reduce_sum(x, HUGE),
    "axes": lambda x: tf.reduce_sum(x, [0, HUGE]),
    "an index": lambda x: x[HUGE],
    "a slice": lambda x: x[HUGE:],
    "an index at the end": lambda x: x[2**63 - 1],
    "a mask": lambda x: tf.sequence_mask(tf.constant([1], tf.uint8), 300),
    "a constant": lambda x: tf.constant(HUGE),
    "a variable": lambda x: tf.get_variable("huge", [HUGE]),
    "initial values": lambda x: tf.get_variable("c", [2], initializer=tf.constant_initializer([[1], [2, 3]])),
    "a device": lambda x: tf.device(5).__enter__(),
    "an identity": lambda x: tf.eye("a"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_numbers_that_do_not_fit_are_refused_when_the_graph_is_made(name):
    with tf.Graph().as_default(), pytest.raises(errors.GraphdockError) as caught:
        UNFIT[name](tf.placeholder(F, [2, 3]))
    assert not isinstance(caught.value, errors.InternalError)


def test_what_fits_still_does():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.constant(TWO, tf.float32)
        assert sess.run(tf.range(2, 2**31 + 2, 2**31 - 1)).tolist() == [2, 2**31 + 1]
        assert sess.run(tf.range(3.0, 5)).tolist() == [3.0, 4.0]
        assert sess.run(tf.reduce_sum(x, [])).tolist() == TWO.tolist()
        assert sess.run(tf.reduce_sum(x, (-1, 0))) == 6.0
        assert sess.run(tf.reduce_sum(x, np.int64(1))).tolist() == [3.0, 3.0]
        assert sess.run(tf.sequence_mask([1, 3])).tolist() == [[True, False, False], [True, True, True]]
        assert sess.run(tf.sequence_mask([1], 2)).tolist() == [[True, False]]


# -- what is fed


class Borrowed:
    """A stranger's tensor: converts itself by the protocol, or says why it can't, in an exception of its own."""

    def __init__(self, array=None, error=None):
        self.array, self.error = array, error

    def __array__(self, dtype=None, copy=None):
        if self.error is not None:
            raise self.error
        return self.array


GRADIENT = RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
BFLOAT = TypeError("Got unsupported ScalarType BFloat16")


@pytest.mark.parametrize("error", [GRADIENT, BFLOAT, ZeroDivisionError("odd"), KeyError("odder")])
def test_a_strangers_tensor_that_can_not_be_read_says_why(error):
    with tf.Graph().as_default():
        x, made = tf.placeholder(F, [2], name="x"), f"{HERE}:{inspect.currentframe().f_lineno}"
        with tf.Session() as sess:
            for call in (sess.run, sess.explain):
                with pytest.raises(errors.InvalidArgumentError) as caught:
                    call(x + 1.0, {x: Borrowed(error=error)})
                assert str(error) in caught.value.message and "Borrowed" in caught.value.message
                assert (caught.value.op_name, caught.value.site.rpartition("/")[2]) == ("x", made)
                assert caught.value.__cause__ is error
            assert sess.run(x + 1.0, {x: Borrowed(np.ones(2))}).tolist() == [2.0, 2.0]
        with pytest.raises(errors.InvalidArgumentError, match="cannot make a tensor"):
            tf.constant(Borrowed(error=error))


@pytest.mark.oracle
def test_torchs_own_tensors():
    torch = pytest.importorskip("torch")
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(F, [2], name="x")
        for wrong in (torch.ones(2, requires_grad=True), torch.ones(2, dtype=torch.bfloat16)):
            with pytest.raises(errors.InvalidArgumentError, match="the value fed to x:0"):
                sess.run(x + 1.0, {x: wrong})
        assert sess.run(x + 1.0, {x: torch.ones(2)}).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (lambda: tf.constant(1.0), "is fed the tensor"),
        (lambda: tf.Variable(1.0), "is fed the variable"),
        (lambda: [[tf.constant(1.0)]], "is not an array"),
        (lambda: [tf.Variable(1.0)], "is not an array"),
        (lambda: (1.0, [2.0, 3.0]), "is not an array"),
        (lambda: object(), "wrong dtype"),
        (lambda: {"a": 1}, "wrong dtype"),
        (lambda: None, "wrong dtype"),
    ],
)
def test_what_is_no_number_can_not_be_fed(value, words):
    with tf.Graph().as_default():
        x = tf.placeholder(F, None, name="x")
        y, fed = x + 1.0, value()
        with tf.Session() as sess, pytest.raises(errors.InvalidArgumentError, match=words) as caught:
            sess.run(y, {x: fed})
    assert caught.value.op_name == "x" and HERE in caught.value.site


def test_what_is_nested_too_deep_is_refused():
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(F, None, name="x")
        for call in (
            lambda: sess.run(deep),
            lambda: tf.constant(deep),
            lambda: x + deep,
            lambda: sess.run(x, {x: deep}),
        ):
            with pytest.raises(errors.InvalidArgumentError):
                call()


# -- NumPy's own settings


@pytest.mark.parametrize("with_function", [False, True])
def test_numpys_settings_are_for_numpys_callers(with_function):
    """The caller's np.seterr holds in its own Python functions, and in no kernel, whether a step has such a function or not."""
    told = []

    def function(a):
        told.append(np.geterr()["divide"])
        return a

    with tf.Graph().as_default(), np.errstate(all="raise"):
        x = tf.placeholder(F, [2])
        y = tf.constant([1.0, -1.0]) / x
        y = tf.exp(y * 1e4) + tf.sqrt(x - 1.0)
        if with_function:
            y = tf.py_func(function, [y], F)
        with tf.Session() as sess:
            for fed in (np.zeros(2), np.zeros(2, np.float32), [0.0, 0.0], np.full(2, 1e300)):
                assert sess.run(y, {x: fed}).shape == (2,)
            assert tf.constant(1e300, F).dtype is F
        with pytest.raises(FloatingPointError):
            np.float32(1.0) / np.float32(0.0)
    assert told == (["raise"] * 4 if with_function else [])


def test_a_function_that_raises_under_the_callers_settings_is_named():
    with tf.Graph().as_default(), np.errstate(all="raise"), tf.Session() as sess:
        x = tf.placeholder(tf.float64, [], name="x")
        bad = tf.py_func(lambda a: 1.0 / a, [x], tf.float64, name="inverse")
        with pytest.raises(errors.UnknownError, match="FloatingPointError") as caught:
            sess.run(bad, {x: 0.0})
    assert caught.value.op_name == "inverse"


def test_a_function_of_a_dataset_sees_the_callers_settings_too():
    """It runs on the step's thread, inside of the dataset's own step: the settings are those of whoever ran the outer one."""
    told = []

    def function(a):
        told.append(np.geterr()["divide"])
        return a

    with tf.Graph().as_default(), tf.Session() as sess:
        dataset = tf.data.Dataset.range(4).map(lambda x: tf.py_func(function, [x], tf.int64))
        iterator = tf.data.make_initializable_iterator(dataset)
        element = iterator.get_next()
        sess.run(iterator.initializer)
        for wanted in ("raise", "ignore", "warn"):
            with np.errstate(divide=wanted):
                sess.run(element)
    assert told == ["raise", "ignore", "warn"]


# -- sessions that are default


def test_interactive_sessions_may_be_closed_in_any_order():
    with tf.Graph().as_default():
        y = tf.constant(3.0) + 0.0
        first, second, third = (tf.InteractiveSession() for _ in range(3))
        assert tf.get_default_session() is third
        first.close()
        third.close()
        assert tf.get_default_session() is second and y.eval() == 3.0
        first.close()
        with tf.Session() as inner:
            second.close()
            assert tf.get_default_session() is inner
        assert tf.get_default_session() is None
        with pytest.raises(errors.InvalidArgumentError, match="no default session"):
            y.eval()


def test_an_interactive_session_may_be_entered_too():
    with tf.Graph().as_default():
        with tf.InteractiveSession() as sess:
            assert tf.get_default_session() is sess
        assert tf.get_default_session() is None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: tf.Session(graph=5), "Session: graph"),
        (lambda x: tf.Session(host=5), "Session: host"),
        (lambda x: tf.Session(target=5), "Session: target"),
        (lambda x: tf.Session().run(x + 1.0, {x: [1, 2]}, run_metadata=5), "run_metadata"),
        (lambda x: tf.Session().make_callable(x, 5), "feed_list"),
        (lambda x: tf.Session().plan(x, 5), "feed_dict"),
        (lambda x: tf.Session.reset("", 5), "containers"),
        (lambda x: tf.Session.reset("", "name"), "containers"),
        (lambda x: tf.identity(x, name=5), "name"),
        (lambda x: tf.placeholder(tf.float32, [2], name=5), "name"),
        (lambda x: tf.control_dependencies(5).__enter__(), "control_dependencies"),
        (lambda x: x.graph.get_tensor_by_name(5), "get_tensor_by_name"),
        (lambda x: x.graph.get_operation_by_name(5), "get_operation_by_name"),
    ],
)
def test_an_argument_of_the_wrong_python_type_is_named(call, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words) as info:
        call(tf.placeholder(tf.float32, [2]))
    assert info.value.got in ("5", "'name'")


TALL = [1] * 65
VAST = [0, 2**62, 2**62]


@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (lambda: tf.ones(TALL), "UnimplementedError"),
        (lambda: tf.Variable(tf.zeros(TALL)).initializer, "UnimplementedError"),
        (lambda: tf.fill(TALL, 1.0), "UnimplementedError"),
        (lambda: tf.stack([tf.zeros(TALL[1:])] * 2), "UnimplementedError"),
        (lambda: tf.one_hot(tf.zeros(TALL[1:], tf.int32), 3), "UnimplementedError"),
        (lambda: tf.random_uniform(TALL), "UnimplementedError"),
        (lambda: tf.zeros(VAST), "ResourceExhaustedError"),
        (lambda: tf.fill(VAST, 1.0), "ResourceExhaustedError"),
        (lambda: tf.reshape(tf.zeros([0, 3]), VAST), "ResourceExhaustedError"),
        (lambda: tf.truncated_normal(tf.placeholder_with_default(np.array([2**62, 4]), [2])), "ResourceExhaustedError"),
    ],
)
def test_an_array_that_numpy_does_not_have_is_told_by_the_step(build, kind):
    with tf.Graph().as_default(), tf.Session() as session:
        fetched = build()
        with pytest.raises(getattr(tf.errors, kind)):
            session.run(fetched)


def test_an_integer_of_ten_thousand_digits_is_one_that_does_not_fit():
    with tf.Graph().as_default(), tf.Session() as session:
        zeros = tf.string_to_number([b"-" + b"0" * 10_000 + b"17", b"+5", b"-0"], tf.int64)
        assert session.run(zeros).tolist() == [-17, 5, 0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="is no int64"):
            session.run(tf.string_to_number(b"9" * 10_000, tf.int64))


def test_a_beam_search_over_what_has_no_probability_is_refused():
    logits = np.full((3, 1, 4), np.nan, np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        scores = tf.nn.ctc_beam_search_decoder(logits, [3])[1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="no class of row 0 a probability at step 0"):
            session.run(scores)
