"""A program of TensorFlow 1 and TensorFlow's answer, written down: ``(id, program(session), answer)``."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as sess:
        yield sess


@pytest.fixture
def assert_agrees():
    """``assert_agrees(got, answer)``: equal, arrays element by element with their dtype, in the same structure."""

    def check(got, answer):
        if isinstance(answer, (list, tuple)):
            assert len(got) == len(answer), (got, answer)
            for a, b in zip(got, answer, strict=True):
                check(a, b)
        elif isinstance(answer, np.ndarray):
            np.testing.assert_array_equal(got, answer)
            assert np.asarray(got).dtype == answer.dtype
        else:
            assert got == answer, (got, answer)

    return check
