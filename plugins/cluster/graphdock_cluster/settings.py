"""Settings of a session on a target: which hold on all its tasks, and which are its own or each server's."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from typing import Any

from graphdock.config.session_config import SessionConfig
from graphdock.contracts import errors
from graphdock.plugin.host import Host
from graphdock.session.pass_switches import check_passes, without_unknown

__all__ = ["CARRIED", "carried", "of_server", "received"]

_log = logging.getLogger("graphdock")
#: Settings that hold on all tasks where the session's program gave them, or that of its target's server.
CARRIED = ("check_numerics", "deterministic", "fallback", "fusion", "log_device_placement", "passes", "shape_policy")
#: Those that the session itself reads. The others are each server's own.
_OWN = (
    "bfloat16_sendrecv",
    "cluster",
    "device_filters",
    "isolate_session_state",
    "operation_timeout",
    "plan_cache_size",
)


def carried(config: SessionConfig, host: Host, server: SessionConfig | None) -> dict[str, Any]:
    """Settings that a program gave and that hold on tasks, as plain data. Says in the log, once, which have no effect.

    Args:
      server: configuration of the session's own server, where that is of this process; what it says as well is not told.

    Raises:
      ConfigError: a pass that there is not.
    """
    given = _given(config)
    for name, value in given.items():
        if name not in CARRIED and name not in _OWN and (server is None or getattr(server, name) != value):
            _tell(name)
    if "passes" in given:
        check_passes(given["passes"], host)
    return _plain(given)


def of_server(config: SessionConfig) -> dict[str, Any]:
    """Settings that a server was given and that hold on all tasks for sessions on it that say nothing of them."""
    return _plain(_given(config))


def received(settings: Any, config: SessionConfig, host: Host) -> SessionConfig:
    """The configuration of a task with the settings of a session in it.

    A pass that the session switches off, and that nothing here brings, is off.

    Raises:
      InvalidArgumentError: it is no table, or holds what is the task's own. ConfigError: a wrong value.
    """
    if not settings:
        return config
    if not isinstance(settings, Mapping) or not set(settings).issubset(CARRIED):
        raise errors.InvalidArgumentError(
            "a session brings settings that are the task's own",
            expected="a table of " + ", ".join(CARRIED),
            got=repr(list(settings) if isinstance(settings, Mapping) else settings)[:200],
        )
    changes = dict(settings)
    if isinstance(changes.get("passes"), Mapping):
        changes["passes"] = without_unknown(changes["passes"], host)
    made = config.replace(**changes)
    check_passes(made.passes, host)
    return made


def _given(config: SessionConfig) -> dict[str, Any]:
    return {name: value for name, (value, source) in config.resolved().items() if source == "code"}


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    return {n: dict(v) if isinstance(v, Mapping) else v for n, v in given.items() if n in CARRIED}


@functools.cache
def _tell(name: str) -> None:
    _log.warning("SessionConfig.%s of a session on a target has no effect: it is each server's own", name)
