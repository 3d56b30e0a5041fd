"""scikit-learn's handwritten digits as the example programs read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Digits", "load"]


class Digits(NamedTuple):
    """Images [N, 8, 8, 1] from 0 to 1, labels [N]; a quarter is held out."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load() -> Digits:
    """The 1797 digits that `graphdock demo` shows, in its order. Raises UnavailableError where scikit-learn is not installed."""
    from graphdock.cli.demo import load_digits

    data = load_digits()
    return Digits(
        data.train_x.reshape(-1, 8, 8, 1),
        data.train_y.argmax(1).astype(np.int32),
        data.test_x.reshape(-1, 8, 8, 1),
        data.test_y.argmax(1).astype(np.int32),
    )
