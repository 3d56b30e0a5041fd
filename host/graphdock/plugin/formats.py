"""The host's tables of formats of files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from graphdock.errors import UnavailableError, did_you_mean
from graphdock.plugin.left_out import who_brings
from graphdock.plugin.registry import NamedRegistry

__all__ = ["FormatRegistry"]

T = TypeVar("T")


class FormatRegistry(NamedRegistry[T]):
    """Name -> a format and the plugin that brought it.

    Args:
      kind: ``graph`` or ``checkpoint``.
      load: loads the plugins that implement a hook; called before each look-up, from any thread.
      notes: why some plugins did not load; None when all did.
    """

    def __init__(self, kind: str, load: Callable[[str], None], notes: Callable[[], str | None]) -> None:
        super().__init__(f"{kind} format")
        self._kind = kind
        self._load = load
        self._notes = notes

    def all(self) -> list[T]:
        """Every format, in the order of names."""
        self._load(f"register_{self._kind}_formats")
        return [self._items[name][0] for name in self.names()]

    def find(self, name: str) -> T:
        """The format of that name. Raises UnavailableError: no installed plugin has it."""
        self.all()
        found = self.get(name)
        if found is None:
            raise self.missing(f"no installed plugin has the {self._noun} {name!r}", name)
        return found

    def missing(self, message: str, name: str) -> UnavailableError:
        """The error where a format is needed that nobody has: why, and what brings it."""
        known = self.names()
        hints = [h for h in (who_brings(self._kind, name), did_you_mean(name, known), self._notes()) if h]
        return UnavailableError(
            message, expected="one of " + (", ".join(known) or "none"), hint="; ".join(hints) or None
        )
