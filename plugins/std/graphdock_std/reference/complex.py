"""Oracles of specs/complex.yaml: Python's own complex numbers, one at a time."""

from __future__ import annotations

import cmath
import math

from graphdock_std.reference.math import per_element

complex_ = per_element(complex, "Tout")
real = per_element(lambda z: z.real, "Tout")
imag = per_element(lambda z: z.imag, "Tout")
angle = per_element(cmath.phase, "Tout")
complex_abs = per_element(lambda z: math.hypot(z.real, z.imag), "Tout")
conj = per_element(lambda z: complex(z.real, -z.imag))
