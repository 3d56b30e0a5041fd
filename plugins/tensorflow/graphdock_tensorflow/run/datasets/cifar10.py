"""``tensorflow.keras.datasets.cifar10``."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from graphdock.errors import InvalidArgumentError
from numpy.typing import NDArray

from graphdock_tensorflow.run.datasets.files import found

__all__ = ["load_data"]


class _Arrays(pickle.Unpickler):
    """Reads CIFAR's own pickles, which hold dicts of bytes and lists of numbers, and nothing that could run."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in {("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")}:
            return super().find_class(module.replace("numpy.core", "numpy._core"), name)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def load_data() -> Any:
    """``(x_train, y_train), (x_test, y_test)``: images uint8 ``[N, 32, 32, 3]``, labels uint8 ``[N, 1]``.

    Raises:
      NotFoundError: ``cifar-10-batches-py`` is not there. InvalidArgumentError: a file of it is damaged.
    """
    folder = found("cifar-10-batches-py", toy=False)
    assert folder is not None
    parts = [_batch(folder / f"data_batch_{number}") for number in range(1, 6)]
    images, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    return (images, labels), _batch(folder / "test_batch")


def _batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    try:
        with path.open("rb") as file:
            data = _Arrays(file, encoding="bytes").load()
        images = np.asarray(data[b"data"], np.uint8).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        return images, np.asarray(data[b"labels"], np.uint8).reshape(-1, 1)
    except (OSError, EOFError, KeyError, TypeError, ValueError, pickle.UnpicklingError) as error:
        raise InvalidArgumentError(f"{path}: not a batch of CIFAR-10: {error}") from None
