"""Names and modules that a program asked for in vain, with the lines that asked.

Any thread may add; the summary is printed once, by the process that began.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import FrameType

from graphdock.locks import new_lock

__all__ = ["Missing", "Uses"]


@dataclass
class Missing:
    """A name that is not here. ``why``: the reason, and what to write. ``places``: ``file:line``, in the order of asking."""

    name: str
    why: str
    places: list[str] = field(default_factory=list)


class Uses:
    """Names that were asked for in vain."""

    def __init__(self) -> None:
        self._missing: dict[str, Missing] = {}
        self._lock = new_lock()

    def add(self, name: str, why: str) -> None:
        """Remember a name and the line of the program that asks for it; what asks from no file of a program is left out."""
        place = _caller()
        if place is not None:
            with self._lock:
                missing = self._missing.setdefault(name, Missing(name, why))
                if place not in missing.places:
                    missing.places.append(place)

    def missing(self) -> list[Missing]:
        """The names, in the order in which they were first asked for."""
        with self._lock:
            return list(self._missing.values())

    def summary(self) -> str:
        """A line per name, with its places and reason; empty where nothing was asked for in vain."""
        found = self.missing()
        if not found:
            return ""
        head = f"graphdock run: the program asked for {len(found)} name{'s' if len(found) > 1 else ''} that graphdock lacks:"
        lines = []
        for missing in found:
            more = f" and {len(missing.places) - 1} more" if len(missing.places) > 1 else ""
            lines.append(f"  {missing.name}  ({missing.places[0]}{more}): {missing.why}")
        return "\n".join([head, *lines])


def _caller() -> str | None:
    """``file:line`` of the innermost frame that is neither graphdock's nor the import machinery's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not (module.partition(".")[0].startswith("graphdock") or module.startswith("importlib")):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return None
