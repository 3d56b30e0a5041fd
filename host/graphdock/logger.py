"""The logger ``graphdock``. ``logging`` is imported by the first who says something: few sessions do, and it takes 6 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

__all__ = ["logger"]


def logger() -> logging.Logger:
    """The logger ``graphdock``, under which users turn what graphdock says on and off."""
    import logging

    return logging.getLogger("graphdock")
