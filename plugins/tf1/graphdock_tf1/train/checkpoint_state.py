"""The file ``checkpoint`` of a folder, which names the checkpoints that a Saver has kept there: TensorFlow's text."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import graphdock as _tf
from graphdock import messages
from graphdock.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from graphdock_storage import checkpoint
from graphdock_storage.checkpoint.files import explained, replaced, sync_folder
from graphdock_storage.stores import opened

_log = logging.getLogger("graphdock")

#: A file of more bytes names no checkpoints.
_LIMIT = 64 << 20


@dataclass
class CheckpointState:
    """Contents of the file. The fields are those of TensorFlow's message.

    Attributes:
      model_checkpoint_path: the last one. ``all_model_checkpoint_paths``: all that are kept, the last one at the end.
      all_model_checkpoint_timestamps: seconds since 1970 of each of them, or none. ``last_preserved_timestamp``: of the last one
        that is kept for good.
    """

    model_checkpoint_path: str = ""
    all_model_checkpoint_paths: list[str] = field(default_factory=list)
    all_model_checkpoint_timestamps: list[float] = field(default_factory=list)
    last_preserved_timestamp: float = 0.0

    def __str__(self) -> str:
        return messages.to_text(
            messages.CheckpointState(
                model_checkpoint_path=os.fsencode(self.model_checkpoint_path),
                all_model_checkpoint_paths=[os.fsencode(path) for path in self.all_model_checkpoint_paths],
                all_model_checkpoint_timestamps=self.all_model_checkpoint_timestamps,
                last_preserved_timestamp=self.last_preserved_timestamp,
            )
        )

    @classmethod
    def parse(cls, text: str) -> CheckpointState:
        """Return what a text in protocol buffers' form says.

        Raises:
          InvalidArgumentError: it is none, or names another field.
        """
        try:
            said = messages.from_text("CheckpointState", text, "this", strict=True)
        except DataLossError as error:
            raise InvalidArgumentError(f"no checkpoint state: {error.message}") from error
        return cls(
            os.fsdecode(said.model_checkpoint_path),
            [os.fsdecode(path) for path in said.all_model_checkpoint_paths],
            list(said.all_model_checkpoint_timestamps),
            said.last_preserved_timestamp,
        )


def _state_file(folder: str, latest_filename: str | None) -> str:
    return os.path.join(folder, "checkpoint" if latest_filename is None else latest_filename)


def generate_checkpoint_state_proto(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> CheckpointState:
    """Return what the state file of a folder is to say. Relative paths are rewritten to be relative to a relative ``save_dir``.

    Args:
      model_checkpoint_path: the last checkpoint; it joins the others where it is not the last of them.
      all_model_checkpoint_paths: the checkpoints that are kept, oldest first.
      all_model_checkpoint_timestamps: seconds since 1970 of each. last_preserved_timestamp: of the last one kept for good.

    Raises:
      InvalidArgumentError: another number of timestamps than of paths.
    """
    paths = list(all_model_checkpoint_paths or [])
    if not paths or paths[-1] != model_checkpoint_path:
        paths.append(model_checkpoint_path)
    if all_model_checkpoint_timestamps and len(all_model_checkpoint_timestamps) != len(paths):
        raise InvalidArgumentError(
            "each checkpoint needs a timestamp",
            expected=f"{len(paths)} timestamps",
            got=str(len(all_model_checkpoint_timestamps)),
        )
    latest = model_checkpoint_path
    if not os.path.isabs(save_dir):
        latest, *paths = [
            p if os.path.isabs(p) else os.path.relpath(p, save_dir or os.curdir) for p in (latest, *paths)
        ]
    return CheckpointState(latest, paths, list(all_model_checkpoint_timestamps or []), last_preserved_timestamp or 0.0)


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Write the state file of a folder: in the place of the one that is there, whole or not at all.

    Raises:
      FailedPreconditionError: a checkpoint has the file's own name. And what the file system refuses.
    """
    write_state(**locals(), relative=False)


def write_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None,
    latest_filename: str | None,
    relative: bool,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """As :func:`update_checkpoint_state`; ``relative`` writes paths relative to the folder, so that it may be moved."""
    path = _state_file(save_dir, latest_filename)
    latest, every = model_checkpoint_path, list(all_model_checkpoint_paths or [])
    if relative:
        latest, *every = [
            os.path.relpath(p, save_dir or os.curdir) if os.path.isabs(p) else p for p in (latest, *every)
        ]
    state = generate_checkpoint_state_proto(
        save_dir, latest, every, all_model_checkpoint_timestamps, last_preserved_timestamp
    )
    if path == state.model_checkpoint_path:
        raise FailedPreconditionError(
            f"the checkpoint {model_checkpoint_path!r} has the name of the file that lists checkpoints",
            hint="save under another name, or pass another latest_filename",
        )
    with replaced(path) as sink:
        sink.write(str(state).encode(), 0)
    sync_folder(os.path.dirname(path))


def get_checkpoint_state(checkpoint_dir: str, latest_filename: str | None = None) -> CheckpointState | None:
    """Return what the state file of a folder says, with paths that can be opened from here; None where there is none.

    Raises:
      InvalidArgumentError: it names no last checkpoint. PermissionDeniedError: it may not be read.
    """
    folder = os.fsdecode(checkpoint_dir)
    path = _state_file(folder, latest_filename)
    try:
        with opened(path) as file:
            text = file.read(_LIMIT).decode("utf-8", "backslashreplace")  # a byte that is no UTF-8: its escape
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise explained(error, "cannot read", path) from error
    try:
        state = CheckpointState.parse(text)
    except InvalidArgumentError as error:
        _log.warning("%s is no list of checkpoints: %s", path, error.message)
        return None
    if not state.model_checkpoint_path:
        raise InvalidArgumentError(f"{path!r} names no last checkpoint")
    state.model_checkpoint_path = os.path.join(folder, state.model_checkpoint_path)
    state.all_model_checkpoint_paths = [os.path.join(folder, p) for p in state.all_model_checkpoint_paths]
    return state


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The path of the last checkpoint of a folder, as its state file says, for ``Saver.restore``; None where there is none."""
    state: Any = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    if checkpoint.exists(state.model_checkpoint_path, _tf.get_default_graph().host.checkpoint_formats.all):
        return str(state.model_checkpoint_path)
    _log.error("the last checkpoint of %s is gone: %s", checkpoint_dir, state.model_checkpoint_path)
    return None
