"""The size of a model."""

from __future__ import annotations

import graphdock as tf


def test_variables_are_counted_and_shown(capsys) -> None:
    with tf.Graph().as_default():
        variables = [
            tf.get_variable("w", [3, 4]),
            tf.get_variable("n", initializer=3),
            tf.Variable(tf.zeros([2], tf.float64), name="d"),
        ]
        assert tf.contrib.slim.model_analyzer.analyze_vars(variables) == (15, 48 + 4 + 16)
        assert capsys.readouterr().out == ""
        tf.contrib.slim.model_analyzer.analyze_vars(variables, print_info=True)
    assert capsys.readouterr().out.splitlines() == [
        "---------",
        "Variables: name (type shape) [size]",
        "---------",
        "w:0 (float32 3x4) [12, bytes: 48]",
        "n:0 (int32) [1, bytes: 4]",
        "d:0 (float64 2) [2, bytes: 16]",
        "Total size of variables: 15",
        "Total bytes of variables: 68",
    ]
