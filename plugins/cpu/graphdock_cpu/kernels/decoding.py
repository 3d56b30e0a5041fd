"""Kernels that read bytes: base64, raw numbers, and lines of CSV."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, dtypes, errors

from graphdock_cpu.kernels.text import elementwise
from graphdock_cpu.kernels.text_formats import parsed

__all__ = ["KERNELS"]


def _encode_base64(ctx: BuildContext) -> Callable[[bytes], bytes]:
    if ctx.attr("pad"):
        return base64.urlsafe_b64encode
    return lambda text: base64.urlsafe_b64encode(text).rstrip(b"=")


_BASE64 = re.compile(rb"([0-9A-Za-z_-]{4})*([0-9A-Za-z_-]{2}(==)?|[0-9A-Za-z_-]{3}=?)?\Z")


def _decode_base64(ctx: BuildContext) -> Callable[[bytes], bytes]:

    def decode(text: bytes) -> bytes:
        if not _BASE64.match(text):
            raise errors.InvalidArgumentError(
                f"{text!r} is no base64", expected="letters, digits, - and _, perhaps padded with ="
            )
        return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))

    return decode


def _decode_raw(ctx: BuildContext) -> Bound:
    dtype = ctx.outputs[0].dtype.np
    swapped = ctx.attr("little_endian") is not (sys.byteorder == "little")

    def decode(text: Any) -> np.ndarray:
        sizes = {len(t) for t in text.flat} or {0}
        if len(sizes) > 1:
            raise errors.InvalidArgumentError(
                "strings of several lengths", expected="one length", got=f"{min(sizes)} to {max(sizes)}"
            )
        (size,) = sizes
        if size % dtype.itemsize:
            raise errors.InvalidArgumentError(
                f"{size} bytes are no whole number of elements", expected=f"a multiple of {dtype.itemsize}"
            )
        data = b"".join(text.flat)
        if dtype == np.bool_ and data.strip(b"\0\1"):
            raise errors.InvalidArgumentError("a byte of a bool is neither 0 nor 1")
        values = np.frombuffer(data, dtype).reshape(*text.shape, size // dtype.itemsize)
        return values.byteswap() if swapped else values.copy()

    return Bound(decode)


def fields(line: bytes, delimiter: int, quoted: bool) -> Iterator[bytes]:
    """The fields of a line (RFC 4180). A ValueError says what is wrong with it."""
    position, size = 0, len(line)
    quote, breaks = ord('"'), b"\r\n"
    while position < size:
        if quoted and line[position] == quote:
            out = bytearray()
            position += 1
            while True:
                end = line.find(b'"', position)
                if end < 0:
                    raise ValueError("a quoted field has no end")
                out += line[position:end]
                position = end + 1
                if position < size and line[position] == quote:
                    out.append(quote)
                    position += 1
                    continue
                break
            if position < size and line[position] != delimiter:
                raise ValueError("behind a quoted field stands no delimiter")
            yield bytes(out)
        else:
            end = line.find(delimiter, position)
            end = size if end < 0 else end
            field = line[position:end]
            if any(b in breaks for b in field) or (quoted and quote in field):
                raise ValueError("a field without quotes holds a quote or a line break")
            yield field
            position = end
        if position == size - 1:
            yield b""  # the line ends in a delimiter
        position += 1


def _decode_csv(ctx: BuildContext) -> Bound:
    kinds = [o.dtype for o in ctx.outputs]
    delimiter, quoted, missing = (
        ord(ctx.attr("field_delim")),
        ctx.attr("use_quote_delim"),
        ctx.attr("na_value").encode(),
    )
    selected = list(ctx.attr("select_cols"))

    def row(line: bytes, number: int) -> list[bytes]:
        try:
            found = list(fields(line, delimiter, quoted))
        except ValueError as error:
            raise errors.InvalidArgumentError(f"record {number} is no CSV: {error}", got=repr(line)) from None
        if selected:
            found = [found[c] for c in selected if c < len(found)]
        if len(found) != len(kinds):
            raise errors.InvalidArgumentError(
                f"record {number} has another number of fields", expected=str(len(kinds)), got=str(len(found))
            )
        return found

    def value(text: bytes, kind: dtypes.DType, default: Any, column: int, number: int) -> Any:
        if text in (b"", missing):
            if not default.size:
                raise errors.InvalidArgumentError(
                    f"field {column} of record {number} is empty", expected="a value: it has no default"
                )
            return default.item()
        made = text if kind is dtypes.string else parsed(text, kind)
        if made is None:
            raise errors.InvalidArgumentError(f"field {column} of record {number} is no {kind.name}", got=repr(text))
        return made

    def decode(records: Any, *defaults: Any) -> Any:
        out = [np.empty(records.shape, k.np) for k in kinds]
        flat = [o.reshape(-1) for o in out]
        for number, line in enumerate(records.reshape(-1).tolist()):
            for column, text in enumerate(row(line, number)):
                flat[column][number] = value(text, kinds[column], defaults[column], column, number)
        return tuple(out) if len(out) > 1 else out[0]

    return Bound(decode)


KERNELS = [
    KernelDef("EncodeBase64", "cpu", elementwise(_encode_base64)),
    KernelDef("DecodeBase64", "cpu", elementwise(_decode_base64)),
    KernelDef("DecodeRaw", "cpu", _decode_raw, modes=("fresh",)),
    KernelDef("DecodeCSV", "cpu", _decode_csv, modes=("fresh",)),
]
