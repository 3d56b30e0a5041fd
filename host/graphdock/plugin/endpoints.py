"""Names below ``tf`` that plugins publish: whose table has which, and which one counts.

A manifest's ``endpoints`` has rows such as ``"nn.relu" = "module:attribute"``, or names modules of the plugin whose dicts
``ENDPOINTS`` and ``FUNCTIONS`` have them, strings only; a row may say a module and a namespace once
(:func:`graphdock.contracts.op_table.spelled_out`). The façade asks after the host's own names. Of graphdock's own plugins the first
in the order of discovery has a name, those with ``endpoints_last`` after the others; their tables are read one by one until one has
it. Those of others are read together, at the first name that no plugin of graphdock's has. What two of these publish is nobody's:
to look it up is an error. Namespaces (``tf.nn``) merge.

What is blocked, at fault or not allowed to load by itself publishes nothing; no module of it is imported.

Threads: any. No lock is held while a plugin's module is imported; two threads may read one table, and find the same.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.contracts.op_table import spelled_out
from graphdock.errors import ManifestError, PluginError
from graphdock.plugin import manifest
from graphdock.plugin.discovery import Found, manifest_path
from graphdock.plugin.state import PluginState


def read_table(state: PluginState) -> Mapping[str, str]:
    """The names that a plugin publishes; none where its manifest has no ``endpoints``. Imports the modules that it names.

    Raises:
      PluginError: a module can't be imported, or holds no such table; ``__cause__`` is what it raised.
    """
    return {} if state.manifest is None else published_names(state.manifest.endpoints, str(state))


def published_names(endpoints: tuple[str, ...] | Mapping[str, Any] | None, owner: str) -> Mapping[str, str]:
    """The names that ``endpoints`` of a manifest stand for; ``owner`` is the plugin in messages. Raises as :func:`read_table`."""
    if not isinstance(endpoints, tuple):
        return _spelled_out(endpoints or {}, f"{owner}: endpoints of its manifest")
    found: dict[str, str] = {}
    for name in endpoints:
        where = f"{owner}: {name}.ENDPOINTS"
        try:
            module = importlib.import_module(name)
            tables = module.ENDPOINTS, getattr(module, "FUNCTIONS", {})
        except Exception as error:  # whatever the plugin's module raises
            raise PluginError(f"{where} can't be read: {type(error).__name__}: {error}") from error
        for table in tables:
            found.update(_spelled_out(table, where))
    return found


def _spelled_out(table: Any, where: str) -> dict[str, str]:
    if not isinstance(table, dict):
        raise PluginError(f"{where} is no table", expected="a dict of strings", got=repr(table))
    try:
        rows = spelled_out(table)
    except (AttributeError, TypeError) as error:
        raise PluginError(f"{where} has a wrong row", expected='"dotted.name": "module:attribute"') from error
    for name, target in rows.items():
        if not (isinstance(name, str) and _is_endpoint(name, target)):
            raise PluginError(
                f"{where} has a wrong row",
                expected='"dotted.name": "module:attribute"',
                got=f"{name!r}: {target!r}",
            )
    return rows


def _is_endpoint(name: str, target: str) -> bool:
    module, colon, attribute = target.partition(":")
    parts = [*name.split("."), *module.split(".")]
    return bool(colon) and attribute.isidentifier() and all(part.isidentifier() for part in parts)


def _has_names(state: PluginState) -> bool:
    """Return whether a plugin would publish names if it might, as far as anybody knows."""
    if state.manifest is not None or state.stage != "blocked":
        return state.manifest is None or state.manifest.endpoints is not None
    path = manifest_path(state.found.module)
    try:
        return path is not None and os.path.isfile(path) and manifest.load(path).endpoints is not None
    except ManifestError:
        return True


class Endpoints:
    """The published names of one host.

    Args:
      states: the installed plugins in the order of discovery, their manifests read. Also an attribute.
      may_publish: whether a plugin may be imported for its names.
    """

    def __init__(self, states: Sequence[PluginState], may_publish: Callable[[PluginState], bool]) -> None:
        self.states = states
        publishing = [s for s in states if may_publish(s)]
        self._publishing = sorted(publishing, key=lambda s: s.manifest is not None and s.manifest.endpoints_last)
        self._barred = [s for s in states if not may_publish(s)]
        self._read: dict[Found, Mapping[str, str]] = {}
        self._faults: dict[Found, PluginError] = {}

    def _table(self, state: PluginState) -> Mapping[str, str]:
        """A plugin's names, ``""`` for each namespace among them. A module that asks for names while it is imported asks again."""
        table = self._read.get(state.found)
        if table is None:
            try:
                rows = read_table(state)
                self._faults.pop(state.found, None)
            except PluginError as error:  # told of with the next name that nobody has
                rows, self._faults[state.found] = {}, error
            spaces = {name[:i] for name in rows for i, letter in enumerate(name) if letter == "."}
            table = self._read[state.found] = {**dict.fromkeys(spaces, ""), **rows}
        return table

    def target(self, name: str) -> str | None:
        """``"module:attribute"`` of a name, ``""`` for a namespace, None where nobody publishes it.

        Raises:
          PluginError: two plugins of others publish it.
        """
        others = []
        for state in self._publishing:
            if state.found.is_own:
                target = self._table(state).get(name)
                if target is not None:
                    return target
            else:
                others.append(state)
        rows = [(s, target) for s in others if (target := self._table(s).get(name)) is not None]
        if len(rows) > 1 and any(target for _, target in rows):
            each = [f"{s.name!r} ({s.found.release})" for s, _ in rows]
            raise PluginError(
                f"tf.{name} is published by several plugins: {', '.join(each)}",
                hint=f'`block = ["{rows[-1][0].name}"]` under [plugins] leaves the others',
            )
        return rows[0][1] if rows else None

    def names(self) -> set[str]:
        """Every name that can be looked up, namespaces among them."""
        own: set[str] = set()
        others: dict[str, list[str]] = {}
        for state in self._publishing:
            table = self._table(state)
            if state.found.is_own:
                own |= table.keys()
            else:
                for name, target in table.items():
                    others.setdefault(name, []).append(target)
        return own | {name for name, targets in others.items() if len(targets) == 1 or not any(targets)}

    def hint(self, name: str) -> str | None:
        """Return what a plugin knows of a name that nobody publishes: the first that says something, by its manifest's
        ``name_hint``.
        """
        for state in self._publishing:
            where = None if state.manifest is None else state.manifest.name_hint
            if where is not None:
                module, _, function = where.partition(":")
                said: str | None = getattr(importlib.import_module(module), function)(name)
                if said is not None:
                    return said
        return None

    def notes(self) -> tuple[str, PluginError | None]:
        """Return why nobody may publish a name: tables that can't be read, of which the first is returned, and plugins that
        may not.
        """
        self.names()
        faults = [self._faults[s.found] for s in self._publishing if s.found in self._faults]
        lines = [fault.message for fault in faults]
        for state in self._barred:
            if not state.hidden and _has_names(state):
                why = "plugins load only when they are named" if state.usable else f"{state.stage}: {state.cause}"
                lines.append(f"plugin {state.name!r} publishes no name: {why}")
        return "; ".join(lines), faults[0] if faults else None
