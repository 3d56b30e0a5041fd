"""Faults of forms of checkpoints: a form that is right, as an author would write one, and what is wrong in others."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from graphdock import as_dtype
from graphdock.contracts import CheckpointFormat
from graphdock.errors import DataLossError
from graphdock_storage.checkpoint import Checkpoint, Slice, Stored

from planted.bench import Fault
from planted.lawful import KIT, law_host

_NUMBERS = np.array([[1.5, -0.0, np.nan], [np.inf, 0.1, -2.25]])
#: What is in the sample.
TENSORS = {
    "w": _NUMBERS,
    "Layer/half": _NUMBERS.astype(np.float32),
    "step": np.array(2**62 + 1),
    "none": np.zeros((0, 3), np.int32),
}


class Part:
    def __init__(self, shape: Any, values: Any):
        self.slice, self.values = Slice.whole(shape), values


class Opened(Checkpoint):
    """A line of JSON, then the bytes of each tensor."""

    format = "boxes"

    def __init__(self, prefix: str):
        super().__init__(prefix, {})
        self.data = self.bytes()
        self.tensors = self.table()

    def bytes(self) -> bytes:
        try:
            return Path(self.prefix + ".box").read_bytes()
        except OSError as error:
            raise DataLossError(f"the checkpoint {self.prefix!r} can't be read: {error}") from error

    def table(self) -> dict[str, Stored]:
        try:
            head, _, data = self.data.partition(b"\n")
            rows = {str(n): (np.dtype(kind), tuple(map(int, dims))) for n, kind, dims in json.loads(head)}
            sizes = {n: kind.itemsize * int(np.prod(dims)) for n, (kind, dims) in rows.items()}
            if any(d < 0 for _, dims in rows.values() for d in dims) or sum(sizes.values()) != len(data):
                raise ValueError("it is shorter or longer than its head says")
            found, at = {}, 0
            for name, (kind, dims) in rows.items():
                values = np.frombuffer(data, kind, int(np.prod(dims)), at)
                found[name] = Stored(as_dtype(kind), dims, (Part(dims, values),))
                at += sizes[name]
            return found
        except (ValueError, TypeError, MemoryError, OverflowError) as error:
            raise DataLossError(f"the checkpoint {self.prefix!r} is damaged: {error}") from error

    def part(self, name: str, stored: Stored, part: Any) -> Any:
        return part.values.copy()

    def close(self) -> None:
        pass


class Boxes(CheckpointFormat):
    """The form; ``opened`` is the class of its checkpoints."""

    name = "boxes"

    def __init__(self, opened: type[Opened] = Opened):
        self.opened = opened

    def exists(self, prefix: str) -> bool:
        try:
            return Path(prefix + ".box").is_file()
        except (OSError, ValueError):
            return False

    def open(self, prefix: str) -> Any:
        return self.opened(prefix)

    def samples(self, folder: str) -> Any:
        prefix = str(Path(folder) / "model")
        head = json.dumps([[n, a.dtype.str, a.shape] for n, a in TENSORS.items()])
        Path(prefix + ".box").write_bytes(head.encode() + b"\n" + b"".join(a.tobytes() for a in TENSORS.values()))
        return {prefix: TENSORS}


# -- faults of what is opened


class SmallNames(Opened):
    def table(self):
        return {name.lower(): stored for name, stored in super().table().items()}


class AllFloats(Opened):
    """Numbers of one dtype, whatever they were."""

    def part(self, name, stored, part):
        return part.values.astype(np.float32).astype(stored.dtype.np)


class Turned(Opened):
    """Rows for columns."""

    def part(self, name, stored, part):
        return np.array(part.values.reshape(stored.shape).T.ravel())


class NoNaN(Opened):
    def part(self, name, stored, part):
        return np.nan_to_num(part.values) if part.values.dtype.kind == "f" else part.values.copy()


class ScalarsAreRows(Opened):
    def table(self):
        return {n: Stored(s.dtype, s.shape or (1,), s.parts) for n, s in super().table().items()}


class ItsOwnArray(Opened):
    """The array that it keeps is the reader's to write over."""

    def table(self):
        found = super().table()
        for stored in found.values():
            stored.parts[0].values = stored.parts[0].values.copy()
        return found

    def part(self, name, stored, part):
        return part.values


