"""Oracles of the ops over bytes: messages taken apart and put together byte by byte, without the library protobuf."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import numpy as np

#: TensorFlow's number of a dtype -> NumPy's.
_KINDS: dict[int, Any] = {
    1: np.float32, 2: np.float64, 3: np.int32, 4: np.uint8, 5: np.int16, 6: np.int8, 7: object, 8: np.complex64, 9: np.int64,
    10: np.bool_, 17: np.uint16, 18: np.complex128, 19: np.float16, 22: np.uint32, 23: np.uint64,
}  # fmt: skip
_NUMBERS = {np.dtype(kind): number for number, kind in _KINDS.items()}


def _number(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _number(value >> 7)


def _block(field: int, data: bytes) -> bytes:
    return _number(field << 3 | 2) + _number(len(data)) + data


def _read(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def _fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message that has numbers and blocks: their numbers and what stands in them."""
    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(data):
        tag, at = _read(data, at)
        value, at = _read(data, at)
        found.append((tag >> 3, data[at : at + value] if tag & 7 == 2 else value))
        at += value if tag & 7 == 2 else 0
    return found


def serialize_tensor(tensor: Any, **_: Any) -> np.ndarray:
    """A TensorProto: dtype, shape, and the elements as they lie in memory; strings one by one."""
    array = np.asarray(tensor)
    dims = [_number(1 << 3) + _number(n) if n else b"" for n in array.shape]
    number = 14 if array.dtype.name == "bfloat16" else _NUMBERS[array.dtype]
    made = _number(1 << 3) + _number(number) + _block(2, b"".join(_block(2, dim) for dim in dims))
    if array.dtype == object:
        made += b"".join(_block(8, text) for text in array.ravel())
    elif array.size:
        made += _block(4, array.tobytes())
    return np.array(made, object)


def parse_tensor(serialized: Any, **_: Any) -> np.ndarray:
    """The tensor of one with its elements in ``tensor_content``, ``int_val``, ``int64_val`` or ``string_val``."""
    fields = _fields(np.asarray(serialized).item())
    kind = next(value for field, value in fields if field == 1)
    block = next((value for field, value in fields if field == 2), b"")
    shape = [dict(_fields(dim)).get(1, 0) for field, dim in _fields(block) if field == 2]
    texts = [value for field, value in fields if field == 8]
    packed = next((value for field, value in fields if field in (7, 10)), b"")
    if texts:
        return np.array(texts, object).reshape(shape)
    if packed:
        numbers: list[int] = []
        at = 0
        while at < len(packed):
            value, at = _read(packed, at)
            numbers.append(value)
        missing = int(np.prod(shape)) - len(numbers)
        return np.array(numbers + numbers[-1:] * missing, _KINDS[kind]).reshape(shape)
    return np.frombuffer(dict(fields).get(4, b""), _KINDS[kind]).reshape(shape)


def serialize_many_sparse(sparse_indices: Any, sparse_values: Any, sparse_shape: Any, **_: Any) -> np.ndarray:
    """Row by row: places, elements, and the shape of a row."""
    out = np.empty((int(sparse_shape[0]), 3), object)
    for row in range(len(out)):
        mine = [i for i, place in enumerate(sparse_indices) if place[0] == row]
        parts = (sparse_indices[mine][:, 1:], sparse_values[mine], sparse_shape[1:])
        out[row] = [serialize_tensor(np.ascontiguousarray(part)).item() for part in parts]
    return out


def deserialize_many_sparse(serialized_sparse: Any, **_: Any) -> list[np.ndarray]:
    """Rows one above the other, as large as the largest."""
    rows = [[parse_tensor(part) for part in row] for row in serialized_sparse]
    places = [[number, *place] for number, (found, _, _) in enumerate(rows) for place in found.tolist()]
    values = np.concatenate([values for _, values, _ in rows])
    shape = [len(rows), *np.max([shape for _, _, shape in rows], 0).tolist()]
    return [np.array(places, np.int64).reshape(len(values), len(shape)), values, np.array(shape, np.int64)]


