"""Looking into checkpoints without a graph: their names, shapes, dtypes and values."""

from __future__ import annotations

import os
from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock.errors import NotFoundError
from graphdock_storage import checkpoint
from graphdock_storage.stores import system

from graphdock_tf1.train.checkpoint_state import latest_checkpoint


class CheckpointReader:
    """An open checkpoint, of graphdock's own format or of TensorFlow's. It stays readable as it was opened.

    Args:
      filepattern: its path.

    Raises:
      NotFoundError: there is none. DataLossError: it is damaged.
    """

    def __init__(self, filepattern: str) -> None:
        self._checkpoint = checkpoint.open_checkpoint(
            os.fsdecode(filepattern), _tf.get_default_graph().host.checkpoint_formats.all
        )

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Name -> shape."""
        return {name: list(stored.shape) for name, stored in self._checkpoint.tensors.items()}

    def get_variable_to_dtype_map(self) -> dict[str, dtypes.DType]:
        """Name -> dtype."""
        return {name: stored.dtype for name, stored in self._checkpoint.tensors.items()}

    def has_tensor(self, tensor_str: str) -> bool:
        """Return whether the checkpoint has a tensor of that name."""
        return tensor_str in self._checkpoint.tensors

    def get_tensor(self, tensor_str: str) -> Any:
        """The values of a tensor, as an array, or as a NumPy scalar when it has rank 0; strings are bytes.

        Raises:
          NotFoundError: there is none of that name. DataLossError: its bytes are not those that were saved.
        """
        return self._checkpoint.read(tensor_str)[()]

    def debug_string(self) -> bytes:
        """A line for each tensor: name, dtype and shape."""
        lines = [f"{name} ({s.dtype.name}) {list(s.shape)}" for name, s in sorted(self._checkpoint.tensors.items())]
        return "\n".join(lines).encode()


def NewCheckpointReader(filepattern: str) -> CheckpointReader:  # noqa: N802 - TensorFlow's name
    """Open a checkpoint to look into it; see :class:`CheckpointReader`."""
    return CheckpointReader(filepattern)


def checkpoint_path(ckpt_dir_or_file: str) -> str:
    """A checkpoint's path: the last one of a folder, or the one that is named.

    Raises:
      NotFoundError: the folder names none.
    """
    path = os.fsdecode(ckpt_dir_or_file)
    if not system(path).isdir(path):
        return path
    found = latest_checkpoint(path)
    if found is None:
        raise NotFoundError(
            f"the folder {path!r} names no checkpoint",
            expected="a file 'checkpoint', which a Saver writes",
            hint="name the checkpoint",
        )
    return found


def load_checkpoint(ckpt_dir_or_file: str) -> CheckpointReader:
    """Open a checkpoint, or the last one of a folder, to look into it.

    Raises:
      NotFoundError: there is none. DataLossError: it is damaged.
    """
    return CheckpointReader(checkpoint_path(ckpt_dir_or_file))


def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """The value of a variable in a checkpoint, or in the last one of a folder, as an array; ``":0"`` may stand behind the name.

    Raises:
      NotFoundError: there is no such checkpoint, or no such variable in it. DataLossError: it is damaged.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """Name and shape of each variable in a checkpoint, or in the last one of a folder, in order of the names.

    Raises:
      NotFoundError: there is none. DataLossError: it is damaged.
    """
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())
