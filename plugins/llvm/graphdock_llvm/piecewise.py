"""Polynomials of erf in float32 on 16 pieces, whose coefficients a permutation of one AVX-512 register looks up.

The pieces lie around the multiples of a power of two, to which adding a large number rounds; the low bits of that sum are the
piece, and all that the permutation reads. A polynomial interpolates at the nodes of Chebyshev of its piece, by Newton's divided
differences (J. C. Mason, D. C. Handscomb, "Chebyshev Polynomials", 2003). That of the first piece has no constant, so that small
numbers, subnormals too, keep their digits; the last one is lifted by less than float32 tells, so that it ends in 1. There is no
division.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from graphdock_llvm.emitter import scalar_constant

__all__ = ["BOUND", "LANES", "WIDTH", "coefficients"]

#: Pieces, which are lanes of the vector that a permutation looks up.
LANES = 16
#: What lies between their centres, the first of which is 0; with this degree float32 can't tell more.
WIDTH, _DEGREE = 0.25, 5
#: End of the last piece: below the number that rounds to a seventeenth.
BOUND = (LANES - 0.5) * WIDTH * (1 - 2.0**-22)


@functools.cache
def coefficients() -> Sequence[str]:
    """LLVM's constants of the coefficients, the highest power first; each has a lane for each piece."""
    around = [WIDTH / 2 * node for node in _nodes(_DEGREE + 1)]
    above = [WIDTH / 4 * (1 + node) for node in _nodes(_DEGREE)]
    found = [[*_interpolated([math.erf(t) / t for t in above], above), 0.0]]
    for piece in range(1, LANES):
        lift = math.erfc(BOUND) if piece == LANES - 1 else 0.0
        found.append(_interpolated([math.erf(piece * WIDTH + t) + lift for t in around], around))
    return [f"<{', '.join(_constant(c) for c in power)}>" for power in zip(*found, strict=True)]


def _constant(number: float) -> str:
    return f"float {scalar_constant('float', number)}"


def _nodes(count: int) -> list[float]:
    """Zeros of Chebyshev's polynomial, between -1 and 1."""
    return [math.cos(math.pi * (i + 0.5) / count) for i in range(count)]


def _interpolated(values: Sequence[float], nodes: Sequence[float]) -> list[float]:
    """Coefficients of the polynomial that has these values at the nodes, the highest power first."""
    differences = list(values)
    for order in range(1, len(nodes)):
        for i in range(len(nodes) - 1, order - 1, -1):
            differences[i] = (differences[i] - differences[i - 1]) / (nodes[i] - nodes[i - order])
    found = [differences[-1]]
    for difference, node in zip(differences[-2::-1], nodes[-2::-1], strict=True):
        shifted = [*found, difference]  # found * (t - node) + difference
        found = [c - node * before for c, before in zip(shifted, [0.0, *found], strict=True)]
    return found
