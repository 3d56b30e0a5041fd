"""Names of TensorFlow's inside that programs use and that have no public twin, and its lines of log."""

from __future__ import annotations

import logging
import os
import socket
import time
from typing import Any

import graphdock as tf
from graphdock_tf1.platform.log import get_logger

__all__ = [
    "BooleanParser",
    "EventsWriter",
    "assign_moving_average",
    "graph_of_inputs",
    "initialize_resources",
    "log_as_tensorflow",
    "shared_resources",
    "unknown_shape",
]


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """An update of a variable to ``variable * decay + value * (1 - decay)``.

    Args:
      zero_debias: the average begins at zero, and is corrected for that by two more variables, ``biased`` and ``local_step`` below
        the variable's name; what the variable held does not count.
    """
    with tf.name_scope(name or "AssignMovingAvg"):
        rate = tf.convert_to_tensor(1.0 - decay, dtype=variable.dtype.base_dtype)
        if not zero_debias:
            return tf.assign_sub(variable, (variable - value) * rate)
        with tf.variable_scope(variable.op.name, reuse=tf.AUTO_REUSE):
            zeros = {"dtype": variable.dtype.base_dtype, "initializer": tf.zeros_initializer(), "trainable": False}
            biased = tf.get_variable("biased", variable.shape, **zeros)
            steps = tf.get_variable("local_step", [], **zeros)
        total = tf.assign_sub(biased, (biased - value) * rate)
        return tf.assign(variable, total / (1.0 - (1.0 - rate) ** tf.assign_add(steps, 1.0)))


def graph_of_inputs(inputs: Any, graph: Any = None) -> Any:
    """The graph of the first tensor or operation among inputs; ``graph``, or the default one, where there is none."""
    if graph is not None:
        return graph
    found = (getattr(item, "graph", None) for item in inputs)
    return next((g for g in found if g is not None), tf.get_default_graph())


def unknown_shape(rank: int | None = None) -> tf.TensorShape:
    """The shape of which nothing is known but its rank, or not even that."""
    return tf.TensorShape(None if rank is None else [None] * rank)


class BooleanParser:
    """Reads the words of a boolean flag."""

    def Parse(self, argument: Any) -> bool:  # noqa: N802
        """Return the boolean of ``true``, ``t``, ``1`` or their contraries, in any case. Raises ValueError for other words."""
        word = str(argument).lower()
        if word not in ("true", "t", "1", "false", "f", "0"):
            raise ValueError("Non-boolean argument to boolean flag", argument)
        return word in ("true", "t", "1")


class EventsWriter:
    """File of events whose name begins with ``prefix``, a path, and goes on with ``.out.tfevents.``, the time and the machine.

    Threads: one at a time. Errors: as of ``tf.python_io.TFRecordWriter``.
    """

    def __init__(self, prefix: bytes | str) -> None:
        now = time.time()
        self._path = f"{os.fsdecode(prefix)}.out.tfevents.{int(now):010d}.{socket.gethostname()}"
        self._records = tf.python_io.TFRecordWriter(self._path)
        self.WriteEvent(tf.Event(wall_time=now, file_version="brain.Event:2"))

    def FileName(self) -> bytes:  # noqa: N802
        """Path of the file."""
        return os.fsencode(self._path)

    def WriteEvent(self, event: Any) -> None:  # noqa: N802
        """Write an Event."""
        self._records.write(event.SerializeToString())

    def Flush(self) -> bool:  # noqa: N802
        """Bring what was written to the file; True."""
        self._records.flush()
        return True

    def Close(self) -> bool:  # noqa: N802
        """Close the file; True."""
        self._records.close()
        return True


def shared_resources() -> list[Any]:
    """Resources that want an initializer beside those of variables and tables: none, here."""
    return []


def initialize_resources(resource_list: Any, name: str = "init") -> Any:
    """An operation that initialises such resources: it does nothing."""
    return tf.group(*resource_list, name=name)


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
