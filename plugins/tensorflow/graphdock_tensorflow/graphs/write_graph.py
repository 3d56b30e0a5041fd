"""Writing a graph as a file."""

from __future__ import annotations

import os
from typing import Any

import graphdock as _tf
from graphdock_storage.checkpoint.files import make_folder

from graphdock_tensorflow.graphs.files import write_message

__all__ = ["write_graph"]


def write_graph(graph_or_graph_def: Any, logdir: str, name: str, as_text: bool = True) -> str:
    """Write a GraphDef as TensorFlow does; returns the path. The file is there whole or not at all.

    Args:
      graph_or_graph_def: a Graph, or a ``tf.GraphDef``. ``logdir``: the folder, which is made. ``name``: of the file.
      as_text: its text (``.pbtxt``), else its bytes (``.pb``).

    Raises:
      UnavailableError: the library protobuf is not installed. NotFoundError, PermissionDeniedError,
      ResourceExhaustedError: the file
        system refuses. InvalidArgumentError: the graph is larger than 2 GiB.
    """
    message = graph_or_graph_def
    if isinstance(message, _tf.Graph):
        message = message.as_graph_def()
    folder = os.fsdecode(logdir)
    make_folder(folder)
    return str(write_message(message, os.path.join(folder, name), as_text))
