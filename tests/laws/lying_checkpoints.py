"""Random checkpoints of the three formats whose checksums fit and whose entries may lie, and what a plain reader says they hold.

A checkpoint is records, one for each tensor: what its index says, before it has a form. Lies are told of records, so that all
formats tell the same ones; those of the table that TensorFlow's formats share are told of its blocks.
"""

from __future__ import annotations

import json
import math
import random
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from graphdock_storage.checkpoint.crc32c import crc32c
from graphdock_tensorflow.checkpoints.table import MAGIC

SUFFIX = ".data-00000-of-00001.0123abcd.safetensors"
KINDS = ("float32", "float64", "int32", "int64", "uint8", "int8", "bool", "complex64", "float16")
SHAPES = (
    (),
    (0,),
    (1 << 62,),
    (1 << 40, 1 << 40),
    (1,) * 70,
    (1,) * 300,
    (-1,),
    (0, 1 << 62),
    (1 << 56,),
    (6, 4),
    (24,),
    (2, 3, 4),
)
NUMBERS = (0, 1, -1, 3, 8, 255, 1 << 31, (1 << 31) - 1, 1 << 62, (1 << 63) - 1, -(1 << 63))
NAMES = ("", "a/b", "x" * 9000, "\x01", "../x", "\u2028", "ü", "w0 ")


@dataclass
class Part:
    """What an index says of a slice: a start and a length per axis, and where its bytes lie."""

    extents: list[tuple[int, int]]
    offset: int
    nbytes: int
    crc: int
    shard: int = 0


@dataclass
class Record:
    """What an index says of a tensor; ``whole``: its only part is said without a slice."""

    name: str
    kind: str
    shape: tuple[int, ...]
    parts: list[Part]
    whole: bool = True


@dataclass
class Case:
    """A checkpoint: its records, and the bytes of its data file. ``told``: the lies."""

    records: list[Record]
    data: bytearray
    told: list[str] = field(default_factory=list)


def honest(rng: random.Random, crc: Any) -> Case:
    """Some tensors, each whole or cut into rows, columns or tiles."""
    case = Case([], bytearray())
    for number in range(rng.randint(1, 5)):
        shape = tuple(rng.randint(0 if rng.random() < 0.1 else 1, 6) for _ in range(rng.randint(0, 3)))
        kind = rng.choice(KINDS)
        array = np.frombuffer(rng.randbytes(math.prod(shape) * np.dtype(kind).itemsize), kind).reshape(shape)
        array = np.frombuffer(bytes(b & 1 for b in array.tobytes()), kind).reshape(shape) if kind == "bool" else array
        cuts = [[0, n] for n in shape]
        for axis, n in enumerate(shape):
            if n > 1 and rng.random() < 0.6:
                cuts[axis] = sorted({0, n, *(rng.randrange(n) for _ in range(2))})
        boxes: list[list[tuple[int, int]]] = [[]]
        for axis in cuts:
            boxes = [[*b, (a, e - a)] for b in boxes for a, e in zip(axis, axis[1:], strict=False)]
        rng.shuffle(boxes)
        parts = []
        for box in boxes:
            raw = np.ascontiguousarray(array[tuple(slice(a, a + n) for a, n in box)]).tobytes()
            parts.append(Part(box, len(case.data), len(raw), crc(raw)))
            case.data += raw
        case.records.append(Record(f"w{number}", kind, shape, parts, len(parts) == 1))
    return case


