"""Arguments of a session: its target, and settings that are refused."""

from __future__ import annotations

import reprlib
from dataclasses import fields
from typing import Any

from graphdock.config.session_config import SessionConfig, Translatable
from graphdock.errors import ArgumentTypeError, InvalidArgumentError, UnimplementedError, did_you_mean
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.graph.site import capture, describe
from graphdock.plugin.host import Host

__all__ = ["REFUSED", "SETTINGS", "SessionType", "refuse"]

#: Settings that have no reader yet: a session that sets one is refused (docs/adr/0004).
REFUSED = ("inter_op_threads",)
#: Names of all settings.
SETTINGS = tuple(f.name for f in fields(SessionConfig))
#: Type of what is often passed in the place of the target -> the argument that was meant.
_MEANT: dict[type, str] = {SessionConfig: "config", Translatable: "config", Graph: "graph"}


class SessionType(type):
    """Lets ``Session("ray://head:6379")`` be whatever the plugin that owns the scheme opens."""

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        """Open a target; a class with an ``__init__`` of its own, outside of this package, takes what that takes."""
        if not cls.__init__.__module__.startswith("graphdock.session"):  # type: ignore[misc]
            return super().__call__(*args, **keywords)
        return cls._open(*args, **keywords)

    def _open(
        cls,
        target: str = "",
        graph: Graph | None = None,
        config: SessionConfig | Translatable | None = None,
        host: Host | None = None,
        **unknown: Any,
    ) -> Any:
        if unknown:
            raise _no_argument(cls.__name__, next(iter(unknown)))
        if not isinstance(target, str):
            meant = next((name for kind, name in _MEANT.items() if isinstance(target, kind)), None)
            raise ArgumentTypeError(
                f"{cls.__name__}: target is of the wrong type",
                expected="a string such as 'ray://head:6379', or ''",
                got=reprlib.repr(target),
                hint=None if meant is None else f"pass it as {meant}=...",
            )
        if not target:
            return super().__call__(target, graph, config, host)
        if isinstance(config, Translatable):
            config = config.to_session_config()
        owner = host if host is not None else (graph or get_default_graph()).host
        return owner.session_factory(target).open(target, graph, config)


def _no_argument(kind: str, name: str) -> InvalidArgumentError:
    """The error of a session that is given an argument it has not: a setting belongs into its config."""
    if name in SETTINGS:
        hint: str | None = f"write tf.{kind}(config=tf.SessionConfig({name}=...))"
    else:
        hint = did_you_mean(name, ["target", "graph", "config", "host", *SETTINGS])
    return InvalidArgumentError(f"{kind} has no argument {name!r}", site=describe(capture()), hint=hint)


def refuse(config: SessionConfig) -> None:
    """Raise UnimplementedError for settings that this version knows but could not honour."""
    for name in REFUSED:
        if getattr(config, name):
            raise UnimplementedError(f"{name} ({config.source(name)}) is not honoured yet", hint="leave it out")
