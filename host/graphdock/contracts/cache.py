"""Where plugins keep what they compile."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["cache_dir"]


def cache_dir(variables: Mapping[str, str] = os.environ) -> Path:
    """The folder: ``GRAPHDOCK_CACHE_DIR``, else ``graphdock`` in the user's cache folder. It may not exist yet."""
    named = variables.get("GRAPHDOCK_CACHE_DIR")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphdock"
