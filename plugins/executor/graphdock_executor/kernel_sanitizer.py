"""Debug mode: holds a kernel to its contract at every call, whatever memory its buffers lie in.

It leaves its inputs as they are, bit by bit. It writes its outputs, all of them, and scratch buffers and nothing beside them, and
takes nothing for granted that was there before. It returns what it promised, in memory of its own.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.kernel import ArgInfo, Bound, BuildContext, OutInfo, Scratch
from graphdock.contracts.queue import Queue
from graphdock.contracts.row_history import RaggedHistory, RowHistory, TensorHistory
from graphdock.contracts.runtime.return_check import ReturnCheck, argument_positions, kept_inputs
from graphdock.errors import InternalError
from graphdock.shape import concrete

from graphdock_executor.canaries import POISON, Canaries
from graphdock_executor.first_call import Marks

__all__ = ["sanitize", "unchecked"]

_thread = threading.local()
#: Histories that lie in arrays.
_IN_ARRAYS = (RowHistory, RaggedHistory, TensorHistory)


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """No checks on this thread meanwhile: nothing can be read while a device records."""
    _thread.paused = True
    try:
        yield
    finally:
        _thread.paused = False


def sanitize(bound: Bound, ctx: BuildContext, canaries: Canaries) -> Callable[..., Any]:
    """``bound.compute``, checked before and after each call.

    The checked function raises InternalError when the kernel changes an input that is not its to write, writes beside what it is
    given, leaves an output that something reads as it was, returns another number of buffers than it has outputs to return, one of
    another dtype or shape, or one that is not new.
    It reads and poisons buffers, so it waits for an asynchronous device.
    """
    return _Sanitizer(bound, ctx, canaries).call


class _Sanitizer:
    def __init__(self, bound: Bound, ctx: BuildContext, canaries: Canaries) -> None:
        self._compute = bound.compute
        self._device = ctx.device
        self._canaries = canaries
        self._settle = ctx.queue.synchronize if isinstance(ctx.queue, Queue) else _nothing
        self._returned = ReturnCheck(ctx)
        self._last: list[Any] = []
        inputs, outputs = argument_positions(bound, ctx)
        kept = kept_inputs(ctx)
        self._contiguous = [(position, ctx.inputs[i]) for position, i in inputs if ctx.inputs[i].contiguous]
        self._watched = [(position, ctx.inputs[i]) for position, i in inputs if i in kept]
        self._read = [position for position, _ in inputs]
        given = [o for o in ctx.outputs if o.mode.kind in ("planned", "inplace")]
        targets: list[OutInfo | Scratch] = [*given, *bound.scratch]
        self._written = [(position, targets[i]) for position, i in outputs if _is_new(targets[i])]

    def call(self, *args: Any) -> Any:
        if getattr(_thread, "paused", False):
            return self._compute(*args)
        self._settle()
        for position, info in self._contiguous:
            if isinstance(args[position], np.ndarray) and not args[position].flags.c_contiguous:
                raise InternalError(
                    f"kernel {self._returned.kernel} was told that its input {info.name!r} is contiguous",
                    got=f"strides {args[position].strides}",
                    hint="the executor broke its contract: please report this",
                )
        before = [_digest(args[position], info, self._device) for position, info in self._watched]
        margins = [(*self._poison(args[position], target), target) for position, target in self._written]
        result = self._compute(*args)
        self._settle()
        for (position, info), digest in zip(self._watched, before, strict=True):
            if _digest(args[position], info, self._device) != digest:
                raise self._returned.error(
                    f"changed its input {info.name!r}",
                    "inputs as they were: others read them too",
                    hint="write to the output; a kernel may take an input over only as its `inplace` says",
                )
        for renew, marks, target in margins:
            where = renew()
            if where is not None:
                name = "a scratch buffer" if isinstance(target, Scratch) else f"its output {target.name!r}"
                raise self._returned.error(f"wrote beside {name}", "writes within what it is given", got=where)
            if marks is not None and marks.left():
                raise self._unwritten(target, result)
        self._see_that_new(self._returned(result), args)
        return result

    def _unwritten(self, target: OutInfo | Scratch, result: Any) -> InternalError:
        returned = result is not None and not self._returned.outputs
        return self._returned.error(
            f"left elements of its output {getattr(target, 'name', '')!r} as they were",
            "every element written at every call: the memory held something else before",
            got=f"it returned a {type(result).__name__}" if returned else None,
            hint="write to that buffer, which follows the inputs among its arguments" if returned else None,
        )

    def _poison(self, buffer: Any, target: OutInfo | Scratch) -> tuple[Callable[[], str | None], Marks | None]:
        """Fill what is to be written with what no correct result contains.

        Returns a function that says where else was written, and what tells, once that was called, whether it was written, of an
        output that something reads.
        """
        if target.dtype.size == 0:
            return _nothing, None
        marks: list[Marks] = []

        def mark(content: np.ndarray[Any, Any]) -> None:
            if isinstance(target, OutInfo) and target.used:
                marks.append(Marks(content.view(target.dtype.np), poison=True))

        canary = self._canaries.of(buffer)
        if canary is not None:
            canary.set(mark)
            return canary.broken, next(iter(marks), None)
        shape = concrete(target.shape)
        assert shape is not None
        content = np.empty(shape, target.dtype.np)
        content.reshape(-1).view(np.uint8).fill(POISON)
        mark(content)
        on_host = isinstance(target, OutInfo) and target.memory_space == HOST_MEMORY
        if on_host or self._device.memory_space == HOST_MEMORY:
            np.copyto(buffer, content)
            return lambda: np.copyto(content, buffer), next(iter(marks), None)
        self._device.from_host(content, buffer)
        return (lambda: self._device.to_host(buffer, content)), next(iter(marks), None)

    def _see_that_new(self, made: Sequence[Any], args: Sequence[Any]) -> None:
        """Raise unless what was returned for fresh outputs is memory of its own."""
        fresh = [(b, o) for b, o in zip(made, self._returned.outputs, strict=True) if o.mode.kind == "fresh"]
        for buffer, out in fresh:
            if any(_share(buffer, args[position], self._device) for position in self._read):
                raise self._returned.error(
                    f"returned memory of an input for its output {out.name!r}",
                    "a buffer of its own",
                    hint="a kernel may return a view of an input only where its `views` says so and `mode` is view",
                )
            if any(buffer is last() for last in self._last):
                raise self._returned.error(
                    f"returned the same buffer again for its output {out.name!r}",
                    "a new one at each call: whoever got the last one may still have it",
                )
        self._last = [weakref.ref(b) for b, _ in fresh if isinstance(b, np.ndarray)]


def _is_new(target: OutInfo | Scratch) -> bool:
    """Return whether it has no content yet that the kernel may read."""
    return isinstance(target, Scratch) or target.mode.kind == "planned"


def _nothing() -> None:
    """A device without queues is read in the order of its work."""


def _share(a: Any, b: Any, device: Device) -> bool:
    """Return whether two buffers overlap, or elements of histories, as far as the device can tell."""
    if isinstance(a, _IN_ARRAYS) or isinstance(b, _IN_ARRAYS):
        mine, theirs = (x.arrays if isinstance(x, _IN_ARRAYS) else x for x in (a, b))
        return _share(mine, theirs, device)
    if isinstance(a, list) or isinstance(b, list):
        mine, theirs = (x if isinstance(x, list) else [x] for x in (a, b))
        return any(_share(x, y, device) for x in mine for y in theirs)
    if a is b:
        return not isinstance(a, np.generic)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(a.size and b.size) and np.may_share_memory(a, b)
    extent = getattr(device, "extent", None)
    if extent is None or isinstance(a, (np.ndarray, np.generic)) or isinstance(b, (np.ndarray, np.generic)):
        return False
    first, second = extent(a), extent(b)
    if first is None or second is None:
        return False
    return bool(first[0] < second[0] + second[1] and second[0] < first[0] + first[1])


def _digest(buffer: Any, info: ArgInfo, device: Device) -> Any:
    """Digest that tells two contents of a buffer apart; None for what the host can't read."""
    if info.memory_space != HOST_MEMORY:
        if info.memory_space != device.memory_space or info.dtype.size == 0:
            return None
        buffer = _on_host(buffer, info, device)
    if isinstance(buffer, RowHistory):
        buffer = buffer.rows
    if not isinstance(buffer, np.ndarray):
        return None
    if buffer.dtype.hasobject:
        return buffer.shape, buffer.ravel().tolist() if info.dtype.kind == "S" else None
    from hashlib import blake2b  # loads OpenSSL, in debug mode alone

    return buffer.shape, blake2b(np.ascontiguousarray(buffer).tobytes()).digest()


def _on_host(buffer: Any, info: ArgInfo, device: Device) -> np.ndarray[Any, Any]:
    known = None if info.variable else concrete(info.shape)
    shape = tuple(device.shape_of(buffer) if known is None else known)
    if not info.contiguous:
        contiguous = device.empty(info.dtype, shape)
        device.copy(buffer, contiguous)
        buffer = contiguous
    host = np.empty(shape, info.dtype.np)
    device.to_host(buffer, host)
    return host
