"""``tensorflow.keras.datasets.fashion_mnist``."""

from __future__ import annotations

from typing import Any

from graphdock_tensorflow.run.datasets.npz import load

__all__ = ["load_data"]


def load_data(path: str = "fashion-mnist.npz") -> Any:
    """``(x_train, y_train), (x_test, y_test)``: images uint8 ``[N, 28, 28]``, labels uint8 ``[N]``. Raises NotFoundError."""
    return load(path)
