"""A stand-in for CuPy's bindings over the fake driver: functions, argument lists and what they return are CuPy 14's.

driver = FakeBehindCupy(FakeDriver(...))   # a CupyDriver; what is not of Driver is the fake's own

``RUNTIME`` and ``DRIVER`` are the signatures as CuPy's docstrings give them. A test holds them against an installed CuPy, and what
raises a status and what hands it out. Another number or kind of arguments is a TypeError here as it is there, but for a float in an
integer's place, which CuPy cuts off.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Any

from graphdock_cuda.driver.cupy_driver import CupyDriver
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.driver import FakeDriver

__all__ = ["DRIVER", "RUNTIME", "CUDADriverError", "CUDARuntimeError", "CupyBindings", "FakeBehindCupy"]

RUNTIME = """
deviceCanAccessPeer(int device, int peerDevice) -> int
deviceEnablePeerAccess(int peerDevice)
deviceGetAttribute(int attrib, int device) -> int
deviceGetDefaultMemPool(int device) -> intptr_t
deviceGetPCIBusId(int device) -> str
deviceSynchronize()
driverGetVersion() -> int
eventCreateWithFlags(unsigned int flags) -> intptr_t
eventDestroy(intptr_t event)
eventElapsedTime(intptr_t start, intptr_t end) -> float
eventQuery(intptr_t event)
eventRecord(intptr_t event, intptr_t stream)
eventSynchronize(intptr_t event)
freeAsync(intptr_t ptr, intptr_t stream)
freeHost(intptr_t ptr)
getDevice() -> int
getDeviceCount() -> int
getDeviceProperties(int device)
graphDestroy(intptr_t graph)
graphExecDestroy(intptr_t graphExec)
graphInstantiate(intptr_t graph) -> intptr_t
graphLaunch(intptr_t graphExec, intptr_t stream)
graphUpload(intptr_t graphExec, intptr_t stream)
hostAlloc(size_t size, unsigned int flags) -> intptr_t
mallocAsync(size_t size, intptr_t stream) -> intptr_t
memGetInfo()
memPoolSetAttribute(intptr_t pool, int attr, value)
memPoolTrimTo(intptr_t pool, size_t size)
memcpyAsync(intptr_t dst, intptr_t src, size_t size, int kind, intptr_t stream)
memcpyPeerAsync(intptr_t dst, int dstDevice, intptr_t src, int srcDevice, size_t size, intptr_t stream)
memsetAsync(intptr_t ptr, int value, size_t size, intptr_t stream)
runtimeGetVersion() -> int
setDevice(int device)
streamBeginCapture(intptr_t stream, int mode=streamCaptureModeRelaxed)
streamCreateWithFlags(unsigned int flags) -> intptr_t
streamDestroy(intptr_t stream)
streamEndCapture(intptr_t stream) -> intptr_t
streamSynchronize(intptr_t stream)
streamWaitEvent(intptr_t stream, intptr_t event, unsigned int flags=0)
"""
DRIVER = """
funcSetAttribute(intptr_t f, int attribute, int value)
launchKernel(intptr_t f, unsigned int grid_dim_x, unsigned int grid_dim_y, unsigned int grid_dim_z, unsigned int block_dim_x, \
unsigned int block_dim_y, unsigned int block_dim_z, unsigned int shared_mem_bytes, intptr_t stream, intptr_t kernel_params, \
intptr_t extra)
moduleGetFunction(intptr_t module, str funcname) -> intptr_t
moduleLoadData(bytes image) -> intptr_t
moduleUnload(intptr_t module)
"""
_SIGNATURE = re.compile(r"(\w+)\((.*?)\)")
#: Bounds of C's integers.
_RANGES = {
    "int": (-(2**31), 2**31),
    "unsigned int": (0, 2**32),
    "size_t": (0, 2**64),
    "intptr_t": (-(2**63), 2**63),
}
_POOL = 0x9000
_ATTRIBUTES = {
    "ClockRate": 13,
    "GlobalMemoryBusWidth": 37,
    "L2CacheSize": 38,
    "MaxSharedMemoryPerBlockOptin": 97,
    "MemoryClockRate": 36,
    "MultiProcessorCount": 16,
    "WarpSize": 10,
}


class CUDARuntimeError(RuntimeError):
    """CuPy's: made of a status alone; it names no call."""

    def __init__(self, status: int, text: str = "") -> None:
        self.status = status
        super().__init__(f"cudaError {status}: {text}")


class CUDADriverError(RuntimeError):
    """CuPy's: as above, of another class."""

    def __init__(self, status: int, text: str = "") -> None:
        self.status = status
        super().__init__(f"CUDA_ERROR {status}: {text}")


