"""Plugins of graphdock that an installation leaves out: which of them would bring a name, and what to install."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphdock.plugin.state import PluginState

#: Kind of name -> plugin -> the names that it brings.
TABLE = Path(__file__).with_suffix(".toml")


def who_brings(kind: str, name: str, installed: Iterable[PluginState] = ()) -> str | None:
    """A sentence for the error about a name that nobody has here; None where no plugin of graphdock's would bring it.

    Args:
      kind: a table of the file, such as ``commands``, or ``names`` below ``tf``, of which the first part is given.
      installed: the plugins of a host, where the one that brings it may be among them, stopped.
    """
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))[kind]
    plugin = next((plugin for plugin, names in table.items() if name in names), None)
    if plugin is None:
        return None
    state = next((s for s in installed if s.name == plugin and s.found.is_own), None)
    if state is None:
        why = "this installation leaves out: pip install --force-reinstall graphdock"
    elif not state.usable:
        why = f"can't be used: {state.stage}: {state.cause}"
    else:
        return None
    return f"it is brought by the plugin {plugin!r}, which {why}"