def lie(rng: random.Random, case: Case, crc: Any) -> None:
    """Change what one record says; the checksum of what it says then is often right."""
    record = rng.choice(case.records)
    part = rng.choice(record.parts) if record.parts else None
    kind = rng.choice(
        (
            "extent",
            "extent",
            "overlap",
            "overlap",
            "twice",
            "hole",
            "shape",
            "kind",
            "offset",
            "size",
            "crc",
            "share",
            "name",
        )
    )
    case.told.append(kind)
    if kind == "shape":
        record.shape = rng.choice(SHAPES)
    elif kind == "kind":
        alike = [k for k in KINDS if np.dtype(k).itemsize == np.dtype(record.kind).itemsize]
        record.kind = rng.choice(rng.choice((KINDS, alike)))
    elif kind == "name":
        record.name = rng.choice((*NAMES, *(r.name for r in case.records)))
    elif part is None:
        return
    elif kind == "hole":
        record.parts.remove(part)
        record.whole = False
    elif kind == "twice":
        record.parts.append(Part(**vars(part)))
        record.whole = False
    elif kind == "overlap" and part.extents:
        axis = rng.randrange(len(part.extents))
        start, length = part.extents[axis]
        part.extents[axis] = (min(max(0, start + rng.choice((-2, -1, 1, 2))), NUMBERS[-2]), length)
        record.whole = False
    elif kind == "extent" and part.extents:
        axis = rng.randrange(len(part.extents))
        old = part.extents[axis]
        part.extents[axis] = (
            rng.choice((old[0], rng.choice(NUMBERS))),
            rng.choice((old[1], min(old[1] + 1, NUMBERS[-2]), rng.choice(NUMBERS))),
        )
        if rng.random() < 0.5:
            part.extents = part.extents[:-1] if len(part.extents) > 1 and rng.random() < 0.2 else part.extents
            part.nbytes = max(0, min(math.prod(n for _, n in part.extents) * np.dtype(record.kind).itemsize, 1 << 62))
        record.whole = False
    elif kind == "offset":
        part.offset = rng.choice((part.offset + rng.choice((-8, -1, 1, 8)), rng.choice(NUMBERS)))
    elif kind == "size":
        part.nbytes = rng.choice((part.nbytes + rng.choice((-8, -1, 1, 8)), rng.choice(NUMBERS)))
    elif kind == "crc":
        part.crc = rng.getrandbits(32)
        return
    elif kind == "share":
        other = rng.choice(rng.choice(case.records).parts or [part])
        part.offset = other.offset
    if part is not None and rng.random() < 0.8 and part.offset >= 0 and 0 <= part.nbytes <= len(case.data):
        part.crc = crc(bytes(case.data[part.offset : part.offset + part.nbytes]))


def held(case: Case, record: Record, crc: Any) -> np.ndarray | None:
    """What a record says that its tensor is, element by element; None where it says what can't be. ``crc``: of the form, if any."""
    shape, dtype = record.shape, np.dtype(record.kind)
    if any(n < 0 for n in shape) or len(shape) > 8 or math.prod(shape) > 1 << 16:
        return None
    values, times = np.zeros(shape, dtype), np.zeros(shape, int)
    for part in record.parts:
        if len(part.extents) != len(shape) and not record.whole:
            return None
        box = [(0, n) for n in shape] if record.whole else part.extents
        if any(a < 0 or n < 0 or a + n > d for (a, n), d in zip(box, shape, strict=True)):
            return None
        sizes = [n for _, n in box]
        raw = bytes_of(case, part)
        if 0 in sizes:
            continue  # nothing of it is read
        if len(raw) != math.prod(sizes) * dtype.itemsize:
            return None
        if crc is not None and (part.offset < 0 or len(raw) != part.nbytes or crc(raw) != part.crc):
            return None
        if dtype.kind == "b" and any(b > 1 for b in raw):
            return None
        where = tuple(slice(a, a + n) for a, n in box)
        values[where], times[where] = np.frombuffer(raw, dtype).reshape(sizes), times[where] + 1
    return values if (times == 1).all() else None


def bytes_of(case: Case, part: Part) -> bytes:
    """The bytes of the data file that a part names, as far as they are there."""
    start = max(0, part.offset)
    return bytes(case.data[start : start + max(0, part.nbytes)])


# -- forms


def write_own(prefix: str, case: Case, files: Any) -> None:
    table: dict[str, Any] = {}
    for record in case.records:
        parts = [
            {"slice": "" if record.whole else ":".join(f"{a},{n}" for a, n in p.extents), "file": p.shard, "offset": p.offset,
             "bytes": p.nbytes, "crc32": p.crc}
            for p in record.parts
        ]  # fmt: skip
        table[record.name] = {"dtype": record.kind, "shape": list(record.shape), "parts": parts}
    body = json.dumps({"files": [{"suffix": SUFFIX, "bytes": len(case.data)}], "tensors": table}).encode() + b"\n"
    head = {"format": "graphdock checkpoint", "schema": 1, "bytes": len(body), "crc32": zlib.crc32(body)}
    Path(prefix + ".index").write_bytes(json.dumps(head).encode() + b"\n" + body)
    Path(prefix + SUFFIX).write_bytes(case.data)


