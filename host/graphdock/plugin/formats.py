"""The host's tables of formats of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from graphdock.errors import UnavailableError, did_you_mean
from graphdock.plugin.left_out import who_brings
from graphdock.plugin.registry import NamedRegistry

if TYPE_CHECKING:
    from graphdock.plugin.host import Host

__all__ = ["FormatRegistry"]

T = TypeVar("T")


class FormatRegistry(NamedRegistry[T]):
    """Name -> a format and the plugin that brought it.

    Args:
      kind: ``graph`` or ``checkpoint``.
      host: before each look-up it loads the plugins that implement the hook.
    """

    def __init__(self, kind: str, host: Host) -> None:
        super().__init__(f"{kind} format")
        self._kind = kind
        self._host = host

    def all(self) -> list[T]:
        """Every format, in the order of names."""
        self._host.load_for(f"register_{self._kind}_formats")
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
        brought = who_brings(self._kind, name, self._host.plugins())
        hints = [h for h in (brought, did_you_mean(name, known), self._host.fault_notes()) if h]
        return UnavailableError(
            message, expected="one of " + (", ".join(known) or "none"), hint="; ".join(hints) or None
        )
