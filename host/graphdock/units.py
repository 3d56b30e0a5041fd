"""Amounts for people: bytes and seconds with their units, in three digits and never with an exponent."""

from __future__ import annotations

__all__ = ["in_bytes", "in_seconds"]


def in_bytes(number: float) -> str:
    """``1.5 GiB``, ``512 B``. Three digits, four just below the next unit: ``1023 KiB``."""
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if number >= size:
            return f"{_digits(number / size)} {unit}"
    return f"{number:.0f} B"


def in_seconds(number: float) -> str:
    """``1.5 s``, ``20 ms``, ``3.25 us``. Three digits, four just below the next unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if number >= size:
            return f"{_digits(number / size)} {unit}"
    return f"{_digits(number * 1e6)} us"


def _digits(number: float) -> str:
    """Three digits; a format of three digits alone would print 1023.5 as 1.02e+03 and 0.00001 as 1e-05."""
    if number >= 999.5:
        return f"{number:.0f}"
    return f"{number:.3g}" if number >= 0.01 else "0"
