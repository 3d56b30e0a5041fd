"""SaverDef: how the operations of a Saver are called in its graph, as plain data."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar


@dataclass
class SaverDef:
    """A Saver as data: with its graph it is enough to make the Saver again. The fields are TensorFlow's.

    Attributes:
      filename_tensor_name: tensor that is fed the path. ``save_tensor_name``: tensor to fetch to save. ``restore_op_name``:
        operation to run to restore.
      max_to_keep, sharded, keep_checkpoint_every_n_hours: as for :class:`Saver`.
      version: of TensorFlow's file format; without effect, for there is one format here.
    """

    LEGACY: ClassVar[int] = 0
    V1: ClassVar[int] = 1
    V2: ClassVar[int] = 2

    filename_tensor_name: str = ""
    save_tensor_name: str = ""
    restore_op_name: str = ""
    max_to_keep: int = 0
    sharded: bool = False
    keep_checkpoint_every_n_hours: float = 0.0
    version: int = 2

    def CopyFrom(self, other: SaverDef) -> None:  # noqa: N802 - TensorFlow's name
        """Take over all fields of another one."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(other, field.name))

    def __str__(self) -> str:
        fields = ((f.name, getattr(self, f.name), f.default) for f in dataclasses.fields(self))
        return "".join(
            f"{name}: {_text(value) if name != 'version' else _VERSIONS.get(value, value)}\n"
            for name, value, default in fields
            if value != default or name == "version"
        )


_VERSIONS = {0: "LEGACY", 1: "V1", 2: "V2"}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
