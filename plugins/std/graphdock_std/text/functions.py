"""Public functions over strings whose signature is not their op's. Names, argument names and defaults are TensorFlow 1's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import graphdock as _tf
import numpy as np
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import DTypeLike, TensorLike

from graphdock_std.grad_support import static_shape


def _one_of(what: str, **given: Any) -> Any:
    """The value of an argument that has two names."""
    values = {n: v for n, v in given.items() if v is not None}
    if len(values) != 1:
        names = " and ".join(given)
        raise InvalidArgumentError(f"{what}: {names} are one argument", got="both" if values else "neither")
    return next(iter(values.values()))


def plus(x: TensorLike, y: TensorLike, name: str | None = None) -> _ops.Tensor:
    """``x + y``: the sum of numbers, and strings one behind the other."""
    if isinstance(x, _tf.Tensor) and x.dtype is dtypes.string:
        return _ops.apply_op("StringJoin", inputs=[x, _ops.convert_to_tensor(y, dtypes.string)], name=name)
    return _ops.apply_op("Add", x=x, y=y, name=name)


def string_split(
    source: TensorLike,
    sep: TensorLike | None = None,
    skip_empty: bool = True,
    delimiter: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """The parts of strings between delimiters, as a SparseTensor.

    Args:
      source: vector of strings.
      sep: every byte of it splits; a space by default. With an empty one every byte is a part. ``delimiter`` is its older name.
      skip_empty: leave out parts that are empty.

    Returns:
      A SparseTensor of strings, ``[len(source), most parts]``.
    """
    if sep is not None and delimiter is not None:
        raise InvalidArgumentError("string_split: sep and delimiter are one argument", got="both")
    given = delimiter if sep is None else sep
    stops = " " if given is None else given
    parts = _ops.apply_op(
        "StringSplit", input=source, delimiter=stops, skip_empty=skip_empty, name=name or "StringSplit"
    )
    return _tf.SparseTensor(parts.indices, parts.values, parts.shape)


def string_split_v2(
    input: TensorLike | None = None,
    sep: TensorLike | None = None,
    maxsplit: int = -1,
    result_type: Literal["SparseTensor"] = "SparseTensor",
    source: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """The parts of strings as Python's ``str.split`` makes them, as a SparseTensor.

    Args:
      input: vector of strings, or one string. ``source`` is its older name.
      sep: the separator; by default runs of space.
      maxsplit: most splits of a string.
      result_type: ``"SparseTensor"``; there are no ragged tensors here.
    """
    if result_type != "SparseTensor":
        raise InvalidArgumentError(
            "strings.split makes a SparseTensor", expected="result_type='SparseTensor'", got=repr(result_type)
        )
    with _tf.name_scope(name or "StringSplit") as scope:
        text = _ops.convert_to_tensor(_one_of("strings.split", input=input, source=source), dtypes.string)
        if static_shape(text) == ():
            text = _tf.expand_dims(text, 0)
        stop = "" if sep is None else sep
        parts = _ops.apply_op("StringSplitV2", input=text, sep=stop, maxsplit=maxsplit, name=scope)
        return _tf.SparseTensor(parts.indices, parts.values, parts.shape)


def string_format(
    template: str,
    inputs: TensorLike | Sequence[TensorLike],
    placeholder: str = "{}",
    summarize: int = 3,
    name: str | None = None,
) -> _ops.Tensor:
    """A text with tensors put in, as people read them.

    Args:
      template: has a placeholder for each tensor.
      inputs: a tensor, or a list of tensors of any dtypes.
      summarize: elements at each end of a dim; -1: all of them.

    Raises:
      InvalidArgumentError: not as many placeholders as tensors.
    """
    tensors = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    values = [_ops.convert_to_tensor(t) for t in tensors]
    attrs = {"template": template, "placeholder": placeholder, "summarize": summarize}
    return _ops.apply_op("StringFormat", inputs=values, name=name, **attrs)


def string_to_hash_bucket(
    string_tensor: TensorLike | None = None,
    num_buckets: int | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
) -> _ops.Tensor:
    """A bucket for each string, int64 from 0 to ``num_buckets - 1``. ``input`` is a later name of ``string_tensor``.

    ``string_to_hash_bucket_fast`` is the one to use in new programs.
    """
    text = _one_of("string_to_hash_bucket", string_tensor=string_tensor, input=input)
    if num_buckets is None:
        raise InvalidArgumentError("string_to_hash_bucket needs num_buckets")
    return _ops.apply_op("StringToHashBucket", string_tensor=text, num_buckets=num_buckets, name=name)


def string_to_number(
    string_tensor: TensorLike | None = None,
    out_type: DTypeLike = dtypes.float32,
    name: str | None = None,
    input: TensorLike | None = None,
) -> _ops.Tensor:
    """Text as numbers: float32, float64, int32 or int64. ``input`` is a later name of ``string_tensor``.

    Raises:
      InvalidArgumentError: in the step: a string that is no number, or one that does not fit.
    """
    text = _one_of("string_to_number", string_tensor=string_tensor, input=input)
    return _ops.apply_op("StringToNumber", string_tensor=text, out_type=dtypes.as_dtype(out_type), name=name)


def decode_raw(
    input_bytes: TensorLike | None = None,
    out_type: DTypeLike | None = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: TensorLike | None = None,
) -> _ops.Tensor:
    """Bytes as the numbers that they are in memory.

    Args:
      input_bytes: strings of one length. ``bytes`` is its older name.
      out_type: dtype of the numbers.
      little_endian: the least significant byte comes first.

    Returns:
      A tensor with one dim more than ``input_bytes``.

    Raises:
      InvalidArgumentError: in the step: strings of several lengths, or of a length that is no multiple of an element's.
    """
    text = _one_of("decode_raw", input_bytes=input_bytes, bytes=bytes)
    if out_type is None:
        raise InvalidArgumentError("decode_raw needs out_type")
    kind = dtypes.as_dtype(out_type)
    return _ops.apply_op("DecodeRaw", bytes=text, out_type=kind, little_endian=little_endian, name=name)


def decode_csv(
    records: TensorLike,
    record_defaults: Sequence[TensorLike],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[_ops.Tensor]:
    """The columns of lines of CSV (RFC 4180).

    Args:
      records: strings, a line each.
      record_defaults: one per column: what an empty field stands for, a scalar or a vector of one element; an empty vector where a
        field must not be empty. Its dtype is the column's: float32, float64, int32, int64 or string.
      field_delim: one character between fields.
      use_quote_delim: fields may stand in double quotes; a quote among them is doubled.
      na_value: what else stands for an empty field.
      select_cols: the columns to take, in rising order; default: all.

    Returns:
      A list of tensors of the shape of ``records``.

    Raises:
      InvalidArgumentError: in the step: a record of another number of fields, or a field that is no such number.
    """
    defaults = [_ops.convert_to_tensor(d) for d in record_defaults]
    attrs = {"field_delim": field_delim, "use_quote_delim": use_quote_delim, "na_value": na_value}
    columns = list(select_cols or [])
    op = "DecodeCSV"
    made = _ops.apply_op(op, records=records, record_defaults=defaults, select_cols=columns, name=name, **attrs)
    return list(made) if isinstance(made, list | tuple) else [made]


def reduce_join(
    inputs: TensorLike,
    axis: TensorLike | None = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keepdims: bool | None = None,
) -> _ops.Tensor:
    """Strings joined along dims.

    Args:
      axis: a dim, or several, of which the first goes up first; default: all, in row-major order. ``reduction_indices`` is its
        older name.
    """
    keep = bool(keep_dims) if keepdims is None else bool(keepdims)
    axis = reduction_indices if axis is None else axis
    with _tf.name_scope(name or "ReduceJoin") as scope:
        inputs = _ops.convert_to_tensor(inputs, dtypes.string)
        if axis is None:
            dims = static_shape(inputs)
            if dims is None:
                axis = _tf.range(_tf.rank(inputs) - 1, -1, -1)
            else:
                axis = np.arange(len(dims) - 1, -1, -1, dtype=np.int32)
        elif not isinstance(axis, _tf.Tensor):
            axis = np.asarray(axis, np.int32)
        return _ops.apply_op("ReduceJoin", inputs=inputs, axis=axis, keep_dims=keep, separator=separator, name=scope)
