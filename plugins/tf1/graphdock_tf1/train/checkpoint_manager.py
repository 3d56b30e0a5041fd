"""CheckpointManager: numbers and keeps the last few checkpoints of a Checkpoint."""

from __future__ import annotations

import os
import time
from typing import Any

from graphdock.errors import InvalidArgumentError
from graphdock_storage.checkpoint.files import make_folder

from graphdock_tf1.train.checkpoint_files import checkpoint_exists, remove_checkpoint
from graphdock_tf1.train.checkpoint_objects import Checkpoint
from graphdock_tf1.train.checkpoint_state import get_checkpoint_state, write_state


class CheckpointManager:
    """Saves a :class:`Checkpoint` as ``ckpt-1``, ``ckpt-2`` and so on into a folder, and removes the oldest ones.

    A new manager of a folder goes on where the one before was: it takes over the list in the file ``checkpoint``.

    Args:
      checkpoint: what is saved. directory: the folder; it is made when the one around it is there.
      max_to_keep: how many are kept; None for all. keep_checkpoint_every_n_hours: one of each so many hours is kept for good.
      checkpoint_name: beginning of the files' names.

    Raises:
      InvalidArgumentError: ``max_to_keep`` is not positive.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: str,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise InvalidArgumentError("max_to_keep must be positive, or None for all", got=repr(max_to_keep))
        self._checkpoint = checkpoint
        self._folder = os.fsdecode(directory)
        self._max_to_keep = max_to_keep
        self._hours = keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._folder, checkpoint_name)
        now = time.time()
        self._preserved = now - 1.0
        self._latest: str | None = None
        #: Path -> time, oldest first, of those that may be removed.
        self._kept: dict[str, float] = {}
        state = get_checkpoint_state(self._folder)
        if state is not None:
            self._latest = state.model_checkpoint_path
            self._preserved = min(state.last_preserved_timestamp or now, now)
            times = state.all_model_checkpoint_timestamps or [now] * len(state.all_model_checkpoint_paths)
            pairs = zip(state.all_model_checkpoint_paths, times, strict=True)
            self._kept = {path: when for path, when in pairs if checkpoint_exists(path)}

    @property
    def directory(self) -> str:
        """The folder."""
        return self._folder

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the last checkpoint, for ``Checkpoint.restore``; None where there is none."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The checkpoints that are kept, oldest first, without those that are kept for good."""
        return list(self._kept)

    def save(self, checkpoint_number: int | None = None, session: Any = None) -> str:
        """Save; returns the checkpoint's path.

        Args:
          checkpoint_number: default: one more than the last; ``checkpoint.save_counter`` counts. session: default: the default one.

        Raises:
          as ``Saver.save``.
        """
        make_folder(self._folder)
        if checkpoint_number is None:
            number = self._checkpoint._count(session)
        else:
            number = int(checkpoint_number)
        path = self._checkpoint.write(f"{self._prefix}-{number}", session)
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        self._latest = path
        old = self._oldest()
        self._record()  # before they go: the list names what is there
        for each in old:
            remove_checkpoint(each)
        return path

    def _oldest(self) -> list[str]:
        """Take those that are too many out of the list; returns those that are to be removed."""
        gone = []
        while self._max_to_keep is not None and len(self._kept) > self._max_to_keep:
            path, when = next(iter(self._kept.items()))
            del self._kept[path]
            if self._hours is not None and when - self._hours * 3600.0 >= self._preserved:
                self._preserved = when
            else:
                gone.append(path)
        return gone

    def _record(self) -> None:
        assert self._latest is not None
        paths, times = list(self._kept), list(self._kept.values())
        write_state(self._folder, self._latest, paths, None, True, times, self._preserved)
