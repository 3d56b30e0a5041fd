"""A fake CUDA driver, strict where a real one is lenient, and late where a real one may be."""

from __future__ import annotations

from collections.abc import Sequence

from graphdock_cuda.driver.api import Properties
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.capture_calls import CaptureCalls, Graph
from graphdock_cuda.testing.code_calls import CodeCalls
from graphdock_cuda.testing.conditional_calls import ConditionalCalls
from graphdock_cuda.testing.memory_calls import MemoryCalls
from graphdock_cuda.testing.state import Device
from graphdock_cuda.testing.stream_calls import StreamCalls

__all__ = ["FakeDriver"]


class FakeDriver(MemoryCalls, StreamCalls, CodeCalls, CaptureCalls, ConditionalCalls):
    """See Driver. Queued work runs when somebody waits or asks, streams interleaved by a seed. Safe from any thread.

    What CUDA allows and makes no sense of is an error: Misuse, a CudaError that ``verify`` raises again should nobody have let it
    through. What CUDA reports is a CudaError with CUDA's status.

    Args:
      properties: of each GPU; ``memory`` is what may be allocated.
      seed: of the interleaving. ``peers``: whether GPUs reach one another's memory.
      newest: the newest CUDA that the driver supports, 13000 for 13.0.

    Attributes:
      faults: where tests put failures.
      log: what was called, launched and copied.
      live: a Counter of what is not given back yet.
      detector: the race checker's; its report grows from the beginning. Launches take part with the blocks that their parameters
        point at, as far as these come and go; copies and fills with their bytes. ``traced``, for such images: launches with
        the bytes of these blocks that they read and write, too.
      misuses: the errors that were raised for misuse, and writes beyond a block.
      devices: the GPUs' state.
    """

    def __init__(
        self, properties: Sequence[Properties], seed: int = 0, peers: bool = True, newest: int = 13000
    ) -> None:
        super().__init__(properties, seed, peers, newest)

    # -- what there is

    def device_count(self) -> int:
        with self.lock:
            self.log.add("device_count", "")
            if not self.devices:
                raise CudaError("device_count", 100)
            return len(self.devices)

    def driver_version(self) -> int:
        return self.newest

    def runtime_version(self) -> int:
        return self.newest // 1000 * 1000  # as `doctor` has it installed

    def properties(self, device: int) -> Properties:
        return self._numbered(device, "properties").properties

    def set_device(self, device: int) -> None:
        with self.call("set_device", str(device), device=self._numbered(device, "set_device")):
            self.select(device)

    def get_device(self) -> int:
        return self.device.index

    def has_context(self, device: int) -> bool:
        return device in self.opened

    def _numbered(self, index: int, call: str) -> Device:
        if not 0 <= index < len(self.devices):
            raise CudaError(call, 101, f"device {index} of {len(self.devices)}")
        return self.devices[index]

    # -- for tests

    def lose(self, device: int, status: int = 719, reason: str = "the test says so") -> None:
        """The context of a device dies. Nothing is raised here: the next call notices."""
        with self.lock:
            self.end_context(self.devices[device], status, reason)

    def verify(self) -> None:
        """Raises the first misuse, and RaceError when races were found."""
        if self.misuses:
            raise self.misuses[0]
        self.detector.report.verify()

    def graph(self, handle: int) -> Graph:
        """Return what a graph or an executable graph holds."""
        kind = self._objects[handle][0]
        found: Graph = self.thing(kind, handle, "graph")
        return found
