"""``tf.print``: an operation that prints values in every step that runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import nest
from graphdock.errors import ArgumentTypeError


def print_(*inputs: Any, **kwargs: Any) -> Any:
    """Print tensors, and values around them, when the operation runs; give it to ``session.run`` or ``tf.control_dependencies``.

    Args:
      inputs: tensors, values, and nested structures of both. Text of tensors stands in quotes.
      output_stream: ``sys.stderr`` (default), ``sys.stdout``, a function such as ``tf.logging.info``, or ``"file:///path"``, a
        file that grows.
      summarize: elements at the beginning and end of each dim that are shown (3); -1 for all.
      sep: stands between two inputs (a space). end: stands after the last (a new line; nothing for a function).
      name: of the operation.

    Raises:
      TypeError: another keyword, or an output_stream of another kind.
    """
    stream = kwargs.pop("output_stream", sys.stderr)
    summarize, sep, end = kwargs.pop("summarize", 3), kwargs.pop("sep", " "), kwargs.pop("end", None)
    name = kwargs.pop("name", None)
    if kwargs:
        raise ArgumentTypeError("tf.print has no such argument", got=", ".join(kwargs))
    write = _writer(stream)
    ending = end if end is not None else "" if callable(stream) else "\n"
    tensors = [leaf for leaf in nest.flatten(inputs) if isinstance(leaf, _tf.Tensor | _tf.Variable)]

    def show(*arrays: Any) -> list[Any]:
        values = iter(arrays)
        texts = [part if isinstance(part, str) else str(_texts(part, values, summarize)) for part in inputs]
        write(sep.join(texts) + ending)
        return []

    return _tf.py_func(show, tensors, [], name=name or "PrintV2")


class _Text(str):
    """Text that stands without quotes in lists and dicts."""

    def __repr__(self) -> str:
        return str(self)


def _texts(part: Any, values: Iterator[Any], summarize: int) -> Any:
    """A structure with the text of each leaf in its place, dicts by sorted keys; ``values`` are those of its tensors."""
    flat = [
        _Text(_shown(next(values), summarize) if isinstance(leaf, _tf.Tensor | _tf.Variable) else repr(leaf))
        for leaf in nest.flatten(part)
    ]
    made = nest.pack_sequence_as(part, flat)
    return dict(sorted(made.items())) if isinstance(made, dict) else made


def _shown(array: Any, summarize: int) -> str:
    value = np.asarray(array)
    if value.ndim == 0:
        return _element(value[()])
    return np.array2string(
        value,
        threshold=0 if summarize >= 0 else value.size,
        edgeitems=max(summarize, 1),
        formatter={"all": _element},  # type: ignore[arg-type]
        max_line_width=sys.maxsize,
    )


def _element(value: Any) -> str:
    """An element: a number in as few digits as tell it from others of its dtype, a whole one without a point, 1 for True."""
    if isinstance(value, bytes):
        return f'"{value.decode("utf-8", "replace")}"'
    if isinstance(value, np.bool_):
        return str(int(value))
    return str(value).removesuffix(".0")


def _writer(stream: Any) -> Callable[[str], Any]:
    if stream is sys.stderr or stream is sys.stdout:
        name = "stderr" if stream is sys.stderr else "stdout"
        return lambda text: (getattr(sys, name).write(text), getattr(sys, name).flush())
    if callable(stream):
        return lambda text: stream(text)
    if isinstance(stream, str) and stream.startswith("file://"):
        path = stream.removeprefix("file://")

        def append(text: str) -> None:
            with _tf.gfile.GFile(path, "a") as file:
                file.write(text)

        return append
    raise ArgumentTypeError(
        "tf.print: output_stream is of another kind",
        expected="sys.stderr, sys.stdout, a function or 'file://PATH'",
        got=repr(stream),
    )
