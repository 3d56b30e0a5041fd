"""``tf.compat``: texts and bytes, dims, and switches of TensorFlow's own history, which have nothing to switch here.

``tf.compat.v1`` is graphdock itself.
"""

from __future__ import annotations

import contextlib
import datetime
import numbers
import os
from collections.abc import Iterator
from typing import Any

import graphdock
import numpy as np
from graphdock.errors import ArgumentTypeError

#: What a program gets of ``tf.compat.v1``.
v1 = graphdock

#: The version of TensorFlow whose names and semantics these are; graphdock's own is ``tf.__version__``.
VERSION = "1.15.0"

bytes_or_text_types = (bytes, str)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Bytes of a text, or bytes as they are. Raises TypeError for anything else."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    raise ArgumentTypeError("expected bytes or text", got=repr(bytes_or_text))


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """The text of bytes, or a text as it is. Raises TypeError for anything else."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise ArgumentTypeError("expected bytes or text", got=repr(bytes_or_text))


def as_str_any(value: Any) -> str:
    """``str`` of anything; bytes are decoded."""
    return as_text(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """The text of a path object; anything else as it is."""
    return as_text(os.fspath(path)) if hasattr(path, "__fspath__") else path


def dimension_value(dimension: Any) -> int | None:
    """The int of a Dimension, None of an unknown one; ints and None as they are."""
    value = getattr(dimension, "value", dimension)
    return None if value is None else int(value)


def dimension_at_index(shape: Any, index: int) -> Any:
    """One dim of a TensorShape; an unknown one where the rank is unknown."""
    return v1.Dimension(None) if shape.ndims is None else v1.TensorShape(shape).dims[index]


#: The day after which TensorFlow 1.15 may use what older readers do not know.
_HORIZON = datetime.date(2019, 9, 3)


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Return whether a day is before the horizon: TensorFlow 1.15's, unless :func:`forward_compatibility_horizon` says
    another one.
    """
    return datetime.date(year, month, day) < _HORIZON


@contextlib.contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> Iterator[None]:
    """Move the horizon inside the block. One thread at a time."""
    global _HORIZON
    before, _HORIZON = _HORIZON, datetime.date(year, month, day)
    try:
        yield
    finally:
        _HORIZON = before


def no_effect() -> None:
    """Nothing: TensorFlow 1's behaviour is the only one here, and every variable is a resource."""


def on() -> bool:
    """True."""
    return True


def off() -> bool:
    """False."""
    return False
