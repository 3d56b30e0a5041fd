"""Calls of the assertions of ``tf.test.TestCase``, and what each raises, as text.

This module imports nothing of graphdock's: ``assertion_cases.py`` run with TensorFlow's Python prints the table of answers.
"""

from __future__ import annotations

import collections

import numpy as np

Point = collections.namedtuple("Point", "x y")
NAN = float("nan")

#: Name of an assertion, its arguments, its keywords.
CASES = [
    ("assertNear", (1.0, 1.05, 0.1), {}),
    ("assertNear", (1.0, 1.2, 0.1), {}),
    ("assertNear", (float("inf"), float("inf"), 0.1), {}),
    ("assertArrayNear", ([1.0, 2.0], [1.01, 2.0], 0.1), {}),
    ("assertArrayNear", ([1.0, 2.0], [1.0], 0.1), {}),
    ("assertArrayNear", ([1.0, 2.0], [1.0, 3.0], 0.1), {}),
    ("assertNDArrayNear", (np.zeros([2, 2]), np.full([2, 2], 0.01), 0.1), {}),
    ("assertNDArrayNear", (np.zeros([2, 2]), np.ones([2, 2]), 0.1), {}),
    ("assertAllClose", (1.0, 1.0 + 1e-7), {}),
    ("assertAllClose", (1.0, 1.0 + 1e-4), {}),
    ("assertAllClose", (1.0, 1.0 + 1e-4), {"rtol": 1e-3}),
    ("assertAllClose", ([1.0, NAN], [1.0, NAN]), {}),
    ("assertAllClose", ([1.0], [1.0, 2.0]), {}),
    ("assertAllClose", ([[1.0], [2.0]], [1.0, 2.0]), {}),
    ("assertAllClose", ({"a": 1.0, "b": [2.0]}, {"a": 1.0, "b": [2.0]}), {}),
    ("assertAllClose", ({"a": 1.0}, {"b": 1.0}), {}),
    ("assertAllClose", ({"a": 1.0}, [1.0]), {}),
    ("assertAllClose", ([[1.0, 2.0], [3.0]], [[1.0, 2.0], [3.0]]), {}),
    ("assertAllClose", ([[1.0, 2.0], [3.0]], [[1.0, 2.0], [3.5]]), {}),
    ("assertAllClose", ([[1.0, 2.0], [3.0]], [[1.0, 2.0]]), {}),
    ("assertAllClose", (Point(1.0, [2.0, 3.0]), Point(1.0, [2.0, 3.0])), {}),
    ("assertAllClose", (Point(1.0, 2.0), Point(1.0, 2.1)), {}),
    ("assertAllCloseAccordingToType", (np.float16(1.0), np.float16(1.001)), {}),
    ("assertAllCloseAccordingToType", (np.float32(1.0), np.float32(1.001)), {}),
    ("assertAllCloseAccordingToType", (np.float32(1.0), np.float16(1.001)), {}),
    ("assertAllCloseAccordingToType", (np.float64(1.0), np.float64(1.0 + 1e-5)), {}),
    ("assertAllCloseAccordingToType", (np.float32(1.0), np.float32(1.001)), {"float_rtol": 1e-2}),
    ("assertNotAllClose", ([1.0], [1.1]), {}),
    ("assertNotAllClose", ([1.0], [1.0]), {}),
    ("assertAllEqual", ([1, 2], np.array([1, 2])), {}),
    ("assertAllEqual", ([1, 2], [1, 3]), {}),
    ("assertAllEqual", ([1, 2], [[1, 2]]), {}),
    ("assertAllEqual", (np.array([1.0, NAN]), np.array([1.0, NAN])), {}),
    ("assertAllEqual", ([b"a"], [b"a"]), {}),
    ("assertAllEqual", ([b"a"], [b"b"]), {}),
    ("assertNotAllEqual", ([1], [2]), {}),
    ("assertNotAllEqual", ([1], [1]), {}),
    ("assertAllGreater", ([1, 2], 0), {}),
    ("assertAllGreater", ([1, 2], 1), {}),
    ("assertAllGreaterEqual", ([1, 2], 1), {}),
    ("assertAllGreaterEqual", ([1, 2], 2), {}),
    ("assertAllLess", ([1, 2], 3), {}),
    ("assertAllLess", ([1, 2], 2), {}),
    ("assertAllLessEqual", ([1, 2], 2), {}),
    ("assertAllLessEqual", ([1, 2], 1), {}),
    ("assertAllInRange", ([1, 2], 1, 2), {}),
    ("assertAllInRange", ([1.0, 2.0], 1, 2), {"open_lower_bound": True}),
    ("assertAllInRange", ([1.0, 2.0], 1, 2), {"open_upper_bound": True}),
    ("assertAllInRange", ([1.0, NAN], 1, 2), {}),
    ("assertAllInSet", ([1, 2, 2], [1, 2, 3]), {}),
    ("assertAllInSet", ([1, 4], [1, 2, 3]), {}),
    ("assertDeviceEqual", ("/cpu:0", "/device:CPU:0"), {}),
    ("assertDeviceEqual", ("/cpu:0", "/device:CPU:1"), {}),
    ("assertDeviceEqual", ("/job:worker/gpu:2", "/job:worker/device:GPU:2"), {}),
    ("assertStartsWith", ("abc", "ab"), {}),
    ("assertStartsWith", ("abc", "b"), {}),
    ("assertItemsEqual", ([1, 2], [2, 1]), {}),
    ("assertItemsEqual", ([1, 2], [2, 2]), {}),
    ("assertShapeEqual", ([1], 1), {}),
]


def answers(case) -> list[str]:
    """Each case's error class, or ``"holds"``."""
    found = []
    for name, args, keywords in CASES:
        try:
            getattr(case, name)(*args, **keywords)
            found.append("holds")
        except Exception as error:  # noqa: BLE001 - the answer
            found.append(type(error).__name__)
    return found


if __name__ == "__main__":
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    print(answers(tf.test.TestCase()))
