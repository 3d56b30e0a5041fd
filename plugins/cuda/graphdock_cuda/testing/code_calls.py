"""The fake driver's calls about code: modules, functions, launches."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from graphdock_testing.driver.detector import Range

from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.image import ORDERS, Image, Kernel
from graphdock_cuda.testing.python_image import PythonImage, open_image
from graphdock_cuda.testing.state import Device, State, Stream, Touched, Use, bytes_of

__all__ = ["CodeCalls", "Function", "Module"]

Dims = tuple[int, int, int]
_PLAIN_SHARED = 48 << 10
_MOST_THREADS = 1024
_GRID = (2**31 - 1, 65535, 65535)
_BLOCK = (1024, 1024, 64)


@dataclass(eq=False, slots=True)
class Module:
    """Code on a device. ``functions``: handles that were given out."""

    device: Device
    image: Image | PythonImage
    functions: dict[str, int]


@dataclass(eq=False, slots=True)
class Function:
    """A kernel of a module. ``shared``: bytes of dynamic shared memory that a launch may ask for."""

    module: int
    device: Device
    kernel: Kernel
    shared: int


class CodeCalls(State):
    """See Driver. Parameters are read when a kernel is launched; it runs later."""

    def load(self, image: bytes) -> int:
        with self.call("load", unsafe=True, context=True):
            try:
                opened = open_image(image)
            except ValueError as error:
                raise CudaError("load", 200, str(error)) from None
            if isinstance(opened, Image) and opened.ptx > self.newest:
                raise CudaError("load", 222, f"PTX of CUDA {opened.ptx}, and the driver is of {self.newest}")
            return self.new_handle("module", Module(self.device, opened, {}))

    def unload(self, module: int) -> None:
        with self.lock:
            found: Module = self.thing("module", module, "unload")
            with self.call("unload", device=found.device, unsafe=True, releases=True, context=True):
                for stream in self.streams_of(found.device):
                    if stream.capture is None:
                        self.scheduler.drain(stream.line)
                self.drop_handle("module", module, "unload")
                for function in found.functions.values():
                    self.drop_handle("function", function, "unload")
                found.image.close()

    def function(self, module: int, name: str) -> int:
        with self.lock:
            found: Module = self.thing("module", module, "function")
            with self.call("function", name, device=found.device, context=True):
                kernel = found.image.kernels.get(name)
                if kernel is None:
                    raise CudaError(
                        "function", 500, f"no kernel {name!r}; there are {', '.join(sorted(found.image.kernels))}"
                    )
                if name not in found.functions:
                    plain = _PLAIN_SHARED - found.image.fixed_shared
                    found.functions[name] = self.new_handle("function", Function(module, found.device, kernel, plain))
                return found.functions[name]

    def allow_shared(self, function: int, nbytes: int) -> None:
        with self.lock:
            found: Function = self.thing("function", function, "allow_shared")
            with self.call("allow_shared", f"{found.kernel.name} {nbytes}", device=found.device, context=True):
                if nbytes + found.kernel.image.fixed_shared > found.device.properties.shared_memory:
                    raise CudaError("allow_shared", 1, f"{nbytes} bytes of shared memory for {found.kernel.name}")
                found.shared = nbytes  # what was allowed before holds no more

    def launch(
        self, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int, stream: int, params: int
    ) -> None:
        with self.lock:
            found: Function = self.thing("function", function, "launch")
            on = self.stream_of(stream, "launch")
            grid, block = (gx, gy, gz), (bx, by, bz)
            name = found.kernel.name
            what = f"{name} grid={_dims(grid)} block={_dims(block)}" + (f" shared={shared}" if shared else "")
            with self.call("launch", what, device=on.device, context=True) as late:
                self._check_launch(found, on, grid, block, shared)
                arguments = Arguments(found.kernel.sizes, params, name)
                order = self.scheduler.random.randrange(ORDERS)
                pointed = self._pointed_at(name, arguments, on.device)
                self.queue(
                    on,
                    name,
                    lambda: self._run(found.kernel, grid, block, shared, arguments.address, order, pointed),
                    uses=[Use(module=found.module), *pointed],
                    counted=("kernel", name, 0),
                    late=late,
                )

    def _run(
        self, kernel: Kernel, grid: Dims, block: Dims, shared: int, params: int, order: int, pointed: Sequence[Use]
    ) -> Touched | None:
        """Run a grid. Of a traced image: the bytes that it has touched of the blocks that its parameters point at."""
        image = kernel.image
        if not self.traced or not isinstance(image, Image):
            image.run(kernel, grid, block, shared, params, order)
            return None
        blocks = [use.block for use in pointed if use.block is not None]
        watched = [(b.address, bytearray(b.nbytes)) for b in blocks]
        image.run(kernel, grid, block, shared, params, order, watched)
        found: list[list[Range]] = [[], []]
        for b, (_, held) in zip(blocks, watched, strict=True):
            marks = np.frombuffer(held, np.uint8)
            for kind, ranges in enumerate(found, 1):
                edges = np.flatnonzero(np.diff((marks & kind != 0).astype(np.int8), prepend=0, append=0))
                ranges += [bytes_of(b, b.address + int(at), int(to - at)) for at, to in edges.reshape(-1, 2)]
        return found[0], found[1]

    def _check_launch(
        self, function: Function, stream: Stream, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int
    ) -> None:
        name = function.kernel.name
        if stream.device is not self.device or function.device is not self.device:
            raise self.misuse(
                "launch", 400, f"{name} of {function.device.name} on {stream.name}, while {self.device.name} is current"
            )
        if any(not 1 <= n <= most for n, most in zip(grid, _GRID, strict=True)):
            raise self.misuse("launch", 1, f"{name}: a grid of {grid}")
        threads = block[0] * block[1] * block[2]
        if any(not 1 <= n <= most for n, most in zip(block, _BLOCK, strict=True)) or threads > _MOST_THREADS:
            raise self.misuse("launch", 1, f"{name}: a block of {block}")
        if threads > function.kernel.bound:
            raise self.misuse("launch", 701, f"{name}: {threads} threads, its bound is {function.kernel.bound}")
        if not 0 <= shared <= function.shared:
            raise self.misuse("launch", 1, f"{name}: {shared} bytes of shared memory, {function.shared} are allowed")

    def _pointed_at(self, name: str, arguments: Arguments, device: Device) -> list[Use]:
        """Blocks that arguments point at, and those within structs. Raises Misuse for memory that is not the device's to use."""
        found = []
        for address in arguments.words():
            block = self.block_at(address, f"launch of {name}")
            if block is None:
                continue
            owner = self.device_of(block)
            if owner not in (None, device) and owner.index not in device.peers:
                raise self.misuse(f"launch of {name}", 700, f"{device.name} has no access to {block}")
            found.append(Use(block))
        return list(dict.fromkeys(found))


