"""The file ``checkpoint`` of a folder, which names the checkpoints that a Saver has kept there: TensorFlow's text."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import graphdock as _tf
from graphdock.errors import FailedPreconditionError, InvalidArgumentError
from graphdock_storage import checkpoint
from graphdock_storage.checkpoint.files import explained, replaced, sync_folder

_log = logging.getLogger("graphdock")

#: A file of more bytes names no checkpoints.
_LIMIT = 64 << 20


@dataclass
class CheckpointState:
    """What the file says. The fields are those of TensorFlow's message.

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
        lines = [f'model_checkpoint_path: "{_escaped(self.model_checkpoint_path)}"']
        lines += [f'all_model_checkpoint_paths: "{_escaped(p)}"' for p in self.all_model_checkpoint_paths]
        lines += [f"all_model_checkpoint_timestamps: {t!r}" for t in map(float, self.all_model_checkpoint_timestamps)]
        if self.last_preserved_timestamp:
            lines.append(f"last_preserved_timestamp: {float(self.last_preserved_timestamp)!r}")
        return "\n".join(lines) + "\n"

    @classmethod
    def parse(cls, text: str) -> CheckpointState:
        """What a text in protocol buffers' form says.

        Raises:
          InvalidArgumentError: it is none, or names another field.
        """
        state = cls()
        for name, value in _fields(text):
            known = name in cls.__dataclass_fields__
            if not known or (name.endswith(("path", "paths")) is not isinstance(value, str)):
                raise InvalidArgumentError(f"a checkpoint state has no such field {name!r}", got=repr(value))
            if isinstance(getattr(state, name), list):
                getattr(state, name).append(value)
            else:
                setattr(state, name, value)
        return state


_SIMPLE = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", ord('"'): '\\"', ord("'"): "\\'", ord("\\"): "\\\\"}
_STRING = r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
_FIELD = re.compile(rf"\s*(\w+)\s*:\s*((?:{_STRING})(?:\s*(?:{_STRING}))*|[-+.\w]+)\s*[,;]?")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def _escaped(path: str) -> str:
    """A path as C would spell it: bytes of UTF-8 that are not printable ASCII as octal numbers."""
    return "".join(_SIMPLE.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in os.fsencode(path))


def _unescaped(match: re.Match[str]) -> str:
    text = match[1]
    if text[0] == "x" and len(text) > 1:
        return chr(int(text[1:], 16))
    return chr(int(text, 8) & 255) if text[0].isdigit() else _LETTERS.get(text, text)


def _fields(text: str) -> Iterator[tuple[str, str | float]]:
    bare = "\n".join("" if line.lstrip().startswith("#") else line for line in text.splitlines())
    position = 0
    while bare[position:].strip():
        found = _FIELD.match(bare, position)
        if found is None:
            raise InvalidArgumentError("this is no checkpoint state", got=repr(bare[position : position + 40]))
        position = found.end()
        if found[2][0] not in "\"'":
            try:
                yield found[1], float(found[2])
            except ValueError:
                raise InvalidArgumentError("this is no checkpoint state", got=repr(found[0])) from None
            continue
        raw = "".join(s[1:-1] for s in re.findall(_STRING, found[2]))
        plain = "".join(
            _ESCAPE.sub(_unescaped, piece)
            if piece.startswith("\\")
            else piece.encode("utf-8", "surrogateescape").decode("latin-1")
            for piece in re.split(r"(\\(?:x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.))", raw)
        )
        yield found[1], os.fsdecode(plain.encode("latin-1", "replace"))


def _state_file(folder: str, latest_filename: str | None) -> str:
    return os.path.join(folder, "checkpoint" if latest_filename is None else latest_filename)


def generate_checkpoint_state_proto(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> CheckpointState:
    """What the state file of a folder is to say. Relative paths are rewritten to be relative to a relative ``save_dir``.

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
    write_state(
        save_dir,
        model_checkpoint_path,
        all_model_checkpoint_paths,
        latest_filename,
        False,
        all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )


def write_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None,
    latest_filename: str | None,
    relative: bool,
    timestamps: Sequence[float] | None = None,
    last_preserved: float | None = None,
) -> None:
    """As :func:`update_checkpoint_state`; ``relative`` writes paths relative to the folder, so that it may be moved."""
    path = _state_file(save_dir, latest_filename)
    latest, every = model_checkpoint_path, list(all_model_checkpoint_paths or [])
    if relative:
        latest, *every = [
            os.path.relpath(p, save_dir or os.curdir) if os.path.isabs(p) else p for p in (latest, *every)
        ]
    state = generate_checkpoint_state_proto(save_dir, latest, every, timestamps, last_preserved)
    if path == state.model_checkpoint_path:
        raise FailedPreconditionError(
            f"the checkpoint {model_checkpoint_path!r} has the name of the file that lists checkpoints",
            hint="save under another name, or pass another latest_filename",
        )
    with replaced(path) as sink:
        sink.write(str(state).encode(), 0)
    sync_folder(os.path.dirname(path))


def get_checkpoint_state(checkpoint_dir: str, latest_filename: str | None = None) -> CheckpointState | None:
    """What the state file of a folder says, with paths that can be opened from here; None where there is none.

    Raises:
      InvalidArgumentError: it names no last checkpoint. PermissionDeniedError: it may not be read.
    """
    folder = os.fsdecode(checkpoint_dir)
    path = _state_file(folder, latest_filename)
    try:
        with open(path, "rb") as file:
            text = file.read(_LIMIT).decode("utf-8", "surrogateescape")
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
