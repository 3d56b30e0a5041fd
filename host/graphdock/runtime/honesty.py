"""Debug mode: holds a kernel to its contract at every call. It leaves its inputs as they are, and returns what it promised."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.kernel import ArgInfo, Bound, BuildContext, In, OutInfo
from graphdock.contracts.queue import Queue
from graphdock.errors import InternalError
from graphdock.shape import compatible, concrete, show

__all__ = ["honest", "unchecked"]

_thread = threading.local()


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """No checks on this thread meanwhile: nothing can be read while a device records."""
    _thread.paused = True
    try:
        yield
    finally:
        _thread.paused = False


def honest(bound: Bound, ctx: BuildContext) -> Callable[..., Any]:
    """``bound.compute``, checked before and after each call.

    The checked function raises InternalError when the kernel changes an input that is not its to write, returns another number of
    buffers than it has outputs to return, or returns one of another dtype or shape. It reads the inputs, so it waits for an
    asynchronous device.
    """
    compute, device = bound.compute, ctx.device
    count = len(ctx.inputs)
    positions = range(count) if bound.args is None else [a.index if isinstance(a, In) else -1 for a in bound.args]
    taken = {o.mode.input for o in ctx.outputs if o.mode.kind == "inplace"}
    watched = [
        (position, ctx.inputs[index])
        for position, index in enumerate(positions)
        if 0 <= index < count and index not in taken and not ctx.inputs[index].variable
    ]
    returned = [o for o in ctx.outputs if o.mode.kind in ("fresh", "view")]
    settle = ctx.queue.synchronize if isinstance(ctx.queue, Queue) else _nothing
    kernel = ctx.node.decision.kernel if ctx.node.decision is not None else ctx.node.op

    def call(*args: Any) -> Any:
        if getattr(_thread, "paused", False):
            return compute(*args)
        settle()
        before = [_digest(args[position], info, device) for position, info in watched]
        result = compute(*args)
        settle()
        for (position, info), digest in zip(watched, before, strict=True):
            if _digest(args[position], info, device) != digest:
                raise InternalError(
                    f"kernel {kernel} of {ctx.node.op} changed its input {info.name!r}",
                    expected="inputs as they were: others read them too",
                    hint="write to the output; a kernel may take an input over only as its `inplace` says",
                )
        _check(result, returned, device, kernel, ctx.node.op)
        return result

    return call


def _nothing() -> None:
    """A device without queues is read in the order of its work."""


def _digest(buffer: Any, info: ArgInfo, device: Device) -> bytes | None:
    """What tells two contents of a buffer apart; None for what has no bytes."""
    if info.dtype.size == 0:
        return None
    if info.memory_space != HOST_MEMORY:
        if info.memory_space != device.memory_space or not info.contiguous:
            return None
        host = np.empty(_shape(buffer, info, device), info.dtype.np)
        device.to_host(buffer, host)
        buffer = host
    if not isinstance(buffer, np.ndarray) or buffer.dtype.hasobject:
        return None
    return hashlib.blake2b(np.ascontiguousarray(buffer).tobytes()).digest()


def _check(result: Any, returned: Sequence[OutInfo], device: Device, kernel: str, op: str) -> None:
    if not returned:
        return
    made = [result] if len(returned) == 1 and not isinstance(result, (tuple, list)) else result
    if not isinstance(made, (tuple, list)) or len(made) != len(returned):
        got = "None" if result is None else f"{len(made)}" if isinstance(made, (tuple, list)) else type(made).__name__
        raise InternalError(
            f"kernel {kernel} of {op} returned the wrong number of buffers",
            expected=f"{len(returned)} ({', '.join([o.name for o in returned])})",
            got=got,
        )
    for buffer, out in zip(made, returned, strict=True):
        if buffer is None:
            raise InternalError(f"kernel {kernel} of {op} returned None for its output {out.name!r}")
        if out.memory_space != HOST_MEMORY:
            if out.mode.kind == "view":
                continue  # what a view points to says nothing of its shape
            shape = device.shape_of(buffer)
        elif not isinstance(buffer, (np.ndarray, np.generic)):
            raise InternalError(
                f"kernel {kernel} of {op} returned no array for its output {out.name!r}", got=type(buffer).__name__
            )
        else:
            shape = buffer.shape
            if buffer.dtype != out.dtype.np:
                raise InternalError(
                    f"kernel {kernel} of {op} returned the wrong dtype for its output {out.name!r}",
                    expected=out.dtype.name,
                    got=str(buffer.dtype),
                )
        if not compatible(out.shape, tuple(shape)):
            raise InternalError(
                f"kernel {kernel} of {op} returned the wrong shape for its output {out.name!r}",
                expected=show(out.shape),
                got=show(tuple(shape)),
            )


def _shape(buffer: Any, info: ArgInfo, device: Device) -> tuple[int, ...]:
    known = concrete(info.shape)
    return device.shape_of(buffer) if known is None else tuple(known)
