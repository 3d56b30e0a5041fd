"""Tags are cleaned as TensorFlow's ``summary_op_util.clean_tag`` does."""

from __future__ import annotations

import logging

import graphdock as tf
from graphdock_tf1.summary.tags import clean_tag, collect, summary_scope


def test_tags_are_cleaned_and_it_is_told(caplog):
    with caplog.at_level(logging.INFO, "graphdock"):
        assert clean_tag("//a b:c/d.e-f") == "a_b_c/d.e-f" and "a_b_c" in caplog.text
    assert clean_tag("größe_1") == "größe_1" and clean_tag(None) is None


def test_scopes_are_unique():
    with tf.Graph().as_default():
        found = []
        for _ in range(2):
            with summary_scope("x", None, []) as (tag, scope):
                found.append((tag, scope))
        assert found == [("x", "x/"), ("x_1", "x_1/")]
        collect("s", None, ["a"])
        collect("t", ["b"], ["a"])
        assert tf.get_collection("a") == ["s"] and tf.get_collection("b") == ["t"]
