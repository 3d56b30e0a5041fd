"""The host's patterns, in the order of their plugins' discovery; libraries of them are imported when a plan may hold one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from graphdock import contracts
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.errors import AlreadyExistsError, PluginError

if TYPE_CHECKING:
    from graphdock.contracts import Pattern, PatternLibrary, PlanNode, RegisteredPattern
    from graphdock.plugin.state import PluginState


@lazy_dataclass(slots=True)
class _Entry:
    """Patterns that one item of the hook brought. ``found``: its patterns, once they are imported."""

    order: tuple[bool, bool, bool, str, str]
    plugin: str
    package: str
    item: Pattern | PatternLibrary
    found: tuple[RegisteredPattern, ...] | None = None

    @property
    def anchors(self) -> tuple[str, ...]:
        return (self.item.anchor,) if isinstance(self.item, contracts.Pattern) else self.item.anchors

    def patterns(self) -> tuple[RegisteredPattern, ...]:
        """Its patterns, imported now if they were not.

        Raises:
          PluginError: a library holds something else, or a pattern that it does not announce.
        """
        if self.found is None:
            items: Iterable[Pattern] = (
                (self.item,) if isinstance(self.item, contracts.Pattern) else self._imported(self.item)
            )
            self.found = tuple([contracts.RegisteredPattern(self.plugin, self.package, item) for item in items])
        return self.found

    def _imported(self, library: PatternLibrary) -> list[Pattern]:
        module, _, name = library.patterns.partition(":")
        items = list(getattr(importlib.import_module(module), name))
        for item in items:
            told = isinstance(item, contracts.Pattern) and item.anchor in library.anchors
            if not told or not set(library.not_on).issubset(item.not_on) or item.listed != library.listed:
                raise PluginError(
                    f"plugin {self.plugin!r}: the library {library.patterns!r} holds what it does not announce",
                    expected=f"patterns around {', '.join(library.anchors)}, not on {', '.join(library.not_on) or 'none'}, "
                    f"listed={library.listed}",
                    got=repr(item),
                )
        return items


class PatternRegistry:
    """The patterns of a host."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def register(self, by: PluginState, item: Pattern | PatternLibrary) -> int:
        """Register a pattern of a plugin, or a library of some.

        Raises:
          AlreadyExistsError: the plugin has a pattern of that name.
        """
        mine = [entry.item for entry in self._entries if entry.plugin == by.name]
        names = [other.name for other in mine if isinstance(other, contracts.Pattern)]
        if isinstance(item, contracts.Pattern) and item.name in names:
            raise AlreadyExistsError(f"plugin {by.name!r} brings two patterns {item.name!r}")
        found = by.found
        order = (found.in_memory, found.opt_in, not found.is_own, found.plugin, found.distribution)
        entries = [*self._entries, _Entry(order, by.name, found.package, item)]
        self._entries = sorted(entries, key=lambda entry: entry.order)
        return 1

    def all(self) -> list[RegisteredPattern]:
        """Every pattern that was brought, in order; imports all libraries."""
        return [found for entry in self._entries for found in entry.patterns()]

    def plugins(self, backends: Collection[str]) -> set[str]:
        """Names of the plugins whose patterns are looked for by sessions with these ``backends``."""
        return {entry.plugin for entry in self._entries if not entry.item.listed or entry.plugin in backends}

    def around(
        self, nodes: Iterable[PlanNode], device_type: Callable[[PlanNode], str | None], backends: Collection[str]
    ) -> list[RegisteredPattern]:
        """The patterns whose anchors are among the nodes, of a dtype and on a device type that they are for, in order; those that
        want their plugin listed, where it is among the ``backends``."""
        entries = [entry for entry in self._entries if not entry.item.listed or entry.plugin in backends]
        anchors = {anchor for entry in entries for anchor in entry.anchors}
        alike = {(n.op, n.requested, n.outputs[0].dtype.name): n for n in nodes if n.op in anchors}
        here = {(op, device_type(n), dtype) for (op, _, dtype), n in alike.items()}
        found = []
        for entry in entries:
            if any(op in entry.anchors and device not in (None, *entry.item.not_on) for op, device, _ in here):
                for each in entry.patterns():
                    p = each.pattern
                    if any(o == p.anchor and d not in (None, *p.not_on) and t in p.dtypes for o, d, t in here):
                        found.append(each)
        return found

    def discard(self, plugin: str) -> None:
        """Take back everything of a plugin."""
        self._entries = [entry for entry in self._entries if entry.plugin != plugin]
