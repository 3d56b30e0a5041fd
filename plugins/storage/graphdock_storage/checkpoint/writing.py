"""Writing a checkpoint: data files of the safetensors format, then the index, each whole or not at all.

A data file's name is used once. So a save under a prefix that has a checkpoint leaves that one as it is until the new index takes
the old one's name; only then are the old data files removed. A process that dies at any moment leaves one complete checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdock.dtypes import DType, string
from graphdock.errors import DTypeError, GraphdockError, InvalidArgumentError, ShapeError

from graphdock_storage.checkpoint.encoding import check_strings, chunks_of, size_of
from graphdock_storage.checkpoint.files import Sink, explained, held, make_folder, replaced, sync_folder, token
from graphdock_storage.checkpoint.layout import INDEX, DataFile, Index, Part, Stored
from graphdock_storage.checkpoint.opening import read_index
from graphdock_storage.checkpoint.parallel import each
from graphdock_storage.checkpoint.slices import Slice
from graphdock_storage.stores import system

__all__ = ["Item", "discard_graph_drafts", "files_of", "merge", "remove", "write"]

#: Our dtypes -> those of the safetensors format; others are bytes there, and the index says what they are.
_SAFETENSORS = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "bfloat16": "BF16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "float64": "F64",
    "int64": "I64",
    "uint64": "U64",
}


@dataclass(frozen=True, slots=True)
class Item:
    """Item to be saved: a tensor, or a slice of one.

    Attributes:
      name: of the whole tensor. ``array``: the values; it is not changed and not kept.
      shape: of the whole. ``slice``: which part of it the array is.
    """

    name: str
    array: Any
    dtype: DType
    shape: tuple[int, ...]
    slice: Slice


def write(prefix: str, items: Iterable[Item]) -> None:
    """Save tensors as the checkpoint ``prefix``, in one data file. The folder is made when the one around it is there.

    Arrays that are contiguous go to the file as they lie, piece by piece. When this returns, all is on the disk.

    Raises:
      InvalidArgumentError: two items are of one tensor and do not fit each other, or do not make up the whole.
      FailedPreconditionError: another thread or process is writing it.
      ResourceExhaustedError, PermissionDeniedError, NotFoundError: the file system refuses; what was there is as it was.
    """
    found = list(items)
    _check(found)
    make_folder(os.path.dirname(prefix))
    with held(prefix):
        suffix = _suffix(0, 1)
        try:
            parts, size = _write_data(prefix + suffix, found)
            _write_index(prefix, Index((DataFile(suffix, size),), _joined(found, parts)))
        except BaseException:  # Ctrl-C too leaves no draft; it goes on
            _discard(prefix, [suffix])
            raise
        _finish(prefix, {suffix})


def merge(prefixes: Sequence[str], destination: str, delete_old_dirs: bool = True) -> None:
    """Make one checkpoint of several, whose data files it takes over. The index is written last.

    Args:
      prefixes: checkpoints of this format; they are gone afterwards.
      delete_old_dirs: also remove their folders, where these are empty then.

    Raises:
      InvalidArgumentError: a tensor is in two of them, and these are no parts of one. And as :func:`write`.
    """
    make_folder(os.path.dirname(destination))
    with contextlib.ExitStack() as stack:
        for prefix in [destination, *dict.fromkeys(prefixes)]:
            stack.enter_context(held(prefix))
        found = [(prefix, read_index(prefix)) for prefix in prefixes]
        count = sum(len(index.files) for _, index in found)
        files: list[DataFile] = []
        tensors: dict[str, Stored] = {}
        moves: list[tuple[str, str]] = []
        for prefix, index in found:
            base = len(files)
            for file in index.files:
                suffix = _suffix(len(files), count)
                moves.append((prefix + file.suffix, destination + suffix))
                files.append(DataFile(suffix, file.nbytes))
            for name, stored in index.tensors.items():
                tensors[name] = _together(name, tensors.get(name), _shifted(stored, base))
        for name, stored in tensors.items():
            _check_apart(name, [p.slice for p in stored.parts])
        try:
            for source, target in moves:
                _rename(source, target)
            _write_index(destination, Index(tuple(files), tensors))
        except BaseException:  # as in write
            _discard(destination, [f.suffix for f in files])
            raise
        _unlink([prefix + INDEX for prefix in prefixes])
        _finish(destination, {f.suffix for f in files})
    if delete_old_dirs:
        for folder in {os.path.dirname(prefix) for prefix in prefixes} - {os.path.dirname(destination)}:
            with contextlib.suppress(OSError):  # it holds something else
                system(folder).rmdir(folder)


def files_of(prefix: str) -> list[str]:
    """The files in the folder of a checkpoint that belong to it, also those of saves that were cut off."""
    folder, base = os.path.split(prefix)
    ours = re.compile(
        re.escape(base)
        + r"((\.index|\.data-\d{5}-of-\d{5}(\.[0-9a-f]{8}\.safetensors)?)(\.[0-9a-f]{8}\.tmp)?|\.meta\.[0-9a-f]{8}\.tmp)\Z"
    )
    try:
        names = system(folder).listdir(folder or os.curdir)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as error:
        raise explained(error, "cannot read the folder", folder) from error
    return [os.path.join(folder, name) for name in sorted(names) if ours.match(name)]


def remove(prefix: str) -> None:
    """Remove the files of a checkpoint, of this format or TensorFlow's: the index first, so that no half of one remains.

    Raises:
      PermissionDeniedError: the folder may not be written.
    """
    index = prefix + INDEX
    for path in [index, *(p for p in files_of(prefix) if p != index)]:
        try:
            system(path).remove(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise explained(error, "cannot remove", path) from error


def discard_graph_drafts(prefix: str) -> None:
    """Remove drafts of a checkpoint's graph, which saves that were cut off left. For who holds the lock that graphs are written
    under. A refusal to remove changes nothing."""
    with contextlib.suppress(GraphdockError):
        _unlink([path for path in files_of(prefix) if path.startswith(f"{prefix}.meta.")])


def _suffix(number: int, count: int) -> str:
    return f".data-{number:05d}-of-{count:05d}.{token()}.safetensors"


def _check(items: Sequence[Item]) -> None:
    seen: dict[str, list[Item]] = {}
    for item in items:
        if item.dtype.kind in "RV":
            raise DTypeError(
                f"the tensor {item.name!r} can't be saved", expected="a dtype with values", got=item.dtype.name
            )
        if item.dtype is string:
            check_strings(item.array, item.name)
        if tuple(item.array.shape) != item.slice.lengths:
            raise ShapeError(
                f"the tensor {item.name!r} does not fill its slice",
                expected=str(list(item.slice.lengths)),
                got=str(list(item.array.shape)),
            )
        seen.setdefault(item.name, []).append(item)
    for name, parts in seen.items():
        first = parts[0]
        for part in parts[1:]:
            if (part.dtype, part.shape) != (first.dtype, first.shape):
                raise InvalidArgumentError(
                    f"two slices of the tensor {name!r} are of different tensors",
                    expected=f"{first.dtype.name} {list(first.shape)}",
                    got=f"{part.dtype.name} {list(part.shape)}",
                )
        _check_apart(name, [p.slice for p in parts])


def _check_apart(name: str, slices: Sequence[Slice]) -> None:
    """Refuse slices that share elements. Along the axis where they begin apart, neighbours alone can."""
    ordered = sorted(slices, key=lambda s: s.starts)
    for i, one in enumerate(ordered):
        for other in ordered[i + 1 :]:
            if one.common(other) is not None or one == other:
                raise InvalidArgumentError(f"the tensor {name!r} is saved twice, or two of its slices overlap")
            if one.starts and other.starts[0] >= one.starts[0] + one.lengths[0]:
                break


def _joined(items: Sequence[Item], parts: Sequence[Part]) -> dict[str, Stored]:
    tensors: dict[str, Stored] = {}
    for item, part in zip(items, parts, strict=True):
        tensors[item.name] = _together(item.name, tensors.get(item.name), Stored(item.dtype, item.shape, (part,)))
    return tensors


def _together(name: str, one: Stored | None, other: Stored) -> Stored:
    """A tensor of the parts of two."""
    if one is None:
        return other
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        raise InvalidArgumentError(f"two checkpoints hold different tensors {name!r}")
    return Stored(one.dtype, one.shape, one.parts + other.parts)


def _shifted(stored: Stored, base: int) -> Stored:
    parts = tuple(Part(p.slice, p.file + base, p.offset, p.nbytes, p.checksum) for p in stored.parts)
    return Stored(stored.dtype, stored.shape, parts)


def _write_data(path: str, items: Sequence[Item]) -> tuple[list[Part], int]:
    """Write the data file; returns the part of each item, and the file's length.

    Wide elements come first, so that all are aligned.
    """
    order = sorted(range(len(items)), key=lambda i: -items[i].dtype.size)
    sizes = [size_of(item.array, item.dtype) for item in items]
    head = _header(items, order, sizes)
    starts, end = [0] * len(items), len(head)
    for i in order:
        starts[i], end = end, end + sizes[i]
    with replaced(path) as sink:
        sink.write(head, 0)
        sums = each(lambda i: _write_item(sink, starts[i], items[i]), range(len(items)), end)
    parts = [
        Part(item.slice, 0, start, size, checksum)
        for item, start, size, checksum in zip(items, starts, sizes, sums, strict=True)
    ]
    return parts, end


def _write_item(sink: Sink, start: int, item: Item) -> int:
    """Write a tensor where it belongs; returns its checksum."""
    checksum = 0
    for chunk in chunks_of(item.array, item.dtype):
        for at in range(0, len(chunk), _PIECE):
            piece = chunk[at : at + _PIECE]
            checksum = zlib.crc32(piece, checksum)
            sink.write(piece, start)
            start += len(piece)
    return checksum


#: Bytes that are summed and written before the next ones: few enough to stay in a cache.
_PIECE = 1 << 20


def _header(items: Sequence[Item], order: Sequence[int], sizes: Sequence[int]) -> bytes:
    """Return what stands before the data, by the safetensors format: the header's length, and what lies where, as JSON."""
    header: dict[str, Mapping[str, Any]] = {"__metadata__": {"format": "graphdock checkpoint"}}
    at = 0
    for i in order:
        item = items[i]
        kind = _SAFETENSORS.get(item.dtype.name)
        part = item.slice.spelled(item.shape)
        key = f"{item.name}@{part}" if part else item.name
        header[key if key not in header else f"{key}@{i}"] = {
            "dtype": kind or "U8",
            "shape": list(item.slice.lengths) if kind else [sizes[i]],
            "data_offsets": [at, at + sizes[i]],
        }
        at += sizes[i]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _write_index(prefix: str, index: Index) -> None:
    """Make a checkpoint of data files that are there: from here on the prefix names it."""
    sync_folder(os.path.dirname(prefix))
    with replaced(prefix + INDEX) as sink:
        sink.write(index.text(), 0)


def _finish(prefix: str, suffixes: set[str]) -> None:
    """Bring the index's name to the disk, then remove data files that no index names any more, and what saves that were cut off
    left, but for its graph: another saver may be writing that. A refusal to remove changes nothing: the checkpoint is complete.
    """
    sync_folder(os.path.dirname(prefix))
    kept = {prefix + INDEX, *(prefix + s for s in suffixes)}
    with contextlib.suppress(GraphdockError):
        _unlink([path for path in files_of(prefix) if path not in kept and not path.startswith(f"{prefix}.meta.")])


def _discard(prefix: str, suffixes: Sequence[str]) -> None:
    """Remove the data files of a save that failed, unless its index has its name already."""
    with contextlib.suppress(GraphdockError):
        if any(f.suffix in suffixes for f in read_index(prefix).files):
            return
    _unlink([prefix + s for s in suffixes])


def _rename(source: str, target: str) -> None:
    try:
        system(source).replace(source, target)
    except OSError as error:
        raise explained(error, "cannot rename to", target) from error


def _unlink(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            system(path).remove(path)
