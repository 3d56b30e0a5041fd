"""Checks of shapes that only a step knows: beside their nodes, on every memory, and only where they are needed.

Checks of actual shapes, called as a step calls them.
"""

from __future__ import annotations

import re

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts.runtime.shape_checks import OutputCheck, RuleCheck, host_shape
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.planning.plan_shapes import infer_outputs
from graphdock.planning.translate import translate
from graphdock.plugin.host import Host
from graphdock_testing import fake, queued

BACKENDS = ("cpu", "fake", "queued")


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture(params=BACKENDS)
def session(request):
    host, backends = Host(), ("cpu",)
    if request.param != "cpu":
        (fake.install(host) if request.param == "fake" else queued.install(host, seed=1))
        backends = (request.param, "cpu")

    def make(**fields):
        return tf.Session(config=tf.SessionConfig(backends=backends, **fields), host=host)

    return make


def rows_of(x):
    """As many elements as x has positive ones."""
    return tf.gather(x, tf.cast(tf.where(x > 0.0)[:, 0], tf.int32))


@pytest.mark.parametrize("policy", ["exact", "generic"])
def test_a_node_is_checked_before_its_kernel_runs_on_every_memory(session, policy):
    x, y = (tf.placeholder(tf.float32, [None], n) for n in "xy")
    total = tf.add_n([rows_of(x), y], name="total")
    with session(shape_policy=policy) as sess:
        for _ in range(2):
            assert sess.run(total, {x: [1.0, -1.0, 2.0], y: [5.0, 6.0]}).tolist() == [6.0, 8.0]
            for bad in ([5.0], [5.0, 6.0, 7.0]):
                with pytest.raises(ShapeError, match=rf"AddN: shapes \[2\] and \[{len(bad)}\]") as info:
                    sess.run(total, {x: [1.0, -1.0, 2.0], y: bad})
                assert info.value.op.name == "total" and "test_guards.py" in info.value.site


#: What, with a target that fits and one that does not, and the words of the shape rule.
TARGETS = {
    "reshape": (lambda x, s: tf.reshape(x, s), [6], [4], r"Reshape: cannot reshape \[6\] \(6 elements\) to \[4\]"),
    "broadcast_to": (lambda x, s: tf.broadcast_to(x, s), [6], [2], r"BroadcastTo: \[6\] can't be broadcast to \[2\]"),
    "sum_to": (lambda x, s: tf.ops.apply_op("SumTo", x=x, shape=s), [1], [2], "SumTo: .*does not broadcast"),
    "slice": (lambda x, s: tf.slice(x, s, [2]), [4], [5], "Slice: axis 0: a slice from 5 of size 2"),
    "index": (lambda x, s: x[s[0]], [5], [6], "StridedSlice: index 6 is out of bounds"),
    "tile": (lambda x, s: tf.tile(x, s), [2], [-1], "Tile: multiples.*-1"),
    "fill": (lambda x, s: tf.fill(s, x[0]), [2], [-2], "Fill: .*negative size -2"),
    "split": (lambda x, s: tf.split(x, tf.concat([s, [3]], 0))[0], [3], [2], "SplitV: .*sum to 5"),
    "transpose": (lambda x, s: tf.transpose(x, s), [0], [1], "Transpose: perm"),
    "reverse": (lambda x, s: tf.reverse(x, s), [0], [2], "ReverseV2: axis 2"),
    "pad": (lambda x, s: tf.pad(x, [[s[0], 0]]), [2], [-1], "Pad: .*negative"),
    "reduce": (lambda x, s: tf.reduce_sum(x, s), [0], [1], "Sum: axis 1"),
    "one_hot": (lambda x, s: tf.one_hot(tf.cast(x, tf.int32), s[0]), [3], [-1], "OneHot: depth is -1"),
    "range": (lambda x, s: tf.range(0, 6, s[0]), [2], [0], "Range: delta is zero"),
}
#: Those that the plan itself relies on: it has inferred the result's shape from elsewhere.
RELIED_ON = ("reshape", "broadcast_to")


def refusal(sess, what):
    make, good, bad, words = TARGETS[what]
    x, s = tf.placeholder(tf.float32, [6]), tf.placeholder(tf.int32, [1])
    y, feeds = make(x, s), {x: np.ones(6, np.float32)}
    sess.run(y, {**feeds, s: good})
    with pytest.raises(InvalidArgumentError) as info:
        sess.run(y, {**feeds, s: bad})
    sess.run(y, {**feeds, s: good})
    assert "test_guards.py" in info.value.site
    return info.value, words


@pytest.mark.parametrize("policy", ["exact", "generic"])
@pytest.mark.parametrize("what", TARGETS)
@pytest.mark.sampled(8)
def test_fed_elements_that_do_not_fit_are_refused_on_every_memory(session, what, policy):
    with session(shape_policy=policy) as sess:
        refused, words = refusal(sess, what)
        assert what not in RELIED_ON or re.search(words, refused.message)


@pytest.mark.parametrize("policy", ["exact", "generic"])
@pytest.mark.parametrize("what", sorted(set(TARGETS) - {"range"}))
def test_a_kernel_that_refuses_does_so_in_the_words_of_the_shape_rule(what, policy):
    with tf.Session(config=tf.SessionConfig(shape_policy=policy)) as sess:
        refused, words = refusal(sess, what)
        assert type(refused) is ShapeError and re.search(words, refused.message)


