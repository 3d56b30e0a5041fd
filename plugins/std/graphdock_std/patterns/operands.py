"""Operands of patterns."""

from __future__ import annotations

from graphdock.contracts import Operand

ROW = Operand((None,))
#: Devices without launches to save.
PARTS = ("cpu",)


def any_of(rank: int) -> Operand:
    """A tensor of a rank, of any dims."""
    return Operand((None,) * rank)
