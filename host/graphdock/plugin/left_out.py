"""Plugins of graphdock that an installation leaves out: which of them would bring a name, and what to install."""

from __future__ import annotations

import tomllib
from pathlib import Path

__all__ = ["TABLE", "who_brings"]

#: Kind of name -> plugin -> the names that it brings.
TABLE = Path(__file__).with_suffix(".toml")


def who_brings(kind: str, name: str) -> str | None:
    """A sentence for the error about a name that nobody has here; None where no plugin of graphdock's brings it either.

    Args:
      kind: a table of the file, such as ``commands``.
    """
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))[kind]
    plugin = next((plugin for plugin, names in table.items() if name in names), None)
    if plugin is None:
        return None
    return f"it is brought by the plugin {plugin!r}, which this installation leaves out: pip install --force-reinstall graphdock"
