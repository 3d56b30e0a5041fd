"""Summaries of collections: a number or a histogram for each tensor in them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

import graphdock as _tf
from graphdock import dtypes

_KEYS = _tf.GraphKeys


def summarize_tensor(tensor: Any, tag: str | None = None) -> _tf.Tensor | None:
    """A scalar's number, or another tensor's histogram; None for strings and bools.

    Args:
      tag: default: the operation's name with ``_summary`` behind it.
    """
    if tensor.dtype in (dtypes.string, dtypes.bool_):
        return None
    tag = tag or f"{tensor.op.name}_summary"
    return _tf.summary.scalar(tag, tensor) if tensor.shape.rank == 0 else _tf.summary.histogram(tag, tensor)


def summarize_activation(op: Any) -> _tf.Tensor:
    """A histogram of an activation; of ReLUs and softplus also what part of their inputs is below zero (above 6, for ReLU6)."""
    name, kind = op.op.name, op.op.type
    if kind in ("Relu", "Softplus", "Relu6"):
        _tf.summary.scalar(f"{name}/zeros", _part(_tf.less(op.op.inputs[0], _tf.cast(0.0, op.dtype))))
    if kind == "Relu6":
        _tf.summary.scalar(f"{name}/sixes", _part(_tf.greater(op.op.inputs[0], _tf.cast(6.0, op.dtype))))
    return _tf.summary.histogram(f"{name}/activation", op)


def _part(flags: Any) -> Any:
    return _tf.reduce_mean(_tf.cast(flags, dtypes.float32))


def summarize_tensors(tensors: Iterable[Any], summarizer: Callable[[Any], Any] = summarize_tensor) -> list[Any]:
    """Return what ``summarizer`` makes of each."""
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """:func:`summarize_tensors` of a collection, or of those whose names ``name_filter`` matches at the beginning."""
    found = _tf.get_collection(collection)
    return summarize_tensors([t for t in found if name_filter is None or re.match(name_filter, t.op.name)], summarizer)


#: The same of collections of their own.
summarize_variables = functools.partial(summarize_collection, _KEYS.GLOBAL_VARIABLES)
summarize_weights = functools.partial(summarize_collection, _KEYS.WEIGHTS)
summarize_biases = functools.partial(summarize_collection, _KEYS.BIASES)


def summarize_activations(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_activation
) -> list[Any]:
    """:func:`summarize_collection` of ``GraphKeys.ACTIVATIONS``."""
    return summarize_collection(_KEYS.ACTIVATIONS, name_filter, summarizer)
