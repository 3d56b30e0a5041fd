"""Loops offered as one: what their programs say, and that whoever evaluates them gets what the loop gives."""

from __future__ import annotations

import graphdock as tf
import numpy as np
from graphdock.contracts import Claim, Refusal
from graphdock_testing.region_reference import ReferenceCompiler


def test_a_loop_is_one_node_whose_program_says_what_each_iteration_does(loops):
    made = loops()
    n, x = tf.placeholder(tf.int32, [], name="n"), tf.placeholder(tf.float32, [3], name="x")
    i, y, _ = tf.while_loop(
        lambda i, *_: i < n, lambda i, v, w: (i + 1, v * 0.5 + w, w), [0, x, tf.ones([3])], maximum_iterations=9
    )
    with made.session() as sess:
        for count in (0, 4, 20):
            value, i_ = np.arange(3.0, dtype=np.float32), min(count, 9)
            for _ in range(i_):
                value = value * 0.5 + 1
            got = sess.run([i, y], {n: count, x: np.arange(3.0)})
            assert got[0] == i_
            np.testing.assert_allclose(got[1], value, 1e-6)
        explained = sess.explain(y, {n: 1, x: np.zeros(3)})
    assert explained.kernels() == {"lab.reference": 1} and "Loop, whole: while" in str(explained)
    program = made.compiler.loops_built[0]
    assert program.limit == 9 and program.results == (0, 1)
    # the third variable stays as it is
    assert [v == f for v, f in zip(program.variables, program.following, strict=True)] == [False, False, True]
    assert [len(steps) for steps in (program.condition, program.body)] == [1, 2]
    text = str(program)
    assert "at most 9 times" in text and "less t" in text and f"b{program.variables[1]} becomes" in text


def test_loops_within_loops_are_steps(loops):
    made = loops()

    def outer(i, total):
        return i + 1, tf.while_loop(lambda j, _: j < i, lambda j, t: (j + 1, t + j), [0, total])[1]

    y = tf.while_loop(lambda i, _: i < 6, outer, [0, 0])[1]
    with made.session() as sess:
        assert sess.run(y) == sum(j for i in range(6) for j in range(i))
        assert sess.explain(y).kernels() == {"lab.reference": 1}
    program = made.compiler.loops_built[0]
    assert [type(s.program).__name__ for s in program.body].count("LoopProgram") == 1
    assert "    loop while/body/" in str(program)


def test_what_a_compiler_takes_not_whole_or_not_at_all_stays_a_loop(loops):
    class Picky(ReferenceCompiler):
        def claim(self, candidate):
            if candidate.loop is not None:
                return Refusal("it takes no loops today")
            if any(n.op == "Tanh" for n in candidate.graph.nodes):
                return Refusal("it knows no tanh")
            assert isinstance(answer := super().claim(candidate), Claim)
            return answer

    made = loops(Picky())
    x = tf.placeholder(tf.float32, [3], name="x")
    plain = tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, v * 0.5 + 1.0), [0, x], name="plain")[1]
    other = tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, tf.tanh(v) + 1.0), [0, x], name="other")[1]
    with made.session() as sess:
        text = str(sess.explain([plain, other], {x: np.zeros(3)}))
        sess.run([plain, other], {x: np.zeros(3)})
    assert "loop plain: it takes no loops today" in text
    assert "loop other: " in text and "it knows no tanh" in text


def test_loops_with_effects_or_changing_shapes_stay(loops):
    made = loops()
    v, x = tf.Variable(1.0), tf.placeholder(tf.float32, [3])
    writing = tf.while_loop(lambda i: i < 2, lambda i: (i + tf.cast(tf.assign_add(v, 1.0), tf.int32) * 0 + 1,), [0])
    growing = tf.while_loop(
        lambda i, _: i < 2,
        lambda i, t: (i + 1, tf.concat([t, t], 0)),
        [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )[1]
    with made.session() as sess:
        sess.run(v.initializer)
        assert sess.run(writing) == 2 and sess.run(v) == 3.0
        assert sess.run(growing, {x: np.zeros(3)}).shape == (12,)
    assert not made.compiler.loops_built


def test_a_loop_that_keeps_and_one_that_reads_are_programs_with_histories(loops):
    made = loops()
    n, x = tf.placeholder(tf.int32, [], name="n"), tf.placeholder(tf.float32, [3], name="x")
    y = tf.while_loop(lambda i, _: i < n, lambda i, t: (i + 1, t * t), [0, x])[1]
    gradient = tf.gradients(y, x)[0]
    with made.session() as sess:
        for count in (0, 1, 3):
            got = sess.run([y, gradient], {n: count, x: [1.0, 2.0, 3.0]})
            power = 2**count
            np.testing.assert_allclose(got[0], [1.0, 2.0**power, 3.0**power], 1e-5)
            np.testing.assert_allclose(got[1], power * np.array([1.0, 2.0, 3.0]) ** (power - 1), 1e-5)
    forward, backward = made.compiler.loops_built[:2]
    ((number, shape),) = forward.kept
    assert number == forward.variables[1] and shape == (3,) and not forward.scans
    assert not backward.kept and [backward.buffers[s].shape for s in backward.scans] == [(3,)]
    assert f"keep b{number} as [3]" in str(forward) and f"the history of b{number}" in str(forward)
    assert "of a history" in str(backward)


def test_a_compiler_that_does_not_ask_for_histories_is_not_shown_them(loops):
    made = loops(type("Plain", (ReferenceCompiler,), {"histories": False})())
    x = tf.placeholder(tf.float32, [3], name="x")
    y = tf.while_loop(lambda i, _: i < 2, lambda i, t: (i + 1, t * t), [0, x])[1]
    gradient = tf.gradients(y, x)[0]
    with made.session() as sess:
        np.testing.assert_allclose(sess.run(gradient, {x: [1.0, 2.0, 3.0]}), [4.0, 32.0, 108.0])
        assert "it has histories" in str(sess.explain(gradient, {x: np.zeros(3)}))
    assert not made.compiler.loops_built


def test_a_loop_that_reads_a_variable_is_given_its_memory(loops):
    made = loops()
    v = tf.Variable([1.0, 2.0])
    y = tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t * v), [0, tf.ones([2])])[1]
    with tf.control_dependencies([y]):
        step = tf.assign_add(v, [1.0, 1.0])
    with made.session() as sess:
        sess.run(v.initializer)
        assert [sess.run([y, step])[0].tolist() for _ in range(2)] == [[1.0, 8.0], [8.0, 27.0]]
    assert made.compiler.loops_built