def bundle_entries(case: Case, files: Any) -> dict[bytes, bytes]:
    """The table of a bundle."""
    entries = {b"": files.number(1, 1)}

    def place(part: Part) -> bytes:
        where = files.number(3, part.shard) + files.number(4, part.offset) + files.number(5, part.nbytes)
        return where + b"\x35" + struct.pack("<I", files.masked(part.crc))

    for record in case.records:
        kind, name = files.number(1, files.DTYPES[record.kind]), record.name.encode()
        said = kind + files.text(2, files.shape_message(record.shape))
        if record.whole and record.parts:
            entries[name] = said + place(record.parts[0])
            continue
        entries[name] = said + b"".join(files.text(7, slice_of(p, files)) for p in record.parts)
        for part in record.parts:
            key = key_of(record.name, part, files)
            entries[key] = kind + files.text(2, files.shape_message([n for _, n in part.extents])) + place(part)
    return entries


def old_entries(case: Case, files: Any) -> dict[bytes, bytes]:
    """The table of a checkpoint of format V1, which has the values too; a part has those that its bytes are."""
    entries, meta = {}, b""
    for record in case.records:
        kind = files.DTYPES[record.kind]
        slices = b"".join(files.text(4, slice_of(p, files)) for p in said_of(record))
        head = files.text(1, record.name.encode()) + files.text(2, files.shape_message(record.shape))
        meta += files.text(1, head + files.number(3, kind) + slices)
        for part in said_of(record):
            value = files.number(1, kind) + files.text(4, bytes_of(case, part))
            said = files.text(1, record.name.encode()) + files.text(2, slice_of(part, files)) + files.text(3, value)
            entries[key_of(record.name, part, files)] = files.text(2, said)
    entries[b""] = files.text(1, meta)
    return entries


def said_of(record: Record) -> list[Part]:
    """The parts, each with a slice."""
    whole = [(0, n) for n in record.shape]
    return [Part(**{**vars(p), "extents": whole}) for p in record.parts] if record.whole else record.parts


def slice_of(part: Part, files: Any) -> bytes:
    return b"".join(
        files.text(1, files.number(1, a) + files.varint(16) + files.varint(n & (1 << 64) - 1)) for a, n in part.extents
    )


def key_of(name: str, part: Part, files: Any) -> bytes:
    made = files.count_code(0) + name.encode().replace(b"\0", b"\0\xff") + b"\0\1" + files.count_code(len(part.extents))
    return made + b"".join(files.signed_code(n) for extent in part.extents for n in extent)


def table(rng: random.Random, entries: dict[bytes, bytes], files: Any, lying: bool) -> bytes:
    """A table of entries, and where it lies: blocks named twice, in another order or elsewhere."""
    items, out, index = sorted(entries.items()), bytearray(), []
    if lying and rng.random() < 0.3:
        rng.shuffle(items)
    per_block = rng.randint(1, 6)
    for i in range(0, len(items), per_block):
        content = bytearray(files.block(items[i : i + per_block], rng.choice((1, 16))))
        if lying and rng.random() < 0.2:
            content[-4:] = struct.pack("<I", rng.choice((0, 1, 2, 1 << 20, 1 << 31, len(content) // 4)))
        if lying and rng.random() < 0.2:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        data = files.stored(bytes(content), rng.random() < 0.3)
        index.append([items[min(i + per_block, len(items)) - 1][0], len(out), len(data) - 5])
        out += data
    for handle in index:
        if lying and rng.random() < 0.3:
            other = rng.choice(index)
            handle[1:] = rng.choice(
                (other[1:], [other[1], handle[2]], [rng.choice(NUMBERS[:6]) & 255, handle[2]], [0, len(out)])
            )
    if lying and rng.random() < 0.2:
        index *= rng.randint(2, 50)
    footer = b""
    for content in (files.block([]), files.block([(k, files.varint(a) + files.varint(n)) for k, a, n in index])):
        data = files.stored(content, False)
        footer += files.varint(len(out)) + files.varint(len(data) - 5)
        out += data
    return bytes(out) + footer.ljust(40, b"\0") + MAGIC


def write_v2(prefix: str, case: Case, files: Any, rng: random.Random, lying: bool) -> None:
    Path(prefix + ".index").write_bytes(table(rng, bundle_entries(case, files), files, lying))
    Path(prefix + ".data-00000-of-00001").write_bytes(case.data)


def write_v1(prefix: str, case: Case, files: Any, rng: random.Random, lying: bool) -> None:
    Path(prefix).write_bytes(table(rng, old_entries(case, files), files, lying))


def sum_of(form: str) -> Any:
    """The checksum of a form's data."""
    return zlib.crc32 if form == "own" else crc32c