class ReadOnly(Opened):
    def part(self, name, stored, part):
        return part.values


class SlicesAreWhole(Opened):
    def read(self, name, wanted=None):
        return super().read(name)


class TwiceTheParts(Opened):
    def table(self):
        return {n: Stored(s.dtype, s.shape, s.parts * 2) for n, s in super().table().items()}


class ZerosForNothing(Opened):
    def read(self, name, wanted=None):
        return super().read(name, wanted) if name in self.tensors else np.zeros(3)


class WhatPythonRaises(Opened):
    def table(self):
        try:
            return super().table()
        except DataLossError as error:
            raise ValueError(str(error)) from error


class NoFile(Opened):
    def bytes(self):
        return Path(self.prefix + ".box").read_bytes()

    def part(self, name, stored, part):
        self.bytes()
        return super().part(name, stored, part)


class FillsUp(Opened):
    """Rows that are cut off are zero."""

    def bytes(self):
        head, line, rest = super().bytes().partition(b"\n")
        return head + line + rest.ljust(sum(a.nbytes for a in TENSORS.values()), b"\0")


class ReadsLate(Opened):
    def part(self, name, stored, part):
        self.data = self.bytes()
        return self.table()[name].parts[0].values.copy()


class StaysOpen(Opened):
    kept: list[Any] = []

    def bytes(self):
        self.kept.append(Path(self.prefix + ".box").open("rb"))  # noqa: SIM115 - that is the fault
        return super().bytes()


class OneForAll(Opened):
    """Threads share what was read last."""

    last: list[Any] = [None]

    def read(self, name, wanted=None):
        self.last[0] = super().read(name, wanted)
        _let_others_run()
        return self.last[0]


def _let_others_run() -> None:
    threading.Event().wait(0.001)


# -- faults of what is asked


class AlwaysThere(Boxes):
    def exists(self, prefix):
        return True


class AsksAndRaises(Boxes):
    def exists(self, prefix):
        return Path(prefix + ".box").open("rb").read(1) == b"["


class NoSamples(Boxes):
    samples = CheckpointFormat.samples


#: name -> (makes the form, the law that finds it)
FORMS: dict[str, tuple[Callable[[], CheckpointFormat], str]] = {
    "names in small letters": (lambda: Boxes(SmallNames), "values"),
    "numbers of one dtype": (lambda: Boxes(AllFloats), "values"),
    "rows for columns": (lambda: Boxes(Turned), "values"),
    "NaN is zero": (lambda: Boxes(NoNaN), "values"),
    "scalars are rows": (lambda: Boxes(ScalarsAreRows), "values"),
    "the array that it keeps": (lambda: Boxes(ItsOwnArray), "values"),
    "an array that is read-only": (lambda: Boxes(ReadOnly), "values"),
    "slices are the whole": (lambda: Boxes(SlicesAreWhole), "slices"),
    "parts twice": (lambda: Boxes(TwiceTheParts), "slices"),
    "zeros for what is not there": (lambda: Boxes(ZerosForNothing), "slices"),
    "scalars are rows, for a Saver": (lambda: Boxes(ScalarsAreRows), "restores"),
    "all is a checkpoint": (AlwaysThere, "claims"),
    "exists raises": (AsksAndRaises, "claims"),
    "what Python raises": (lambda: Boxes(WhatPythonRaises), "damage"),
    "what is cut off is zero": (lambda: Boxes(FillsUp), "damage"),
    "a file that is gone": (lambda: Boxes(NoFile), "replaced"),
    "the file is read late": (lambda: Boxes(ReadsLate), "replaced"),
    "the file stays open": (lambda: Boxes(StaysOpen), "replaced"),
    "threads share what is read": (lambda: Boxes(OneForAll), "threads"),
    "no samples": (NoSamples, "values"),
}


def faults() -> list[Fault]:
    return [
        Fault(name, "checkpoint", "-", KIT, lambda m=make: law_host("register_checkpoint_formats", m()), text=law)
        for name, (make, law) in FORMS.items()
    ]
