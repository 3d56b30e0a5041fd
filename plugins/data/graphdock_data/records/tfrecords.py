"""TFRecord files from Python. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import Any, ClassVar, Self

from graphdock.errors import ArgumentTypeError, InvalidArgumentError
from graphdock_storage.records import RecordWriter, read_records


class TFRecordCompressionType:
    """Names of compressions: ``NONE``, ``ZLIB`` and ``GZIP``."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """Options of a file of records.

    Args:
      compression_type: ``"GZIP"``, ``"ZLIB"`` or ``""``, or one of :class:`TFRecordCompressionType`; of the file as a whole.
      compression_level: 0 to 9. window_bits, mem_level, compression_method, compression_strategy: as of zlib.
      flush_mode, input_buffer_size, output_buffer_size: taken and without effect.

    Raises:
      InvalidArgumentError: there is no such compression.
    """

    compression_type_map: ClassVar[dict[int, str]] = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """``"ZLIB"``, ``"GZIP"`` or ``""``, of options, of one of :class:`TFRecordCompressionType`, or of such a string.

        Raises:
          InvalidArgumentError: there is no such compression.
        """
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        known = cls.compression_type_map
        found = known.get(options, options) if isinstance(options, int | str) else None
        if found not in known.values():
            raise InvalidArgumentError(f'Not a valid compression_type: "{options}"')
        return str(found)


def tf_record_iterator(path: str | os.PathLike[str], options: Any = None) -> Iterator[bytes]:
    """What the records of a TFRecord file hold, one after another.

    Args:
      options: TFRecordOptions, or the name of a compression.

    Raises:
      DataLossError: a record is damaged; it names the file and the byte at which the record begins.
      NotFoundError, PermissionDeniedError: the file can't be opened.
    """
    return read_records(os.fspath(path), TFRecordOptions.get_compression_type_string(options))


class TFRecordWriter:
    """A new TFRecord file in the place of one that is there; a context manager, which closes it. One thread at a time may use it.

    Args:
      options: TFRecordOptions, or the name of a compression.

    Raises:
      NotFoundError, PermissionDeniedError: the file can't be made. InvalidArgumentError: there is no such compression.
    """

    def __init__(self, path: str | os.PathLike[str], options: Any = None) -> None:
        given = options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)
        self._writer = RecordWriter(
            os.fspath(path),
            TFRecordOptions.get_compression_type_string(given),
            level=given.compression_level,
            method=given.compression_method,
            window_bits=given.window_bits,
            mem_level=given.mem_level,
            strategy=given.compression_strategy,
        )

    def write(self, record: bytes) -> None:
        """Add a record.

        Raises:
          ArgumentTypeError: it is no bytes. FailedPreconditionError: the file is closed.
        """
        if not isinstance(record, bytes | str):
            raise ArgumentTypeError("a record is bytes", got=type(record).__name__, hint="example.SerializeToString()")
        self._writer.write(record.encode() if isinstance(record, str) else record)

    def flush(self) -> None:
        """Hand to the system what was written."""
        self._writer.flush()

    def close(self) -> None:
        """End the file."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
