"""Features of Examples, as messages: their values as tensors, and what is said of one that is missing or of another kind."""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from graphdock import messages
from graphdock.contracts import errors

from graphdock_data.resources.files import texts

__all__ = ["Key", "dense_of", "named", "of_lengths", "parser", "read_all", "rows_of", "sparse_of"]

#: dtype -> the field of a Feature that holds such values.
_LISTS = {"int64": "int64_list", "float32": "float_list", "string": "bytes_list"}
_KINDS = {field: dtype for dtype, field in _LISTS.items()}
#: Keys that a message lists at most.
_SHOWN = 20


def parser(kind: str) -> Callable[[bytes, Callable[[], str]], Any]:
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


def named(index: int, names: Sequence[bytes]) -> str:
    return f"Example {index}" + (f" ({names[index].decode('utf-8', 'replace')})" if index < len(names) else "")


class Key:
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


def dense_of(key: Key, maps: Sequence[Any], dims: Sequence[int | None], default: Any, names: Sequence[bytes]) -> Any:
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
                raise key.missing(named(index, names), features)
            values = fallback or ()
        elif len(values) != count:
            raise errors.InvalidArgumentError(
                f"{named(index, names)}: the feature {name!r} has another number of values",
                expected=f"{count} of shape {list(dims)}",
                got=str(len(values)),
            )
        flat.extend(values)
    return key.array(flat, (len(maps), *dims))  # type: ignore[arg-type]


def _plain(key: Key, features: Sequence[Any], count: int) -> Any:
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


def _blocks(key: Key, maps: Sequence[Any], dims: Sequence[int | None], default: Any, names: Sequence[bytes]) -> Any:
    size, name = math.prod(dims), key.name  # type: ignore[arg-type]
    rows = []
    for index, features in enumerate(maps):
        values = list(key.values(features.get(name), f"Example {index}") or ())
        if size and len(values) % size:
            raise errors.InvalidArgumentError(
                f"{named(index, names)}: the values of the feature {name!r} fill no whole number of blocks",
                expected=f"a multiple of {size}",
                got=str(len(values)),
            )
        rows.append(values)
    longest = max(map(len, rows), default=0)
    fill = default.item() if default.size else (b"" if key.dtype == "string" else 0)
    flat = [value for row in rows for value in (*row, *[fill] * (longest - len(row)))]
    return key.array(flat, (len(maps), longest // size if size else 0, *dims))  # type: ignore[arg-type]


def sparse_of(key: Key, maps: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Indices ``[n, 2]``, values and shape of a feature of any length."""
    name, listed = key.name, key.listed
    features = [m.get(name) for m in maps]
    found = [() if feature is None else listed(feature) for feature in features]
    for index, values in enumerate(found):
        if not values:
            key.values(features[index], f"Example {index}")  # which raises where they are of another dtype
    return rows_of(key, found)


def rows_of(key: Key, found: Sequence[Any]) -> tuple[Any, Any, Any]:
    flat = list(itertools.chain.from_iterable(found))
    return of_lengths(key.array(flat, (len(flat),)), [len(values) for values in found])


def of_lengths(flat: Any, lengths: Sequence[int]) -> tuple[Any, Any, Any]:
    """Indices, values and shape, given the values and how many there are in each row."""
    counts = np.array(lengths, np.int64)
    firsts = np.repeat(np.cumsum(counts) - counts, counts)
    indices = np.empty((len(flat), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(counts)), counts)
    np.subtract(np.arange(len(flat)), firsts, out=indices[:, 1])
    return indices, flat, np.array([len(counts), counts.max(initial=0)], np.int64)


def read_all(read: Callable[[bytes, Callable[[], str]], Any], serialized: Any, labels: Sequence[bytes]) -> list[Any]:
    given = serialized.tolist()
    with contextlib.suppress(errors.InvalidArgumentError):  # of which the one that follows says which it is
        return [read(data, _unnamed) for data in given]
    parsed: list[Any] = []

    def what() -> str:
        return named(len(parsed), labels)

    for data in given:
        parsed.append(read(data, what))
    return parsed


def _unnamed() -> str:
    return "an Example"
