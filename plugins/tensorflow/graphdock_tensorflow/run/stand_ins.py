"""Names of TensorFlow's inside that programs use and that have no public twin, and its lines of log."""

from __future__ import annotations

import logging
from typing import Any

import graphdock as tf
from graphdock_tf1.platform.log import get_logger

__all__ = ["assign_moving_average", "graph_of_inputs", "log_as_tensorflow"]


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """An update of a variable to ``variable * decay + value * (1 - decay)``.

    Args:
      zero_debias: has to be False: an average that begins at zero is corrected by ``tf.train.ExponentialMovingAverage``.

    Raises:
      NotImplementedError: ``zero_debias`` is true.
    """
    if zero_debias:
        raise NotImplementedError("assign_moving_average(zero_debias=True): tf.train.ExponentialMovingAverage has it")
    with tf.name_scope(name or "AssignMovingAvg"):
        rate = tf.convert_to_tensor(1.0 - decay, dtype=variable.dtype.base_dtype)
        return tf.assign_sub(variable, (variable - value) * rate)


def graph_of_inputs(inputs: Any, graph: Any = None) -> Any:
    """The graph of the first tensor or operation among inputs; ``graph``, or the default one, where there is none."""
    if graph is not None:
        return graph
    found = (getattr(item, "graph", None) for item in inputs)
    return next((g for g in found if g is not None), tf.get_default_graph())


class _AsTensorFlow(logging.Formatter):
    """Lines as TensorFlow 1 writes them: ``INFO:tensorflow:text``."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).replace(f":{record.name}:", ":tensorflow:", 1)


def log_as_tensorflow() -> None:
    """Write log lines under the name ``tensorflow``, and let levels of Python's logger of that name hold."""
    logger = get_logger()
    for handler in logger.handlers:
        handler.setFormatter(_AsTensorFlow(logging.BASIC_FORMAT))
    logger.parent = logging.getLogger("tensorflow")
