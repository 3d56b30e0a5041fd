"""Images of MNIST's form: read from files where people keep them, or, when asked for, made of scikit-learn's digits."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
from graphdock.errors import InvalidArgumentError, NotFoundError, UnavailableError
from numpy.typing import NDArray

__all__ = ["FILES", "allow_toy_data", "read_idx", "toy", "toy_data_allowed"]

#: Names of MNIST's files: images and labels for training, then for testing.
FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_allowed = False


def allow_toy_data(allowed: bool = True) -> None:
    """Let data sets whose files are not there be made of scikit-learn's digits (``graphdock run --toy-data``)."""
    global _allowed
    _allowed = allowed


def toy_data_allowed() -> bool:
    """Return whether :func:`allow_toy_data` was called."""
    return _allowed


def read_idx(path: Path) -> NDArray[np.uint8]:
    """An array of a file in IDX, compressed by gzip or not.

    Raises:
      NotFoundError: there is no such file, with or without ``.gz``. InvalidArgumentError: it is damaged; with its name.
    """
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    found = path if path.is_file() else plain
    if not found.is_file():
        raise NotFoundError(f"no file {str(path)!r}")
    data = found.read_bytes()
    try:
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        zero, kind, rank = struct.unpack_from(">HBB", data)
        shape = struct.unpack_from(f">{rank}I", data, 4)
    except (OSError, EOFError, struct.error) as error:
        raise InvalidArgumentError(f"{found}: no IDX file: {error}") from None
    if zero or kind != 8 or len(data) - 4 - 4 * rank != int(np.prod(shape, dtype=np.int64)):
        raise InvalidArgumentError(f"{found}: no IDX file of bytes of the shape that it states")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def toy() -> tuple[tuple[NDArray[np.uint8], NDArray[np.uint8]], tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
    """1,797 handwritten digits as images ``[N, 28, 28]`` and labels ``[N]``, 1,397 of them for training.

    Raises:
      UnavailableError: scikit-learn, which has them, is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        raise UnavailableError(
            "toy digits come with scikit-learn, which is not installed", hint="pip install 'graphdock[examples]'"
        ) from None
    data: Any = load_digits()
    large = np.kron(data.images / 16.0 * 255, np.ones((3, 3)))
    images = np.pad(large, ((0, 0), (2, 2), (2, 2))).astype(np.uint8)
    labels = data.target.astype(np.uint8)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = images[order], labels[order]
    return (images[400:], labels[400:]), (images[:400], labels[:400])
