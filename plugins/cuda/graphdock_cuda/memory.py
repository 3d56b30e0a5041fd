"""Memory of a GPU and pinned memory of the host: blocks that are given back in the order of their stream, and arrays over them.

Nothing is given back where its last reference goes, which may be anywhere, a recording included: it is noted, and done at the next
call that takes memory or fences.
"""

from __future__ import annotations

import ctypes
import math
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import DType, dtypes, errors

from graphdock_cuda.driver.api import Driver
from graphdock_cuda.driver.errors import explain

__all__ = ["Array", "Block", "Pinned", "Pool", "array_over"]

#: Pinned memory that is kept for the next one who asks.
_KEPT_BYTES = 1 << 28


class Block:
    """A piece of memory of GPU ``device`` that somebody holds. ``address`` is 0 once it was given back."""

    __slots__ = ("__weakref__", "address", "device", "nbytes", "stream")

    def __init__(self, address: int, nbytes: int, stream: int, device: int) -> None:
        self.address = address
        self.nbytes = nbytes
        self.stream = stream
        self.device = device


class _Drop(weakref.ref[Any]):
    """Of a block or pinned array: what to give back when it is gone."""

    __slots__ = ("address", "nbytes", "stream")

    address: int
    nbytes: int
    stream: int

    # itself, whatever it refers to
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class Array:
    """A contiguous, row-major array in the memory of a GPU.

    Attributes:
      address: of its first byte. ``block``: what it keeps alive.
    """

    __slots__ = ("address", "block", "dtype", "nbytes", "shape")

    def __init__(self, block: Block, address: int, dtype: DType, shape: tuple[int, ...]) -> None:
        self.block = block
        self.address = address
        self.dtype = dtype
        self.shape = shape
        self.nbytes = dtype.size * math.prod(shape)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """For CuPy and its like: version 3, without a stream; bfloat16 as uint16."""
        plain = "<u2" if self.dtype is dtypes.bfloat16 else self.dtype.np.str
        return {"shape": self.shape, "typestr": plain, "data": (self.address, False), "version": 3, "strides": None}

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("host code reads an array of a GPU as if it were a NumPy array")

    def __repr__(self) -> str:
        return f"<{self.dtype.name}{list(self.shape)} at {self.address:#x}>"


class Pool:
    """Device memory of one GPU, in the order of streams. Safe from any thread.

    Args:
      limit: bytes that may be in use at once; 0 for all that the GPU has.

    Attributes:
      in_use, peak: bytes that were taken and not given back, and the most there ever were.
    """

    def __init__(self, driver: Driver, device: int, limit: int = 0) -> None:
        self._driver = driver
        self._device = device
        self.limit = limit
        self.in_use = 0
        self.peak = 0
        self._lock = threading.Lock()
        self._gone: deque[_Drop] = deque()
        self._retired: deque[int] = deque()
        #: Gives back blocks whose own stream is gone.
        self.stream = 0
        self._held: set[_Drop] = set()
        #: streams that are recorded now: what is freed there has to wait
        self._recorded: set[int] = set()
        #: streams that something was freed on since their last fence for :meth:`relieve`
        self._freed: set[int] = set()

    def begin_recording(self, stream: int) -> None:
        """From now on ``stream`` is recorded: nothing is freed on it before :meth:`end_recording`, by whatever thread."""
        with self._lock:
            self._recorded.add(stream)

    def end_recording(self, stream: int) -> None:
        with self._lock:
            self._recorded.discard(stream)

    def retire(self, stream: int) -> None:
        """A stream whose queue is gone. It is destroyed at the next settling; this may be called anywhere."""
        self._retired.append(stream)

    def take(self, nbytes: int, stream: int) -> Block:
        """A block for work that is queued on ``stream`` from now on.

        Raises ResourceExhaustedError, with what is in use, when there is no memory left.
        """
        self.settle()
        with self._lock:
            if self.limit and self.in_use + nbytes > self.limit:
                raise self._exhausted(nbytes, f"the limit of this process is {self.limit} bytes")
        try:
            address = self._driver.malloc(nbytes, stream)
        except Exception as error:
            if getattr(error, "status", None) == 2:
                raise self._exhausted(nbytes, self._left()) from error
            raise explain(error, f"cuda:{self._device}", f"allocate {nbytes} bytes") from error
        block = Block(address, nbytes, stream, self._device)
        drop = _Drop(block, self._gone.append)
        drop.address, drop.nbytes, drop.stream = address, nbytes, stream
        with self._lock:
            self._held.add(drop)
            self.in_use += nbytes
            self.peak = max(self.peak, self.in_use)
        return block

    def _left(self) -> str:
        free, total = self._driver.memory_info(self._device)
        return f"{free} of the GPU's {total} bytes are free"

    def _exhausted(self, nbytes: int, why: str) -> Exception:
        return errors.ResourceExhaustedError(
            f"cuda:{self._device} has no {nbytes} bytes left: {why}",
            got=f"{self.in_use} bytes in use here, {self.peak} at the most so far",
            hint="a smaller batch, or fewer steps at once; [session.options.cuda] memory_limit sets the limit",
        )

    def give(self, block: Block) -> None:
        """Give a block back in the order of its stream. Raises FailedPreconditionError when it was already."""
        with self._lock:
            found = next((d for d in weakref.getweakrefs(block) if isinstance(d, _Drop) and d in self._held), None)
            if found is None:
                raise errors.FailedPreconditionError("a block of device memory is freed twice")
            self._held.discard(found)
            block.address = 0
            self._free(found)

    def settle(self) -> None:
        """Give back what nobody holds any more. Never within a recording of this thread: its caller sees to that."""
        while self._retired:  # first: what a queue held of others' memory is free when its work is done
            try:
                stream = self._retired.popleft()
            except IndexError:  # another thread has taken it
                break
            self._end(stream)
        for _ in range(len(self._gone)):
            try:
                drop = self._gone.popleft()
            except IndexError:
                return
            with self._lock:
                if drop.stream in self._recorded:
                    self._gone.append(drop)
                elif drop in self._held:
                    self._held.discard(drop)
                    self._free(drop)

    def _end(self, stream: int) -> None:
        """Destroy a stream; blocks that outlive it are given back in no order, which its work, being done, allows."""
        try:
            self._driver.stream_synchronize(stream)
            with self._lock:
                for drop in self._held:
                    if drop.stream == stream:
                        drop.stream = self.stream
                self._freed.discard(stream)
                self._driver.stream_destroy(stream)
        except Exception as error:
            raised = explain(error, f"cuda:{self._device}", "end a queue")
            if not isinstance(raised, errors.DeviceLostError):
                raise raised from error

    def relieve(self) -> None:
        """Give all that is not in use back to the system, for libraries that take memory by themselves.

        The driver can give back only what the host knows to be free.
        """
        self.settle()
        with self._lock:  # none of them is recorded or destroyed meanwhile
            for stream in self._freed - self._recorded:
                self._driver.stream_synchronize(stream)
            self._freed &= self._recorded
        self._driver.trim(self._device)

    def _free(self, drop: _Drop) -> None:
        """Under the lock: no recording of the stream begins meanwhile."""
        self.in_use -= drop.nbytes
        self._freed.add(drop.stream)
        try:
            self._driver.free(drop.address, drop.stream)
        except Exception as error:
            raised = explain(error, f"cuda:{self._device}", "free memory")
            if not isinstance(raised, errors.DeviceLostError):  # the memory of a lost device went with it
                raise raised from error


