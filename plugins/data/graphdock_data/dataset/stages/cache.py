"""Cache: the elements of a dataset, kept in memory or in a file from the first time that all of them were given."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from graphdock import messages
from graphdock.contracts import dtypes, errors
from graphdock_storage.checkpoint.files import explained
from graphdock_storage.records import RecordWriter, read_records
from graphdock_storage.tensor_messages import tensor_proto
from graphdock_storage.tensor_reading import array_of

from graphdock_data.dataset.stages.stage import Element, Resumed, Run, Stage, Value

__all__ = ["Cache"]

#: What the file of a cache is called behind the name that the program gave.
SUFFIX = ".cache.tfrecord"


@dataclass(frozen=True, eq=False, kw_only=True)
class Cache(Stage):
    """The same elements, kept from the first time that all were given.

    Attributes:
      file: begins the name of the file that keeps them; empty: they stay in memory, for the iterator.

    A file is a TFRecord file of TensorProtos, one per component. It is there, as a whole, once all elements were given: what is cut
    off leaves nothing. Later iterators and programs read it.
    """

    title = "CacheDataset"
    source: Stage
    file: Value

    def iterate(self, run: Run) -> Iterator[Element]:
        name = run.array(self.file).item()
        if name:
            path = os.fsdecode(name) + SUFFIX
            return self._read(path) if os.path.exists(path) else self._written(run, path)
        kept = run.state(self, lambda: list[list[Element]]())
        if kept:
            return iter(kept[0])
        source, found = self.source.iterate(run), list[Element]()
        return Resumed(lambda: _keeping(source, found, kept))

    def _written(self, run: Run, path: str) -> Iterator[Element]:
        source, draft = self.source.iterate(run), _Draft(path, self.types)
        return Resumed(lambda: _writing(source, draft))

    def _read(self, path: str) -> Iterator[Element]:
        with self.blame():
            records = read_records(path)
            while True:
                element = tuple(
                    [self._component(data, path, i) for i, data in enumerate(_some(records, len(self.types)))]
                )
                if not element:
                    return
                if len(element) < len(self.types):
                    raise errors.DataLossError(f"the cache {path!r} ends within an element")
                yield element

    def _component(self, data: bytes, path: str, which: int) -> Any:
        what = f"component {which} of an element of the cache {path!r}"
        array = array_of(messages.make("TensorProto").FromString(data), what)
        if dtypes.as_dtype(array.dtype) is not self.types[which]:
            raise errors.InvalidArgumentError(
                f"{what} is of another dtype",
                expected=self.types[which].name,
                got=dtypes.as_dtype(array.dtype).name,
                hint="the file is of another dataset: delete it, or take another name",
            )
        return array


def _some(records: Iterator[bytes], count: int) -> Iterator[bytes]:
    for _ in range(count):
        record = next(records, None)
        if record is None:
            return
        yield record


def _keeping(source: Iterator[Element], found: list[Element], kept: list[list[Element]]) -> Iterator[Element]:
    for element in source:
        found.append(element)
        yield element
    if not kept:
        kept.append(found)


class _Draft:
    """A file that gets its name when it is whole, and goes away otherwise."""

    def __init__(self, path: str, kinds: tuple[Any, ...]) -> None:
        self._path, self._kinds = path, kinds
        try:
            made, self._draft = tempfile.mkstemp(".part", os.path.basename(path), os.path.dirname(path) or ".")
        except OSError as error:
            raise explained(error, "cannot make the cache", path) from error
        os.close(made)
        self._writer = RecordWriter(self._draft)

    def add(self, element: Element) -> None:
        for component, kind in zip(element, self._kinds, strict=True):
            self._writer.write(tensor_proto(component, kind).SerializeToString())

    def done(self) -> None:
        self._writer.close()
        os.replace(self._draft, self._path)

    def __del__(self) -> None:
        if hasattr(self, "_writer"):
            self._writer.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._draft)


def _writing(source: Iterator[Element], draft: _Draft) -> Iterator[Element]:
    for element in source:
        draft.add(element)
        yield element
    draft.done()
