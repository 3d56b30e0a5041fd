"""Laws of forms of checkpoints: what a form reads of the samples that it brings, whole, in slices, damaged, and replaced meanwhile.

    for law in CHECKPOINT_LAWS:
        check_checkpoint_format("mine", law)      # raises Untested, or ConformanceError with what is wrong

A form is only read, so that it brings the files it is held against: ``CheckpointFormat.samples(folder)`` writes checkpoints and
says which tensors are in them.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.contracts import CheckpointFormat
from graphdock.plugin.host import Host, default_host
from graphdock_storage.checkpoint import Slice

from graphdock_testing.case import ConformanceError, Untested
from graphdock_testing.numeric import same_bits

__all__ = ["CHECKPOINT_LAWS", "check_checkpoint_format"]

#: Places at which each file of a sample is cut off, and bytes of it that are changed.
_PLACES = 12
#: Where the system tells which files a process has open.
_OPEN = "/proc/self/fd"


@dataclass(frozen=True)
class _Sample:
    """One checkpoint: its prefix, and what is in it."""

    form: CheckpointFormat
    prefix: str
    tensors: Mapping[str, np.ndarray[Any, Any]]

    def read(self) -> dict[str, Any]:
        """All of its tensors."""
        with self.form.open(self.prefix) as found:
            return {name: found.read(name) for name in found.tensors}

    def files(self) -> list[Path]:
        """Those whose names begin with the prefix."""
        folder, base = os.path.split(self.prefix)
        return sorted(p for p in Path(folder).iterdir() if p.name.startswith(base) and p.is_file())


def _same(sample: _Sample, got: Mapping[str, Any], what: str) -> None:
    if set(got) != set(sample.tensors):
        raise ConformanceError(f"{what}: the tensors are {sorted(got)}, not {sorted(sample.tensors)}")
    for name, wanted in sample.tensors.items():
        if (got[name].dtype, got[name].shape) != (wanted.dtype, wanted.shape) or not same_bits(got[name], wanted):
            raise ConformanceError(f"{what}: {name!r} is {got[name]!r}, not {wanted!r}")


def _values(sample: _Sample) -> None:
    """Names, dtypes, shapes and values are what was written, and arrays are the reader's own."""
    if sample.form.exists(sample.prefix) is not True:
        raise ConformanceError("exists() does not say True of a checkpoint that is there")
    with sample.form.open(sample.prefix) as found:
        told = {n: (s.dtype.as_numpy_dtype, tuple(s.shape)) for n, s in found.tensors.items()}
        for name, wanted in sample.tensors.items():
            if told.get(name) != (wanted.dtype.type, wanted.shape):
                raise ConformanceError(
                    f"of {name!r} it tells {told.get(name)}, not {(wanted.dtype.type, wanted.shape)}"
                )
        for _ in range(2):
            got = {name: found.read(name) for name in found.tensors}
            _same(sample, got, "read from an open checkpoint")
            for array in got.values():
                if not array.flags.writeable:
                    raise ConformanceError("an array that was read is read-only: it is the reader's own")
                array[...] = b"spoilt" if array.dtype.hasobject else 1


def _slices(sample: _Sample) -> None:
    """A slice is that part of the whole; the parts that it tells share no element."""
    with sample.form.open(sample.prefix) as found:
        for name, wanted in sample.tensors.items():
            pieces = [part.slice for part in found.find(name).parts]
            if sum(piece.size for piece in pieces) > max(wanted.size, 1):
                raise ConformanceError(
                    f"{name!r} has parts of {[p.lengths for p in pieces]}: more than it has elements"
                )
            for axis, size in enumerate(wanted.shape):
                starts = [0] * wanted.ndim
                lengths = list(wanted.shape)
                starts[axis], lengths[axis] = size // 2, size - size // 2
                box = tuple(slice(s, s + n) for s, n in zip(starts, lengths, strict=True))
                got = found.read(name, Slice(tuple(starts), tuple(lengths)))
                if not same_bits(got, wanted[box]):
                    raise ConformanceError(f"{name!r}{list(box)} is {got!r}, not {wanted[box]!r}")
        try:
            found.read("no such tensor anywhere")
        except tf.errors.NotFoundError:
            return
    raise ConformanceError("a tensor that is not there is read")


def _restores(sample: _Sample) -> None:
    """A Saver restores variables from it, and ``tf.train.list_variables`` lists them."""
    listed = dict(tf.train.list_variables(sample.prefix))
    shapes = {name: list(array.shape) for name, array in sample.tensors.items()}
    if {n: list(s) for n, s in listed.items()} != shapes:
        raise ConformanceError(f"list_variables gives {listed}, not {shapes}")
    named = {n: a for n, a in sample.tensors.items() if not a.dtype.hasobject}
    variables = {n: tf.Variable(np.zeros_like(a), name=f"v{i}") for i, (n, a) in enumerate(named.items())}
    if not variables:
        return
    with tf.Session() as session:
        tf.train.Saver(variables).restore(session, sample.prefix)
        for name, value in session.run(variables).items():
            if not same_bits(np.asarray(value), named[name]):
                raise ConformanceError(f"the variable restored from {name!r} is {value!r}, not {named[name]!r}")