class Arguments:
    """A copy of a launch's parameters. ``address``: of an array of their addresses.

    Args:
      sizes: in bytes. ``params``: address of an array of addresses, as the launch has it.

    Raises CudaError when an address is null.
    """

    def __init__(self, sizes: tuple[int, ...], params: int, name: str) -> None:
        count = len(sizes)
        sources = (ctypes.c_void_p * count).from_address(params) if count else ()
        offsets, total = [], 0
        for size in sizes:
            offsets.append(total)
            total += -(-size // 16) * 16
        self._sizes = sizes
        self._offsets = offsets
        self._bytes = ctypes.create_string_buffer(total + 16)
        base = -(-ctypes.addressof(self._bytes) // 16) * 16
        for number, (source, size, offset) in enumerate(zip(sources, sizes, offsets, strict=True)):
            if source is None:
                raise CudaError("launch", 1, f"{name}: parameter {number} has no address")
            ctypes.memmove(base + offset, source, size)
        self._base = base
        self._array = (ctypes.c_void_p * max(count, 1))(*[base + offset for offset in offsets])
        self.address = ctypes.addressof(self._array)

    def words(self) -> list[int]:
        """Every eight bytes that may be an address."""
        found: list[int] = []
        for size, offset in zip(self._sizes, self._offsets, strict=True):
            if size >= 8:
                found += struct.unpack(f"<{size // 8}Q", ctypes.string_at(self._base + offset, size // 8 * 8))
        return found


def _dims(dims: tuple[int, int, int]) -> str:
    """``4`` for (4, 1, 1), ``4x2`` for (4, 2, 1)."""
    shown = list(dims)
    while len(shown) > 1 and shown[-1] == 1:
        shown.pop()
    return "x".join(map(str, shown))
