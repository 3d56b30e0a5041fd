"""Images of MNIST's form in NumPy's archive, as Keras keeps them."""

from __future__ import annotations

from typing import Any

import numpy as np
from graphdock.errors import InvalidArgumentError

from graphdock_tensorflow.run import digits
from graphdock_tensorflow.run.datasets.files import found

__all__ = ["load"]


def load(name: str) -> Any:
    """``(x_train, y_train), (x_test, y_test)`` of an archive, or of toy digits where they are allowed.

    Raises:
      NotFoundError: the file is not there. InvalidArgumentError: it lacks one of the four arrays, or is no archive.
    """
    path = found(name)
    if path is None:
        return digits.toy()
    try:
        with np.load(path, allow_pickle=False) as data:
            return (data["x_train"], data["y_train"]), (data["x_test"], data["y_test"])
    except (KeyError, ValueError, OSError, EOFError) as error:
        raise InvalidArgumentError(f"{path}: not MNIST as Keras keeps it: {error}") from None
