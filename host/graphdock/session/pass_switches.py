"""Switches of passes for sessions whose steps are planned elsewhere, which check them before any step."""

from __future__ import annotations

from collections.abc import Mapping

from graphdock.passes.pipeline import checked_switches, known_passes
from graphdock.plugin.host import Host

__all__ = ["check_passes", "without_unknown"]


def check_passes(switches: Mapping[str, bool], host: Host) -> None:
    """Return at once where a host has all these passes. Raises ConfigError."""
    checked_switches(switches, known_passes(host))


def without_unknown(switches: Mapping[str, bool], host: Host) -> dict[str, bool]:
    """The switches, but for passes that are to be off and that a host has not, so that they are. Others are for the check."""
    known = known_passes(host)
    return {name: on for name, on in switches.items() if name in known or on is not False}
