"""Files as a whole, by operations. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.typing import TensorLike


def read_file(filename: TensorLike, name: str | None = None) -> _ops.Tensor:
    """What a file holds, a scalar string. In the step a NotFoundError, or whatever the system says of it."""
    return _ops.apply_op("ReadFile", filename=filename, name=name)


def write_file(filename: TensorLike, contents: TensorLike, name: str | None = None) -> Any:
    """An operation that writes a file, and makes the folders in which it stands."""
    return _ops.apply_op("WriteFile", filename=filename, contents=contents, name=name)


def matching_files(pattern: TensorLike, name: str | None = None) -> _ops.Tensor:
    """The paths that match a pattern, or any of a vector of patterns, in order: a string vector."""
    return _ops.apply_op("MatchingFiles", pattern=pattern, name=name)


def match_filenames_once(pattern: TensorLike, name: str | None = None) -> Any:
    """A local variable of the paths that match a pattern, found when local variables are initialised."""
    with _ops.name_scope(name or "matching_filenames") as scope:
        return _tf.Variable(
            matching_files(pattern),
            trainable=False,
            validate_shape=False,
            collections=[_tf.GraphKeys.LOCAL_VARIABLES],
            name=scope.rstrip("/").rpartition("/")[2] or None,
        )
