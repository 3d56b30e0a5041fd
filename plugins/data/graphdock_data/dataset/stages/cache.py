"""Cache: the elements of a dataset, kept in memory or in a file from the first time that all of them were given."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from graphdock import messages
from graphdock.contracts import dtypes, errors
from graphdock.locks import new_lock
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
    off leaves nothing. Later iterators and programs read it. Of the iterators of a process one at a time writes it; whether it is
    there is asked when the first element is.
    """

    title = "CacheDataset"
    source: Stage
    file: Value

    def iterate(self, run: Run) -> Iterator[Element]:
        name = run.array(self.file).item()
        if name:
            path, begun = os.fsdecode(name) + SUFFIX, list[Iterator[Element]]()
            return Resumed(lambda: self._filed(run, path, begun))
        kept = run.state(self, lambda: list[list[Element]]())
        if kept:
            return iter(kept[0])
        source, found = self.source.iterate(run), list[Element]()
        return Resumed(lambda: _keeping(source, found, kept))

    def _filed(self, run: Run, path: str, begun: list[Iterator[Element]]) -> Iterator[Element]:
        """Elements that are read or written; the list has who gives them, once that is known."""
        if not begun:
            with self.blame():
                begun.append(self._read(path) if os.path.exists(path) else self._written(run, path))
        yield from begun[0]

    def _written(self, run: Run, path: str) -> Iterator[Element]:
        draft = _Draft(path, self.types, run)
        source = self.source.iterate(run)
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
    """A file that gets its name when it is whole, and goes away otherwise; the only one of its name in this process.

    Its run gives up the name, since a thread of an iterator that was closed may still hold the draft.
    """

    def __init__(self, path: str, kinds: tuple[Any, ...], run: Run) -> None:
        self._path, self._kinds, self._closers = path, kinds, run.closers
        self._name = os.path.realpath(path)
        with _lock:
            if self._name in _drafts:
                raise errors.AlreadyExistsError(
                    f"another iterator writes the cache {path!r}",
                    hint="read that one to its end first, or give each cache a name of its own",
                )
            _drafts[self._name] = self
        run.closers[self._name] = functools.partial(_give_up, self._name, weakref.ref(self))
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
        with _lock:
            if _drafts.get(self._name) is self:  # else another iterator took its place
                os.replace(self._draft, self._path)
                del _drafts[self._name]
        self._closers.pop(self._name, None)

    def __del__(self) -> None:
        if hasattr(self, "_writer"):
            self._writer.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._draft)


def _give_up(name: str, draft: weakref.ref[_Draft]) -> None:
    with _lock:
        if name in _drafts and _drafts[name] is draft():
            del _drafts[name]


_lock = new_lock()
#: Whole path of a cache -> who writes it.
_drafts: weakref.WeakValueDictionary[str, _Draft] = weakref.WeakValueDictionary()


def _writing(source: Iterator[Element], draft: _Draft) -> Iterator[Element]:
    for element in source:
        draft.add(element)
        yield element
    draft.done()
