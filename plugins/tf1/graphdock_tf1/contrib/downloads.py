"""Files of datasets (``tf.contrib.learn.datasets.base``)."""

from __future__ import annotations

import os

import graphdock as _tf
from graphdock.errors import NotFoundError


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """Path of a dataset's file that is there; graphdock downloads nothing.

    Args:
      filename: in ``work_directory``, which is made where it is not there. source_url: where the file is published.

    Raises:
      NotFoundError: the file is not there; it says where to get it and where to put it.
    """
    _tf.gfile.MakeDirs(work_directory)
    path = os.path.join(work_directory, filename)
    if not _tf.gfile.Exists(path):
        raise NotFoundError(
            f"{path!r} is not there", hint=f"graphdock downloads nothing: put {source_url} there, under that name"
        )
    return path
