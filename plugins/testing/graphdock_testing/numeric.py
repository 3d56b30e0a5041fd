"""Comparing arrays, and derivatives by central differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["TOLERANCES", "central_differences", "difference", "same_bits"]

#: What two right answers may differ by, where a spec does not say: some units in the last place.
TOLERANCES: Mapping[str, tuple[float, float]] = {
    "float16": (4e-3, 2e-3),
    "bfloat16": (2e-2, 1e-2),
    "float32": (1e-5, 1e-6),
    "float64": (1e-12, 1e-12),
    "complex64": (1e-5, 1e-6),
    "complex128": (1e-12, 1e-12),
}


def same_bits(a: Any, b: Any) -> bool:
    """Return whether two arrays agree in dtype, shape and every bit."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.hasobject:
        return bool(np.array_equal(a, b))
    return bool(np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes())


def difference(got: Any, want: Any, tolerance: Mapping[str, float] | None = None, slack: Any = 0.0) -> str | None:
    """How ``got`` differs from ``want``, or None. Integers, booleans and strings must be equal; NaN equals NaN.

    Args:
      tolerance: ``rtol`` and ``atol``; default: :data:`TOLERANCES` of the dtype.
      slack: what each element may differ by whatever they say.
    """
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype:
        return f"dtype is {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"shape is {list(got.shape)}, expected {list(want.shape)}"
    exact = got.dtype.kind in "biuO"
    if exact:
        wrong = got != want
    else:
        usual = TOLERANCES.get(got.dtype.name, (1e-6, 1e-6))
        tolerance = tolerance or {}
        rtol, atol = tolerance.get("rtol", usual[0]), tolerance.get("atol", usual[1])
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        a, b = got.astype(wide), want.astype(wide)
        with np.errstate(invalid="ignore"):
            wrong = ~(np.isclose(a, b, rtol, atol, equal_nan=True) | (np.abs(a - b) <= slack))
    if not np.any(wrong):
        return None
    places = np.argwhere(np.atleast_1d(wrong))
    first = tuple(int(i) for i in places[0][: got.ndim])
    return f"{len(places)} of {got.size} elements differ; at {list(first)} got {got[first]!r}, expected {want[first]!r}"


def central_differences(
    function: Callable[..., float], arrays: Sequence[np.ndarray[Any, Any]], which: int, eps: float = 1e-6
) -> np.ndarray[Any, Any]:
    """The derivative of a scalar ``function(*arrays)`` by each element of ``arrays[which]``, by
    ``(f(x + eps) - f(x - eps)) / 2 eps``. The arrays are not written."""
    moved = list(arrays)
    x = np.array(arrays[which], np.float64)
    moved[which] = x
    result = np.empty(x.shape, np.float64)
    for index in np.ndindex(*x.shape):
        kept = x[index]
        x[index] = kept + eps
        above = function(*moved)
        x[index] = kept - eps
        below = function(*moved)
        x[index] = kept
        result[index] = (above - below) / (2.0 * eps)
    return result
