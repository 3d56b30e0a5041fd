"""Names below ``tf`` that plugins publish: whose table has which, and which one counts.

A manifest's ``endpoints`` names a module of the plugin; its dict ``ENDPOINTS`` has rows such as ``"nn.relu": "module:attribute"``,
strings only. The façade asks after the host's own names. Of graphdock's own plugins the first in the order of discovery has a name;
their tables are read together, at the first name that is not the host's. Those of others are read together too, at the first name
that no plugin of graphdock's has. What two of these publish is nobody's: to look it up is an error. Namespaces (``tf.nn``) merge.

What is blocked, at fault or not allowed to load by itself publishes nothing; no module of it is imported.

Threads: any. No lock is held while a plugin's module is imported; two threads may read one table, and find the same.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphdock.errors import ManifestError, PluginError
from graphdock.plugin import manifest
from graphdock.plugin.discovery import manifest_path
from graphdock.plugin.state import PluginState

__all__ = ["Endpoints", "read_table"]


def read_table(state: PluginState) -> Mapping[str, str]:
    """The names that a plugin publishes; none where its manifest names no module. Imports that module.

    Raises:
      PluginError: the module can't be imported, or holds no such table; ``__cause__`` is what it raised.
    """
    module = None if state.manifest is None else state.manifest.endpoints
    if module is None:
        return {}
    whose = f"plugin {state.name!r} ({state.found.distribution} {state.found.version})"
    try:
        table = importlib.import_module(module).ENDPOINTS
    except Exception as error:  # whatever the plugin's module raises
        raise PluginError(f"{whose}: {module}.ENDPOINTS can't be read: {type(error).__name__}: {error}") from error
    if not isinstance(table, dict):
        raise PluginError(f"{whose}: {module}.ENDPOINTS is no table", expected="a dict of strings", got=repr(table))
    for name, target in table.items():
        if not (isinstance(name, str) and isinstance(target, str) and _is_endpoint(name, target)):
            raise PluginError(
                f"{whose}: {module}.ENDPOINTS has a wrong row",
                expected='"dotted.name": "module:attribute"',
                got=f"{name!r}: {target!r}",
            )
    return table


def _is_endpoint(name: str, target: str) -> bool:
    module, colon, attribute = target.partition(":")
    parts = [*name.split("."), *module.split(".")]
    return bool(colon) and attribute.isidentifier() and all(part.isidentifier() for part in parts)


def _has_names(state: PluginState) -> bool:
    """Whether a plugin would publish names if it might, as far as anybody knows."""
    if state.manifest is not None or state.stage != "blocked":
        return state.manifest is None or state.manifest.endpoints is not None
    path = manifest_path(state.found.module)
    try:
        return path is not None and path.is_file() and manifest.load(path).endpoints is not None
    except ManifestError:
        return True


@dataclass(frozen=True)
class _Tables:
    """Some plugins' tables.

    Attributes:
      names: name -> who publishes it, and what: ``""`` for a namespace, of which each plugin has one row.
      faults: of tables that could not be read.
    """

    names: Mapping[str, Sequence[tuple[PluginState, str]]]
    faults: Sequence[PluginError]

    @classmethod
    def read(cls, states: Iterable[PluginState]) -> _Tables:
        names: dict[str, list[tuple[PluginState, str]]] = {}
        faults = []
        for state in states:
            try:
                table = read_table(state)
            except PluginError as error:  # told of with the next name that nobody has
                faults.append(error)
                continue
            spaces = {name[:i] for name in table for i, letter in enumerate(name) if letter == "."}
            for name, target in (*table.items(), *((space, "") for space in spaces - table.keys())):
                names.setdefault(name, []).append((state, target))
        return cls(names, faults)


class Endpoints:
    """The published names of one host.

    Args:
      states: the installed plugins in the order of discovery, their manifests read.
      may_publish: whether a plugin may be imported for its names.
    """

    def __init__(self, states: Sequence[PluginState], may_publish: Callable[[PluginState], bool]) -> None:
        self._publishing = [s for s in states if may_publish(s)]
        self._barred = [s for s in states if not may_publish(s)]
        self._read: dict[bool, _Tables] = {}

    def _tables(self, own: bool) -> _Tables:
        """Those of graphdock's own plugins, or of all others. A module that asks for names while it is imported here asks again."""
        if own not in self._read:
            self._read[own] = _Tables.read(s for s in self._publishing if s.found.is_own == own)
        return self._read[own]

    def target(self, name: str) -> str | None:
        """``"module:attribute"`` of a name, ``""`` for a namespace, None where nobody publishes it.

        Raises:
          PluginError: two plugins of others publish it.
        """
        rows = self._tables(own=True).names.get(name)
        if rows is None:
            rows = self._tables(own=False).names.get(name, ())
            if len(rows) > 1 and any(target for _, target in rows):
                each = [f"{s.name!r} ({s.found.distribution} {s.found.version})" for s, _ in rows]
                raise PluginError(
                    f"tf.{name} is published by several plugins: {', '.join(each)}",
                    hint=f'`block = ["{rows[-1][0].name}"]` under [plugins] leaves the others',
                )
        return rows[0][1] if rows else None

    def names(self) -> set[str]:
        """Every name that can be looked up, namespaces among them."""
        own, others = (self._tables(own).names for own in (True, False))
        clear = {name for name, rows in others.items() if len(rows) == 1 or not any(target for _, target in rows)}
        return own.keys() | clear

    def hint(self, name: str) -> str | None:
        """What a plugin knows of a name that nobody publishes: the first that says something, by its manifest's ``name_hint``."""
        for state in self._publishing:
            where = None if state.manifest is None else state.manifest.name_hint
            if where is not None:
                module, _, function = where.partition(":")
                said: str | None = getattr(importlib.import_module(module), function)(name)
                if said is not None:
                    return said
        return None

    def notes(self) -> tuple[str, PluginError | None]:
        """Why nobody may publish a name: tables that can't be read, of which the first is returned, and plugins that may not."""
        faults = [*self._tables(own=True).faults, *self._tables(own=False).faults]
        lines = [fault.message for fault in faults]
        for state in self._barred:
            if not state.hidden and _has_names(state):
                why = "plugins load only when they are named" if state.usable else f"{state.stage}: {state.cause}"
                lines.append(f"plugin {state.name!r} publishes no name: {why}")
        return "; ".join(lines), faults[0] if faults else None
