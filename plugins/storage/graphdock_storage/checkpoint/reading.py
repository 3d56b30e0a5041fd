"""Reading a checkpoint, whatever its format: tensors by name, whole or a slice, however they were cut when they were saved."""

from __future__ import annotations

import os
import threading
import weakref
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
from graphdock.dtypes import string
from graphdock.errors import DataLossError, GraphdockError, NotFoundError, UnimplementedError, did_you_mean

from graphdock_storage.checkpoint.encoding import bytes_of, strings_of
from graphdock_storage.checkpoint.files import BINARY, explained, read_into
from graphdock_storage.checkpoint.layout import DataFile, Index, Part, Stored
from graphdock_storage.checkpoint.parallel import each, is_much
from graphdock_storage.checkpoint.slices import Slice, tile
from graphdock_storage.stores import descriptor

__all__ = ["Checkpoint", "HalfRead", "OpenFiles", "SafetensorsCheckpoint", "checked", "damaged"]


class Checkpoint(ABC):
    """An open checkpoint. It stays readable as it was opened, also while a saver replaces it. Use it as a context manager.

    One thread at a time may read from it.

    Attributes:
      prefix: its name. ``tensors``: name -> dtype, shape and parts. ``unread``: name -> what keeps a tensor from being read.
    """

    #: What the file format is called.
    format: str

    def __init__(self, prefix: str, tensors: dict[str, Stored]) -> None:
        self.prefix = prefix
        self.tensors = tensors
        self.unread: dict[str, str] = {}

    def find(self, name: str) -> Stored:
        """A tensor's entry.

        Raises:
          NotFoundError: there is none of that name; names near ones. UnimplementedError: it has a dtype that graphdock has not.
        """
        if name in self.unread:
            raise UnimplementedError(
                f"the tensor {name!r} of the checkpoint {self.prefix!r} can't be read", got=self.unread[name]
            )
        found = self.tensors.get(name)
        if found is None:
            raise NotFoundError(
                f"the checkpoint {self.prefix!r} has no tensor {name!r}",
                got=f"{len(self.tensors)} tensors",
                hint=did_you_mean(name, self.tensors) or "tf.train.list_variables(path) lists them",
            )
        return found

    def read(self, name: str, wanted: Slice | None = None) -> Any:
        """The values of a tensor, or of a slice of it, as a new array; strings are objects of bytes.

        Raises:
          NotFoundError: there is no such tensor, or the checkpoint holds only other parts of it.
          DataLossError: the bytes are not those that were saved.
        """
        stored = self.find(name)
        whole = Slice.whole(stored.shape) if wanted is None else wanted
        for part in stored.parts:
            if part.slice == whole:
                return self.part(name, stored, part).reshape(whole.lengths)
        commons = [(part, part.slice.common(whole)) for part in stored.parts]
        held = sum(common.size for _, common in commons if common is not None)
        if held != whole.size:
            raise NotFoundError(
                f"the checkpoint {self.prefix!r} holds only a part of the tensor {name!r}",
                expected=f"{whole.size} elements",
                got=f"{held}",
            )
        if not tile([common for _, common in commons if common is not None], whole):
            raise damaged(self, name, "parts of it overlap")
        out = np.empty(whole.lengths, stored.dtype.np)
        for part, common in commons:
            if common is not None:
                found = self.part(name, stored, part).reshape(part.slice.lengths)
                out[common.within(whole)] = found[common.within(part.slice)]
        return out

    def read_all(self, wanted: Sequence[tuple[str, Slice | None]]) -> list[Any]:
        """The values of several tensors, or of slices of them, as :meth:`read` gives each."""
        return [self.read(name, part) for name, part in wanted]

    def read_into(self, wanted: Sequence[tuple[str, Slice | None, Any]]) -> None:
        """Fill arrays with the values of tensors, or of slices of them: with all of them, or with none where any can't be read.

        Args:
          wanted: of each, also a contiguous array of its dtype and of as many elements.

        Raises:
          HalfRead: what could be read once could not be read again, so that arrays are neither as they were nor filled; its
            ``__cause__`` says why. And what :meth:`read` raises; the arrays are as they were then.
        """
        found = self.read_all([(name, part) for name, part, _ in wanted])
        for values, (_, _, out) in zip(found, wanted, strict=True):
            np.copyto(out, values.reshape(out.shape))

    @abstractmethod
    def part(self, name: str, stored: Stored, part: Any) -> Any:
        """The values of a part, in order, as a new contiguous array of any shape.

        Raises:
          DataLossError: the bytes are not those that were saved.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back the files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class HalfRead(Exception):
    """Arrays were being filled with a checkpoint's values, and that could not be ended, because of its ``__cause__``."""


def damaged(checkpoint: Checkpoint, name: str, why: str) -> DataLossError:
    """The error of a tensor whose bytes are not those that were saved."""
    return DataLossError(
        f"the tensor {name!r} of the checkpoint {checkpoint.prefix!r} is damaged: {why}",
        hint="restore an earlier checkpoint",
    )


