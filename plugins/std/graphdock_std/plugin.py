"""Entry point of the ``std`` plugin: the standard op library. It owns no device and no kernel."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import OpLibrary, Pattern, hookimpl


@hookimpl
def register_ops() -> Iterable[OpLibrary]:
    return [OpLibrary("graphdock_std.library", specs="graphdock_std")]


@hookimpl
def register_patterns() -> Iterable[Pattern]:
    from graphdock_std.patterns import PATTERNS

    return PATTERNS
