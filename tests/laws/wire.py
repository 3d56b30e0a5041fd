"""Messages of protocol buffers as trees of their fields, without a schema; lies told of them; their bytes, whose lengths fit."""

from __future__ import annotations

import copy
import random
import struct
from typing import Any

from graphdock.errors import DataLossError
from graphdock_storage.checkpoint.varint import read_varint, varint

#: A field: its number, how it ends, and a number, bytes, or a tree.
Field = list[Any]
NUMBERS = (
    0,
    1,
    2,
    3,
    7,
    20,
    21,
    23,
    101,
    255,
    (1 << 31) - 1,
    1 << 31,
    1 << 40,
    (1 << 62),
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
    (1 << 64) - 7,
)
TEXTS = (
    b"",
    b"x",
    b"x:0",
    b"^x",
    b"x:99999",
    b"\xff\xfe",
    b"\xed\xb3\xbf",
    b"a\0b",
    b"/",
    b"..",
    b"x" * 3000,
    "\u2028".encode(),
    b"loc@x",
)
OPS = b"Switch Merge Const Placeholder VariableV2 While PartitionedCall Enter NoOp NoSuchOp loc:@ _class".split()


def tree_of(data: bytes, depth: int = 0) -> list[Field] | None:
    """The fields of a message; None of what is none."""
    found: list[Field] = []
    at = 0
    try:
        while at < len(data):
            key, at = read_varint(data, at)
            number, wire = key >> 3, key & 7
            if not number or number > 600:
                return None
            if wire == 0:
                value, at = read_varint(data, at)
            elif wire == 2:
                size, at = read_varint(data, at)
                if at + size > len(data):
                    return None
                part, at = data[at : at + size], at + size
                inner = tree_of(part, depth + 1) if part and depth < 20 else None
                value = part if inner is None or part.isascii() and part.decode().isprintable() else inner
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
                if at + size > len(data):
                    return None
                value, at = data[at : at + size], at + size
            else:
                return None
            found.append([number, wire, value])
    except DataLossError:
        return None
    return found


def bytes_of(tree: list[Field]) -> bytes:
    """The bytes of a message, its lengths right."""
    out = bytearray()
    for number, wire, value in tree:
        out += varint(number << 3 | wire)
        if wire == 0:
            out += varint(value if isinstance(value, int) else len(value))
        elif wire == 2:
            part = bytes_of(value) if isinstance(value, list) else value if isinstance(value, bytes) else varint(value)
            out += varint(len(part)) + part
        elif wire in (1, 5):
            raw = (
                value
                if isinstance(value, bytes)
                else struct.pack("<q", len(value) if isinstance(value, list) else value >> 1)
            )
            out += raw.ljust(8, b"\1")[: 8 if wire == 1 else 4]
    return bytes(out)


def places(tree: list[Field]) -> list[tuple[list[Field], int]]:
    """Each field of a tree: what holds it, and where."""
    found, waiting = [], [tree]
    while waiting:
        holder = waiting.pop()
        for i, (_, _, value) in enumerate(holder):
            found.append((holder, i))
            if isinstance(value, list):
                waiting.append(value)
    return found


def lied(rng: random.Random, tree: list[Field], times: int = 3) -> list[Field]:
    """A copy with one to ``times`` lies: values of another size, fields twice, gone, moved, of another kind, nested."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.randint(1, times)):
        at = places(tree)
        if not at:
            break
        holder, i = rng.choice(at)
        entry = holder[i]
        other = rng.choice(at)
        kind = rng.randrange(10)
        if kind <= 3:
            if isinstance(entry[2], int):
                entry[2] = rng.choice(NUMBERS)
            elif isinstance(entry[2], bytes):
                same = [h[k][2] for h, k in at if isinstance(h[k][2], bytes)]
                entry[2] = rng.choice((rng.choice((*TEXTS, *OPS)), rng.choice(same), entry[2] * 2, entry[2][:-1]))
            else:
                entry[2] = copy.deepcopy(other[0][other[1]][2])
        elif kind == 4:
            del holder[i]
        elif kind == 5:
            holder[i:i] = copy.deepcopy([entry] * rng.choice((1, 2, 40)))
        elif kind == 6:
            holder.append(copy.deepcopy(other[0][other[1]]))
        elif kind == 7:
            entry[0] = rng.choice((rng.randint(1, 20), 500))
        elif kind == 8:
            entry[1] = rng.choice((0, 1, 2, 5))
        else:
            for _ in range(rng.choice((1, 3, 120))):
                entry = [entry[0], 2, [entry]]
            holder[i] = entry
    return tree
