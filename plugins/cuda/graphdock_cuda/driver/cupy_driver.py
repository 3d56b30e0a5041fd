"""The driver over CuPy's bindings. Calls without a body of their own are CuPy's functions themselves: a launch costs 0.2 us.

What the bindings do is theirs to know: most raise where CUDA gives a status, but ``eventQuery`` returns it. Held against CuPy 14's
signatures and sources by ``graphdock_cuda.testing.cupy_bindings``, through which the tests of the emulator run too.
"""

from __future__ import annotations

import ctypes
from typing import Any

from graphdock_cuda.driver.api import Properties
from graphdock_cuda.driver.conditional import Conditionals
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.driver.libcuda import allow_pool_access, has_context

__all__ = ["CupyDriver"]

_ANY_TO_ANY = 4  # cudaMemcpyDefault: by the addresses
_THREAD_LOCAL = 1  # cudaStreamCaptureModeThreadLocal
_NON_BLOCKING = 1  # cudaStreamNonBlocking
_NO_TIMING = 2  # cudaEventDisableTiming
_PORTABLE_MAPPED = 3  # cudaHostAllocPortable | cudaHostAllocMapped
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_RELEASE_THRESHOLD = 4  # cudaMemPoolAttrReleaseThreshold
_NOT_READY = 600
_FIRST_CONDITIONS = 12040
_PEER_ALREADY = 704


