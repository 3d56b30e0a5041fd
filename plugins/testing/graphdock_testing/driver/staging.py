"""Pinned host memory: NumPy arrays whose every use by the host is noted, and which the driver finds by their address.

Noted are indexing, NumPy's functions and ufuncs, and the methods named below. ``plain[...] = slot``, ``np.array(slot)`` and
compiled code read past it: use ``np.copyto(plain, slot)`` or ``slot.copy()``.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.errors import InvalidArgumentError

from graphdock_testing.driver.memory import POISON, Array, Block, Drops, bounds

__all__ = ["Pinned", "Slots", "Staging"]

#: Told of a use by the host: (array, whether it writes).
Used = Callable[[Array, bool], None]

_WRITES_FIRST = frozenset({np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal})


def _plain(value: Any) -> Any:
    """``value`` with plain arrays in place of staging memory, in lists and tuples too."""
    if isinstance(value, Staging):
        return value.view(np.ndarray)
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return value


def _staged(values: Sequence[Any]) -> list[Staging]:
    """The staging memory among arguments, in lists and tuples too."""
    found: list[Staging] = []
    left = list(values)
    while left:
        value = left.pop()
        if isinstance(value, Staging):
            found.append(value)
        elif type(value) in (list, tuple):
            left.extend(value)
    return found


def _basic(key: Any) -> bool:
    """Return whether an index selects by integers and slices only, which makes a view."""
    parts = key if type(key) is tuple else (key,)
    return all(part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice)) for part in parts)


class Staging(np.ndarray[Any, Any]):
    """A piece of staging memory. Views of it are such pieces too; what is computed from it is plain."""

    used: Used | None

    def __array_finalize__(self, source: Any) -> None:
        self.used = getattr(source, "used", None)

    def note(self, write: bool) -> None:
        """The host uses this piece now."""
        if self.used is not None:
            self.used(self, write)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.get("out", ())
        written = out or (inputs[:1] if method == "at" else ())
        for piece in _staged(written):
            piece.note(True)
        for piece in _staged(inputs):
            piece.note(False)
        if out:
            options["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
        return out[0] if len(out) == 1 else result

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        written = [options["out"]] if options.get("out") is not None else []
        read = [*args, *(v for k, v in options.items() if k != "out")]
        if function in _WRITES_FIRST:
            written.append(read.pop(0))
        for piece in _staged(written):
            piece.note(True)
        for piece in _staged(read):
            piece.note(False)
        return function(*map(_plain, args), **{k: _plain(v) for k, v in options.items()})

    def _piece(self, key: Any) -> Staging:
        """What an index selects, as a view; all of it where the index is fancy."""
        if not _basic(key):
            return self
        parts = key if type(key) is tuple else (key,)
        selected = super().__getitem__(key if any(part is Ellipsis for part in parts) else (*parts, ...))
        assert isinstance(selected, Staging)
        return selected

    def __getitem__(self, key: Any) -> Any:
        result = super().__getitem__(key)
        if isinstance(result, Staging) and _basic(key):
            return result
        self._piece(key).note(False)
        return _plain(result)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._piece(key).note(True)
        for piece in _staged([value]):
            piece.note(False)
        super().__setitem__(key, _plain(value))

    def fill(self, value: Any) -> None:
        self.note(True)
        super().fill(value)

    def copy(self, *args: Any, **options: Any) -> Any:
        self.note(False)
        return _plain(self).copy(*args, **options)

    def astype(self, *args: Any, **options: Any) -> Any:
        self.note(False)
        return _plain(self).astype(*args, **options)

    def tolist(self) -> Any:
        self.note(False)
        return super().tolist()

    def tobytes(self, *args: Any, **options: Any) -> bytes:
        self.note(False)
        return super().tobytes(*args, **options)

    def item(self, *args: Any) -> Any:
        self.note(False)
        return super().item(*args)


class _Handle:
    """What holds a block for the program: when the last array over it goes, so does this."""

    def __init__(self, block: Block) -> None:
        self.__array_interface__ = {**block.bytes.__array_interface__, "data": (block.bytes.ctypes.data, False)}


class Pinned:
    """All staging memory of a driver. Not locked: its driver is."""

    def __init__(self) -> None:
        self._blocks: list[tuple[int, Block]] = []
        self._made = 0
        self._next_address = 1 << 20

    def __len__(self) -> int:
        return len(self._blocks)

    def pin(self, nbytes: int, align: int, used: Used, drops: Drops) -> Staging:
        """``nbytes`` of poisoned memory; ``drops`` has it when the last array over it is gone."""
        self._made += 1
        block = Block("staging", self._made, self._next_address, max(nbytes, 1), align)
        self._next_address += -(-block.bytes.nbytes // align) * align
        block.poison()
        insort(self._blocks, (block.bytes.ctypes.data, block), key=lambda entry: entry[0])
        handle = _Handle(block)
        array: Staging = np.asarray(handle).view(Staging)[:nbytes]
        array.used = used
        drops.watch(handle, block, nbytes, self)
        return array

    def unpin(self, block: Block) -> None:
        """A block is gone."""
        block.life += 1
        self._blocks = [entry for entry in self._blocks if entry[1] is not block]

    def block(self, array: Array) -> Block | None:
        """The staging block that holds an array; None when none does."""
        low, high = bounds(array)
        at = bisect_right(self._blocks, low, key=lambda entry: entry[0]) - 1
        if at < 0 or high > self._blocks[at][0] + self._blocks[at][1].bytes.nbytes:
            return None
        return self._blocks[at][1]

    def slot(self, array: Array) -> tuple[Block, Array]:
        """The block that holds an array, and the array again as a plain one that does not keep it.

        Raises InvalidArgumentError when the array is not contiguous or lies elsewhere.
        """
        block = self.block(array) if array.flags.c_contiguous and not array.dtype.hasobject else None
        if block is None:
            raise InvalidArgumentError(
                "host memory of a queued copy is no contiguous staging memory of this device",
                hint="take it from device.staging(), or copy with the device's own methods",
            )
        offset = array.ctypes.data - block.bytes.ctypes.data
        return block, np.ndarray(array.shape, array.dtype, block.bytes, offset)


class Slots:
    """What queued copies use of staging memory: poisoned before a result arrives, and after what was sent has been read."""

    def __init__(self) -> None:
        self._sent: list[tuple[Any, Array]] = []

    def send(self, queue: Any, slot: Array) -> None:
        """A copy from the slot is queued."""
        self._sent.append((queue, slot))

    def expect(self, slot: Array) -> None:
        """A copy into the slot is queued. Where the slot is still to be read, it is left alone, and its content is the copy's."""
        waiting = [entry for entry in self._sent if np.may_share_memory(entry[1], slot)]
        if waiting:
            self._sent = [entry for entry in self._sent if all(entry is not w for w in waiting)]
        else:
            _poison(slot)

    def fenced(self, queue: Any) -> None:
        """The queue's work is done: what it sent is unspecified, unless another queue is still to read it."""
        own = [slot for owner, slot in self._sent if owner is queue]
        self._sent = [entry for entry in self._sent if entry[0] is not queue]
        for slot in own:
            if not any(np.may_share_memory(slot, other) for _, other in self._sent):
                _poison(slot)


def _poison(slot: Array) -> None:
    slot.reshape(-1).view(np.uint8).fill(POISON)
