"""InteractiveSession: the session of a shell or notebook."""

from __future__ import annotations

from graphdock.config.session_config import SessionConfig, Translatable
from graphdock.graph import default_session
from graphdock.graph.graph import Graph
from graphdock.plugin.host import Host
from graphdock.session.session import Session

__all__ = ["InteractiveSession"]


class InteractiveSession(Session):
    """A session that is the default one of its thread as soon as it is made, for a shell or notebook."""

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: SessionConfig | Translatable | None = None,
        host: Host | None = None,
    ) -> None:
        super().__init__(target, graph, config, host)
        default_session.push(self)

    def close(self) -> None:
        default_session.forget(self)
        super().close()