def checked(checkpoint: Checkpoint, name: str, array: Any) -> Any:
    """The values of a part, if they are values of their dtype: a bool is one of two bytes.

    Raises:
      DataLossError: they are not.
    """
    if array.dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
        raise damaged(checkpoint, name, "it holds a byte that is neither true nor false")
    return array


class OpenFiles:
    """Data files that are open for reading, until they are closed or nobody holds them."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self._fds: list[int] = []
        self.close = weakref.finalize(self, _close, self._fds)
        try:
            for path in paths:
                self._fds.append(descriptor(path, os.O_RDONLY | BINARY))
        except (OSError, ValueError) as error:
            self.close()
            raise explained(error, "cannot read", path) from error

    def size(self, number: int) -> int:
        return os.fstat(self._fds[number]).st_size

    def read_into(self, number: int, offset: int, data: Any) -> None:
        """Fill a buffer from a file.

        Raises:
          DataLossError: the file ends before.
        """
        read_into(self._fds[number], offset, data, self.paths[number])

    def fd(self, number: int) -> int:
        return self._fds[number]


def _close(fds: list[int]) -> None:
    while fds:
        os.close(fds.pop())


class SafetensorsCheckpoint(Checkpoint):
    """A checkpoint of this package's own format.

    Raises:
      NotFoundError: a data file is missing. DataLossError: one has another length than the index says.
    """

    format = "graphdock"

    def __init__(self, prefix: str, index: Index) -> None:
        super().__init__(prefix, dict(index.tensors))
        self._files = OpenFiles([prefix + file.suffix for file in index.files])
        for number, file in enumerate(index.files):
            self._check_size(number, file)

    def _check_size(self, number: int, file: DataFile) -> None:
        size = self._files.size(number)
        if size != file.nbytes:
            self.close()
            raise DataLossError(
                f"the file {self._files.paths[number]!r} of the checkpoint {self.prefix!r} is cut off or no longer itself",
                expected=f"{file.nbytes} bytes",
                got=f"{size}",
                hint="restore an earlier checkpoint",
            )

    def read_all(self, wanted: Sequence[tuple[str, Slice | None]]) -> list[Any]:
        nbytes = sum(part.nbytes for name, _ in wanted for part in self.find(name).parts)
        return each(lambda item: self.read(*item), wanted, nbytes)

    def read_into(self, wanted: Sequence[tuple[str, Slice | None, Any]]) -> None:
        """As :meth:`Checkpoint.read_into`. Of much, each tensor is read twice: first past its checksum, then to where it is wanted.

        That costs less than memory of its own for what has been read, which the system would have to clear first; and a model that
        just fits into memory can be restored.
        """
        nbytes = sum(out.nbytes for _, _, out in wanted)
        if not is_much(nbytes):
            super().read_into(wanted)
            return
        piece = threading.local()
        read = each(lambda item: self._checked(*item, piece), wanted, nbytes)
        try:
            each(lambda item: self._fill(*item), list(zip(wanted, read, strict=True)), nbytes, uninterrupted=True)
        except (GraphdockError, MemoryError) as error:
            raise HalfRead from error

    def _checked(self, name: str, wanted: Slice | None, out: Any, piece: threading.local) -> Any:
        """The part of a tensor that is wanted, found whole; or the values, where they are no part by themselves."""
        stored = self.find(name)
        whole = Slice.whole(stored.shape) if wanted is None else wanted
        part = next((part for part in stored.parts if part.slice == whole), None)
        if part is None or stored.dtype is string or stored.dtype.is_bool or part.nbytes != out.nbytes:
            return self.read(name, wanted)
        if not hasattr(piece, "data"):
            piece.data = np.empty(_CHECKED, np.uint8)
        checksum = 0
        for at in range(0, part.nbytes, _CHECKED):
            data = piece.data[: part.nbytes - at]
            self._files.read_into(part.file, part.offset + at, data)
            checksum = zlib.crc32(data, checksum)
        if checksum != part.checksum:
            raise damaged(self, name, "its checksum does not fit")
        return part

    def _fill(self, wanted: tuple[str, Slice | None, Any], found: Any) -> None:
        out = wanted[2]
        if isinstance(found, Part):
            self._files.read_into(found.file, found.offset, bytes_of(out))
        else:
            np.copyto(out, found.reshape(out.shape))

    def part(self, name: str, stored: Stored, part: Part) -> Any:
        if stored.dtype is string:
            out: Any = np.empty(part.nbytes, np.uint8)
            data = out
        else:
            out = np.empty(part.slice.size, stored.dtype.np)
            data = bytes_of(out)
        checksum = 0
        for at in range(0, part.nbytes, _PIECE):
            piece = data[at : at + _PIECE]
            self._files.read_into(part.file, part.offset + at, piece)
            checksum = zlib.crc32(piece, checksum)
        if checksum != part.checksum:
            raise damaged(self, name, "its checksum does not fit")
        if stored.dtype is string:
            return strings_of(
                memoryview(data), part.slice.size, f"the tensor {name!r} of the checkpoint {self.prefix!r}"
            )
        return checked(self, name, out)

    def close(self) -> None:
        self._files.close()


#: Bytes that are read and summed before the next ones: few enough to stay in a cache.
_PIECE = 1 << 20
#: The same where they are only summed.
_CHECKED = 1 << 18
