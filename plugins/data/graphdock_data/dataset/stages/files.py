"""Stages that read files: lines of text, TFRecords, records of one length."""

from __future__ import annotations

import collections
import os
from collections.abc import Iterator
from dataclasses import dataclass

from graphdock.contracts import errors
from graphdock_storage.checkpoint.files import explained
from graphdock_storage.compressed import Damaged, inflated
from graphdock_storage.records import read_records
from graphdock_storage.stores import opened

from graphdock_data.dataset.stages.stage import Element, Resumed, Run, Stage, Value, as_text
from graphdock_data.resources.files import matching

__all__ = ["CsvRecords", "FileNames", "FixedLengthRecords", "Records", "TextLines"]


@dataclass(frozen=True, eq=False, kw_only=True)
class FileNames(Stage):
    """The paths that match patterns when an iterator begins, in order."""

    title = "ListFilesDataset"
    fresh = True
    patterns: Value

    def iterate(self, run: Run) -> Iterator[Element]:
        def found() -> list[bytes]:
            patterns = run.array(self.patterns).ravel().tolist()
            return sorted({path for pattern in patterns for path in matching(pattern)})

        with self.blame():
            names = run.state(self, found)
            if not names:
                patterns = b", ".join(run.array(self.patterns).ravel().tolist())
                raise self.refusal(f"No files matched pattern: {os.fsdecode(patterns)}")
        return ((as_text(name),) for name in names)

    def check(self, run: Run) -> None:
        self.iterate(run)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Files(Stage):
    """Base of stages that read one file after another."""

    fresh = True
    names: Value
    compression: Value

    def iterate(self, run: Run) -> Iterator[Element]:
        compression = run.array(self.compression).item().decode()
        left = collections.deque(run.array(self.names).ravel().tolist())
        return Resumed(lambda: self._read(run, left, compression))

    def _read(self, run: Run, left: collections.deque[bytes], compression: str) -> Iterator[Element]:
        with self.blame():
            while left:  # after an error the next file
                for record in self.records(run, os.fsdecode(left.popleft()), compression):
                    yield (as_text(record),)

    def records(self, run: Run, path: str, compression: str) -> Iterator[bytes]:
        """What a file holds."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class TextLines(_Files):
    """The lines of text files, without their ends."""

    title = "TextLineDataset"

    def records(self, run: Run, path: str, compression: str) -> Iterator[bytes]:
        try:
            with inflated(opened(path), compression) as file:
                for line in file:
                    yield line.removesuffix(b"\n").removesuffix(b"\r")
        except Damaged as error:
            raise errors.DataLossError(f"{path!r} can't be decompressed: {error}") from error
        except OSError as error:
            raise explained(error, "cannot read", path) from error


@dataclass(frozen=True, eq=False, kw_only=True)
class CsvRecords(TextLines):
    """The records of CSV files: lines, and what a quoted field goes on with on the lines behind it.

    Attributes:
      header: the first line of each file is passed over. quoted: a newline between quotes is a part of its field.
    """

    title = "CsvDataset"
    header: Value
    quoted: Value

    def records(self, run: Run, path: str, compression: str) -> Iterator[bytes]:
        lines = super().records(run, path, compression)
        if run.array(self.header) and next(lines, None) is None:
            raise errors.InvalidArgumentError(f"Can't read header of file {path!r}: it is empty")
        if not run.array(self.quoted):
            yield from lines
            return
        open_ = b""
        for line in lines:
            whole = open_ + line
            if whole.count(b'"') % 2:
                open_ = whole + b"\n"
                continue
            open_ = b""
            yield whole
        if open_:
            yield open_.removesuffix(b"\n")  # its quotes never close: who takes it apart says so


@dataclass(frozen=True, eq=False, kw_only=True)
class Records(_Files):
    """The records of TFRecord files."""

    title = "TFRecordDataset"

    def records(self, run: Run, path: str, compression: str) -> Iterator[bytes]:
        return read_records(path, compression)


@dataclass(frozen=True, eq=False, kw_only=True)
class FixedLengthRecords(_Files):
    """Records of one length, between a header and a footer."""

    title = "FixedLengthRecordDataset"
    size: Value
    header: Value
    footer: Value

    def check(self, run: Run) -> None:
        if run.number(self.size) <= 0:
            raise self.refusal("`record_bytes` must be > 0", got=str(run.number(self.size)))

    def records(self, run: Run, path: str, compression: str) -> Iterator[bytes]:
        size, header, footer = run.number(self.size), run.number(self.header), run.number(self.footer)
        try:
            with inflated(opened(path), compression) as file:
                whole = file.read()
        except Damaged as error:
            raise errors.DataLossError(f"{path!r} can't be decompressed: {error}") from error
        except OSError as error:
            raise explained(error, "cannot read", path) from error
        body = len(whole) - header - footer
        if body < 0 or body % size:
            raise errors.InvalidArgumentError(
                f"Excess bytes in {path!r}: its body is no whole number of records",
                expected=f"a multiple of {size} bytes between {header} and {footer}",
                got=f"{body}",
            )
        for at in range(header, header + body, size):
            yield whole[at : at + size]
