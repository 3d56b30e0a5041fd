"""Operations that make summaries. Names, arguments and defaults are TensorFlow 1's.

Each gives a scalar string: the bytes of a ``tf.Summary``, which a ``tf.summary.FileWriter`` takes. All of them run on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import dtypes, messages
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_tf1.summary.tags import clean_tag, collect, summary_scope

_SUMMARIES = (_tf.GraphKeys.SUMMARIES,)


def scalar(
    name: str, tensor: TensorLike, collections: Sequence[Any] | None = None, family: str | None = None
) -> _ops.Tensor:
    """A summary of one number.

    Args:
      name: of the operation, and with its scopes the tag.
      tensor: a real scalar. It is written as float32; NaN and infinities are written too.
      collections: of the graph, which it joins; default ``[tf.GraphKeys.SUMMARIES]``.
      family: a tab of TensorBoard; default: the first scope.

    Returns:
      A scalar string.

    Raises:
      ShapeError: ``tensor`` is no scalar. DTypeError: it holds no real numbers.
    """
    with summary_scope(name, family, [tensor]) as (tag, scope):
        made = _ops.apply_op("ScalarSummary", tags=tag, values=tensor, name=scope)
    collect(made, collections, _SUMMARIES)
    return made


def histogram(
    name: str, values: TensorLike, collections: Sequence[Any] | None = None, family: str | None = None
) -> _ops.Tensor:
    """A summary of how numbers are distributed, in TensorFlow's buckets.

    Args:
      values: real numbers of any shape; the other arguments as of :func:`scalar`.

    Raises:
      DTypeError: ``values`` holds no real numbers. InvalidArgumentError: in the step: one of them is NaN or infinite.
    """
    with summary_scope(name, family, [values]) as (tag, scope):
        made = _ops.apply_op("HistogramSummary", tag=tag, values=values, name=scope)
    collect(made, collections, _SUMMARIES)
    return made


def image(
    name: str,
    tensor: TensorLike,
    max_outputs: int = 3,
    collections: Sequence[Any] | None = None,
    family: str | None = None,
) -> _ops.Tensor:
    """A summary of images, as PNG files.

    Args:
      tensor: ``[batch, height, width, channels]`` of 1, 3 or 4 channels. uint8 stays as it is; floats are scaled, image by
        image: so that the largest is 255, or, where some are negative, the largest in size is 127 away from 128. What isn't
        finite is red.
      max_outputs: at most so many images of the batch. Their tags are ``name/image/0`` and so on; of one, ``name/image``.

    Raises:
      ShapeError: ``tensor`` is of another rank, or of other channels. DTypeError: it is neither uint8 nor float.
    """
    with summary_scope(name, family, [tensor]) as (tag, scope):
        made = _ops.apply_op("ImageSummary", tag=tag, tensor=tensor, max_images=max_outputs, name=scope)
    collect(made, collections, _SUMMARIES)
    return made


def audio(
    name: str,
    tensor: TensorLike,
    sample_rate: TensorLike,
    max_outputs: int = 3,
    collections: Sequence[Any] | None = None,
    family: str | None = None,
) -> _ops.Tensor:
    """A summary of sounds, as WAV files of 16 bits.

    Args:
      tensor: float32 from -1 to 1, ``[batch, frames, channels]`` or ``[batch, frames]``.
      sample_rate: float32 scalar, frames per second.
      max_outputs: at most so many sounds of the batch. Their tags are ``name/audio/0`` and so on; of one, ``name/audio``.

    Raises:
      ShapeError: ``tensor`` is of another rank. InvalidArgumentError: in the step: ``sample_rate`` is not above 0.
    """
    with summary_scope(name, family, [tensor]) as (tag, scope):
        rate = _ops.convert_to_tensor(sample_rate, dtypes.float32, name="sample_rate")
        made = _ops.apply_op(
            "AudioSummaryV2", tag=tag, tensor=tensor, max_outputs=max_outputs, sample_rate=rate, name=scope
        )
    collect(made, collections, _SUMMARIES)
    return made


def tensor_summary(
    name: str,
    tensor: TensorLike,
    summary_description: str | None = None,
    collections: Sequence[Any] | None = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> _ops.Tensor:
    """A summary of any tensor.

    Args:
      summary_description, display_name: texts for people, which go into the metadata.
      summary_metadata: names the plugin of TensorBoard that shows it.
    """
    metadata = messages.SummaryMetadata()
    if summary_metadata is not None:
        metadata.CopyFrom(summary_metadata)
    if summary_description is not None:
        metadata.summary_description = summary_description
    if display_name is not None:
        metadata.display_name = display_name
    with summary_scope(name, family, [tensor]) as (tag, scope):
        made = _ops.apply_op(
            "TensorSummaryV2",
            tag=tag,
            tensor=tensor,
            serialized_summary_metadata=metadata.SerializeToString(),
            name=scope,
        )
    collect(made, collections, _SUMMARIES)
    return made


def text(name: str, tensor: TensorLike, collections: Sequence[Any] | None = None) -> _ops.Tensor:
    """A summary of strings, which TensorBoard shows as Markdown: a vector or matrix of them as a table.

    Args:
      tensor: strings.

    Raises:
      DTypeError: ``tensor`` is none of strings.
    """
    converted = _ops.convert_to_tensor(tensor)
    if converted.dtype is not dtypes.string:
        raise DTypeError(
            f"tf.summary.text shows strings, and {converted.name} has other elements",
            expected="string",
            got=converted.dtype.name,
            hint="tf.as_string makes strings of numbers",
        )
    metadata = messages.SummaryMetadata(plugin_data={"plugin_name": "text"})
    return tensor_summary(name, converted, collections=collections, summary_metadata=metadata)


def merge(inputs: Sequence[TensorLike], collections: Sequence[Any] | None = None, name: str | None = None) -> Any:
    """One summary with the values of several.

    Args:
      inputs: scalar strings: the bytes of summaries.
      collections: of the graph, which it joins; default: none.

    Returns:
      A scalar string.

    Raises:
      InvalidArgumentError: there are no inputs; in the step: two values have one tag.
    """
    given = list(inputs)
    if not given:
        raise InvalidArgumentError("tf.summary.merge needs a summary at least", expected="a list of tensors", got="[]")
    name = clean_tag(name)
    with _tf.name_scope(name, "Merge", given):
        made = _ops.apply_op("MergeSummary", inputs=given, name=name)
    collect(made, collections, ())
    return made


def merge_all(key: Any = _tf.GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Any:
    """One summary with the values of all that are in a collection of the default graph.

    Args:
      key: the collection. ``scope``: only those whose name it matches at the beginning, as a regular expression.

    Returns:
      A scalar string, or None where the collection is empty.

    Raises:
      InvalidArgumentError: in the step: two values have one tag.
    """
    found = _tf.get_collection(key, scope=scope)
    return merge(found, name=name) if found else None
