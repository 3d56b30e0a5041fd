"""Places in which data sets of Keras are looked for."""

from __future__ import annotations

import os
from pathlib import Path

from graphdock.errors import NotFoundError

from graphdock_tensorflow.run.digits import toy_data_allowed

__all__ = ["found"]


def found(name: str, *, toy: bool = True) -> Path | None:
    """The file or folder of a data set: an absolute path, or a name below ``$KERAS_HOME/datasets`` (``~/.keras/datasets``).

    Returns:
      None where it is not there, and toy data may stand in for it (``toy``).

    Raises:
      NotFoundError: it is not there; with where it was looked for.
    """
    home = Path(os.environ.get("KERAS_HOME", Path.home() / ".keras"))
    path = home / "datasets" / name  # an absolute name stands for itself
    if path.exists():
        return path
    if toy and toy_data_allowed():
        return None
    raise NotFoundError(
        f"no data set {str(path)!r}",
        hint="graphdock downloads nothing: put Keras's file there" + (", or run with --toy-data" if toy else ""),
    )
