"""Errors of programs for Python 2, eager execution or libraries that are not here lead to a line of advice; others to none."""

from __future__ import annotations

import pytest
from graphdock_tensorflow.run.advice import hint_of


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            SyntaxError("Missing parentheses in call to 'print'", ("a.py", 3, 1, "print x")),
            "a.py:3 is written for Python 2",
        ),
        (NameError("name 'xrange' is not defined"), "the program is written for Python 2"),
        (AttributeError("'Tensor' object has no attribute 'numpy'"), "fetch it"),
        (ModuleNotFoundError("No module named 'cv2'", name="cv2"), "pip install opencv-python"),
        (ModuleNotFoundError("No module named 'six.moves'", name="six.moves"), "pip install six"),
        (ModuleNotFoundError("No module named 'utils'", name="utils"), None),
        (ImportError("six"), None),
        (ValueError("no"), None),
    ],
)
def test_an_error_has_its_advice(error, words):
    found = hint_of(error)
    assert (found is None) if words is None else words in found
