"""Kernels that take Examples apart, with the library protobuf, which is imported when the first plan needs one."""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from graphdock import messages
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

from graphdock_data.resources.files import texts

__all__ = ["KERNELS"]

#: dtype -> the field of a Feature that holds such values.
_LISTS = {"int64": "int64_list", "float32": "float_list", "string": "bytes_list"}
_KINDS = {field: dtype for dtype, field in _LISTS.items()}
#: Keys that a message lists at most.
_SHOWN = 20


def _parser(kind: str) -> Callable[[bytes, Callable[[], str]], Any]:
    """Reader of messages; the second argument names the message in errors."""
    parse = messages.make(kind).FromString
    from google.protobuf.message import DecodeError

    def read(data: bytes, what: Callable[[], str]) -> Any:
        try:
            return parse(data)
        except (DecodeError, UnicodeDecodeError) as error:
            raise errors.InvalidArgumentError(
                f"{what()} is no {kind}, or it is damaged: could not parse it", got=repr(data[:40])
            ) from error

    return read


def _named(index: int, names: Sequence[bytes]) -> str:
    return f"Example {index}" + (f" ({names[index].decode('utf-8', 'replace')})" if index < len(names) else "")


class _Key:
    """One key that is asked for, and the dtype of its values."""

    def __init__(self, key: Any, dtype: Any) -> None:
        self.name = (key if isinstance(key, bytes) else key.item()).decode("utf-8", "replace")
        self.dtype, self.np, self.field = dtype.name, dtype.np, _LISTS[dtype.name]
        #: The values of a feature of this dtype; of another one an empty list.
        self.listed = operator.attrgetter(f"{self.field}.value")

    def values(self, feature: Any, what: str) -> Any:
        """The values of a feature; None where it holds none of any kind."""
        kind = None if feature is None else feature.WhichOneof("kind")
        if kind is None:
            return None
        if kind != self.field:
            raise errors.InvalidArgumentError(
                f"{what}: the feature {self.name!r} has another dtype",
                expected=self.dtype,
                got=_KINDS[kind],
            )
        return getattr(feature, kind).value

    def array(self, flat: list[Any], shape: tuple[int, ...]) -> Any:
        return (texts(flat) if self.dtype == "string" else np.array(flat, self.np)).reshape(shape)

    def missing(self, what: str, there: Iterable[str], kind: str = "feature") -> errors.InvalidArgumentError:
        keys = sorted(there)
        more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
        return errors.InvalidArgumentError(
            f"{what}: the {kind} {self.name!r} ({self.dtype}) is required but could not be found",
            expected="it, or a default_value",
            got=f"the keys {', '.join(map(repr, keys[:_SHOWN]))}{more}" if keys else "no keys",
        )


def _dense(key: _Key, maps: Sequence[Any], dims: Sequence[int | None], default: Any, names: Sequence[bytes]) -> Any:
    """``[len(maps), *dims]``; a first dim that is None is as long as the longest, and ``default`` then fills the others up."""
    if dims and dims[0] is None:
        return _blocks(key, maps, dims[1:], default, names)
    count, flat = math.prod(dims), []  # type: ignore[arg-type]
    fallback = default.ravel().tolist() if default.size else None
    if fallback is not None and len(fallback) != count:
        raise errors.InvalidArgumentError(
            f"the default of the feature {key.name!r} has another number of elements",
            expected=str(count),
            got=str(len(fallback)),
        )
    name = key.name
    if count and (plain := _plain(key, [features.get(name) for features in maps], count)) is not None:
        return plain.reshape(len(maps), *dims)
    for index, features in enumerate(maps):
        values = key.values(features.get(name), f"Example {index}")
        if values is None:
            if fallback is None and not (name in features and count == 0):
                raise key.missing(_named(index, names), features)
            values = fallback or ()
        elif len(values) != count:
            raise errors.InvalidArgumentError(
                f"{_named(index, names)}: the feature {name!r} has another number of values",
                expected=f"{count} of shape {list(dims)}",
                got=str(len(values)),
            )
        flat.extend(values)
    return key.array(flat, (len(maps), *dims))  # type: ignore[arg-type]


