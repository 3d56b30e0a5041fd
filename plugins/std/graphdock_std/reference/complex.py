"""Oracles of specs/complex.yaml: Python's own complex numbers, one at a time."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from graphdock_std.reference.math import elementwise


def complex_(real: Any, imag: Any, Tout: Any = "complex64") -> np.ndarray:
    return elementwise(complex, real, imag, dtype=np.dtype(str(Tout)))


def real(input: Any, Tout: Any = "float32") -> np.ndarray:
    return elementwise(lambda z: z.real, input, dtype=np.dtype(str(Tout)))


def imag(input: Any, Tout: Any = "float32") -> np.ndarray:
    return elementwise(lambda z: z.imag, input, dtype=np.dtype(str(Tout)))


def angle(input: Any, Tout: Any = "float32") -> np.ndarray:
    return elementwise(cmath.phase, input, dtype=np.dtype(str(Tout)))


def complex_abs(x: Any, Tout: Any = "float32") -> np.ndarray:
    return elementwise(lambda z: math.hypot(z.real, z.imag), x, dtype=np.dtype(str(Tout)))


def conj(input: Any) -> np.ndarray:
    return elementwise(lambda z: complex(z.real, -z.imag), input)
