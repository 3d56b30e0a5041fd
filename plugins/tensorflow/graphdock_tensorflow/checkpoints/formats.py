"""TensorFlow's two formats of checkpoints, for storage to find."""

from __future__ import annotations

import glob
import os
import re
from typing import Any

import numpy as np
from graphdock.contracts import CheckpointFormat
from graphdock.errors import DataLossError, NotFoundError
from graphdock_storage.checkpoint.layout import INDEX
from graphdock_storage.checkpoint.opening import incomplete, is_file
from graphdock_storage.checkpoint.reading import OpenFiles

from graphdock_tensorflow.checkpoints.bundle import BundleCheckpoint
from graphdock_tensorflow.checkpoints.bundle_writing import write_bundle
from graphdock_tensorflow.checkpoints.old_tensorflow import OldCheckpoint
from graphdock_tensorflow.checkpoints.table import MAGIC, Table

__all__ = ["Bundles", "OldFiles"]

#: What the name of an old checkpoint in several files ends with.
_SEVERAL = re.compile(r"-\?{5}-of-\d{5}\Z")


class Bundles(CheckpointFormat):
    """V2: an index, which is a table, and data files."""

    name = "tensorflow v2"

    def exists(self, prefix: str) -> bool:
        """Return whether the index is a table."""
        try:
            with open(prefix + INDEX, "rb") as file:
                file.seek(-len(MAGIC), os.SEEK_END)
                return file.read() == MAGIC
        except (OSError, ValueError):
            return False

    def open(self, prefix: str) -> Any:
        index = OpenFiles([prefix + INDEX])
        try:
            return BundleCheckpoint(prefix, Table(index.fd(0), prefix + INDEX))
        except NotFoundError as error:
            raise incomplete(prefix, error) from error
        except DataLossError as error:
            raise _named(prefix, error) from error
        finally:
            index.close()

    def samples(self, folder: str) -> dict[str, dict[str, Any]]:
        """Return one with numbers of several dtypes, strings and a tensor of no elements."""
        prefix = os.path.join(folder, "model.ckpt-1")
        numbers = np.array([[1.5, -0.0, np.nan], [np.inf, 0.1, -2.0]])
        tensors = {kind: numbers.astype(kind) for kind in ("float32", "float64", "float16")}
        more = {
            "whole/number": np.array(2**62 + 1),
            "flags": np.array([True, False]),
            "none": np.zeros((0, 3), np.int32),
        }
        text = {"text": np.array([b"\xff\0", b""], object)}
        write_bundle(prefix, {**tensors, **more, **text})
        return {prefix: {**tensors, **more, **text}}


class OldFiles(CheckpointFormat):
    """V1: a file of that name, or several, whose numbers question marks stand for."""

    name = "tensorflow v1"

    def exists(self, prefix: str) -> bool:
        """Return whether there is such a file, and no index beside it. What is in it is not looked at."""
        if is_file(prefix + INDEX):
            return False
        return _SEVERAL.search(prefix) is not None and bool(_several(prefix)) or is_file(prefix)

    def open(self, prefix: str) -> Any:
        several = _SEVERAL.search(prefix) is not None
        paths = _several(prefix) if several else [prefix]
        if several and len(paths) != int(prefix[-5:]):
            raise DataLossError(
                f"the checkpoint {prefix!r} lacks a file", expected=f"{int(prefix[-5:])} files", got=str(len(paths))
            )
        try:
            return OldCheckpoint(prefix, paths)
        except DataLossError as error:
            raise _named(prefix, error) from error


def _several(prefix: str) -> list[str]:
    """The files that a name with question marks stands for."""
    found = _SEVERAL.search(prefix)
    assert found is not None
    return sorted(glob.glob(glob.escape(prefix[: found.start()]) + found[0]))


def _named(prefix: str, error: DataLossError) -> DataLossError:
    """The error, with the checkpoint in it."""
    if prefix in error.message:
        return error
    return DataLossError(
        f"the checkpoint {prefix!r} is damaged: {error.message}", expected=error.expected, got=error.got
    )
