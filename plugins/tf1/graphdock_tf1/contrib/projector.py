"""``tf.contrib.tensorboard.plugins.projector``: what TensorBoard's projector shows of a run."""

from __future__ import annotations

import os
from typing import Any

from graphdock import messages
from graphdock.errors import InvalidArgumentError

from graphdock_tf1.platform.gfile import GFile, MakeDirs

_FILE = "projector_config.pbtxt"


def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Write a ``ProjectorConfig`` beside a writer's event files, where TensorBoard looks for it.

    Args:
      summary_writer: a FileWriter. config: a ``ProjectorConfig``.

    Raises:
      InvalidArgumentError: the writer has no folder.
    """
    folder = summary_writer.get_logdir()
    if folder is None:
        raise InvalidArgumentError("Expected summary writer to have a logdir")
    MakeDirs(folder)
    with GFile(os.path.join(folder, _FILE), "w") as file:
        file.write(messages.to_text(config))
