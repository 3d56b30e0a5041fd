"""The first call of each kernel of an instance, which is held to its contract; later calls cost what they did.

Debug mode (:mod:`graphdock_executor.kernel_sanitizer`) checks every call, and more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.kernel import Bound, BuildContext
from graphdock.contracts.queue import Queue, QueuedDevice
from graphdock.contracts.runtime.return_check import ReturnCheck, argument_positions, kept_inputs
from graphdock.contracts.step import CancellationToken
from graphdock.errors import GraphdockError

__all__ = ["FirstCallCheck", "Marks", "Watched", "once_per_shape"]

#: Sets of feed shapes that an instance remembers as checked; beyond, they are forgotten and checked again.
_REMEMBERED = 1024
#: Each byte of a marked element: no number that programs have. Of numbers of one byte: no row of them that programs have.
_MARK = 0xA5
_ROW = np.frombuffer(b"\xa5\x13\xd9\x6e\x42\xf7\x08\xbb", np.uint8).reshape(-1, 1)
#: Signalling NaN of floats: what computes with one makes another of it, and no program has them.
_SIGNALS = {
    "float16": 0x7DFF.to_bytes(2, sys.byteorder),
    "bfloat16": 0x7FBF.to_bytes(2, sys.byteorder),
    **dict.fromkeys(("float32", "complex64"), 0x7FBFFFFF.to_bytes(4, sys.byteorder)),
    **dict.fromkeys(("float64", "complex128"), 0x7FF7FFFFFFFFFFFF.to_bytes(8, sys.byteorder)),
}
#: Elements of an output that tell whether a kernel wrote it.
_SAMPLES = 8


class Watched:
    """Facts of the first call of a kernel: those of kernels that were told the same are the same.

    Args:
      marks: its planned outputs may be written to before.
      bound: the kernel was told the buffers that stay, and may know them again: they are handed to it as they are.

    Attributes:
      check: of what is returned. ``device``: the kernel's.
      writes: of each output that is to be written, position among the arguments, name, and whether it is marked.
      marked: some output is.
      read_only: positions and names of the inputs that must stay as they are.
    """

    __slots__ = ("check", "device", "marked", "read_only", "writes")

    def __init__(self, kernel: Bound, ctx: BuildContext, marks: bool = True, bound: bool = False) -> None:
        self.check, self.device = ReturnCheck(ctx), ctx.device
        self.read_only: list[tuple[int, str]] = []
        self.writes: list[tuple[int, str, bool]] = []
        reads, writes = argument_positions(kernel, ctx)
        given = [o for o in ctx.outputs if o.mode.kind in ("planned", "inplace")]
        at_once = ctx.device.memory_space == HOST_MEMORY and not isinstance(ctx.queue, Queue)
        for at, i in writes:
            if i < len(given) and (given[i].memory_space == HOST_MEMORY or not at_once):
                marked = at_once and marks and given[i].used and given[i].mode.kind == "planned"
                self.writes.append((at, given[i].name, marked))
        self.marked = any([new for _, _, new in self.writes])
        if not at_once or bound:
            return
        # a view that a kernel returns, or an input that it keeps, is written by others later
        lent = {*kernel.retains} if all(o.mode.kind != "view" for o in ctx.outputs) else set(range(len(ctx.inputs)))
        kept = kept_inputs(ctx) - lent
        self.read_only = [(at, ctx.inputs[i].name) for at, i in reads if i in kept]

    def __bool__(self) -> bool:
        """Return whether there is anything to check."""
        return bool(self.check.outputs or self.writes or self.read_only)


class FirstCallCheck:
    """Stands for a kernel in an instance's namespace until it has been called, and checks that call.

    What the kernel returns for fresh outputs and views is held against their declaration. Of a kernel that computes on host memory
    inputs are read-only meanwhile, and some elements of its planned outputs hold before what no result contains, and something else
    afterwards. What any kernel returns where it is to write must be what it was given.

    Args:
      called: what puts kernels back after an interrupt (see ``interrupter``).
    """

    __slots__ = ("_called", "_checked", "_compute", "_name", "_namespace", "_token", "_watched", "check")

    def __init__(
        self,
        compute: Callable[..., Any],
        watched: Watched,
        name: str,
        namespace: dict[str, Any],
        called: dict[str, Any],
        token: CancellationToken,
    ) -> None:
        self._watched, self.check = watched, watched.check
        self._compute, self._name, self._checked = compute, name, False
        self._namespace, self._called, self._token = namespace, called, token

    def __call__(self, *args: Any) -> Any:
        if self._checked:  # by a step that is traced, whose own functions stand in the namespace
            return self._compute(*args)
        watched = self._watched
        handed: Sequence[Any] = args
        if watched.read_only:
            handed = views = [*args]
            for at, _ in watched.read_only:
                views[at] = _read_only(args[at])
        marked = [(name, Marks(args[at])) for at, name, new in watched.writes if new] if watched.marked else ()
        try:
            result = self._compute(*handed)
        except ValueError as error:
            if "read-only" not in str(error) or isinstance(error, GraphdockError):
                raise
            names = ", ".join([repr(name) for _, name in watched.read_only])
            raise self.check.error(
                f"writes to an input: {error}",
                f"{names} as {'it is' if len(watched.read_only) == 1 else 'they are'}: others read them too",
                hint="write to the output, or take a copy; a kernel may take an input over only as its `inplace` says",
            ) from error
        if watched.writes and result is not args[watched.writes[0][0]]:
            self._see_that_given(result, args)
        for name, marks in marked:
            if marks.left():
                raise self.check.error(
                    f"left elements of its output {name!r} as they were",
                    "every element written at every call: the memory held something else before",
                )
        if self.check.outputs:
            self.check(result)
        self._checked = True
        self._replace(self, self._compute)
        return result

    def _see_that_given(self, result: Any, args: Sequence[Any]) -> None:
        """Raise where the kernel returned an array, or a buffer of the device, that is none of those it was to write."""
        if result is None or self.check.outputs:
            return
        given = [args[at] for at, _, _ in self._watched.writes]
        for made in result if isinstance(result, (tuple, list)) else (result,):
            if _is_buffer(made, given) and not any(_is_of(self._watched.device, made, each) for each in given):
                names = ", ".join([repr(name) for _, name, _ in self._watched.writes])
                raise self.check.error(
                    "returned an array and is to write one",
                    f"its result in the buffer for {names}, which follows the inputs among its arguments",
                    f"{made.dtype}{list(made.shape)}" if isinstance(made, np.ndarray) else f"a {type(made).__name__}",
                    "write to that buffer (`np.add(x, y, out)`, `out[...] = x`), or register the kernel with compute=True or "
                    'modes=("fresh",), which may return arrays',
                )

    def renew(self) -> None:
        """Check the next call, too."""
        self._checked = False
        self._replace(self._compute, self)

    def _replace(self, old: Callable[..., Any], new: Callable[..., Any]) -> None:
        self._called[self._name] = new
        if self._namespace.get(self._name) is old:  # else a stop has put its own there, or a traced step
            self._namespace[self._name] = new
            # a stop in between was overwritten just now: it sets the error first
            if self._token.error is not None:
                raise self._token.error


def _read_only(buffer: Any) -> Any:
    if not isinstance(buffer, np.ndarray) or not buffer.flags.writeable:
        return buffer
    view = buffer.view()
    view.flags.writeable = False
    return view


class Marks:
    """Elements of an output that hold what no result contains, until they are written.

    Of floats and integers of one or two bytes, which may be that by chance, all elements together tell; of one byte four at least.

    Args:
      poison: floats are marked by NaN, so that what is computed of a marked element is NaN.
    """

    __slots__ = ("_bytes", "_marks", "_together")

    def __init__(self, buffer: Any, poison: bool = False) -> None:
        self._bytes: np.ndarray | None = None
        if isinstance(buffer, np.ndarray) and buffer.flags.c_contiguous and not buffer.dtype.hasobject and buffer.size:
            size = buffer.dtype.itemsize
            step = -(-buffer.size // _SAMPLES)
            signal = _SIGNALS.get(buffer.dtype.name) if poison else None
            self._together = size <= 2 and buffer.dtype.kind != "b" and signal is None
            if not self._together or buffer.size > (1 if size == 2 else 3):
                self._bytes = buffer.reshape(-1).view(np.uint8).reshape(-1, size)[::-step]
                self._marks: Any = _ROW[: len(self._bytes)] if size == 1 and self._together else _MARK
                if signal is not None:
                    self._marks = np.frombuffer(signal * (size // len(signal)), np.uint8)
                self._bytes[:] = self._marks

    def left(self) -> bool:
        """Return whether the kernel has not written them."""
        if self._bytes is None:
            return False
        same = (self._bytes == self._marks).all(-1)
        return bool(same.all() if self._together else same.any())


def _is_buffer(made: Any, given: Sequence[Any]) -> bool:
    """Return whether it is an array (NumPy returns a scalar for one of rank 0 that it wrote), or what a device has for one."""
    return isinstance(made, np.ndarray) or type(made) in {
        type(each) for each in given if not isinstance(each, np.ndarray)
    }


def _is_of(device: Device, made: Any, given: Any) -> bool:
    """Return whether what a kernel returned is memory that it was given, or holds the same where a device does not say."""
    if made is given or type(made) is not type(given) and not isinstance(made, np.ndarray):
        return made is given
    if isinstance(made, np.ndarray) and isinstance(given, np.ndarray):
        return np.may_share_memory(made, given)
    if isinstance(device, QueuedDevice):
        (start, size), (other, extent) = (device.extent(each) or (0, 1) for each in (made, given))
        return start < other + extent and other < start + size
    if device.dtype_of(made) != device.dtype_of(given) or device.shape_of(made) != device.shape_of(given):
        return False
    held = [np.empty(device.shape_of(given), device.dtype_of(given)) for _ in range(2)]
    for buffer, array in zip((made, given), held, strict=True):
        device.to_host(buffer, array)
    return held[0].tobytes() == held[1].tobytes()


def once_per_shape(call: Callable[..., Any], kernels: Sequence[FirstCallCheck]) -> Callable[..., Any]:
    """``call`` of a step whose feeds have many shapes: the first step of each set of shapes checks what kernels return."""
    seen: set[tuple[tuple[int, ...], ...]] = set()

    def by_shape(*feeds: Any) -> Any:
        shapes = tuple([f.shape for f in feeds])
        if shapes in seen:
            return call(*feeds)
        for kernel in kernels:
            kernel.renew()
        results = call(*feeds)
        if len(seen) >= _REMEMBERED:
            seen.clear()
        seen.add(shapes)
        return results

    return by_shape
