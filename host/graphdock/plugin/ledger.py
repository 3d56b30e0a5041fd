"""The load ledger: how far each installed plugin came, why not further, how long it took and what it added."""

from __future__ import annotations

import os
import traceback
from dataclasses import asdict, dataclass
from typing import Any

from graphdock.errors import GraphdockError

__all__ = ["FAULTS", "STAGES", "Added", "LedgerEntry", "cause_of"]

#: Every stage, in the order in which a plugin can stop at it.
STAGES = (
    "found",
    "blocked",
    "duplicate",
    "no manifest",
    "bad manifest",
    "incompatible",
    "missing module",
    "import failed",
    "hook failed",
    "inconsistent",
    "manifest drift",
    "probe failed",
    "no device",
    "registered",
)

#: Stages that are somebody's mistake. ``graphdock doctor --strict`` exits 1 when a plugin stands at one of them.
FAULTS = frozenset(STAGES) - {"found", "blocked", "no device", "registered"}


@dataclass(frozen=True, slots=True)
class Added:
    """What a plugin registered: its device types, and how many ops and kernels."""

    devices: tuple[str, ...] = ()
    ops: int = 0
    kernels: int = 0

    def __str__(self) -> str:
        def count(n: int, noun: str) -> str:
            return f"{n} {noun}" if n == 1 else f"{n} {noun}s"

        parts = []
        if self.devices:
            parts.append(count(len(self.devices), "device"))
        if self.ops:
            parts.append(count(self.ops, "op"))
        if self.kernels:
            parts.append(count(self.kernels, "kernel"))
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One plugin of one distribution, as it stands now.

    Attributes:
      stage: one of :data:`STAGES`.
      cause: why it stands there, in words; None for ``found``. Of one that is ``registered``, what it has parts for and nobody here
        has; else None.
      hint: what to do about it.
      import_ms: wall time of its import and hooks; None when it was not imported.
    """

    plugin: str
    distribution: str
    version: str
    stage: str
    cause: str | None = None
    hint: str | None = None
    import_ms: float | None = None
    added: Added = Added()

    @property
    def is_fault(self) -> bool:
        return self.stage in FAULTS

    def as_json(self) -> dict[str, Any]:
        """The entry as ``graphdock doctor --json`` prints it."""
        return {**asdict(self), "fault": self.is_fault}


def cause_of(error: BaseException, package: str) -> str:
    """``NameError: name 'npx' is not defined (graphdock_mychip/kernels.py:14)``: with the last line of its own code."""
    if isinstance(error, SystemExit):
        text = f"SystemExit: it asked the process to exit with {error.code!r}"
    elif isinstance(error, GraphdockError):
        text = error.text
    else:
        text = f"{type(error).__name__}: {error}"
    own = [
        f"{os.path.join(package, frame.filename.replace(os.sep, '/').rpartition(f'/{package}/')[2])}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if f"/{package}/" in frame.filename.replace(os.sep, "/")
    ]
    return f"{text} ({own[-1]})" if own else text
