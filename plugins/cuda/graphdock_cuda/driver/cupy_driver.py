"""The driver over CuPy's bindings. Calls without a body of their own are CuPy's functions themselves: a launch costs 0.2 us.

Importing this module imports ``cupy_backends``, which loads the driver's library when it is first called.
"""

from __future__ import annotations

import ctypes
from typing import Any

from cupy_backends.cuda.api import driver as _driver
from cupy_backends.cuda.api import runtime as _runtime

from graphdock_cuda.driver.api import Properties
from graphdock_cuda.driver.conditional import Conditionals
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.driver.libcuda import allow_pool_access

__all__ = ["CupyDriver"]

_ANY_TO_ANY = 4  # cudaMemcpyDefault: by the addresses
_THREAD_LOCAL = 1  # cudaStreamCaptureModeThreadLocal
_NON_BLOCKING = 1  # cudaStreamNonBlocking
_NO_TIMING = 2  # cudaEventDisableTiming
_PORTABLE_MAPPED = 3  # cudaHostAllocPortable | cudaHostAllocMapped
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_NOT_READY = 600
_FIRST_CONDITIONS = 12040
_PEER_ALREADY = 704


class CupyDriver:
    """:class:`graphdock_cuda.driver.api.Driver` on this machine's GPUs."""

    driver_version = staticmethod(_runtime.driverGetVersion)
    runtime_version = staticmethod(_runtime.runtimeGetVersion)
    set_device = staticmethod(_runtime.setDevice)
    get_device = staticmethod(_runtime.getDevice)

    malloc = staticmethod(_runtime.mallocAsync)
    free = staticmethod(_runtime.freeAsync)
    host_free = staticmethod(_runtime.freeHost)
    copy_peer = staticmethod(_runtime.memcpyPeerAsync)
    fill = staticmethod(_runtime.memsetAsync)

    stream_destroy = staticmethod(_runtime.streamDestroy)
    stream_synchronize = staticmethod(_runtime.streamSynchronize)
    device_synchronize = staticmethod(_runtime.deviceSynchronize)
    stream_wait = staticmethod(_runtime.streamWaitEvent)
    event_destroy = staticmethod(_runtime.eventDestroy)
    event_record = staticmethod(_runtime.eventRecord)
    event_synchronize = staticmethod(_runtime.eventSynchronize)

    load = staticmethod(_driver.moduleLoadData)
    unload = staticmethod(_driver.moduleUnload)
    function = staticmethod(_driver.moduleGetFunction)

    capturing = staticmethod(_runtime.streamIsCapturing)
    graph_destroy = staticmethod(_runtime.graphDestroy)
    graph_exec_destroy = staticmethod(_runtime.graphExecDestroy)
    graph_launch = staticmethod(_runtime.graphLaunch)

    def __init__(self) -> None:
        launch = _driver.launchKernel

        def without_extra(*args: int) -> None:
            launch(*args, 0)

        self.launch = without_extra
        self._pooled: set[int] = set()
        self._conditionals = Conditionals()
        self.condition = self._conditionals.condition
        self.body_begin = self._conditionals.begin
        self.body_end = self._conditionals.end

    def device_count(self) -> int:
        count: int = _runtime.getDeviceCount()
        for device in range(count):
            self._keep_memory(device)
        return count

    def _keep_memory(self, device: int) -> None:
        """Let the device's pool keep what is freed, in place of giving it back to the system at every fence."""
        if device not in self._pooled:
            self._pooled.add(device)
            pool = _runtime.deviceGetDefaultMemPool(device)
            _runtime.memPoolSetAttribute(pool, _runtime.cudaMemPoolAttrReleaseThreshold, (1 << 64) - 1)

    def properties(self, device: int) -> Properties:
        found: dict[str, Any] = _runtime.getDeviceProperties(device)

        def fact(name: str) -> int:
            value: int = _runtime.deviceGetAttribute(getattr(_runtime, f"cudaDevAttr{name}"), device)
            return value

        return Properties(
            found["name"].decode(),
            (fact("ComputeCapabilityMajor"), fact("ComputeCapabilityMinor"))
            if hasattr(_runtime, "cudaDevAttrComputeCapabilityMajor")
            else (found["major"], found["minor"]),
            found["totalGlobalMem"],
            fact("MultiProcessorCount"),
            fact("MaxSharedMemoryPerBlockOptin"),
            fact("WarpSize"),
            fact("ClockRate"),
            fact("MemoryClockRate"),
            fact("GlobalMemoryBusWidth"),
            fact("L2CacheSize"),
            _runtime.deviceGetPCIBusId(device),
        )

    def memory_info(self, device: int) -> tuple[int, int]:
        before = _runtime.getDevice()
        _runtime.setDevice(device)
        try:
            free, total = _runtime.memGetInfo()
        finally:
            _runtime.setDevice(before)
        return free, total

    def host_alloc(self, nbytes: int) -> int:
        address: int = _runtime.hostAlloc(nbytes, _PORTABLE_MAPPED)
        ctypes.memset(address, 0, nbytes)
        return address

    def copy(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        _runtime.memcpyAsync(dst, src, nbytes, _ANY_TO_ANY, stream)

    def can_access_peer(self, device: int, peer: int) -> bool:
        return bool(_runtime.deviceCanAccessPeer(device, peer))

    def enable_peer(self, peer: int) -> None:
        try:
            _runtime.deviceEnablePeerAccess(peer)
        except _runtime.CUDARuntimeError as error:
            if error.status != _PEER_ALREADY:
                raise
        allow_pool_access(_runtime.deviceGetDefaultMemPool(peer), _runtime.getDevice())

    def stream(self) -> int:
        made: int = _runtime.streamCreateWithFlags(_NON_BLOCKING)
        return made

    def event(self, timing: bool = False) -> int:
        made: int = _runtime.eventCreateWithFlags(0 if timing else _NO_TIMING)
        return made

    def event_query(self, event: int) -> bool:
        try:
            _runtime.eventQuery(event)
        except _runtime.CUDARuntimeError as error:
            if error.status != _NOT_READY:
                raise
            return False
        return True

    def event_elapsed(self, begin: int, end: int) -> float:
        return float(_runtime.eventElapsedTime(begin, end)) / 1e3

    def allow_shared(self, function: int, nbytes: int) -> None:
        _driver.funcSetAttribute(function, _MAX_DYNAMIC_SHARED, nbytes)

    def capture_begin(self, stream: int) -> None:
        _runtime.streamBeginCapture(stream, _THREAD_LOCAL)

    def capture_end(self, stream: int) -> int:
        if self._conditionals.leave(stream):
            raise CudaError("capture_end", 901, "the recording ended within the body of a condition")
        made: int = _runtime.streamEndCapture(stream)
        return made

    def conditions(self) -> str:
        if _runtime.driverGetVersion() < _FIRST_CONDITIONS:
            return "the driver is older than CUDA 12.4"
        return self._conditionals.missing()

    def instantiate(self, graph: int) -> int:
        made: int = _runtime.graphInstantiate(graph)
        return made
