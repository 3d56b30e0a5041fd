"""Oracles of the ops over strings: Python's text where kernels use bytes, other modules where there are others.

Buckets of hashes are a table of values that TensorFlow gives.
"""

from __future__ import annotations

import binascii
import csv
import itertools
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np


def _shaped(values: Iterable[Any], shape: Sequence[int], dtype: Any = object) -> np.ndarray:
    out = np.empty(tuple(shape), dtype)
    for place, value in zip(np.ndindex(*shape), values, strict=True):
        out[place] = value.encode() if isinstance(value, str) else value
    return out


def _each(function: Callable[[str], Any], array: Any, dtype: Any = object) -> np.ndarray:
    return _shaped((function(v.decode()) for v in array.flat), array.shape, dtype)


def join(inputs: Any, separator: str = "", **_: Any) -> np.ndarray:
    """Broadcast, then joined."""
    arrays = np.broadcast_arrays(*inputs)
    return _shaped(
        (separator.join(v.decode() for v in row) for row in zip(*(a.flat for a in arrays), strict=True)),
        arrays[0].shape,
    )


def _sparse(rows: list[list[str]]) -> list[np.ndarray]:
    places = [[i, j] for i, row in enumerate(rows) for j, _ in enumerate(row)]
    parts = [p for row in rows for p in row]
    widest = max([len(row) for row in rows] + [0])
    return [
        np.array(places, np.int64).reshape(-1, 2),
        _shaped(parts, (len(parts),)),
        np.array([len(rows), widest], np.int64),
    ]


def split(input: Any, delimiter: Any, skip_empty: bool = True) -> list[np.ndarray]:
    """By a class of characters."""
    stops = delimiter.item().decode()
    texts = [v.decode() for v in input]
    rows = [list(t) if not stops or not t else re.split(f"[{re.escape(stops)}]", t) for t in texts]
    return _sparse([[p for p in row if p or not skip_empty] for row in rows])


def split_v2(input: Any, sep: Any, maxsplit: int = -1) -> list[np.ndarray]:
    """Python's own."""
    return _sparse([v.decode().split(sep.item().decode() or None, maxsplit) for v in input])


def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE") -> np.ndarray:
    """Slices of lists of characters."""
    texts, starts, lengths = np.broadcast_arrays(input, pos, len)

    def part(text: bytes, start: int, length: int) -> bytes:
        units = [bytes([b]) for b in text] if unit == "BYTE" else [c.encode() for c in text.decode()]
        rest = units[start:]
        return b"".join(rest[:length] if length >= 0 else rest)

    rows = zip(texts.flat, starts.flat, lengths.flat, strict=True)
    return _shaped((part(t, int(p), int(n)) for t, p, n in rows), texts.shape)


def regex_replace(input: Any, pattern: Any, rewrite: Any, replace_global: bool = True) -> np.ndarray:
    """Python's own, for matches that are not empty."""
    made = re.sub(r"\\(\d)", r"\\g<\1>", rewrite.item().decode())
    return _each(lambda t: re.sub(pattern.item().decode(), made, t, count=0 if replace_global else 1), input)


def regex_full_match(input: Any, pattern: Any) -> np.ndarray:
    """The pattern between the ends."""
    return _each(lambda t: bool(re.compile(pattern.item().decode() + r"\Z").match(t)), input, bool)


def strip(input: Any) -> np.ndarray:
    """By pattern."""
    return _each(lambda t: re.sub(r"\A[ \t-\r]+|[ \t-\r]+\Z", "", t), input)


def _cased(input: Any, encoding: str, change: Callable[[str], str]) -> np.ndarray:
    return _each(lambda t: "".join(change(c) if encoding or ord(c) < 128 else c for c in t), input)


def lower(input: Any, encoding: str = "") -> np.ndarray:
    """A character at a time."""
    return _cased(input, encoding, str.lower)


def upper(input: Any, encoding: str = "") -> np.ndarray:
    """A character at a time."""
    return _cased(input, encoding, str.upper)


def length(input: Any, unit: str = "BYTE") -> np.ndarray:
    """Of bytes, or of text."""
    return _each(lambda t: len(t.encode()) if unit == "BYTE" else len(t), input, np.int32)


def reduce_join(inputs: Any, axis: Any, keep_dims: bool = False, separator: str = "") -> np.ndarray:
    """Every place of the result counts through the joined dims, the first named fastest."""
    axes = [int(a) % max(inputs.ndim, 1) for a in np.atleast_1d(axis)]
    sizes = [1 if a in axes else n for a, n in enumerate(inputs.shape)]
    out = np.empty(sizes, object)
    for place in np.ndindex(*sizes):
        parts = []
        for counts in itertools.product(*(range(inputs.shape[a]) for a in reversed(axes))):
            at = list(place)
            for a, n in zip(reversed(axes), counts, strict=True):
                at[a] = n
            parts.append(inputs[tuple(at)].decode())
        out[place] = separator.join(parts).encode()
    return out if keep_dims else out.reshape([n for a, n in enumerate(inputs.shape) if a not in axes])


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    **_: Any,
) -> np.ndarray:
    """Python's format strings: ``<`` for ``-``, ``0``, ``+`` and ``#`` as they are."""
    kind = "e" if scientific else "g" if shortest else "f"
    sign, side, zero = ("+" if fill == "+" else "-"), ("<" if fill == "-" else ">"), ("0" if fill == "0" else "")
    side = "=" if zero else side
    wide = str(width) if width > 0 else ""
    padded = ("#" if fill == "#" else "") + wide

    def number(v: Any) -> str:
        finite = np.isfinite(v)
        return format(
            float(v),
            f"{'' if zero else ' '}{zero and '0'}{side}{sign}{padded}.{6 if precision < 0 else precision}{kind}"
            if finite
            else f" >{wide}",
        )

    def text(v: Any) -> str:
        if isinstance(v, bytes):
            padded = v.decode()
            return padded.ljust(width) if fill == "-" else padded.rjust(width)
        if isinstance(v, bool | np.bool_):
            return "true" if v else "false"
        if np.issubdtype(type(v), np.integer):
            return format(int(v), f"{zero or ' '}{side}{sign}{wide}d")
        if np.issubdtype(type(v), np.complexfloating):
            return f"({number(v.real)},{number(v.imag)})"
        return number(v)

    return _shaped((text(v) for v in input.flat), input.shape)


