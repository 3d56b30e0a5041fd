"""Where an operation was made: the user's own line, whatever of graphdock lies between."""

from __future__ import annotations

import os

import graphdock as tf
from graphdock.graph.site import capture, describe


def here():
    """The line that called, as a site shows it."""
    import sys

    frame = sys._getframe(1)
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def made_here():
    """The site of whatever its caller would make."""
    return capture()


def test_an_operation_knows_the_line_that_made_it():
    with tf.Graph().as_default():
        made, line = tf.constant(1.0), here()
        assert made.op.site.endswith(line)


def test_functions_of_the_standard_library_are_passed_over():
    with tf.Graph().as_default():
        ones, line = tf.ones([2, 2]), here()
        assert ones.op.site.endswith(line)
        total, line = tf.nn.l2_normalize(ones, 0), here()
        assert total.op.site.endswith(line)


def test_the_innermost_of_the_users_own_lines_counts():
    def layer(x):
        return x * 2.0, here()

    with tf.Graph().as_default():
        y, line = layer(tf.constant(1.0))
        assert y.op.site.endswith(line)


def test_two_operations_of_one_line_share_it_and_lines_of_one_function_do_not():
    sites = [made_here() for _ in range(2)]
    other = made_here()
    assert describe(sites[0]) == describe(sites[1]) != describe(other)


def test_a_path_below_the_working_directory_is_relative(monkeypatch, tmp_path):
    site = made_here()
    monkeypatch.chdir(os.path.dirname(__file__))
    assert describe(site).startswith(os.path.basename(__file__))
    monkeypatch.chdir(tmp_path)
    assert describe(site).startswith(os.path.abspath(__file__))


def test_nothing_is_said_of_no_site():
    assert describe(None) is None


def test_the_file_decides_and_not_the_code_which_may_be_that_of_another_file():
    text = "def made(capture):\n    return capture()\n"
    found = {}
    for file in ("<graphdock made>", "theirs.py"):
        space = {}
        exec(compile(text, file, "exec"), space)
        found[file] = describe(space["made"](lambda: capture()))
    assert "test_site" in found["<graphdock made>"]
    assert found["theirs.py"] == "theirs.py:2"
