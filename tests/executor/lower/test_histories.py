"""Lists of what iterations keep: emptied by the last reader, left whole for others, and what a branch leaves goes out uncopied."""

from __future__ import annotations

import re

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def explained(fetches, feed, **config):
    with tf.Session(config=tf.SessionConfig(**config)) as sess:
        return sess.explain(fetches, feed).source


def sines(x, n=4):
    return tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, tf.sin(y) * y), [0, x])[1]


def test_the_only_reader_empties_a_history():
    x = tf.placeholder(tf.float64, [2])
    text = explained(tf.gradients(sines(x), x), {x: np.ones(2)})
    lists = set(re.findall(r"(j\d+) = \[\]", text))
    assert lists and lists == set(re.findall(r"(j\d+)\.pop\(\)", text))


def test_of_two_readers_the_last_one_empties_it():
    x = tf.placeholder(tf.float64, [2])
    y = sines(x)
    text = explained([tf.gradients(y, x)[0], tf.gradients(tf.exp(y), x)[0]], {x: np.ones(2)})
    (indexed, popped) = ([m.start() for m in re.finditer(p, text)] for p in (r" = j\d+\[n\d+\]", r" = j\d+\.pop\(\)"))
    assert len(indexed) == len(popped) > 0 and max(indexed) < min(popped)
    assert re.search(r"n\d+ = len\(j\d+\)", text)


def test_a_history_inside_of_a_history_is_left_whole():
    x = tf.placeholder(tf.float64, [2])
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, sines(y, 2)), [0, x])
    text = explained(tf.gradients(y, x), {x: np.ones(2)})
    assert re.search(r"j\d+\.append\(j\d+\)", text)
    assert re.search(r"i\d+ = i\d+\[n\d+\]", text) and not re.search(r"i\d+\.pop\(", text)


@pytest.mark.plain
def test_the_lengths_are_compared_in_debug_mode_only():
    x = tf.placeholder(tf.float64, [2])
    grads = tf.gradients(sines(x), x)
    assert "same_lengths(" in explained(grads, {x: np.ones(2)}, debug=True)
    assert "same_lengths(" not in explained(grads, {x: np.ones(2)})


def test_what_a_branch_leaves_is_not_copied_and_the_other_leaves_nothing():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float64, [1000])
    y = tf.cond(p, lambda: tf.exp(tf.sin(x)) * x, lambda: x)
    text = explained(tf.gradients(y, x), {p: True, x: np.ones(1000)})
    then, other = re.search(r"if .*:\n((?: {8}.*\n)+)    else:\n((?: {8}.*\n)+)", text).groups()
    left = re.findall(r"(v\d+) = b\d+\n", then)
    assert left and "own_copy(" not in then
    assert all(f"{name} = None" in other for name in left)


def test_a_history_of_a_branch_is_emptied_on_the_way_back_through_it():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float64, [2])
    y = tf.cond(p, lambda: sines(x), lambda: x)
    (g,) = tf.gradients(y, x)
    text = explained(g, {p: True, x: np.ones(2)})
    assert re.search(r"v\d+ = j\d+\n", text) and re.search(r"= v\d+\.pop\(\)", text)
    with tf.Session() as sess:
        assert sess.run(g, {p: False, x: [1.0, 2.0]}).tolist() == [1.0, 1.0]
        again = [sess.run(g, {p: True, x: [1.0, 2.0]}).tolist() for _ in range(3)]
    assert again[0] == again[1] == again[2]