class CupyDriver:
    """:class:`graphdock_cuda.driver.api.Driver` on this machine's GPUs.

    Args:
      runtime, driver: the modules ``runtime`` and ``driver`` of ``cupy_backends.cuda.api``; default: those, which load the driver's
        library when they are first called. ``conditionals``, ``allow``, ``active``: what CuPy has no bindings of.
    """

    def __init__(
        self,
        runtime: Any = None,
        driver: Any = None,
        conditionals: Any = None,
        allow: Any = allow_pool_access,
        active: Any = has_context,
    ) -> None:
        if runtime is None:
            from cupy_backends.cuda.api import driver as its_driver
            from cupy_backends.cuda.api import runtime as its_runtime

            driver, runtime = its_driver, its_runtime
        self._runtime = runtime
        self.driver_version = runtime.driverGetVersion
        self.runtime_version = runtime.runtimeGetVersion
        self.device_count = runtime.getDeviceCount
        self.get_device = runtime.getDevice

        self.malloc = runtime.mallocAsync
        self.free = runtime.freeAsync
        self.host_free = runtime.freeHost
        self.copy_peer = runtime.memcpyPeerAsync
        self.fill = runtime.memsetAsync

        self.stream_destroy = runtime.streamDestroy
        self.stream_synchronize = runtime.streamSynchronize
        self.device_synchronize = runtime.deviceSynchronize
        self.stream_wait = runtime.streamWaitEvent
        self.event_destroy = runtime.eventDestroy
        self.event_record = runtime.eventRecord
        self.event_synchronize = runtime.eventSynchronize

        self.load = driver.moduleLoadData
        self.unload = driver.moduleUnload
        self.function = driver.moduleGetFunction

        self.graph_destroy = runtime.graphDestroy
        self.graph_exec_destroy = runtime.graphExecDestroy
        self.graph_launch = runtime.graphLaunch

        self._allow_shared = driver.funcSetAttribute
        self._query = runtime.eventQuery
        launch = driver.launchKernel

        def without_extra(*args: int) -> None:
            launch(*args, 0)

        self.launch = without_extra
        self._allow, self._active = allow, active
        self._pooled: set[int] = set()
        self._conditionals = conditionals or Conditionals()
        self.condition = self._conditionals.condition
        self.body_begin = self._conditionals.begin
        self.body_end = self._conditionals.end

    def set_device(self, device: int) -> None:
        """See Driver. The first time, the device's pool is told to keep what is freed, which it gave back at every fence."""
        self._runtime.setDevice(device)
        if device not in self._pooled:
            self._pooled.add(device)
            pool = self._runtime.deviceGetDefaultMemPool(device)
            self._runtime.memPoolSetAttribute(pool, _RELEASE_THRESHOLD, (1 << 64) - 1)

    def has_context(self, device: int) -> bool:
        return device in self._pooled or self._active(device)

    def properties(self, device: int) -> Properties:
        runtime = self._runtime
        found: dict[str, Any] = runtime.getDeviceProperties(device)

        def fact(name: str) -> int:
            value: int = runtime.deviceGetAttribute(getattr(runtime, f"cudaDevAttr{name}"), device)
            return value

        return Properties(
            found["name"].decode(),
            (found["major"], found["minor"]),
            found["totalGlobalMem"],
            fact("MultiProcessorCount"),
            fact("MaxSharedMemoryPerBlockOptin"),
            fact("WarpSize"),
            fact("ClockRate"),
            fact("MemoryClockRate"),
            fact("GlobalMemoryBusWidth"),
            fact("L2CacheSize"),
            runtime.deviceGetPCIBusId(device),
        )

    def memory_info(self, device: int) -> tuple[int, int]:
        before = self.get_device()
        self.set_device(device)
        try:
            free, total = self._runtime.memGetInfo()
        finally:
            if self.has_context(before):
                self.set_device(before)
        return free, total

    def trim(self, device: int) -> None:
        self._runtime.memPoolTrimTo(self._runtime.deviceGetDefaultMemPool(device), 0)

    def host_alloc(self, nbytes: int) -> int:
        address: int = self._runtime.hostAlloc(nbytes, _PORTABLE_MAPPED)
        ctypes.memset(address, 0, nbytes)
        return address

    def copy(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        self._runtime.memcpyAsync(dst, src, nbytes, _ANY_TO_ANY, stream)

    def can_access_peer(self, device: int, peer: int) -> bool:
        return bool(self._runtime.deviceCanAccessPeer(device, peer))

    def enable_peer(self, peer: int) -> None:
        try:
            self._runtime.deviceEnablePeerAccess(peer)
        except self._runtime.CUDARuntimeError as error:
            if error.status != _PEER_ALREADY:
                raise
        self._allow(self._runtime.deviceGetDefaultMemPool(peer), self.get_device())

    def stream(self) -> int:
        made: int = self._runtime.streamCreateWithFlags(_NON_BLOCKING)
        return made

    def event(self, timing: bool = False) -> int:
        made: int = self._runtime.eventCreateWithFlags(0 if timing else _NO_TIMING)
        return made

    def event_query(self, event: int) -> bool:
        """See Driver. CuPy hands the status out here, where it raises everywhere else."""
        status = self._query(event)
        if status not in (0, _NOT_READY):
            raise self._runtime.CUDARuntimeError(status)
        return bool(status == 0)

    def event_elapsed(self, begin: int, end: int) -> float:
        return float(self._runtime.eventElapsedTime(begin, end)) / 1e3

    def allow_shared(self, function: int, nbytes: int) -> None:
        self._allow_shared(function, _MAX_DYNAMIC_SHARED, nbytes)

    def capture_begin(self, stream: int) -> None:
        self._runtime.streamBeginCapture(stream, _THREAD_LOCAL)

    def capture_end(self, stream: int) -> int:
        if self._conditionals.leave(stream):
            raise CudaError("capture_end", 901, "the recording ended within the body of a condition")
        made: int = self._runtime.streamEndCapture(stream)
        return made

    def conditions(self) -> str:
        if self.driver_version() < _FIRST_CONDITIONS:
            return "the driver is older than CUDA 12.4"
        missing: str = self._conditionals.missing()
        return missing

    def instantiate(self, graph: int, stream: int) -> int:
        made: int = self._runtime.graphInstantiate(graph)
        try:
            self._runtime.graphUpload(made, stream)
        except self._runtime.CUDARuntimeError:
            self.graph_exec_destroy(made)
            raise
        return made