def _plain(key: _Key, features: Sequence[Any], count: int) -> Any:
    """The values of features that all have so many, flat; None where one has others, or is missing."""
    if not all(features):
        return None
    if key.dtype == "float32":
        return _floats(features, count)
    lists = [*map(key.listed, features)]
    if set(map(len, lists)) != {count}:
        return None
    flat = [values[0] for values in lists] if count == 1 else list(itertools.chain.from_iterable(lists))
    return key.array(flat, (len(flat),))


def _floats(features: Sequence[Any], count: int) -> Any:
    """The values of features of so many floats, out of the bytes of their lists; None where one has others.

    A list is written as a tag, the number of bytes, and the values. To have each as a Python float would take four times as long.
    """
    lists = [feature.float_list.SerializeToString() for feature in features]
    size = 4 * count
    head = 2 + (size.bit_length() - 1) // 7
    if set(map(len, lists)) != {head + size}:
        return None
    found = np.frombuffer(b"".join(lists), np.uint8).reshape(len(lists), head + size)[:, head:]
    return np.ascontiguousarray(found).view("<f4").astype(np.float32, copy=False)


def _blocks(key: _Key, maps: Sequence[Any], dims: Sequence[int | None], default: Any, names: Sequence[bytes]) -> Any:
    size, name = math.prod(dims), key.name  # type: ignore[arg-type]
    rows = []
    for index, features in enumerate(maps):
        values = list(key.values(features.get(name), f"Example {index}") or ())
        if size and len(values) % size:
            raise errors.InvalidArgumentError(
                f"{_named(index, names)}: the values of the feature {name!r} fill no whole number of blocks",
                expected=f"a multiple of {size}",
                got=str(len(values)),
            )
        rows.append(values)
    longest = max(map(len, rows), default=0)
    fill = default.item() if default.size else (b"" if key.dtype == "string" else 0)
    flat = [value for row in rows for value in (*row, *[fill] * (longest - len(row)))]
    return key.array(flat, (len(maps), longest // size if size else 0, *dims))  # type: ignore[arg-type]


def _sparse(key: _Key, maps: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Indices ``[n, 2]``, values and shape of a feature of any length."""
    name, listed = key.name, key.listed
    features = [m.get(name) for m in maps]
    found = [() if feature is None else listed(feature) for feature in features]
    for index, values in enumerate(found):
        if not values:
            key.values(features[index], f"Example {index}")  # which raises where they are of another dtype
    return _rows(key, found)


def _rows(key: _Key, found: Sequence[Any]) -> tuple[Any, Any, Any]:
    lengths = [len(values) for values in found]
    total = sum(lengths)
    indices = np.empty((total, 2), np.int64)
    rows = indices[:, 0] = np.repeat(np.arange(len(found)), lengths)
    indices[:, 1] = np.arange(total) - (np.cumsum(lengths) - lengths)[rows]
    flat = list(itertools.chain.from_iterable(found))
    return indices, key.array(flat, (total,)), np.array([len(found), max(lengths, default=0)], np.int64)


def _groups(items: Iterable[tuple[Any, ...]]) -> list[Any]:
    """All indices, then all values, then all shapes."""
    columns = list(zip(*items, strict=True))
    return [part for column in columns for part in column]


def _answer(outs: Sequence[Any]) -> Any:
    return outs[0] if len(outs) == 1 else (tuple(outs) if outs else None)


def _parse_example(ctx: BuildContext) -> Bound:
    read, sparse, dense = _parser("Example"), ctx.attr("Nsparse"), ctx.attr("Ndense")
    kinds, types, shapes = ctx.attr("sparse_types"), ctx.attr("Tdense"), ctx.attr("dense_shapes")

    def compute(serialized: Any, names: Any, *rest: Any) -> Any:
        labels = names.tolist()
        if labels and len(labels) != len(serialized):
            raise errors.InvalidArgumentError(
                "there must be as many names as Examples, or none",
                expected=str(len(serialized)),
                got=str(len(labels)),
            )
        parsed = _read_all(read, serialized, labels)
        maps = [example.features.feature for example in parsed]
        ragged = [_sparse(_Key(k, d), maps) for k, d in zip(rest[:sparse], kinds, strict=True)]
        keys, defaults = rest[sparse : sparse + dense], rest[sparse + dense :]
        columns = [
            _dense(_Key(key, kind), maps, dims, default, labels)
            for key, kind, dims, default in zip(keys, types, shapes, defaults, strict=True)
        ]
        return _answer([*_groups(ragged), *columns])

    return Bound(compute)


def _read_all(read: Callable[[bytes, Callable[[], str]], Any], serialized: Any, labels: Sequence[bytes]) -> list[Any]:
    given = serialized.tolist()
    with contextlib.suppress(errors.InvalidArgumentError):  # of which the one that follows says which it is
        return [read(data, _unnamed) for data in given]
    parsed: list[Any] = []

    def what() -> str:
        return _named(len(parsed), labels)

    for data in given:
        parsed.append(read(data, what))
    return parsed


def _unnamed() -> str:
    return "an Example"


def _single(parts: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """Of a feature of a batch of one, that of the one."""
    indices, values, shape = parts
    return np.ascontiguousarray(indices[:, 1:]), values, shape[1:].copy()


def _parse_single_example(ctx: BuildContext) -> Bound:
    read, shapes = _parser("Example"), ctx.attr("dense_shapes")
    sparse = [_Key(_bytes(k), d) for k, d in zip(ctx.attr("sparse_keys"), ctx.attr("sparse_types"), strict=True)]
    dense = [_Key(_bytes(k), d) for k, d in zip(ctx.attr("dense_keys"), ctx.attr("Tdense"), strict=True)]

    def compute(serialized: Any, *defaults: Any) -> Any:
        maps = [read(serialized.item(), lambda: "the Example").features.feature]
        ragged = [_single(_sparse(key, maps)) for key in sparse]
        rows = zip(dense, shapes, defaults, strict=True)
        columns = [_dense(key, maps, dims, default, ())[0] for key, dims, default in rows]
        return _answer([*_groups(ragged), *map(_whole, columns)])

    return Bound(compute)


def _whole(value: Any) -> Any:
    """An array of what may have become an element of one."""
    if isinstance(value, np.ndarray):
        return value
    return texts(value) if isinstance(value, bytes) else np.asarray(value)


def _bytes(text: Any) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()


def _parse_single_sequence_example(ctx: BuildContext) -> Bound:
    read, attr = _parser("SequenceExample"), ctx.attr
    counts = [attr(f"N{name}") for name in ("context_sparse", "context_dense", "feature_list_sparse")]
    counts.append(attr("Nfeature_list_dense"))
    kinds = [attr(n) for n in ("context_sparse_types", "Tcontext_dense", "feature_list_sparse_types")]
    kinds.append(attr("feature_list_dense_types"))
    context_shapes, list_shapes = attr("context_dense_shapes"), attr("feature_list_dense_shapes")

    def compute(serialized: Any, assumed_empty: Any, *rest: Any) -> Any:
        rest, label = rest[:-1], rest[-1]
        what = label.item().decode("utf-8", "replace")
        what = f"the SequenceExample {what!r}" if what else "the SequenceExample"
        example = read(serialized.item(), lambda: what)
        keys, at = [], 0
        for count, types in zip(counts, kinds, strict=True):
            keys.append([_Key(k, d) for k, d in zip(rest[at : at + count], types, strict=True)])
            at += count
        maps, lists = [example.context.feature], example.feature_lists.feature_list
        ragged = [_single(_sparse(key, maps)) for key in keys[0]]
        rows = zip(keys[1], context_shapes, rest[at:], strict=True)
        columns = [_whole(_dense(key, maps, dims, default, ())[0]) for key, dims, default in rows]
        ragged_lists = [_rows(key, _list_of(key, lists, what)) for key in keys[2]]
        optional = {name.decode() for name in assumed_empty.tolist()}
        dense_lists = [
            _dense_list(key, lists, dims, what, optional) for key, dims in zip(keys[3], list_shapes, strict=True)
        ]
        return _answer([*_groups(ragged), *columns, *_groups(ragged_lists), *dense_lists])

    return Bound(compute)


def _parse_sequence_example(ctx: BuildContext) -> Bound:
    read, attr = _parser("SequenceExample"), ctx.attr
    names = ("context_sparse", "context_dense", "feature_list_sparse", "feature_list_dense")
    kinds = [attr(n) for n in ("context_sparse_types", "Tcontext_dense", "feature_list_sparse_types")]
    kinds.append(attr("feature_list_dense_types"))
    keys = [
        [_Key(_bytes(key), kind) for key, kind in zip(attr(f"{name}_keys"), types, strict=True)]
        for name, types in zip(names, kinds, strict=True)
    ]
    context_shapes, list_shapes = attr("context_dense_shapes"), attr("feature_list_dense_shapes")
    optional = {_bytes(key).decode() for key in attr("feature_list_dense_missing_assumed_empty")}

    def compute(serialized: Any, labels: Any, *defaults: Any) -> Any:
        told = [f"the Sequence{_named(i, labels.tolist())}" for i in range(len(serialized))]
        parsed = _read_all(read, serialized, labels.tolist())
        maps = [example.context.feature for example in parsed]
        lists = [example.feature_lists.feature_list for example in parsed]
        ragged = [_sparse(key, maps) for key in keys[0]]
        rows = zip(keys[1], context_shapes, defaults, strict=True)
        columns = [_dense(key, maps, dims, default, labels.tolist()) for key, dims, default in rows]
        pairs = list(zip(lists, told, strict=True))
        ragged_lists = [_nested_rows(key, [_list_of(key, each, what) for each, what in pairs]) for key in keys[2]]
        dense_lists = [
            [_dense_list(key, each, dims, what, optional) for each, what in pairs]
            for key, dims in zip(keys[3], list_shapes, strict=True)
        ]
        filled = [_filled(key, found, dims) for key, found, dims in zip(keys[3], dense_lists, list_shapes, strict=True)]
        lengths = [np.array([len(one) for one in found], np.int64) for found in dense_lists]
        return _answer([*_groups(ragged), *columns, *_groups(ragged_lists), *filled, *lengths])

    return Bound(compute)


def _nested_rows(key: _Key, found: Sequence[Sequence[Any]]) -> tuple[Any, Any, Any]:
    """Indices ``[n, 3]``, values and shape of the lists of several examples."""
    flat = [row for rows in found for row in rows]
    places, values, shape = _rows(key, flat)
    example = np.repeat(np.arange(len(found)), [len(rows) for rows in found])
    at = np.array([i for rows in found for i in range(len(rows))], np.int64)
    indices = np.stack([example[places[:, 0]], at[places[:, 0]], places[:, 1]], axis=1).astype(np.int64)
    longest = max((len(rows) for rows in found), default=0)
    return indices, values, np.array([len(found), longest, shape[1]], np.int64)


def _filled(key: _Key, found: Sequence[Any], dims: Sequence[int]) -> Any:
    """Lists of several examples, filled up to the length of the longest."""
    out = np.zeros((len(found), max(map(len, found), default=0), *dims), key.np)
    if key.dtype == "string":
        out[...] = b""
    for row, one in zip(out, found, strict=True):
        row[: len(one)] = one
    return out


def _list_of(key: _Key, lists: Any, what: str) -> list[Any]:
    found = lists[key.name].feature if key.name in lists else ()
    return [key.values(f, f"{what}, feature list {key.name!r}, index {i}") or () for i, f in enumerate(found)]


def _dense_list(key: _Key, lists: Any, dims: Any, what: str, optional: set[str]) -> Any:
    if key.name not in lists and key.name not in optional:
        raise key.missing(what, lists, "feature list")
    count, flat, rows = math.prod(dims), [], _list_of(key, lists, what)
    for index, values in enumerate(rows):
        if len(values) != count:
            raise errors.InvalidArgumentError(
                f"{what}: index {index} of the feature list {key.name!r} has another number of values",
                expected=f"{count} of shape {list(dims)}",
                got=str(len(values)),
            )
        flat.extend(values)
    return key.array(flat, (len(rows), *dims))


KERNELS = [
    KernelDef("ParseExample", "host", _parse_example, modes=("fresh",)),
    KernelDef("ParseSequenceExample", "host", _parse_sequence_example, modes=("fresh",)),
    KernelDef("ParseSingleExample", "host", _parse_single_example, modes=("fresh",)),
    KernelDef("ParseSingleSequenceExample", "host", _parse_single_sequence_example, modes=("fresh",)),
]
