"""Files that are compressed as a whole, ``ZLIB`` or ``GZIP``, read and written as TensorFlow does."""

from __future__ import annotations

import io
import zlib
from typing import BinaryIO

from graphdock.errors import InvalidArgumentError

__all__ = ["COMPRESSIONS", "Damaged", "deflated", "expanded", "inflated"]

#: Name of a compression -> what zlib calls its framing; None for no compression.
COMPRESSIONS = {"": None, "ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}
_CHUNK = 1 << 16


class Damaged(Exception):
    """Compressed bytes are damaged, or end too early."""


def _bits(compression: str) -> int | None:
    if compression not in COMPRESSIONS:
        raise InvalidArgumentError.unknown(
            f"{compression!r} is no compression of files", compression, map(repr, COMPRESSIONS)
        )
    return COMPRESSIONS[compression]


def inflated(file: BinaryIO, compression: str) -> BinaryIO:
    """Return what a file holds, decompressed while it is read; closing it closes the file.

    Raises:
      Damaged: while it is read. InvalidArgumentError: there is no such compression; the file is closed then.
    """
    try:
        bits = _bits(compression)
    except InvalidArgumentError:
        file.close()
        raise
    return file if bits is None else io.BufferedReader(_Inflated(file, bits), _CHUNK)


class _Inflated(io.RawIOBase):
    """The stream of one compressed member after another."""

    def __init__(self, file: BinaryIO, bits: int) -> None:
        self._file, self._bits = file, bits
        self._member = zlib.decompressobj(bits)
        self._rest, self._begun = b"", False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while True:
            source = self._rest or self._file.read(_CHUNK)
            if not source:
                if self._begun:
                    raise Damaged("it ends too early")
                return 0
            try:
                made = self._member.decompress(source, len(buffer))
            except zlib.error as error:
                raise Damaged(str(error)) from error
            self._begun = not self._member.eof
            self._rest = self._member.unconsumed_tail
            if self._member.eof:
                self._rest, self._member = self._member.unused_data, zlib.decompressobj(self._bits)
            if made:
                buffer[: len(made)] = made
                return len(made)

    def close(self) -> None:
        self._file.close()
        super().close()


def deflated(
    file: BinaryIO,
    compression: str,
    level: int | None = None,
    method: int | None = None,
    window_bits: int | None = None,
    mem_level: int | None = None,
    strategy: int | None = None,
) -> BinaryIO:
    """A file that compresses what is written to it; closing it closes the file.

    Args:
      level: 0 to 9, how hard to try. window_bits, mem_level, strategy, method: as of zlib; None for its defaults.

    Raises:
      InvalidArgumentError: there is no such compression, or zlib takes no such number; the file is closed then.
    """
    try:
        bits = _bits(compression)
        if bits is None:
            return file
        framing = bits & 16
        made = zlib.compressobj(
            zlib.Z_DEFAULT_COMPRESSION if level is None else level,
            zlib.DEFLATED if method is None else method,
            bits if window_bits is None else (abs(window_bits) & 15) | framing,
            zlib.DEF_MEM_LEVEL if mem_level is None else mem_level,
            zlib.Z_DEFAULT_STRATEGY if strategy is None else strategy,
        )
    except (InvalidArgumentError, ValueError) as error:
        file.close()
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError(f"no such compression: {error}") from error
    return io.BufferedWriter(_Deflated(file, made), _CHUNK)  # type: ignore[type-var]


class _Deflated(io.RawIOBase):
    """The sink of one compressed member."""

    def __init__(self, file: BinaryIO, made: zlib._Compress) -> None:
        self._file, self._made = file, made

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._file.write(self._made.compress(data))
        return len(data)

    def flush(self) -> None:
        if not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        if not self._file.closed:
            self._file.write(self._made.flush())
            self._file.close()
        super().close()


def expanded(data: bytes, compression: str) -> bytes:
    """Bytes that were compressed, decompressed.

    Raises:
      Damaged: they are damaged or cut off. InvalidArgumentError: there is no such compression.
    """
    return inflated(io.BytesIO(data), compression).read()
