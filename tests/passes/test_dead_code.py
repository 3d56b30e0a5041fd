"""What a step need not do: branches' outputs that nobody reads, and what only they needed."""

from __future__ import annotations

import graphdock as tf
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def rows(fetches, feed=None, **config):
    with tf.Session(config=tf.SessionConfig(**config)) as sess:
        return [r.op for r in sess.explain(fetches, feed).rows]


@pytest.mark.parametrize(
    "passes", [{}, dict.fromkeys(("captures", "identities", "shapes", "cse", "fold", "algebra"), False)]
)
def test_an_output_of_a_cond_that_nobody_reads_is_not_computed(passes):
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    first, second = tf.cond(p, lambda: (tf.exp(x), tf.sin(x)), lambda: (x, tf.cos(x)))
    assert {"Exp", "Sin", "Cos"} & set(rows(first, passes=passes)) == {"Exp"}
    assert {"Exp", "Sin", "Cos"} & set(rows([first, second], passes=passes)) == {"Exp", "Sin", "Cos"}


def test_what_only_an_unread_output_needed_outside_is_not_computed():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    costly = tf.exp(x)
    first, _ = tf.cond(p, lambda: (x, costly), lambda: (-x, -costly))
    assert "Exp" not in rows(first)


def test_an_update_in_a_branch_runs_though_its_outputs_are_not_read():
    p, v = tf.placeholder(tf.bool, []), tf.Variable(0.0)
    first, _ = tf.cond(p, lambda: (tf.constant(1.0), tf.assign_add(v, 1.0)), lambda: (tf.constant(2.0), v + 0.0))
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(first, {p: True}) == 1.0 and sess.run(v) == 1.0
        assert sess.run(first, {p: False}) == 2.0 and sess.run(v) == 1.0


@pytest.mark.parametrize("fetched", [0, 1, 2])
@pytest.mark.parametrize("debug", [False, True])
def test_a_promise_of_a_shape_stays_with_its_output(fetched, debug):
    """What set_shape promised was held against the output that took the place of one that nobody read, or against none."""
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [None])
    found = tf.cond(p, *[lambda s=s: [s * tf.boolean_mask(x, x > k) for k in (1.0, 2.0, 3.0)] for s in (1.0, -1.0)])
    found[1].set_shape([2])
    with tf.Session(config=tf.SessionConfig(debug=debug)) as sess:
        for value in (True, False):
            assert sess.run(found[fetched], {p: value, x: [1.0, 2.0, 3.0, 4.0]}).shape == (3 - fetched,)
        if fetched == 1:
            with pytest.raises(tf.errors.InvalidArgumentError, match="promised by set_shape"):
                sess.run(found[1], {p: True, x: [1.0, 2.0, 3.0]})
        else:
            sess.run(found[fetched], {p: True, x: [1.0, 2.0, 3.0]})


def test_nested_branches_are_cut_to_the_innermost():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    inner = lambda: tf.cond(x > 0.0, lambda: (x, tf.exp(x)), lambda: (x, tf.sin(x)))  # noqa: E731
    first, _ = tf.cond(p, inner, lambda: (x, tf.cos(x)))
    assert not {"Exp", "Sin", "Cos"} & set(rows(first))


# -- loops


def loop_of(sess, fetches, feed=None):
    (node,) = [n for n in sess.explain(fetches, feed).plan.graph.nodes if n.verb == "loop"]
    return node


def test_a_loop_variable_that_only_its_own_next_value_needs_is_dropped():
    x = tf.placeholder(tf.float32, [])
    _, y, z = tf.while_loop(lambda i, *_: i < 3, lambda i, y, z: (i + 1, y * 2.0, tf.exp(z) + y), [0, x, x])
    with tf.Session() as sess:
        alone = loop_of(sess, y)
        assert len(alone.outputs) == len(alone.bodies[0].inputs) == 2
        assert "Exp" not in rows(y) and "Exp" in rows(z)
        assert len(loop_of(sess, z).outputs) == 3, "z reads y"
        assert sess.run(y, {x: 1.5}) == 12.0


def test_a_loop_variable_that_the_condition_or_an_update_needs_stays():
    x, v = tf.placeholder(tf.float32, []), tf.Variable(0.0)

    def body(i, y, z):
        with tf.control_dependencies([v.assign_add(z)]):
            return i + 1, y + 1.0, z * 2.0

    _, y, _ = tf.while_loop(lambda i, y, z: z < 100.0, body, [0, 0.0, x])
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert len(loop_of(sess, y).outputs) == 2, "the counter goes"
        assert sess.run(y, {x: 30.0}) == 2.0 and sess.run(v) == 90.0


def test_a_way_back_without_values_still_runs_as_often_as_the_loop():
    x, n = tf.placeholder(tf.float32, []), tf.placeholder(tf.int32, [])
    _, y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * 2.0 + tf.sin(tf.stop_gradient(y))), [0, x])
    (g,) = tf.gradients(y, x)
    with tf.Session() as sess:
        (_, back) = [m for m in sess.explain(g).plan.graph.nodes if m.verb == "loop"]
        assert back.attrs["scanned"] == 1
        assert [sess.run(g, {x: 1.0, n: k}) for k in (0, 1, 5)] == [1.0, 2.0, 32.0]


def test_of_several_histories_those_that_are_not_read_go():
    x, w = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y) * w), [0, x])
    by_x, by_w = tf.gradients(y, [x, w])
    with tf.Session() as sess:
        counts = []
        for fetch in (by_x, [by_x, by_w]):
            forward, back = [m for m in sess.explain(fetch).plan.graph.nodes if m.verb == "loop"]
            counts.append((len(forward.outputs), back.attrs["scanned"], len(back.outputs)))
        assert counts[0] < counts[1] and counts[0][0] == counts[0][1] + 2