class Pinned:
    """Pinned host memory, which GPUs read and write by themselves. Dear to make, so that it is kept. Safe from any thread."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._idle: dict[int, list[int]] = {}
        self._kept = 0
        self._lock = threading.Lock()
        self._gone: deque[_Drop] = deque()
        self._held: set[_Drop] = set()

    def take(self, nbytes: int) -> np.ndarray:
        """``nbytes`` of uint8, aligned to 256. Whoever drops the last reference knows that no work uses it.

        Raises ResourceExhaustedError.
        """
        self._settle()
        size = max(4096, 1 << (nbytes - 1).bit_length() if nbytes > 1 else 1)
        with self._lock:
            idle = self._idle.get(size)
            address = idle.pop() if idle else 0
            self._kept -= size if address else 0
        if not address:
            address = self._pin(size)
        holder = (ctypes.c_uint8 * size).from_address(address)
        drop = _Drop(holder, self._gone.append)
        drop.address, drop.nbytes, drop.stream = address, size, 0
        with self._lock:
            self._held.add(drop)
        made: np.ndarray = np.ctypeslib.as_array(holder)[:nbytes]
        return made

    def _pin(self, size: int) -> int:
        doing = f"pin {size} bytes of memory"
        try:
            return self._driver.host_alloc(size)
        except Exception as error:
            raised = explain(error, "the host", doing)
            if not isinstance(raised, errors.ResourceExhaustedError):
                raise raised from error
        self.close()
        try:
            return self._driver.host_alloc(size)
        except Exception as error:
            raise explain(error, "the host", doing) from error

    def _settle(self) -> None:
        while self._gone:
            try:
                drop = self._gone.popleft()
            except IndexError:  # another thread has taken it
                return
            with self._lock:
                self._held.discard(drop)
                keep = self._kept + drop.nbytes <= _KEPT_BYTES
                if keep:
                    self._idle.setdefault(drop.nbytes, []).append(drop.address)
                    self._kept += drop.nbytes
            if not keep:
                self._free(drop.address)

    def close(self) -> None:
        """Give back what is kept."""
        self._settle()
        with self._lock:
            idle, self._idle, self._kept = self._idle, {}, 0
        for addresses in idle.values():
            for address in addresses:
                self._free(address)

    def _free(self, address: int) -> None:
        try:
            self._driver.host_free(address)
        except Exception as error:
            raised = explain(error, "the host", "free pinned memory")
            if not isinstance(raised, errors.DeviceLostError):  # the system takes it back at the end
                raise raised from error


def array_over(block: Block, offset: int, dtype: DType, shape: Sequence[int]) -> Array:
    """An array over a block from byte ``offset``.

    Raises InvalidArgumentError for Python objects, and beyond the block's end; FailedPreconditionError for a freed block.
    """
    if not dtype.size:
        raise errors.InvalidArgumentError(f"a GPU can't hold {dtype.name}", hint="keep strings on the cpu")
    if not block.address:
        raise errors.FailedPreconditionError("a view of device memory that was freed")
    made = Array(block, block.address + offset, dtype, tuple(shape))
    if offset < 0 or offset + made.nbytes > block.nbytes:
        raise errors.InvalidArgumentError(
            "a view beyond the end of a block of device memory",
            expected=f"{block.nbytes} bytes",
            got=f"{offset + made.nbytes}",
        )
    return made
