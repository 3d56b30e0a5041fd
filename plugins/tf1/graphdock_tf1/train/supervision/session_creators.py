"""Makers of the sessions of a monitored session: at the beginning, and again after a failure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import graphdock as _tf

from graphdock_tf1.train.supervision.scaffold import Scaffold
from graphdock_tf1.train.supervision.session_manager import SessionManager


class SessionCreator(ABC):
    """Makes sessions."""

    @abstractmethod
    def create_session(self) -> Any:
        """A new session, ready to train."""


class _FromScaffold(SessionCreator):
    def __init__(self, scaffold: Scaffold | None, master: str, config: Any) -> None:
        self._scaffold = Scaffold() if scaffold is None else scaffold
        self._master = master
        self._config = config
        self._made: SessionManager | None = None

    def _manager(self) -> SessionManager:
        """The manager of the scaffold's operations, which is finalized here."""
        scaffold = self._scaffold.finalize()
        if self._made is None:
            self._made = SessionManager(
                local_init_op=scaffold.local_init_op,
                local_init_feed_dict=scaffold.local_init_feed_dict,
                ready_op=scaffold.ready_op,
                ready_for_local_init_op=scaffold.ready_for_local_init_op,
                graph=_tf.get_default_graph(),
            )
        return self._made


class ChiefSessionCreator(_FromScaffold):
    """Makes sessions that are restored or initialised.

    Args:
      scaffold: default: a new Scaffold. master: target of the sessions. config: their configuration.
      checkpoint_dir: folder whose last checkpoint is restored, if there is one.
      checkpoint_filename_with_path: the checkpoint, in its place.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._folder = checkpoint_dir
        self._path = checkpoint_filename_with_path

    def create_session(self) -> Any:
        manager, scaffold = self._manager(), self._scaffold
        return manager.prepare_session(
            self._master,
            saver=scaffold.saver,
            checkpoint_dir=self._folder,
            checkpoint_filename_with_path=self._path,
            config=self._config,
            init_op=scaffold.init_op,
            init_feed_dict=scaffold.init_feed_dict,
            init_fn=scaffold.init_fn,
        )


class WorkerSessionCreator(_FromScaffold):
    """Makes sessions that wait until the chief has given the variables values.

    Args:
      scaffold, master, config: as of :class:`ChiefSessionCreator`. max_wait_secs: seconds.
    """

    def __init__(
        self, scaffold: Scaffold | None = None, master: str = "", config: Any = None, max_wait_secs: float = 1800
    ) -> None:
        super().__init__(scaffold, master, config)
        self._max_wait = max_wait_secs

    def create_session(self) -> Any:
        return self._manager().wait_for_session(self._master, config=self._config, max_wait_secs=self._max_wait)
