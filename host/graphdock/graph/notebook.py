"""Graphs, tensors and sessions as notebooks show them; a plugin draws."""

from __future__ import annotations

from typing import Any

__all__ = ["as_html"]


def as_html(shown: Any, *facts: Any) -> str | None:
    """A section of HTML; None, for which notebooks print the text, where no plugin here draws one."""
    import graphdock

    return graphdock.profiler.as_html(shown, *facts) if hasattr(graphdock, "profiler") else None
