"""Why values or gradients of an op may differ from PyTorch's."""

from __future__ import annotations

from typing import Any

__all__ = ["EXPLAINED", "TOLERANCES_OF"]

#: Op -> (a pattern of what differs, why). What no pattern finds is unexplained.
EXPLAINED: dict[str, tuple[tuple[str, str], ...]] = {}
#: Op -> dtype -> (rtol, atol), each with the reason.
TOLERANCES_OF: dict[str, dict[Any, tuple[float, float]]] = {}