def _claims(sample: _Sample) -> None:
    """``exists`` says no of what is not there, and never raises; ``open`` raises GraphdockErrors alone."""
    folder, base = os.path.split(sample.prefix)
    other = os.path.join(folder, "other")
    for prefix in (other, folder, "", "a\0b", "x" * 5000, os.path.join(folder, "no", "folder")):
        if _asked(sample.form, prefix):
            raise ConformanceError(f"exists({prefix[:40]!r}) says True, and there is no checkpoint of that name")
    suffixes = [path.name.removeprefix(base) for path in sample.files()]
    for contents in (b"", b"\0" * 64, bytes(range(256)), b"{}", b"no checkpoint\n"):
        for suffix in suffixes:
            Path(other + suffix).write_bytes(contents)
        if _asked(sample.form, other):
            _tried(_Sample(sample.form, other, {}), f"files of {contents[:16]!r}")
    for suffix in suffixes:
        Path(other + suffix).unlink()


def _asked(form: CheckpointFormat, prefix: str) -> bool:
    try:
        return form.exists(prefix)
    except Exception as error:
        raise ConformanceError(f"exists({prefix[:40]!r}) raises {type(error).__name__}: {error}") from error


def _tried(sample: _Sample, what: str) -> dict[str, Any]:
    """Read files that may be no checkpoint. Raises ConformanceError for what is no GraphdockError."""
    try:
        return sample.read()
    except tf.errors.GraphdockError:
        return {}
    except Exception as error:
        raise ConformanceError(f"{what}: {type(error).__name__}: {error}; damaged files are a DataLossError") from error


def _damage(sample: _Sample) -> None:
    """Files that are cut off or changed are told, or are as they were: one that is cut off gives no tensor other values."""
    draw = random.Random(0)
    for path in sample.files():
        data = path.read_bytes()
        places = sorted({0, 1, len(data) - 1, *(draw.randrange(len(data)) for _ in range(_PLACES))} if data else ())
        for at in places:
            path.write_bytes(data[:at])
            what = f"{path.name} cut off at {at} of {len(data)} bytes"
            got = _tried(sample, what) if _asked(sample.form, sample.prefix) else {}
            for name, array in got.items():
                wanted = sample.tensors.get(name)
                if wanted is not None and array.shape == wanted.shape and not same_bits(array, wanted):
                    raise ConformanceError(f"{what}: {name!r} is {array!r}, not {wanted!r}, and nothing is told")
            changed = bytearray(data)
            changed[at] ^= 1 << draw.randrange(8)
            path.write_bytes(bytes(changed))
            if _asked(sample.form, sample.prefix):
                _tried(sample, f"{path.name} with another byte at {at}")
        path.unlink()
        if _asked(sample.form, sample.prefix):
            _tried(sample, f"without {path.name}")
        path.write_bytes(data)


def _replaced(sample: _Sample) -> None:
    """An open checkpoint is as it was opened, though its files are gone; a closed one holds none of them."""
    kept = {path: path.read_bytes() for path in sample.files()}
    with sample.form.open(sample.prefix) as found:
        for path in kept:
            path.unlink()
        try:
            _same(sample, {name: found.read(name) for name in found.tensors}, "read when its files are gone")
        except (OSError, tf.errors.GraphdockError) as error:
            raise ConformanceError(f"open, it is not readable when its files are gone: {error}") from error
        finally:
            for path, data in kept.items():
                path.write_bytes(data)
    if held := [name for name in _held() if os.path.dirname(sample.prefix) in name]:
        raise ConformanceError(f"closed, it holds {held}")


def _held() -> list[str]:
    names = os.listdir(_OPEN) if os.path.isdir(_OPEN) else []
    return [os.readlink(f"{_OPEN}/{name}") for name in names if os.path.islink(f"{_OPEN}/{name}")]


def _threads(sample: _Sample) -> None:
    """Several threads open it at once, and each reads what one reads alone."""
    raised: list[BaseException] = []
    begin = threading.Barrier(4)

    def work() -> None:
        try:
            begin.wait()
            for _ in range(4):
                _same(sample, sample.read(), "read by one of four threads")
        except BaseException as error:  # noqa: BLE001 - raised below, on the thread of the caller
            raised.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise ConformanceError(f"of four threads one ends with {type(raised[0]).__name__}: {raised[0]}") from raised[0]


#: Name -> what is asked of each sample.
CHECKPOINT_LAWS: Mapping[str, Callable[[_Sample], None]] = {
    function.__name__.strip("_"): function
    for function in (_values, _slices, _restores, _claims, _damage, _replaced, _threads)
}


def check_checkpoint_format(name: str, law: str, host: Host | None = None) -> None:
    """Hold a form of checkpoints to a law, on each of its samples.

    Args:
      host: who has it; default: the process's own.

    Raises:
      Untested: it brings no samples. ConformanceError: what is wrong. UnavailableError: no plugin brings such a form.
    """
    host = default_host() if host is None else host
    form = host.checkpoint_formats.find(name)
    with tempfile.TemporaryDirectory() as folder, tf.Graph(host).as_default():
        count = 0
        for sample in _samples(form, os.path.realpath(folder)):
            count += 1
            try:
                CHECKPOINT_LAWS[law](sample)
            except Exception as error:
                said = str(error) if isinstance(error, ConformanceError) else f"{type(error).__name__}: {error}"
                raise ConformanceError(f"{name}: {os.path.basename(sample.prefix)}: {said}") from error
    if not count:
        raise Untested(
            f"the checkpoint format {name} brings no samples: nothing was read (`samples(folder)` writes some)"
        )


def _samples(form: CheckpointFormat, folder: str) -> Iterator[_Sample]:
    for prefix, tensors in form.samples(folder).items():
        yield _Sample(form, prefix, {n: np.asarray(a) for n, a in tensors.items()})
