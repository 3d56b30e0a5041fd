"""Oracles of summaries: their bytes written out by hand, field by field."""

from __future__ import annotations

import bisect
import math
import struct
import zlib
from typing import Any

import numpy as np

_NUMBERS = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "object": 7,
    "complex64": 8,
    "int64": 9,
}
_NUMBERS |= {"bool": 10, "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23}


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number % 128 + 128]) + _varint(number // 128)


def _part(field: int, data: bytes) -> bytes:
    return _varint(8 * field + 2) + _varint(len(data)) + data


def _count(field: int, number: int) -> bytes:
    return _varint(8 * field) + _varint(number) if number else b""


def _double(field: int, number: float) -> bytes:
    return _varint(8 * field + 1) + struct.pack("<d", number) if number or math.copysign(1, number) < 0 else b""


def _whole(data: bytes) -> Any:
    out = np.empty((), object)
    out[()] = data
    return out


def _value(tag: bytes, rest: bytes) -> bytes:
    return _part(1, (_part(1, tag) if tag else b"") + rest)


def scalar(tags: Any, values: Any, **attrs: Any) -> Any:
    with np.errstate(over="ignore"):
        numbers = np.asarray(values).ravel().astype(np.float32)
    return _whole(
        b"".join(
            _part(1, _part(1, tag) + b"\x15" + struct.pack("<f", number))
            for tag, number in zip(tags.ravel(), numbers, strict=True)
        )
    )


def histogram(tag: Any, values: Any, **attrs: Any) -> Any:
    positive = [1e-12]
    while positive[-1] * 1.1 < 1e20:
        positive.append(positive[-1] * 1.1)
    positive.append(1.7976931348623157e308)
    limits = [-v for v in positive[::-1]] + [0.0] + positive
    counts = [0.0] * len(limits)
    least, most, total, squares = limits[-1], -limits[-1], 0.0, 0.0
    for number in map(float, np.asarray(values).ravel()):
        counts[bisect.bisect_right(limits, number)] += 1
        least, most = min(least, number), max(most, number)
        total, squares = total + number, squares + number * number
    told: list[tuple[float, float]] = []
    for limit, count in zip(limits, counts, strict=True):
        if not count and told and not told[-1][1]:
            told.pop()  # a run of empty buckets is one
        told.append((limit, count))
    packed = [struct.pack(f"<{len(told)}d", *(pair[i] for pair in told)) for i in (0, 1)]
    sums = _double(1, least) + _double(2, most) + _double(3, sum(counts)) + _double(4, total) + _double(5, squares)
    return _whole(_value(tag[()], _part(5, sums + _part(6, packed[0]) + _part(7, packed[1]))))


def _pixel(channels: Any, low: float, high: float, bad_color: Any) -> list[int]:
    if not all(math.isfinite(c) for c in channels):
        return list(bad_color[: len(channels)])
    kind = channels.dtype.type
    largest = max(abs(low), abs(high)) if low < 0 else high
    top = np.float32(127 if low < 0 else 255)
    scale = kind(0 if largest < np.float32(1e-6) else top / np.float32(largest))
    return [int(c * scale + kind(128 if low < 0 else 0)) for c in channels]


def _png(image: Any, bad_color: Any) -> bytes:
    height, width, channels = image.shape
    good = [float(c) for row in image for p in row if all(math.isfinite(c) for c in p) for c in p]
    low, high = (min(good), max(good)) if good else (math.inf, -math.inf)
    raw = b""
    for row in image:
        raw += b"\0"
        for p in row:
            raw += bytes(p.tolist() if image.dtype == np.uint8 else _pixel(p, low, high, bad_color))
    kinds = {1: 0, 3: 2, 4: 6}
    head = struct.pack(">II", width, height) + bytes([8, kinds[channels], 0, 0, 0])
    out = b"\x89PNG\r\n\x1a\n"
    for name, data in ((b"IHDR", head), (b"IDAT", zlib.compress(raw)), (b"IEND", b"")):
        out += struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return out


def _named(tag: bytes, kind: str, most: int, i: int) -> bytes:
    return tag + (f"/{kind}" if most == 1 else f"/{kind}/{i}").encode()


def image(tag: Any, tensor: Any, max_images: int, bad_color: Any, **attrs: Any) -> Any:
    _, height, width, channels = tensor.shape
    sizes = _count(1, height) + _count(2, width) + _count(3, channels)
    return _whole(
        b"".join(
            _value(_named(tag[()], "image", max_images, i), _part(4, sizes + _part(4, _png(one, bad_color))))
            for i, one in enumerate(tensor[:max_images])
        )
    )


def audio(tag: Any, tensor: Any, sample_rate: Any, max_outputs: int, **attrs: Any) -> Any:
    rate, parts = float(sample_rate), []
    for i, one in enumerate(tensor[:max_outputs]):
        samples = one.reshape(len(one), -1)
        channels, data = samples.shape[1], b""
        for number in samples.ravel():
            scaled = float(number) * 32768
            rounded = math.floor(abs(scaled) + 0.5) * (1 if scaled >= 0 else -1)
            data += struct.pack("<h", max(-32768, min(32767, rounded)))
        form = struct.pack("<HHIIHH", 1, channels, round(rate), round(rate) * 2 * channels, 2 * channels, 16)
        file = b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt \x10\0\0\0" + form
        file += b"data" + struct.pack("<I", len(data)) + data
        told = b"\x0d" + struct.pack("<f", rate) + _count(2, channels) + _count(3, len(samples))
        value = _part(6, told + _part(4, file) + _part(5, b"audio/wav"))
        parts.append(_value(_named(tag[()], "audio", max_outputs, i), value))
    return _whole(b"".join(parts))


def tensor(tag: Any, tensor: Any, serialized_summary_metadata: Any, **attrs: Any) -> Any:
    dims = b"".join(_part(2, _count(1, n)) for n in tensor.shape)
    if tensor.dtype == object:
        content = b"".join(_part(8, each) for each in tensor.ravel())
    else:
        content = _part(4, tensor.tobytes()) if tensor.size else b""
    told = _count(1, _NUMBERS[tensor.dtype.name]) + _part(2, dims) + content
    return _whole(_value(tag[()], _part(8, told) + _part(9, serialized_summary_metadata[()])))


def merge(inputs: Any, **attrs: Any) -> Any:
    return _whole(b"".join(each for one in inputs for each in one.ravel()))
