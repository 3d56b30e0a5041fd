"""``tf.compat`` and the switches of TensorFlow's history."""

from __future__ import annotations

from pathlib import Path

import graphdock as tf
import numpy as np
import pytest


def test_texts_and_bytes() -> None:
    assert tf.compat.as_bytes("ö") == "ö".encode() == tf.compat.as_bytes(bytearray("ö".encode()))
    assert tf.compat.as_text("ö".encode()) == "ö" == tf.compat.as_str("ö") and tf.compat.as_str_any(3) == "3"
    assert tf.compat.path_to_str(Path("a") / "b") == str(Path("a/b")) and tf.compat.path_to_str(None) is None
    for convert in (tf.compat.as_bytes, tf.compat.as_text):
        with pytest.raises(TypeError, match="expected bytes or text"):
            convert(3)
    assert isinstance(np.int64(3), tf.compat.integral_types) and not isinstance(3.5, tf.compat.integral_types)
    assert isinstance(np.float32(3), tf.compat.real_types) and isinstance(3j, tf.compat.complex_types)
    assert isinstance(b"", tf.compat.bytes_or_text_types)


def test_dims() -> None:
    shape = tf.TensorShape([None, 3])
    assert [tf.dimension_value(d) for d in (shape[0], shape[1], 3, None)] == [None, 3, 3, None]
    assert tf.compat.dimension_at_index(shape, 1) == 3
    assert tf.dimension_value(tf.dimension_at_index(tf.TensorShape(None), 1)) is None


def test_version_1_is_graphdock_itself() -> None:
    assert tf.compat.v1.placeholder is tf.placeholder and tf.compat.v1.train.Saver is tf.train.Saver


def test_switches_of_history_switch_nothing() -> None:
    tf.disable_v2_behavior()
    tf.disable_eager_execution()
    assert tf.resource_variables_enabled() and not tf.executing_eagerly()
    assert tuple(map(int, tf.VERSION.split("."))) == (1, 15, 0) and tf.version.VERSION == tf.VERSION
