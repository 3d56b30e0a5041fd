"""Values of one feature of a batch of Examples, out of its bytes: all Examples' at once.

A Feature in bytes is a tag, which says the dtype, a number of bytes, and a list; a list of numbers is a tag, a number of bytes, and
the numbers. Those of several, one behind the other, are read as one that holds the values of all. How many each holds is seen from
the bytes: of floats by their number, of integers by their ends, of strings by the length of each. What is written in any other way,
which is allowed, is not read here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphdock_data.resources.files import texts

__all__ = ["Values", "all_are", "values_of"]

#: Values of a batch, flat, and how many each Example has: one number where all have as many.
Values = tuple[Any, Any]
#: dtype -> the first byte of a Feature of such values.
_TAGS = {"string": 0x0A, "float32": 0x12, "int64": 0x1A}
#: The first byte of a list of numbers that stand one behind the other.
_PACKED = 0x0A
#: Bytes of a Feature of which one byte says how many there are, at most.
_SHORT = 129


def values_of(dtype: str, parse: Callable[[bytes], Any], given: Sequence[bytes]) -> Values | None:
    """The values of a feature; None where some are of another dtype, or can't be read in this way.

    Args:
      parse: makes a Feature of bytes.
      given: of each Example the feature in bytes, empty where it has none.

    Raises:
      DecodeError: some are damaged.
    """
    tag = _TAGS[dtype]
    nothing = bytes((tag, 0))
    there = given
    if not all(given) or nothing in given:
        there = [data for data in given if data and data != nothing]
    if not there:
        return texts([]) if dtype == "string" else np.empty(0, dtype), 0
    sizes = [*map(len, there)]
    joined = b"".join(there)
    heads = _heads(there, sizes, joined, (tag,) if dtype == "string" else (tag, _PACKED))
    if heads is None:
        return None
    if dtype == "float32":
        found = _of_floats(joined, sizes, heads)
    elif dtype == "string":
        found = _of_strings([*parse(joined).bytes_list.value], sizes, heads)
    else:
        found = _of_integers(parse(joined).int64_list.value, joined, sizes, heads)
    if found is None or len(there) == len(given):
        return found
    counts = np.zeros(len(given), np.int64)
    counts[[i for i, data in enumerate(given) if data and data != nothing]] = found[1]
    return found[0], counts


def all_are(counts: Any, count: int) -> bool:
    """Return whether each Example has so many values."""
    if isinstance(counts, int):
        return counts == count
    return counts == [count] * len(counts) if isinstance(counts, list) else bool((counts == count).all())


def _heads(there: Sequence[bytes], sizes: Sequence[int], joined: bytes, tags: Sequence[int]) -> Any:
    """Bytes before the values of each: tags, each with the number of all bytes behind it; None where others do."""
    size, most = min(sizes), max(sizes)
    if size == most:
        head = _head(there[0], tags)
        if head is not None and all(joined[i::size] == joined[i : i + 1] * len(there) for i in range(head)):
            return head
        return None
    if most <= _SHORT:
        length = 2 * len(tags)
        if size < length:
            return None
        for at, tag in zip((0, 2), tags, strict=False):
            if {data[at] for data in there} != {tag} or [data[at + 1] + at + 2 for data in there] != sizes:
                return None
        return length
    found = [_head(data, tags) for data in there]
    return None if None in found else np.array(found)


def _head(data: bytes, tags: Sequence[int]) -> int | None:
    at, size = 0, len(data)
    for tag in tags:
        if size < at + 2 or data[at] != tag:
            return None
        inside, at = data[at + 1], at + 2
        if inside > 127:  # it is written in seven bits a byte
            if size == at or data[at] > 127:
                return None
            inside, at = inside - 128 + (data[at] << 7), at + 1
        if at + inside != size:
            return None
    return at


def _of_strings(flat: list[bytes], sizes: Sequence[int], heads: Any) -> Values | None:
    counts, end = [], 0
    if any(len(value) > 127 for value in flat):
        written = [len(value) + 2 + (len(value) > 127) + (len(value) > 16383) for value in flat]
    else:
        written = [len(value) + 2 for value in flat]
    for size in sizes if isinstance(heads, int) else np.subtract(sizes, heads).tolist():
        first, left = end, size - heads if isinstance(heads, int) else size
        while left > 0 and end < len(written):
            left -= written[end]
            end += 1
        if left:
            return None
        counts.append(end - first)
    return (texts(flat), counts) if end == len(flat) else None


def _of_integers(given: Any, joined: bytes, sizes: Sequence[int], heads: Any) -> Values | None:
    flat = np.array([*given], np.int64)
    if len(flat) == len(sizes) and isinstance(heads, int) and min(sizes) > heads:  # none is without one
        return flat, 1
    ends = np.cumsum(sizes)
    passed = np.zeros(len(joined) + 1, np.int64)  # how many numbers end before a byte
    np.cumsum(np.frombuffer(joined, np.uint8) < 128, out=passed[1:])
    counts = passed[ends] - passed[ends - sizes + heads]
    return None if counts.sum() != len(flat) else (flat, counts)


def _of_floats(joined: bytes, sizes: Sequence[int], heads: Any) -> Values | None:
    read = np.frombuffer(joined, np.uint8)
    counts: Any
    if isinstance(heads, int) and min(sizes) == max(sizes):
        counts, rest = divmod(sizes[0] - heads, 4)
        if rest:
            return None
        data = read.reshape(len(sizes), -1)[:, heads:].flatten()
    else:
        inside = np.subtract(sizes, heads)
        if (inside % 4).any():
            return None
        counts = inside // 4
        data = read[np.repeat(np.cumsum(sizes) - np.cumsum(inside), inside) + np.arange(inside.sum())]
    return data.view("<f4").astype(np.float32, copy=False), counts
