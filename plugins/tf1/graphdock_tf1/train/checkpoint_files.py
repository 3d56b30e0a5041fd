"""Questions about the files of checkpoints."""

from __future__ import annotations

import os
from collections.abc import Sequence

import graphdock as _tf
from graphdock_storage import checkpoint
from graphdock_storage.checkpoint.files import explained
from graphdock_storage.checkpoint.layout import INDEX
from graphdock_storage.stores import system


def _path_of(prefix: str) -> str | None:
    """The file whose time is the checkpoint's: its index, or the one file that old checkpoints of TensorFlow are."""
    for path in (prefix + INDEX, prefix):
        if system(path).isfile(path):
            return path
    return None


def _found(pattern: str) -> str | None:
    found = _path_of(pattern)
    if found is None:
        files = system(pattern)
        matching = sorted(files.glob(pattern + INDEX) or filter(files.isfile, files.glob(pattern)))
        found = matching[0] if matching else None
    return found


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Return whether there is a checkpoint of that name, of any format that there is; ``*`` and ``?`` stand for any characters."""
    prefix = os.fsdecode(checkpoint_prefix)
    if "\0" in prefix:
        return False
    others = _tf.get_default_graph().host.checkpoint_formats.all
    return _found(prefix) is not None or checkpoint.exists(prefix, others)


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[str]) -> list[float]:
    """Return when checkpoints were written, in seconds since 1970; those that are not there are left out."""
    found = [_found(os.fsdecode(prefix)) for prefix in checkpoint_prefixes]
    return [system(path).stat(path).mtime_nsec / 1e9 for path in found if path is not None]


def meta_graph_filename(checkpoint_filename: str, meta_graph_suffix: str = "meta") -> str:
    """The file with the graph that belongs to a checkpoint."""
    return f"{checkpoint_filename}.{meta_graph_suffix}"


def remove_checkpoint(
    checkpoint_prefix: str, checkpoint_format_version: int = 2, meta_graph_suffix: str = "meta"
) -> None:
    """Remove the files of a checkpoint, and its graph's.

    Args:
      checkpoint_format_version: 1 for TensorFlow's old format, whose only file has the checkpoint's name.

    Raises:
      PermissionDeniedError: the folder may not be written.
    """
    prefix = os.fsdecode(checkpoint_prefix)
    paths = [meta_graph_filename(prefix, meta_graph_suffix)]
    if checkpoint_format_version == 1:
        paths.append(prefix)
    else:
        checkpoint.remove(prefix)
    for path in paths:
        try:
            system(path).remove(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise explained(error, "cannot remove", path) from error
