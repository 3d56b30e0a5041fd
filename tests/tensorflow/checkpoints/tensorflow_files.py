"""A small writer of TensorFlow's checkpoints, made from the descriptions of their formats, apart from the code that reads them."""

from __future__ import annotations

import struct

import numpy as np

DTYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "object": 7, "complex64": 8, "int64": 9, "bool": 10,
    "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip


def crc32c(data, crc=0):
    """Bit by bit."""
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


# -- protocol buffers: fields by number


def number(field, value):
    return varint(field << 3) + varint(value & (1 << 64) - 1) if value else b""


def text(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def shape_message(shape):
    return b"".join(text(2, number(1, d)) for d in shape)


def slice_message(extents):
    """Extents are (start, length), or None for a whole axis."""
    return b"".join(text(1, b"" if e is None else number(1, e[0]) + varint(2 << 3) + varint(e[1])) for e in extents)


# -- tables


def snappy(data):
    """Literals only, and one copy of what repeats at the beginning, so that both kinds are there."""
    out = varint(len(data))
    at = 0
    while at < len(data):
        same = 0
        while at >= 8 and same < 60 and at + same < len(data) and data[at + same] == data[at - 8 + same]:
            same += 1
        if same >= 4:
            out += bytes([(same - 1) << 2 | 2]) + struct.pack("<H", 8)
            at += same
        else:
            piece = data[at : at + 60] if at >= 8 else data[at : at + 8]
            piece = piece[:4] if at >= 8 else piece
            out += bytes([(len(piece) - 1) << 2]) + piece
            at += len(piece)
    return out


def block(entries, restart=16):
    out, starts, last = bytearray(), [], b""
    for i, (key, value) in enumerate(entries):
        shared = 0
        if i % restart == 0:
            starts.append(len(out))
        else:
            while shared < min(len(key), len(last)) and key[shared] == last[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    return bytes(out) + struct.pack(f"<{len(starts) + 1}I", *(starts), len(starts))


def stored(content, packed):
    """A block as it stands in the file: packed or not, with its kind and its CRC."""
    content = (snappy(content) + b"\1") if packed else content + b"\0"
    return content + struct.pack("<I", masked(crc32c(content)))


def _laid(entries, packed, per_block):
    out, index = bytearray(), []
    items = sorted(entries.items())
    for i in range(0, len(items), per_block):
        part = items[i : i + per_block]
        data = stored(block(part), packed)
        index.append((part[-1][0], varint(len(out)) + varint(len(data) - 5)))
        out += data
    return bytes(out), index


def blocks(entries, packed=False, per_block=5):
    """The blocks of entries alone."""
    return _laid(entries, packed, per_block)[0]


def table(entries, packed=False, per_block=5):
    """A table of a dict of bytes: blocks of entries, one of other facts, which is empty, the index, and the footer."""
    out, index = _laid(entries, packed, per_block)
    footer = b""
    for content in (block([]), block(index)):
        data = stored(content, packed)
        footer += varint(len(out)) + varint(len(data) - 5)
        out += data
    return out + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


# -- keys of slices, in order-keeping code


def count_code(value):
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(data)]) + data


def signed_code(value):
    """By TensorFlow's ordered_code.cc."""
    x = ~value if value < 0 else value
    if x < 64:
        return bytes([0x80 ^ value & 0xFF])
    size = next(n for n in range(2, 11) if x < 1 << 7 * n - 1)
    header = [(0xC0, 0), (0xE0, 0), (0xF0, 0), (0xF8, 0), (0xFC, 0), (0xFE, 0), (0xFF, 0), (0xFF, 0x80), (0xFF, 0xC0)][
        size - 2
    ]
    data = bytearray(struct.pack(">q", value).rjust(10, b"\xff" if value < 0 else b"\0")[-size:])
    data[0] ^= header[0]
    data[1] ^= header[1]
    return bytes(data)


def slice_key(name, extents):
    out = count_code(0) + name.encode() + b"\0\1" + count_code(len(extents))  # of names without a zero
    return out + b"".join(
        signed_code(0) + signed_code(-1) if e is None else signed_code(e[0]) + signed_code(e[1]) for e in extents
    )


