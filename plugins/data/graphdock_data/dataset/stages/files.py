"""Stages that read files: lines of text, TFRecords, records of one length."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from graphdock.contracts import errors
from graphdock_storage.checkpoint.files import explained
from graphdock_storage.compressed import Damaged, inflated
from graphdock_storage.records import read_records

from graphdock_data.dataset.stages.stage import Element, Run, Stage, Value, as_text

__all__ = ["FixedLengthRecords", "Records", "TextLines"]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Files(Stage):
    """Base of stages that read one file after another."""

    fresh = True
    names: Value
    compression: Value

    def iterate(self, run: Run) -> Iterator[Element]:
        compression = run.array(self.compression).item().decode()
        with self.blame():
            for name in run.array(self.names).ravel().tolist():
                for record in self.records(run, os.fsdecode(name), compression):
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
            with inflated(open(path, "rb"), compression) as file:
                for line in file:
                    yield line.removesuffix(b"\n").removesuffix(b"\r")
        except Damaged as error:
            raise errors.DataLossError(f"{path!r} can't be decompressed: {error}") from error
        except OSError as error:
            raise explained(error, "cannot read", path) from error


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
            with inflated(open(path, "rb"), compression) as file:
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
