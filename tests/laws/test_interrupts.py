"""Ctrl-C at any point of a step leaves no variable locked and no instance broken."""

import graphdock as tf
import lab
import numpy as np


def survives(step, check, patience):
    """Interrupt ``step`` at each of its points in turn; afterwards ``check`` must be done in time."""
    for at in range(2000):
        came_so_far = lab.interrupted(step, at)
        lab.within(patience, check)
        if not came_so_far:
            assert at > 3, "the step has no points at all"
            return
    raise AssertionError("the step does not end")


def whole(sess, *variables):
    """Each variable has been counted up, and all of its elements together."""
    for value in sess.run([v.read_value() for v in variables]):
        assert value[0] >= 4 and value.tolist() == [value[0]] * 3


def test_an_interrupted_update_leaves_its_variable_free(patience):
    v = tf.Variable(np.zeros(3))
    update = v.assign_add(np.ones(3), read_value=False)
    sess = tf.Session()
    sess.run(v.initializer)
    sess.run(update)
    survives(lambda: sess.run(update), lambda: sess.run(update), patience)
    whole(sess, v)


def test_an_interrupted_read_leaves_its_variables_free(patience):
    variables = [tf.Variable(np.zeros(3)) for _ in range(3)]
    read = tf.add_n([v.read_value() for v in variables])
    update = tf.group(*[v.assign_add(np.ones(3), read_value=False) for v in variables])
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    sess.run(read)
    sess.run(update)
    survives(lambda: sess.run(read), lambda: sess.run(update), patience)
    whole(sess, *variables)


def test_an_interrupted_step_that_calls_python_leaves_its_variables_free(patience):
    v = tf.Variable(np.zeros(3))
    called = tf.py_func(lambda a: a, [v.read_value()], tf.float64)
    with tf.control_dependencies([called]):
        step = v.assign_add(np.ones(3), read_value=False)
    update = v.assign_add(np.ones(3), read_value=False)
    sess = tf.Session()
    sess.run(v.initializer)
    sess.run(step)
    sess.run(update)
    survives(lambda: sess.run(step), lambda: sess.run(update), patience)
    whole(sess, v)
