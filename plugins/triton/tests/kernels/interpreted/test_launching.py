"""Launching by the description: what it asks for."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.contracts import errors
from graphdock_triton.kernels.softmax import softmax
from graphdock_triton.kernels.spec import Problem
from graphdock_triton.testing.interpreter import require
from graphdock_triton.testing.launching import interpret

PROBLEM = Problem({"rows": 1, "width": 4}, {"T": "fp32"})


def test_arrays_have_the_declared_types():
    x = np.zeros((1, 4), np.float16)
    with pytest.raises(errors.InternalError, match=r"x is float16, declared \*fp32"):
        interpret(softmax, PROBLEM, x=x, y=x)


def test_every_argument_has_a_value():
    with pytest.raises(errors.InternalError, match="no value for y"):
        interpret(softmax, PROBLEM, x=np.zeros((1, 4), np.float32))


def test_a_process_that_compiles_does_not_interpret(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(errors.FailedPreconditionError, match="not interpreted in this process"):
        require()
