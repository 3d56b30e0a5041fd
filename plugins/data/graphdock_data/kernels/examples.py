"""Kernels that take Examples apart, with the library protobuf, which is imported when the first plan needs one."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from graphdock import messages
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

from graphdock_data.kernels.feature_bytes import Values, all_are, values_of
from graphdock_data.kernels.features import Key, dense_of, named, of_lengths, parser, read_all, rows_of, sparse_of
from graphdock_data.resources.files import texts

__all__ = ["KERNELS"]


def _groups(items: Iterable[tuple[Any, ...]]) -> list[Any]:
    """All indices, then all values, then all shapes."""
    columns = list(zip(*items, strict=True))
    return [part for column in columns for part in column]


def _answer(outs: Sequence[Any]) -> Any:
    return outs[0] if len(outs) == 1 else (tuple(outs) if outs else None)


class _Batches:
    """Batches of Examples of which features stay bytes, until one is asked for whose values can't be had from these."""

    def __init__(self) -> None:
        from google.protobuf.message import DecodeError

        self._parse = messages.make("ExampleInBytes").FromString
        self._feature = messages.make("Feature").FromString
        self._read = parser("Example")
        self._damage = DecodeError, UnicodeDecodeError

    def of(self, serialized: Any, labels: Sequence[bytes]) -> _Batch:
        given: list[Any] | None = None
        with contextlib.suppress(*self._damage):  # of which `maps` says where it is
            given = [self._parse(data).features.feature for data in serialized.tolist()]
        return _Batch(given, self.values, lambda: read_all(self._read, serialized, labels), labels)

    def values(self, key: Key, given: Sequence[Any]) -> Values | None:
        """The values of a feature, out of its bytes."""
        name = key.name
        with contextlib.suppress(*self._damage):
            return values_of(key.dtype, self._feature, [features[name] for features in given])  # empty: not there
        return None


class _Batch:
    """A batch. ``given``: features in bytes, by key; None where some Example is damaged."""

    def __init__(self, given: Any, values: Any, parsed: Callable[[], list[Any]], labels: Sequence[bytes]) -> None:
        self._given, self._values, self._parsed, self._labels = given, values, parsed, labels

    @functools.cached_property
    def maps(self) -> list[Any]:
        """The features of each Example, by their keys."""
        return [example.features.feature for example in self._parsed()]

    def sparse(self, key: Key) -> tuple[Any, Any, Any]:
        found = None if self._given is None else self._values(key, self._given)
        if found is None:
            return sparse_of(key, self.maps)
        flat, counts = found
        return of_lengths(flat, [counts] * len(self._given) if isinstance(counts, int) else counts)

    def dense(self, key: Key, dims: Sequence[int | None], default: Any) -> Any:
        if self._given and None not in dims and (count := math.prod(dims)):  # type: ignore[arg-type]
            found = self._values(key, self._given)
            if found is not None and all_are(found[1], count):
                return found[0].reshape(len(self._given), *dims)
        return dense_of(key, self.maps, dims, default, self._labels)


def _parse_example(ctx: BuildContext) -> Bound:
    sparse, dense = ctx.attr("Nsparse"), ctx.attr("Ndense")
    kinds, types, shapes = ctx.attr("sparse_types"), ctx.attr("Tdense"), ctx.attr("dense_shapes")
    batches = _Batches()

    def compute(serialized: Any, names: Any, *rest: Any) -> Any:
        labels = names.tolist()
        if labels and len(labels) != len(serialized):
            raise errors.InvalidArgumentError(
                "there must be as many names as Examples, or none",
                expected=str(len(serialized)),
                got=str(len(labels)),
            )
        batch = batches.of(serialized, labels)
        ragged = [batch.sparse(Key(k, d)) for k, d in zip(rest[:sparse], kinds, strict=True)]
        keys, defaults = rest[sparse : sparse + dense], rest[sparse + dense :]
        columns = [
            batch.dense(Key(key, kind), dims, default)
            for key, kind, dims, default in zip(keys, types, shapes, defaults, strict=True)
        ]
        return _answer([*_groups(ragged), *columns])

    return Bound(compute)