def decode_compressed(bytes: Any, compression_type: str = "", **_: Any) -> np.ndarray:  # noqa: A002 - the op's name
    """By the standard library."""
    expand = {"": lambda data: data, "ZLIB": zlib.decompress, "GZIP": gzip.decompress}[compression_type]
    out = np.empty(np.shape(bytes), object)
    for place, data in np.ndenumerate(np.asarray(bytes, object)):
        out[place] = expand(data)
    return out


def decode_json_example(json_examples: Any, **_: Any) -> np.ndarray:
    """Of Examples with one feature of integers, each below 128."""
    out = np.empty(np.shape(json_examples), object)
    for place, text in np.ndenumerate(np.asarray(json_examples, object)):
        made = b""
        for name, feature in json.loads(text).get("features", {}).get("feature", {}).items():
            numbers = b"".join(_number(int(n)) for n in feature["int64List"]["value"])
            made += _block(1, _block(1, name.encode()) + _block(2, _block(3, _block(1, numbers))))
        out[place] = _block(1, made) if made else b""
    return out


def _features(example: bytes) -> dict[str, list[Any]]:
    """The values of each feature of an Example."""
    found: dict[str, list[Any]] = {}
    for _, entry in (entry for _, features in _fields(example) for entry in _fields(features)):
        parts = dict(_fields(entry))
        found[parts[1].decode()] = _values(parts[2])
    return found


def _values(feature: bytes) -> list[Any]:
    values: list[Any] = []
    for kind, data in _fields(feature):
        values = [value for _, value in _fields(data)]
        if kind == 2:
            values = np.frombuffer(b"".join(values), "<f4").tolist()
        elif kind == 3:
            packed, values = b"".join(values), []
            while packed:
                number, at = _read(packed, 0)
                values.append(number)
                packed = packed[at:]
    return values


def _filled(values: list[Any], shape: Any, dtype: Any) -> np.ndarray:
    made = np.empty(len(values), object if dtype.name == "string" else dtype.np)
    made[:] = values
    return made.reshape(tuple(shape))


def parse_example(
    serialized: Any,
    sparse_keys: Any,
    dense_keys: Any,
    dense_defaults: Any,
    sparse_types: Any,
    dense_shapes: Any,
    Tdense: Any,
    **_: Any,
) -> list[np.ndarray]:
    """Indices, values and shapes of features of any length, then those of one shape."""
    rows = [_features(example) for example in serialized.tolist()]
    return _columns(rows, sparse_keys, dense_keys, dense_defaults, sparse_types, dense_shapes, Tdense)


def _columns(
    rows: list[dict[str, list[Any]]],
    sparse_keys: Any,
    dense_keys: Any,
    dense_defaults: Any,
    sparse_types: Any,
    dense_shapes: Any,
    Tdense: Any,
) -> list[np.ndarray]:
    sparse = [[row.get(key.item().decode(), []) for row in rows] for key in sparse_keys]
    indices = [[[i, j] for i, row in enumerate(column) for j in range(len(row))] for column in sparse]
    values = [[value for row in column for value in row] for column in sparse]
    made = [np.array(each, np.int64).reshape(-1, 2) for each in indices]
    made += [_filled(each, [-1], dtype) for each, dtype in zip(values, sparse_types, strict=True)]
    made += [np.array([len(rows), max(map(len, column))], np.int64) for column in sparse]
    for key, default, shape, dtype in zip(dense_keys, dense_defaults, dense_shapes, Tdense, strict=True):
        column = [row.get(key.item().decode(), default.ravel().tolist()) for row in rows]
        made.append(_filled([value for row in column for value in row], [len(rows), *shape], dtype))
    return made


def parse_single_example(
    serialized: Any,
    dense_defaults: Any,
    sparse_keys: Any,
    sparse_types: Any,
    dense_keys: Any,
    dense_shapes: Any,
    Tdense: Any,
    **_: Any,
) -> list[np.ndarray]:
    """As of a batch of one, without its dim."""
    keys = [_keys(sparse_keys), _keys(dense_keys)]
    one = np.array([serialized.item()], object)
    made = parse_example(one, keys[0], keys[1], dense_defaults, sparse_types, dense_shapes, Tdense)
    n = len(sparse_keys)
    return [
        *(m[:, 1:] for m in made[:n]),
        *made[n : 2 * n],
        *(m[1:] for m in made[2 * n : 3 * n]),
        *(m[0] for m in made[3 * n :]),
    ]


