"""Seconds that the examination of a plugin may take, and the option that gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from graphdock.contracts.lazy_dataclass import lazy_dataclass

#: Seconds a plugin may take to load, and each of its probes.
LOAD, PROBE = 120.0, 60.0
#: Seconds after which a plugin that is still busy is told of.
SLOW = 10.0


@lazy_dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that a plugin may take to ``load``, and that each ``probe`` may take; what takes ``slow`` seconds is told of."""

    load: float = LOAD
    probe: float = PROBE
    slow: float = SLOW


def timeout_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--timeout``: passes ``limits``."""
    return click.option(
        "--timeout",
        "limits",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        callback=lambda ctx, param, value: Limits() if value is None else Limits(load=value, probe=value),
        help=f"What loading may take, and each probe; {LOAD:g} and {PROBE:g} otherwise.",
    )(command)
