"""``tensorflow.keras.datasets``: read from the files that Keras keeps below ``~/.keras/datasets``; nothing is downloaded."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["cifar10", "fashion_mnist", "mnist"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