def _keys(keys: Any) -> list[np.ndarray]:
    return [np.array(k if isinstance(k, bytes) else k.encode(), object) for k in keys]


def parse_sequence_example(
    serialized: Any,
    context_dense_defaults: Any,
    context_sparse_keys: Any,
    context_sparse_types: Any,
    context_dense_keys: Any,
    context_dense_shapes: Any,
    Tcontext_dense: Any,
    feature_list_sparse_keys: Any,
    feature_list_sparse_types: Any,
    feature_list_dense_keys: Any,
    feature_list_dense_types: Any,
    feature_list_dense_shapes: Any,
    **_: Any,
) -> list[np.ndarray]:
    """Results of the context, as of Examples; indices, values and shapes of lists of features; dense lists, their lengths."""
    rows: list[dict[str, list[Any]]] = []
    lists: list[dict[str, list[list[Any]]]] = []
    for data in serialized.tolist():
        blocks = _fields(data)
        rows.append(_features(b"".join(_block(1, block) for field, block in blocks if field == 1)))
        entries = [dict(_fields(e)) for field, block in blocks if field == 2 for _, e in _fields(block)]
        lists.append({e[1].decode(): [_values(f) for _, f in _fields(e[2])] for e in entries})
    keys = _keys(context_sparse_keys), _keys(context_dense_keys)
    kinds = context_sparse_types, context_dense_shapes, Tcontext_dense
    made = _columns(rows, *keys, context_dense_defaults, *kinds)
    places, values, shapes = [], [], []
    for key, dtype in zip(_keys(feature_list_sparse_keys), feature_list_sparse_types, strict=True):
        column = [each.get(key.item().decode(), []) for each in lists]
        cells = [(b, t, i, v) for b, one in enumerate(column) for t, f in enumerate(one) for i, v in enumerate(f)]
        places.append(np.array([cell[:3] for cell in cells], np.int64).reshape(-1, 3))
        values.append(_filled([cell[3] for cell in cells], [-1], dtype))
        shapes.append(np.array([len(column), *_longest(column)], np.int64))
    dense, lengths = [], []
    for key, dtype, shape in zip(
        _keys(feature_list_dense_keys), feature_list_dense_types, feature_list_dense_shapes, strict=True
    ):
        column = [each.get(key.item().decode(), []) for each in lists]
        most = _longest(column)[0]
        nothing = [b"" if dtype.name == "string" else 0] * int(np.prod(shape))
        filled = [v for one in column for f in [*one, *[nothing] * (most - len(one))] for v in f]
        dense.append(_filled(filled, [len(column), most, *shape], dtype))
        lengths.append(np.array([len(one) for one in column], np.int64))
    return [*made, *places, *values, *shapes, *dense, *lengths]


def _longest(column: list[list[list[Any]]]) -> tuple[int, int]:
    """The length of the longest list, and of the longest of its features."""
    return max(map(len, column)), max((len(f) for one in column for f in one), default=0)


def parse_single_sequence_example(
    serialized: Any,
    context_sparse_keys: Any,
    context_dense_keys: Any,
    feature_list_sparse_keys: Any,
    feature_list_dense_keys: Any,
    **given: Any,
) -> list[np.ndarray]:
    """As of a batch of one, without its dim and without lengths."""
    of = (context_sparse_keys, context_dense_keys, feature_list_sparse_keys, feature_list_dense_keys)
    keys = [[key.item() for key in each] for each in of]
    names = ("context_sparse_keys", "context_dense_keys", "feature_list_sparse_keys", "feature_list_dense_keys")
    made = parse_sequence_example(np.array([serialized.item()], object), **dict(zip(names, keys, strict=True)), **given)
    found: list[np.ndarray] = []
    for sparse, dense in (keys[:2], keys[2:]):
        n = len(sparse)
        here, made = made[: 3 * n + len(dense)], made[3 * n + len(dense) :]
        found += [*(m[:, 1:] for m in here[:n]), *here[n : 2 * n], *(m[1:] for m in here[2 * n : 3 * n])]
        found += [m[0] for m in here[3 * n :]]
    return found
