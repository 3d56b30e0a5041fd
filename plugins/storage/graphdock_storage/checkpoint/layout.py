"""Layout of a checkpoint, as its index says it: tensors, their parts, and where in which file these lie.

The index is two lines of JSON: the first names format, schema version, length and CRC-32 of the second, which is the table. Data
files stand in it without the prefix, so that a checkpoint may be renamed and copied as a whole.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from graphdock.dtypes import DType, as_dtype
from graphdock.errors import DataLossError, GraphdockError, InvalidArgumentError, UnimplementedError

from graphdock_storage.checkpoint.slices import Slice, check_parts, check_shape

__all__ = ["INDEX", "SCHEMA", "DataFile", "Index", "Part", "Stored", "check_apart", "parse_index"]

#: What the name of an index ends with; so does TensorFlow's.
INDEX = ".index"
FORMAT = "graphdock checkpoint"
SCHEMA = 1

_SUFFIX = re.compile(r"\.data-\d{5}-of-\d{5}\.[0-9a-f]{8}\.safetensors\Z")


@dataclass(frozen=True, slots=True)
class Part:
    """A slice of a tensor, and the bytes that hold it.

    Attributes:
      slice: of the whole tensor.
      file: number of the data file. ``offset``, ``nbytes``: where in it. ``checksum``: CRC of the bytes.
    """

    slice: Slice
    file: int
    offset: int
    nbytes: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of a checkpoint: its dtype, its shape, and its parts, which share no element and need not be all of it."""

    dtype: DType
    shape: tuple[int, ...]
    parts: tuple[Any, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file: what its name has behind the prefix, and its length in bytes."""

    suffix: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Index:
    """The table of a checkpoint. Names of tensors are any text."""

    files: tuple[DataFile, ...]
    tensors: Mapping[str, Stored]

    def text(self) -> bytes:
        """As it stands in the file."""
        table = {
            "files": [{"suffix": f.suffix, "bytes": f.nbytes} for f in self.files],
            "tensors": {name: _as_json(stored) for name, stored in sorted(self.tensors.items())},
        }
        body = json.dumps(table, separators=(",", ":")).encode() + b"\n"
        head = {"format": FORMAT, "schema": SCHEMA, "bytes": len(body), "crc32": zlib.crc32(body)}
        return json.dumps(head).encode() + b"\n" + body


def _as_json(stored: Stored) -> dict[str, Any]:
    parts = [
        {
            "slice": p.slice.spelled(stored.shape),
            "file": p.file,
            "offset": p.offset,
            "bytes": p.nbytes,
            "crc32": p.checksum,
        }
        for p in stored.parts
    ]
    return {"dtype": stored.dtype.name, "shape": list(stored.shape), "parts": parts}


def parse_index(text: bytes, path: str) -> Index | None:
    """The table that the text of an index file is; None when it is no index of this format at all.

    Raises:
      DataLossError: it is one and damaged. UnimplementedError: it has a newer schema.
    """
    line, _, body = text.partition(b"\n")
    try:
        head = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        return None
    if head.get("schema") != SCHEMA:
        raise UnimplementedError(
            f"the checkpoint {path!r} has a schema that this version does not read",
            expected=str(SCHEMA),
            got=str(head.get("schema")),
            hint="read it with the version of graphdock that wrote it, or a later one",
        )
    if head.get("bytes") != len(body) or head.get("crc32") != zlib.crc32(body):
        raise DataLossError(
            f"the index {path!r} is damaged: its checksum does not fit", hint="restore an earlier checkpoint"
        )
    try:
        table = json.loads(body)
        files = tuple(DataFile(_suffix(f["suffix"]), _count(f["bytes"])) for f in table["files"])
        tensors = {name: _stored(entry, files) for name, entry in table["tensors"].items()}
        if len({f.suffix for f in files}) != len(files):
            raise ValueError("a data file is there twice")
        check_apart([part for stored in tensors.values() for part in stored.parts])
        return Index(files, tensors)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, GraphdockError) as error:
        raise DataLossError(f"the index {path!r} says what can't be: {error!r}") from error


def _suffix(text: Any) -> str:
    if not _SUFFIX.match(text):
        raise ValueError(f"{text!r} is no data file")
    return str(text)


def _count(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} is no count")
    return number


def check_apart(parts: Iterable[Any]) -> None:
    """Refuse parts that share bytes of a data file: a checkpoint holds no more than its files.

    Raises:
      InvalidArgumentError: two do.
    """
    places = sorted((p.file, p.offset, p.nbytes) for p in parts if p.nbytes)
    for (file, start, nbytes), (other, offset, _) in itertools.pairwise(places):
        if file == other and start + nbytes > offset:
            raise InvalidArgumentError(f"two tensors share the byte {offset} of a data file")


def _stored(entry: Any, files: tuple[DataFile, ...]) -> Stored:
    dtype, shape = as_dtype(entry["dtype"]), tuple(map(_count, entry["shape"]))
    if dtype.kind in "RV":
        raise ValueError(f"{dtype.name} has no bytes")
    check_shape(shape)
    parts = []
    for found in entry["parts"]:
        part = Part(
            Slice.parse(found["slice"], shape),
            _count(found["file"]),
            _count(found["offset"]),
            _count(found["bytes"]),
            _count(found["crc32"]),
        )
        if part.offset + part.nbytes > files[part.file].nbytes:
            raise ValueError("a part ends behind its file")
        if dtype.size and part.nbytes != part.slice.size * dtype.size:
            raise ValueError("a part has another length than its elements")
        parts.append(part)
    check_parts([p.slice for p in parts], shape)
    return Stored(dtype, shape, tuple(parts))