class CupyBindings:
    """The modules ``runtime`` and ``driver`` of ``cupy_backends.cuda.api``, working on a fake driver.

    Attributes:
      pools: what each device's pool was told, by device; ``opened``: devices whose pool or memory was asked for.
    """

    def __init__(self, fake: FakeDriver) -> None:
        self.fake = fake
        self.pools: dict[int, dict[int, int]] = {}
        self.opened: set[int] = set()
        self._peers: set[tuple[int, int]] = set()
        self.runtime = self._module(RUNTIME, CUDARuntimeError)
        self.driver = self._module(DRIVER, CUDADriverError)
        self.runtime.CUDARuntimeError, self.driver.CUDADriverError = CUDARuntimeError, CUDADriverError
        for name, number in _ATTRIBUTES.items():
            setattr(self.runtime, f"cudaDevAttr{name}", number)

    def _module(self, signatures: str, raised: Callable[[int, str], Exception]) -> Any:
        made = types.SimpleNamespace()
        for name, parameters in _SIGNATURE.findall(signatures):
            setattr(made, name, _bound(name, parameters, getattr(self, f"_{name}", None) or self._plain(name), raised))
        return made

    def _plain(self, name: str) -> Callable[..., Any]:
        """The fake driver's own function of the same meaning and arguments."""
        found: Callable[..., Any] = getattr(self.fake, _SAME[name])
        return found

    # -- calls with arguments or results of their own

    def _deviceGetAttribute(self, attribute: int, device: int) -> int:
        found = self.fake.properties(device)
        values = {
            "ClockRate": found.clock,
            "GlobalMemoryBusWidth": found.bus_width,
            "L2CacheSize": found.l2_cache,
            "MaxSharedMemoryPerBlockOptin": found.shared_memory,
            "MemoryClockRate": found.memory_clock,
            "MultiProcessorCount": found.multiprocessors,
            "WarpSize": found.warp_size,
        }
        return next(values[name] for name, number in _ATTRIBUTES.items() if number == attribute)

    def _deviceGetDefaultMemPool(self, device: int) -> int:
        self.fake.properties(device)
        self.opened.add(device)
        return _POOL + device

    def _deviceGetPCIBusId(self, device: int) -> str:
        return self.fake.properties(device).pci

    def _deviceEnablePeerAccess(self, peer: int) -> None:
        pair = (self.fake.get_device(), peer)
        if pair in self._peers:
            raise CudaError("enable_peer", 704)
        self.fake.enable_peer(peer)
        self._peers.add(pair)

    def _getDeviceProperties(self, device: int) -> dict[str, Any]:
        found = self.fake.properties(device)
        major, minor = found.capability
        return {"name": found.name.encode(), "major": major, "minor": minor, "totalGlobalMem": found.memory}

    def _memGetInfo(self) -> tuple[int, int]:
        self.opened.add(self.fake.get_device())
        return self.fake.memory_info(self.fake.get_device())

    def _memPoolSetAttribute(self, pool: int, attribute: int, value: int) -> None:
        if attribute <= 3:
            _check("memPoolSetAttribute", "int", value)
        self.pools.setdefault(pool - _POOL, {})[attribute] = value

    def _memPoolTrimTo(self, pool: int, size: int) -> None:
        if size:
            raise self.fake.misuse("memPoolTrimTo", 1, f"{size} bytes are kept from whoever needs them")
        self.fake.trim(pool - _POOL)

    def _hostAlloc(self, size: int, flags: int) -> int:
        if flags != 3:
            raise self.fake.misuse("hostAlloc", 1, f"flags {flags}: other GPUs, or none, see the memory")
        return self.fake.host_alloc(size)

    def _memcpyAsync(self, dst: int, src: int, size: int, kind: int, stream: int) -> None:
        if kind != 4:
            raise self.fake.misuse("memcpyAsync", 21, f"kind {kind} is not told by the addresses")
        self.fake.copy(dst, src, size, stream)

    def _streamCreateWithFlags(self, flags: int) -> int:
        if flags != 1:
            raise self.fake.misuse("streamCreateWithFlags", 1, "the default stream synchronises such a stream")
        return self.fake.stream()

    def _streamBeginCapture(self, stream: int, mode: int = 2) -> None:
        if mode != 1:
            raise self.fake.misuse("streamBeginCapture", 1, f"mode {mode} is not that of one thread")
        self.fake.capture_begin(stream)

    def _streamWaitEvent(self, stream: int, event: int, flags: int = 0) -> None:
        self.fake.stream_wait(stream, event)

    def _eventCreateWithFlags(self, flags: int) -> int:
        return self.fake.event(timing=not flags & 2)

    def _eventQuery(self, event: int) -> int:
        """Hands the status out, and raises nothing."""
        try:
            return 0 if self.fake.event_query(event) else 600
        except CudaError as error:
            return error.status

    def _eventElapsedTime(self, start: int, end: int) -> float:
        return self.fake.event_elapsed(start, end) * 1e3

    def _graphInstantiate(self, graph: int) -> int:
        return self.fake.make_executable(graph)

    def _graphUpload(self, executable: int, stream: int) -> None:
        self.fake.upload(executable, stream)

    def _launchKernel(self, function: int, *rest: int) -> None:
        *dims, params, extra = rest
        if extra:
            raise self.fake.misuse("launchKernel", 1, "parameters in two ways")
        self.fake.launch(function, *dims, params)  # type: ignore[call-arg]

    def _funcSetAttribute(self, function: int, attribute: int, value: int) -> None:
        if attribute != 8:
            raise self.fake.misuse("funcSetAttribute", 1, f"attribute {attribute} is not the dynamic shared memory")
        self.fake.allow_shared(function, value)

    # -- what CuPy has no bindings of

    def missing(self) -> str:
        return self.fake.conditions()

    def condition(self, stream: int) -> int:
        return self.fake.condition(stream)

    def begin(self, stream: int, condition: int, repeats: bool) -> None:
        self.fake.body_begin(stream, condition, repeats)

    def end(self, stream: int) -> None:
        self.fake.body_end(stream)

    def leave(self, stream: int) -> bool:
        return False  # the fake's own capture_end leaves bodies

    def allow(self, pool: int, device: int) -> None:
        self.fake.properties(device)


