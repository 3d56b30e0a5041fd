"""One thing that a conformance run checks, and what may come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Case", "ConformanceError", "Missing", "Refused", "Seen", "Untested"]


class ConformanceError(AssertionError):
    """A kernel, gradient or spec broke a promise; the message says which, with the case's op, dtypes and sample."""


class Missing(Exception):
    """The backend has no kernel for the case; not a failure."""


class Refused(Missing):
    """The kernel that the case pins is not for its dtypes, attributes or shapes: others are."""


class Untested(Missing):
    """Nothing of it could be checked, though it is there: no sample fits a pattern, a compiler claims nothing."""


@dataclass
class Seen:
    """Record of what the steps of a case reached.

    Attributes:
      modes: of those that plans run a kernel in: ``planned``, ``fresh``, ``unranked``, ``strided``, ``computed``.
      size: elements of the largest array that went in or came out.
    """

    modes: set[str] = field(default_factory=set)
    size: int = 0


@dataclass(frozen=True)
class Case:
    """One thing to check.

    Attributes:
      kind: ``value``, ``edge``, ``drawn``, ``random``, ``fact``, ``late``, ``threads``, ``error`` or ``gradient``; or one of
        ``device``, ``pattern``, ``compiler`` and ``law``, where ``op`` is that word and its type or full name, and ``data`` has
        the check's name.
      index: of the sample (or error sample) in the spec.
      types: type variable -> dtype name.
      kernel: full name of the kernel to check, ``mychip.square_fast``; empty for the one that the backend chooses.
    """

    op: str
    kind: str
    index: int
    types: Mapping[str, str] = field(hash=False)
    data: Mapping[str, Any] = field(hash=False, repr=False)
    kernel: str = ""

    @property
    def sample(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.data["errors" if self.kind == "error" else "samples"][self.index]
        return found

    @property
    def dtype(self) -> str:
        """The dtype of the op's first type variable; ``-`` for an op without one."""
        return next(iter(self.types.values()), "-")

    @property
    def id(self) -> str:
        """``MatMul[float32-0]``; further type variables are named, and a pinned kernel: ``MatMul:fast[float32-0]``."""
        if "check" in self.data:
            return f"{self.op}[{self.data['check']}]"
        first, *rest = self.types.items() or [("", "-")]
        more = "".join(f",{var}={name}" for var, name in rest)
        kind = "" if self.kind == "value" else f"{self.kind}-"
        kernel = f":{self.kernel.partition('.')[2]}" if self.kernel else ""
        return f"{self.op}{kernel}[{kind}{first[1]}{more}-{self.index}]"

    @property
    def attrs(self) -> dict[str, Any]:
        """The sample's attributes, and the type variables that no input binds."""
        attrs = dict(self.sample["attrs"])
        bound = set(self.data["args"].values())
        for var, name in self.types.items():
            if var not in bound and var not in attrs:
                attrs[var] = name
        return attrs