# -- checkpoints


def encoded(array):
    """The bytes of an array in a data file, and their CRC."""
    if array.dtype != object:
        data = array.tobytes()
        return data, crc32c(data)
    words = list(array.flat)
    crc = crc32c(b"".join(struct.pack("<I", len(w)) for w in words))
    check = struct.pack("<I", masked(crc))
    return b"".join(varint(len(w)) for w in words) + check + b"".join(words), crc32c(check + b"".join(words), crc)


def write_v2(prefix, tensors, shards=1, packed=False):
    """``tensors``: name -> array, or -> (shape, [(extents, array), ...]) for one in slices."""
    files, entries = [bytearray() for _ in range(shards)], {}
    entries[b""] = number(1, shards) + text(3, number(1, 1))

    def put(array, i):
        data, crc = encoded(array)
        shard = i % shards
        offset = len(files[shard])
        files[shard] += data
        return number(3, shard) + number(4, offset) + number(5, len(data)) + b"\x35" + struct.pack("<I", masked(crc))

    for i, (name, value) in enumerate(tensors.items()):
        if isinstance(value, tuple):
            shape, parts = value
            kind = number(1, DTYPES[parts[0][1].dtype.name])
            entries[name.encode()] = (
                kind + text(2, shape_message(shape)) + b"".join(text(7, slice_message(e)) for e, _ in parts)
            )
            for j, (extents, array) in enumerate(parts):
                entries[slice_key(name, extents)] = kind + text(2, shape_message(array.shape)) + put(array, i + j)
        else:
            entries[name.encode()] = (
                number(1, DTYPES[value.dtype.name]) + text(2, shape_message(value.shape)) + put(value, i)
            )
    for i, data in enumerate(files):
        with open(f"{prefix}.data-{i:05d}-of-{shards:05d}", "wb") as file:
            file.write(data)
    with open(prefix + ".index", "wb") as file:
        file.write(table(entries, packed))


def tensor_message(array, content):
    """A TensorProto; the values in the field of their kind, or as ``tensor_content``."""
    head = number(1, DTYPES[array.dtype.name]) + text(2, shape_message(array.shape))
    flat, kind = array.reshape(-1), array.dtype.name
    if kind == "object":
        return head + b"".join(text(8, w) for w in flat)
    if content:
        return head + text(4, array.tobytes())
    if kind == "float32":
        return head + text(5, array.tobytes())
    if kind == "float64":
        return head + text(6, array.tobytes())
    if kind == "complex64":
        return head + text(9, array.tobytes())
    if kind == "complex128":
        return head + text(12, array.tobytes())
    if kind in ("float16", "bfloat16"):
        flat = flat.view(np.uint16)
    field = {"int64": 10, "bool": 11, "float16": 13, "bfloat16": 13, "uint32": 16, "uint64": 17}.get(kind, 7)
    return head + text(field, b"".join(varint(int(v) & (1 << 64) - 1) for v in flat))


def write_v1(path, tensors, packed=True, content=False, only=None):
    """``only``: numbers of the slices that this file has, of several."""
    meta, entries = b"", {}
    for name, value in tensors.items():
        shape, parts = value if isinstance(value, tuple) else (value.shape, [([None] * value.ndim, value)])
        parts = [p for i, p in enumerate(parts) if only is None or i in only]
        kind = DTYPES[parts[0][1].dtype.name] if parts else 1
        slices = b"".join(text(4, slice_message(e)) for e, _ in parts)
        meta += (
            text(1, text(1, name.encode()) + text(2, shape_message(shape)) + number(3, kind) + slices) if parts else b""
        )
        for extents, array in parts:
            saved = text(1, name.encode()) + text(2, slice_message(extents)) + text(3, tensor_message(array, content))
            entries[slice_key(name, extents)] = text(2, saved)
    entries[b""] = text(1, meta)
    with open(path, "wb") as file:
        file.write(table(entries, packed))
