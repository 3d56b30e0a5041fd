"""The bytes of summaries, made and looked through without messages: these run in every step of a training loop."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from graphdock.errors import DataLossError
from graphdock.messages import from_bytes

from graphdock_storage.checkpoint.varint import varint

__all__ = ["EVENT_KEYS", "check", "event_bytes", "scalar_encoder", "tags_of"]

_VALUE, _TAG = 0x0A, 0x0A
_SECONDS = struct.Struct("<Bd")

#: Field of Event -> its key on the wire; ``""`` for the fields of a whole event.
EVENT_KEYS = {"graph_def": b"\x22", "summary": b"\x2a", "session_log": b"\x3a", "tagged_run_metadata": b"\x42"}
EVENT_KEYS |= {"meta_graph_def": b"\x4a", "": b""}


def event_bytes(wall_time: float, step: int | None, key: bytes, payload: bytes) -> bytes:
    """An Event: seconds since 1970, the step, and one field; or, without a key, the bytes of an event as they are."""
    if not key:
        return payload
    counted = b"\x10" + varint(step) if step else b""
    return b"".join((_SECONDS.pack(9, wall_time), counted, key, varint(len(payload)), payload))


def scalar_encoder(tag: bytes) -> Callable[[float], bytes]:
    """Return what makes a Summary with one ``simple_value`` of a number."""
    value = bytes((_TAG,)) + varint(len(tag)) + tag + b"\x15"
    head = bytes((_VALUE,)) + varint(len(value) + 4) + value
    form = struct.Struct("<f")
    infinite = {True: form.pack(float("inf")), False: form.pack(float("-inf"))}

    def encode(number: Any) -> bytes:
        try:
            return head + form.pack(number)
        except OverflowError:  # of a float64
            return head + infinite[bool(number > 0)]

    return encode


def check(data: bytes) -> None:
    """Look at bytes that claim to be a Summary, as far as that costs nothing. Raises DataLossError: they are none."""
    at, end = 0, len(data)
    while at < end:
        if data[at] != _VALUE or at + 1 == end or data[at + 1] > 127:
            _tags_of_any(data)
            return
        at += 2 + data[at + 1]
    if at > end:
        raise DataLossError("the bytes are no Summary: a value is cut off")


def tags_of(data: bytes) -> list[bytes]:
    """The tags of a Summary's values, in order. Raises DataLossError: the bytes are no Summary."""
    tags, at, end = [], 0, len(data)
    while at < end:
        if data[at] != _VALUE or at + 3 >= end or data[at + 1] > 127 or data[at + 2] != _TAG or data[at + 3] > 127:
            return _tags_of_any(data)
        begin, at = at + 4, at + 2 + data[at + 1]
        behind = begin + data[begin - 1]
        if behind > at:
            return _tags_of_any(data)
        tags.append(data[begin:behind])
    if at > end:
        raise DataLossError("the bytes are no Summary: a value is cut off")
    return tags


def _tags_of_any(data: bytes) -> list[bytes]:
    """As :func:`tags_of`, of values that are long, or not in the usual order."""
    return [value.tag.encode() for value in from_bytes("Summary", data, "what a summary op gave").value]
