"""Readers: records of the files whose names come out of a queue."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.typing import TensorLike

from graphdock_data.records.tfrecords import TFRecordOptions


class ReaderBase:
    """A reader in the graph; what makes one are its subclasses.

    Args:
      reader_ref: the tensor that names it. supports_serialize: its state can be saved.
    """

    def __init__(self, reader_ref: Any, supports_serialize: bool = False) -> None:
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self) -> Any:
        """The tensor that names the reader."""
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        """Return whether its state can be saved."""
        return self._supports_serialize

    def _run(self, op: str, name: str | None, **inputs: Any) -> Any:
        return _ops.apply_op(op, reader_handle=self._reader_ref, name=name, **inputs)

    def read(self, queue: Any, name: str | None = None) -> Any:
        """The next record: key and value, scalar strings; its step waits for the name of a file where that is needed.

        Args:
          queue: a queue of names, or the tensor that names it.

        Raises:
          in the step OutOfRangeError: the queue is closed and empty, and the last file read to its end.
        """
        return self._run("ReaderReadV2", name, queue_handle=_handle(queue))

    def read_up_to(self, queue: Any, num_records: TensorLike, name: str | None = None) -> Any:
        """The next records of one file, one at least: keys and values, string vectors; otherwise as :meth:`read`."""
        count = _ops.convert_to_tensor(num_records, _tf.int64)
        return self._run("ReaderReadUpToV2", name, queue_handle=_handle(queue), num_records=count)

    def num_records_produced(self, name: str | None = None) -> Any:
        """The number of records that it has given, a scalar int64."""
        return self._run("ReaderNumRecordsProducedV2", name)

    def num_work_units_completed(self, name: str | None = None) -> Any:
        """The number of files that it has read to their ends, a scalar int64."""
        return self._run("ReaderNumWorkUnitsCompletedV2", name)

    def serialize_state(self, name: str | None = None) -> Any:
        """Its state, a scalar string; an UnimplementedError in the step of a reader that has none."""
        return self._run("ReaderSerializeStateV2", name)

    def restore_state(self, state: TensorLike, name: str | None = None) -> Any:
        """An operation that gives it a state of :meth:`serialize_state`."""
        return self._run("ReaderRestoreStateV2", name, state=_ops.convert_to_tensor(state, _tf.string))

    def reset(self, name: str | None = None) -> Any:
        """An operation that lets it begin anew."""
        return self._run("ReaderResetV2", name)


def _handle(queue: Any) -> Any:
    return queue if isinstance(queue, _tf.Tensor) else queue.queue_ref


class WholeFileReader(ReaderBase):
    """A reader of whole files: keys are their names, values what they hold."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(_ops.apply_op("WholeFileReaderV2", name=name))


class TextLineReader(ReaderBase):
    """A reader of lines: keys are ``file:number``, from 1; values have no line ends.

    Args:
      skip_header_lines: lines to skip in each file.
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(_ops.apply_op("TextLineReaderV2", skip_header_lines=skip_header_lines or 0, name=name))


class FixedLengthRecordReader(ReaderBase):
    """A reader of records of one length: keys are ``file:number``, from 0.

    Args:
      record_bytes: of a record. header_bytes, footer_bytes: before the first and behind the last record of each file.
      hop_bytes: from the beginning of a record to that of the next; a record by default. encoding: None, ``"ZLIB"`` or ``"GZIP"``.
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        ref = _ops.apply_op(
            "FixedLengthRecordReaderV2",
            record_bytes=record_bytes,
            header_bytes=header_bytes or 0,
            footer_bytes=footer_bytes or 0,
            hop_bytes=hop_bytes or 0,
            encoding=encoding or "",
            name=name,
        )
        super().__init__(ref)


class TFRecordReader(ReaderBase):
    """A reader of TFRecord files: keys are ``file:byte``.

    Args:
      options: TFRecordOptions, or the name of a compression.
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        kind = TFRecordOptions.get_compression_type_string(options)
        super().__init__(_ops.apply_op("TFRecordReaderV2", compression_type=kind, name=name))


class IdentityReader(ReaderBase):
    """A reader that gives the names themselves, as keys and values. Its state can be saved."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(_ops.apply_op("IdentityReaderV2", name=name), supports_serialize=True)
