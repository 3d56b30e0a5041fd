"""Kernels of tensors and Examples as bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock import messages
from graphdock.contracts import Bound, BuildContext, KernelDef, dtypes, errors
from graphdock_storage.compressed import Damaged, expanded
from graphdock_storage.tensor_messages import tensor_proto
from graphdock_storage.tensor_reading import array_of

from graphdock_data.resources.files import texts

__all__ = ["KERNELS"]


def _parsed(data: bytes, dtype: dtypes.DType, what: str) -> Any:
    from google.protobuf.message import DecodeError

    try:
        proto = messages.make("TensorProto").FromString(data)
    except DecodeError as error:
        raise errors.InvalidArgumentError(f"{what} is no TensorProto, or it is damaged", got=repr(data[:40])) from error
    array = array_of(proto, what)
    if dtypes.as_dtype(array.dtype) is not dtype:
        raise errors.InvalidArgumentError(
            f"{what} is a tensor of another dtype", expected=dtype.name, got=dtypes.as_dtype(array.dtype).name
        )
    return array


def _bytes_of(array: Any, dtype: dtypes.DType) -> bytes:
    made: bytes = tensor_proto(array, dtype).SerializeToString()
    return made


def _parse_tensor(ctx: BuildContext) -> Bound:
    dtype = ctx.attr("out_type")
    return Bound(lambda serialized: _parsed(serialized.item(), dtype, "the string"))


def _serialize_tensor(ctx: BuildContext) -> Bound:
    dtype = ctx.inputs[0].dtype
    return Bound(lambda tensor: texts(_bytes_of(tensor, dtype)))


def _check_places(indices: Any, shape: Any) -> None:
    """Raise InvalidArgumentError for a place outside the shape, or one that does not come after the one before it."""
    outside = ((indices < 0) | (indices >= shape)).any(1)
    if outside.any():
        at = int(outside.argmax())
        raise errors.InvalidArgumentError(
            f"sparse_indices[{at}] is {indices[at].tolist()}, which is out of bounds for shape {shape.tolist()}"
        )
    steps = np.diff(indices, axis=0)
    first = np.take_along_axis(steps, (steps != 0).argmax(1)[:, None], 1)[:, 0] if steps.size else np.ones(0, int)
    if (first <= 0).any():
        at = int((first <= 0).argmax()) + 1
        raise errors.InvalidArgumentError(
            f"sparse_indices[{at}] is {indices[at].tolist()}, which is out of order or repeated",
            hint="tf.sparse_reorder",
        )


def _serialize_many_sparse(ctx: BuildContext) -> Bound:
    kind = ctx.inputs[1].dtype

    def compute(indices: Any, values: Any, shape: Any) -> Any:
        if len(shape) < 2:
            raise errors.InvalidArgumentError("rows of a SparseTensor of rank 2 or more", got=f"rank {len(shape)}")
        _check_places(indices, shape)
        out = np.empty((int(shape[0]), 3), object)
        rest = _bytes_of(shape[1:], dtypes.int64)
        for row in range(len(out)):
            mine = indices[:, 0] == row
            out[row] = _bytes_of(indices[mine, 1:], dtypes.int64), _bytes_of(values[mine], kind), rest
        return out

    return Bound(compute)


def _deserialize_many_sparse(ctx: BuildContext) -> Bound:
    kind = ctx.attr("dtype")

    def compute(rows: Any) -> Any:
        parts = []
        for number, (indices, values, shape) in enumerate(rows.tolist()):
            what = f"row {number}"
            places, size = (_parsed(data, dtypes.int64, what) for data in (indices, shape))
            parts.append((places, _parsed(values, kind, what), size))
        if not parts:
            raise errors.InvalidArgumentError("no rows: nothing says of which rank they are")
        ranks = {len(shape) for _, _, shape in parts}
        if len(ranks) > 1:
            raise errors.InvalidArgumentError("rows of several ranks", got=", ".join(map(str, sorted(ranks))))
        lengths = [len(places) for places, _, _ in parts]
        numbers = np.repeat(np.arange(len(parts)), lengths)[:, None]
        indices = np.concatenate([numbers, np.concatenate([places for places, _, _ in parts])], 1)
        largest = np.max([shape for _, _, shape in parts], 0)
        return indices, np.concatenate([values for _, values, _ in parts]), np.array([len(parts), *largest], np.int64)

    return Bound(compute)


def _each(convert: Callable[[bytes], bytes]) -> Bound:
    """Each element converted."""

    def compute(strings: Any) -> Any:
        return texts([convert(text) for text in strings.ravel().tolist()]).reshape(strings.shape)

    return Bound(compute)


def _decode_compressed(ctx: BuildContext) -> Bound:
    kind = ctx.attr("compression_type")

    def convert(data: bytes) -> bytes:
        try:
            return expanded(data, kind)
        except Damaged as error:
            raise errors.DataLossError(f"the string can't be decompressed: {error}", expected=kind) from error

    return _each(convert)


def _decode_json_example(ctx: BuildContext) -> Bound:
    from google.protobuf import json_format

    def convert(text: bytes) -> bytes:
        try:
            made: bytes = json_format.Parse(text, messages.make("Example")).SerializeToString()
        except (json_format.ParseError, UnicodeDecodeError) as error:
            raise errors.InvalidArgumentError(f"Error while parsing JSON of an Example: {error}") from error
        return made

    return _each(convert)


KERNELS = [
    KernelDef("ParseTensor", "host", _parse_tensor, modes=("fresh",)),
    KernelDef("SerializeTensor", "host", _serialize_tensor, modes=("fresh",)),
    KernelDef("SerializeManySparse", "host", _serialize_many_sparse, modes=("fresh",)),
    KernelDef("DeserializeManySparse", "host", _deserialize_many_sparse, modes=("fresh",)),
    KernelDef("DecodeCompressed", "host", _decode_compressed, modes=("fresh",)),
    KernelDef("DecodeJSONExample", "host", _decode_json_example, modes=("fresh",)),
]