def _single(parts: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """Of a feature of a batch of one, that of the one."""
    indices, values, shape = parts
    return np.ascontiguousarray(indices[:, 1:]), values, shape[1:].copy()


def _parse_single_example(ctx: BuildContext) -> Bound:
    read, shapes = parser("Example"), ctx.attr("dense_shapes")
    sparse = [Key(_bytes(k), d) for k, d in zip(ctx.attr("sparse_keys"), ctx.attr("sparse_types"), strict=True)]
    dense = [Key(_bytes(k), d) for k, d in zip(ctx.attr("dense_keys"), ctx.attr("Tdense"), strict=True)]

    def compute(serialized: Any, *defaults: Any) -> Any:
        maps = [read(serialized.item(), lambda: "the Example").features.feature]
        ragged = [_single(sparse_of(key, maps)) for key in sparse]
        rows = zip(dense, shapes, defaults, strict=True)
        columns = [dense_of(key, maps, dims, default, ())[0] for key, dims, default in rows]
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
    read, attr = parser("SequenceExample"), ctx.attr
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
            keys.append([Key(k, d) for k, d in zip(rest[at : at + count], types, strict=True)])
            at += count
        maps, lists = [example.context.feature], example.feature_lists.feature_list
        ragged = [_single(sparse_of(key, maps)) for key in keys[0]]
        rows = zip(keys[1], context_shapes, rest[at:], strict=True)
        columns = [_whole(dense_of(key, maps, dims, default, ())[0]) for key, dims, default in rows]
        ragged_lists = [rows_of(key, _list_of(key, lists, what)) for key in keys[2]]
        optional = {name.decode() for name in assumed_empty.tolist()}
        dense_lists = [
            _dense_list(key, lists, dims, what, optional) for key, dims in zip(keys[3], list_shapes, strict=True)
        ]
        return _answer([*_groups(ragged), *columns, *_groups(ragged_lists), *dense_lists])

    return Bound(compute)


def _parse_sequence_example(ctx: BuildContext) -> Bound:
    read, attr = parser("SequenceExample"), ctx.attr
    names = ("context_sparse", "context_dense", "feature_list_sparse", "feature_list_dense")
    kinds = [attr(n) for n in ("context_sparse_types", "Tcontext_dense", "feature_list_sparse_types")]
    kinds.append(attr("feature_list_dense_types"))
    keys = [
        [Key(_bytes(key), kind) for key, kind in zip(attr(f"{name}_keys"), types, strict=True)]
        for name, types in zip(names, kinds, strict=True)
    ]
    context_shapes, list_shapes = attr("context_dense_shapes"), attr("feature_list_dense_shapes")
    optional = {_bytes(key).decode() for key in attr("feature_list_dense_missing_assumed_empty")}

    def compute(serialized: Any, labels: Any, *defaults: Any) -> Any:
        told = [f"the Sequence{named(i, labels.tolist())}" for i in range(len(serialized))]
        parsed = read_all(read, serialized, labels.tolist())
        maps = [example.context.feature for example in parsed]
        lists = [example.feature_lists.feature_list for example in parsed]
        ragged = [sparse_of(key, maps) for key in keys[0]]
        rows = zip(keys[1], context_shapes, defaults, strict=True)
        columns = [dense_of(key, maps, dims, default, labels.tolist()) for key, dims, default in rows]
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


def _nested_rows(key: Key, found: Sequence[Sequence[Any]]) -> tuple[Any, Any, Any]:
    """Indices ``[n, 3]``, values and shape of the lists of several examples."""
    flat = [row for rows in found for row in rows]
    places, values, shape = rows_of(key, flat)
    example = np.repeat(np.arange(len(found)), [len(rows) for rows in found])
    at = np.array([i for rows in found for i in range(len(rows))], np.int64)
    indices = np.stack([example[places[:, 0]], at[places[:, 0]], places[:, 1]], axis=1).astype(np.int64)
    longest = max((len(rows) for rows in found), default=0)
    return indices, values, np.array([len(found), longest, shape[1]], np.int64)


def _filled(key: Key, found: Sequence[Any], dims: Sequence[int]) -> Any:
    """Lists of several examples, filled up to the length of the longest."""
    out = np.zeros((len(found), max(map(len, found), default=0), *dims), key.np)
    if key.dtype == "string":
        out[...] = b""
    for row, one in zip(out, found, strict=True):
        row[: len(one)] = one
    return out


def _list_of(key: Key, lists: Any, what: str) -> list[Any]:
    found = lists[key.name].feature if key.name in lists else ()
    return [key.values(f, f"{what}, feature list {key.name!r}, index {i}") or () for i, f in enumerate(found)]


def _dense_list(key: Key, lists: Any, dims: Any, what: str, optional: set[str]) -> Any:
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