def test_a_shape_that_was_accepted_in_the_last_step_is_accepted_at_once(monkeypatch):
    asked = []
    check = RuleCheck._check
    monkeypatch.setattr(RuleCheck, "_check", lambda self, buffers: asked.append(self) or check(self, buffers))
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    total = tf.add_n([rows_of(x), y])
    with tf.Session() as sess:
        for _ in range(3):
            sess.run(total, {x: [1.0, -1.0, 2.0], y: [5.0, 6.0]})
        assert len(asked) == 1
        sess.run(total, {x: [1.0, -1.0, -2.0], y: [5.0]})
        assert len(asked) == 2


def test_a_step_that_proves_its_shapes_checks_none(monkeypatch):
    monkeypatch.setattr(RuleCheck, "__call__", lambda self, *buffers: pytest.fail("checked"))
    x = tf.placeholder(tf.float32, [None, 3])
    loss = tf.reduce_mean(tf.nn.softmax(x) * tf.tanh(x))
    step = tf.gradients(loss, [x])
    with tf.Session(config=tf.SessionConfig(shape_policy="generic")) as sess:
        for rows in (2, 3, 2):
            assert sess.run(step, {x: np.ones((rows, 3))})[0].shape == (rows, 3)


def test_a_failing_step_of_many_statements_is_explained_as_a_small_one_is():
    x, s = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [1])
    y = x
    for _ in range(1200):
        y = y + 1.0
    y = tf.slice(y, s, [2])
    with tf.Session() as sess:
        assert sess.run(y, {x: [1.0, 2.0, 3.0], s: [1]}).tolist() == [1202.0, 1203.0]
        with pytest.raises(InvalidArgumentError, match="a slice from 2 of size 2 is not inside of size 3"):
            sess.run(y, {x: [1.0, 2.0, 3.0], s: [2]})


def node(tensor, *feeds):
    return translate([tensor], [], feeds).nodes[-1]


def rule_check(node, *reads):
    """The check of a node over host arrays: of each, the input and whether its elements count."""
    return RuleCheck(node, [(index, host_shape, counts) for index, counts in reads], infer_outputs)


def test_shapes_and_elements_are_taken_from_the_buffers_and_the_rest_from_the_plan():
    x, s = tf.placeholder(tf.float64, [None, 6]), tf.placeholder(tf.int32, [2])
    check = rule_check(node(tf.reshape(x, s), (x, (None, 6)), (s, (2,))), (0, False), (1, True))
    check(np.zeros((2, 6)), np.int32([3, 4]))
    check(np.zeros((2, 6)), np.int32([3, 4]))
    check(np.zeros((2, 6)), np.int32([-1, 2]))
    refused = check.refusal([np.zeros((2, 6)), np.int32([5, 2])])
    assert isinstance(refused, ShapeError) and "cannot reshape [2,6] (12 elements) to [5,2] (10)" in refused.message
    assert check.refusal([np.zeros((2, 6)), np.int32([6, 2])]) is None


def test_elements_are_told_apart_by_their_dtype_alone_never_by_their_address():
    x, s = tf.placeholder(tf.float64, [None]), tf.placeholder(tf.int64, [1])
    check = rule_check(node(tf.reshape(x, s), (x, (None,)), (s, (1,))), (0, False), (1, True))
    to = np.int64([3])
    check(np.zeros(3), to)
    to[0] = 4
    with pytest.raises(ShapeError):
        check(np.zeros(3), to)


def test_what_the_plan_says_of_the_output_must_come():
    x = tf.placeholder(tf.float64, [None])
    y = tf.identity(x)
    y.set_shape([4])
    check = rule_check(node(y, (x, (None,))), (0, False))
    check(np.zeros(4))
    with pytest.raises(ShapeError, match=r"\[4\] and \[3\] do not agree"):
        check(np.zeros(3))


def test_lists_and_absent_inputs_find_their_arguments():
    a, b, axis = tf.placeholder(tf.float64, [None]), tf.placeholder(tf.float64, [None]), tf.placeholder(tf.int32, [])
    made = node(tf.concat([a, b], axis), (a, (None,)), (b, (None,)), (axis, ()))
    check = rule_check(made, (0, False), (1, False), (2, True))
    check(np.zeros(2), np.zeros(3), np.int32(0))
    with pytest.raises(ShapeError, match="axis 1 is out of bounds"):
        check(np.zeros(2), np.zeros(3), np.int32(1))


@pytest.mark.parametrize("late", [False, True], ids=["plain", "waits"])
def test_set_shape_of_what_an_op_makes_of_known_shapes_is_compared(late):
    with tf.Graph().as_default(), tf.Session() as session:
        text = tf.placeholder(tf.string, [])
        y = tf.decode_raw(text, tf.uint8)
        if late:
            queue = tf.FIFOQueue(1, tf.uint8)
            with tf.control_dependencies([queue.enqueue([y])]):
                y = queue.dequeue()
        y.set_shape([3])
        doubled = tf.cast(y, tf.float32) * 2.0
        assert session.run(doubled, {text: b"abc"}).tolist() == [194, 196, 198]
        for _ in range(2):
            with pytest.raises(ShapeError, match="promised by set_shape"):
                session.run(doubled, {text: b"a"})


def test_a_promise_is_compared_with_what_came():
    x = tf.placeholder(tf.float64, [None])
    y = tf.where(x > 0.0)
    y.set_shape([2, None])
    check = OutputCheck(node(y, (x, (None,))), 0, host_shape)
    check(np.zeros((2, 1)))
    with pytest.raises(ShapeError, match="promised by set_shape") as info:
        check(np.zeros((3, 1)))
    assert (info.value.expected, info.value.got) == ("[2,1]", "[3,1]")