class FakeBehindCupy(CupyDriver):
    """CupyDriver over the stand-in: what the product asks goes through both, what tests ask of the fake goes to it.

    Attributes:
      bindings: the stand-in. ``fake``: the driver behind it.
    """

    def __init__(self, fake: FakeDriver) -> None:
        self.fake = fake
        self.bindings = CupyBindings(fake)
        super().__init__(
            self.bindings.runtime, self.bindings.driver, self.bindings, self.bindings.allow, fake.has_context
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["fake"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        known = "fake" in self.__dict__ and name not in self.__dict__ and hasattr(self.fake, name)
        if known and not hasattr(CupyDriver, name) and not callable(value):
            setattr(self.fake, name, value)
        else:
            super().__setattr__(name, value)


#: Calls that take and give the same in both.
_SAME = {
    "deviceCanAccessPeer": "can_access_peer",
    "deviceSynchronize": "device_synchronize",
    "driverGetVersion": "driver_version",
    "eventDestroy": "event_destroy",
    "eventRecord": "event_record",
    "eventSynchronize": "event_synchronize",
    "freeAsync": "free",
    "freeHost": "host_free",
    "getDevice": "get_device",
    "getDeviceCount": "device_count",
    "graphDestroy": "graph_destroy",
    "graphExecDestroy": "graph_exec_destroy",
    "graphLaunch": "graph_launch",
    "mallocAsync": "malloc",
    "memcpyPeerAsync": "copy_peer",
    "memsetAsync": "fill",
    "moduleGetFunction": "function",
    "moduleLoadData": "load",
    "moduleUnload": "unload",
    "runtimeGetVersion": "runtime_version",
    "setDevice": "set_device",
    "streamDestroy": "stream_destroy",
    "streamEndCapture": "capture_end",
    "streamSynchronize": "stream_synchronize",
}


def _bound(
    name: str, parameters: str, do: Callable[..., Any], raised: Callable[[int, str], Exception]
) -> Callable[..., Any]:
    """A function that takes what Cython's does, by place, and raises CuPy's errors."""
    wanted = [p.strip() for p in parameters.split(",") if p.strip()]
    least = sum("=" not in p for p in wanted)
    kinds = [p.partition("=")[0].rpartition(" ")[0] for p in wanted]

    def call(*args: Any) -> Any:
        if not least <= len(args) <= len(wanted):
            raise TypeError(f"{name}() takes {len(wanted)} positional arguments, {len(args)} given")
        for kind, arg in zip(kinds, args, strict=False):
            _check(name, kind, arg)
        try:
            return do(*args)
        except CudaError as error:
            raise raised(error.status, str(error)) from error

    return call


def _check(name: str, kind: str, arg: Any) -> None:
    """Raises as Cython does for an argument of another type."""
    if kind in _RANGES:
        if isinstance(arg, float) or not hasattr(arg, "__index__"):
            raise TypeError(f"{name}: an integer is required, got {arg!r}")
        low, high = _RANGES[kind]
        if not low <= arg.__index__() < high:
            raise OverflowError(f"{name}: {arg} does not fit {kind}")
    elif kind and not isinstance(arg, {"str": str, "bytes": bytes}[kind]):
        raise TypeError(f"{name}: expected {kind}, got {type(arg).__name__}")
