"""``tf.print``: what stands on which stream, when. The expected texts were printed by TensorFlow 2.15's compat.v1."""

from __future__ import annotations

import sys

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


@pytest.mark.parametrize(
    ("inputs", "options", "text"),
    [
        (lambda: ["loss:", tf.constant(0.5), tf.constant(3.0)], {}, "loss: 0.5 3\n"),
        (lambda: [tf.range(10)], {}, "[0 1 2 ... 7 8 9]\n"),
        (lambda: [tf.range(10)], {"summarize": -1}, "[0 1 2 3 4 5 6 7 8 9]\n"),
        (lambda: [tf.constant([[1.5, 2.0], [0.1, -4.0]])], {"end": "|"}, "[[1.5 2]\n [0.1 -4]]|"),
        (lambda: [{"b": tf.constant(1), "a": [tf.constant(2), "x"]}], {}, "{'a': [2, 'x'], 'b': 1}\n"),
        (
            lambda: [tf.constant(["a", "ö"]), tf.constant("b"), True, None],
            {"sep": ", "},
            '["a" "ö"], "b", True, None\n',
        ),
        (lambda: [tf.constant([[1, 2]]), (tf.constant([]),), tf.constant([True, False])], {}, "[[1 2]] ([],) [1 0]\n"),
        (lambda: [tf.constant(1e-7), tf.constant(1e20)], {}, "1e-07 1e+20\n"),
        (list, {}, "\n"),
    ],
)
def test_texts(sess, capfd, inputs, options, text) -> None:
    sess.run(tf.print(*inputs(), output_stream=sys.stdout, **options))
    assert capfd.readouterr().out == text


def test_it_prints_when_it_runs_and_only_then(sess, capsys, tmp_path) -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([tf.print("x =", x)]):
        y = x * 2.0
    lines: list[str] = []
    to_list, to_file = tf.print(x, output_stream=lines.append), tf.print(x, output_stream=f"file://{tmp_path}/log")
    for value in (1.0, 2.5):
        assert sess.run(y, {x: value}) == 2 * value
        sess.run([to_list, to_file], {x: value})
    assert capsys.readouterr().err == "x = 1\nx = 2.5\n"
    assert lines == ["1", "2.5"] and (tmp_path / "log").read_text() == "1\n2.5\n"
    assert isinstance(to_list, tf.Operation) and to_list.name == "PrintV2_1"


def test_what_is_refused(sess) -> None:
    with pytest.raises(TypeError, match="no such argument[\\s\\S]*got file"):
        tf.print("x", file=sys.stderr)
    with pytest.raises(TypeError, match="another kind"):
        tf.print("x", output_stream=np.zeros(2))