def string_format(
    inputs: Any, template: str = "%s", placeholder: str = "%s", summarize: int = 3, **_: Any
) -> np.ndarray:
    """As NumPy prints integers of one digit, and as TensorFlow prints rows of nothing."""
    edges = {"edgeitems": summarize, "threshold": 0} if summarize >= 0 else {}
    with np.printoptions(**edges):
        for array in inputs:
            rows = array.ndim > 1 and len(array) > 0 and not array.size
            shown = "[" + "\n" * (array.ndim - 1) + " ...]" if rows else str(array)
            template = template.replace(placeholder, shown, 1)
    return np.array(template.encode(), object)


_HASHES: dict[tuple[str, int], dict[bytes, int]] = {
    ("murmur", 1 << 40): {
        b"": 142163811899,
        b"x": 1026644654064,
        b"x" * 7: 427700984255,
        b"x" * 8: 374988365647,
        b"x" * 17: 522267767094,
    },
    ("farm", 1 << 31): {
        b"hello": 825756904,
        b"": 797982799,
        b"a": 920614371,
        b"abcdefgh": 281553161,
        b"abcdefghijklmnopq": 762811304,
        b"z" * 100: 1004747385,
    },
    ("sip 1 2", 1 << 31): {b"hello": 1799583894, b"world": 103213702, b"": 1640736635, b"a": 1450769654},
}


def _buckets(array: Any, name: str, count: int) -> np.ndarray:
    return _shaped((_HASHES[name, count][v] for v in array.flat), array.shape, np.int64)


def to_hash_bucket(string_tensor: Any, num_buckets: int) -> np.ndarray:
    """TensorFlow's values."""
    return _buckets(string_tensor, "murmur", num_buckets)


def to_hash_bucket_fast(input: Any, num_buckets: int) -> np.ndarray:
    """TensorFlow's values."""
    return _buckets(input, "farm", num_buckets)


def to_hash_bucket_strong(input: Any, num_buckets: int, key: Sequence[int]) -> np.ndarray:
    """TensorFlow's values."""
    return _buckets(input, f"sip {key[0]} {key[1]}", num_buckets)


def to_number(string_tensor: Any, out_type: Any) -> np.ndarray:
    """NumPy's reading of text."""
    return _shaped(
        (np.dtype(out_type).type(t.decode().strip()) for t in string_tensor.flat), string_tensor.shape, out_type
    )


def encode_base64(input: Any, pad: bool = False) -> np.ndarray:
    """The usual alphabet, exchanged."""
    texts = (binascii.b2a_base64(t, newline=False).translate(bytes.maketrans(b"+/", b"-_")) for t in input.flat)
    return _shaped((t if pad else t.replace(b"=", b"") for t in texts), input.shape)


def decode_base64(input: Any) -> np.ndarray:
    """Six bits a character."""
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

    def decode(text: bytes) -> bytes:
        bits = "".join(format(letters.index(c), "06b") for c in text.rstrip(b"="))
        return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits) // 8 * 8, 8))

    return _shaped(map(decode, input.flat), input.shape)


_STRUCT = {"b": " ?", "i": " bh i   q", "u": " BH I   Q", "f": "  e f   d"}


def decode_raw(bytes: Any, out_type: Any, little_endian: bool = True) -> np.ndarray:
    """A number at a time."""
    kind = np.dtype(out_type)
    rows = []
    for text in bytes.flat:
        parts = [text[i : i + kind.itemsize] for i in range(0, len(text), kind.itemsize)]
        order = "<" if little_endian else ">"
        if kind.kind == "c":
            code = "f" if kind.itemsize == 8 else "d"
            rows.append([complex(*struct.unpack(order + 2 * code, p)) for p in parts])
        elif kind.name == "bfloat16":
            halves = [struct.unpack(order + "H", p)[0] << 16 for p in parts]
            rows.append([struct.unpack("<f", struct.pack("<I", h))[0] for h in halves])
        else:
            rows.append([struct.unpack(order + _STRUCT[kind.kind][kind.itemsize], p)[0] for p in parts])
    return np.array(rows, kind).reshape(*bytes.shape, -1 if bytes.size else 0)


def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    na_value: str = "",
    select_cols: Sequence[int] = (),
    **_: Any,
) -> list[np.ndarray]:
    """By the csv module."""
    lines = [next(csv.reader([t.decode()], delimiter=field_delim)) for t in records.flat]
    columns = list(select_cols) or list(range(len(record_defaults)))
    out = []
    for column, default in zip(columns, record_defaults, strict=True):
        texts = [line[column] for line in lines]
        kind = np.asarray(default).dtype
        values = [
            default.item() if t in ("", na_value) else t.encode() if kind.kind == "O" else kind.type(t) for t in texts
        ]
        out.append(_shaped(values, records.shape, kind))
    return out
