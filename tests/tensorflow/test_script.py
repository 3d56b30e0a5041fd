"""Names that a file uses are read from its syntax."""

from __future__ import annotations

import pytest
from graphdock.errors import InvalidArgumentError
from graphdock_tensorflow.script import Use, uses

SCRIPT = """\
import os
import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow import nn as neural
from tensorflow.python.framework import ops

x = tf.placeholder(tf.float32)
y = neural.relu(tf.nn.conv2d(x, x)).shape
with tf.Session() as sess:
    sess.run(y)
tf.train.Saver().save(sess, "x")
os.path.join("tf", "x")
"""


def test_names_of_a_script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    assert uses(path) == [
        Use("contrib.slim", 3),
        Use("nn", 4),
        Use("python.framework.ops", 5),
        Use("float32", 7),
        Use("placeholder", 7),
        Use("nn.conv2d", 8),
        Use("nn.relu", 8),
        Use("Session", 9),
        Use("train.Saver", 11),
    ]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("import tensorflow.compat.v1 as t; t.abs(1)", "abs"),
        ("import graphdock as g; g.nn.relu(1)", "nn.relu"),
        ("from tensorflow.compat import v1 as tf; tf.abs(1)", "abs"),
        ("import tensorflow; tensorflow.abs(1)", "abs"),
        ("import tensorflow as tf; tf.__version__; tf.compat.v1.abs(1)", "abs"),
        ("from tensorflow.nn import relu; relu(1)", "nn.relu"),
    ],
)
def test_ways_to_import(tmp_path, line, name):
    path = tmp_path / "x.py"
    path.write_text(line)
    assert Use(name, 1) in uses(path) and not any("_" in use.name for use in uses(path))


def test_what_is_no_python_is_said_with_its_line(tmp_path):
    path = tmp_path / "old.py"
    path.write_text("x = 1\nprint 'python 2'\n")
    with pytest.raises(InvalidArgumentError, match=r"old\.py:2: not Python 3"):
        uses(path)
    path.write_bytes(b"\x00\xff")
    with pytest.raises(InvalidArgumentError, match="not Python"):
        uses(path)
