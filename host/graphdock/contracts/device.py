"""The device contract: memory and copies. A device package implements these two classes and nothing more.

A device whose work runs late, on queues, implements :mod:`graphdock.contracts.queue` instead of :class:`Device`.

Threads: a device is opened once per Host and shared by every session. ``allocate``, ``view``, ``empty`` and ``service`` may be
called from any thread; ``copy``, ``from_host``, ``to_host`` and ``synchronize`` from the thread that runs the step, after
``activate``. Errors: anything raised inside a step ends that step and is reported with the node that was running.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.dtypes import DType
from graphdock.errors import DeviceUnavailable, NotFoundError

if TYPE_CHECKING:
    from graphdock.contracts.costs import Rates

__all__ = ["HOST_MEMORY", "Buffer", "Device", "DeviceFactory", "DeviceInfo", "Storage"]

#: A device's own array. Its dtype and shape are facts of the plan and are never read from it.
Buffer: TypeAlias = Any
#: A block of a device's memory, as ``allocate`` returns it.
Storage: TypeAlias = Any

#: Memory space of NumPy arrays. Devices that share a memory space exchange buffers without copying.
HOST_MEMORY = "host"


@lazy_dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One device as a probe reports it.

    Attributes:
      device_type: such as ``"cuda"``; an open, lower-case string.
      index: from 0.
      memory_bytes: size of its memory; 0 when it is not known.
      attributes: whatever a person may want to read in ``graphdock devices``.
      architecture: what code is compiled for, as the compiler spells it: ``"sm_90"``.
      multiprocessors: how many run work side by side.
      shared_memory_bytes: the most that one block of threads may share.
      warp_size: threads that run in step.

    What a compiler needs is typed and None when it is not known, so that one can compile for a device that is not there:
    ``DeviceInfo("cuda", architecture="sm_90", multiprocessors=132)``.
    """

    device_type: str
    index: int = 0
    memory_bytes: int = 0
    attributes: Mapping[str, str] = field(default_factory=dict)
    architecture: str | None = field(default=None, kw_only=True)
    multiprocessors: int | None = field(default=None, kw_only=True)
    shared_memory_bytes: int | None = field(default=None, kw_only=True)
    warp_size: int | None = field(default=None, kw_only=True)


def returned(make: Callable[[], Any], contract: type[Any], plugin: str, method: str) -> Any:
    """Return what a method of a plugin's object makes: an instance of a class of the contracts.

    Args:
      make: calls the method. ``plugin``: its name, for messages. ``method``: with its class, as ``DashDevice.new_queue``.

    Raises:
      PluginError: it is no such instance, or none can be made because a class lacks methods; names the plugin, the method, the
        class and what it lacks. And whatever the method raises.
    """
    try:
        found = make()
    except TypeError as error:
        from graphdock.contracts.returned import abstract

        explained = abstract(error, contract, plugin, method)
        if explained is None:
            raise
        raise explained from error
    if isinstance(found, contract):
        return found
    from graphdock.contracts.returned import misfit

    raise misfit(found, contract, plugin, method)


class Device(ABC):
    """An open device.

    Attributes:
      info: what the probe said.
      memory_space: where its buffers live; ``"host"`` means that they are NumPy arrays.
      queue: its one ordered compute queue, handed to kernels' ``build``; None for a synchronous device.
      alignment: every planned buffer begins at a multiple of this many bytes.
      plugin: name of the plugin whose factory opened it; set by the host.
    """

    memory_space: str
    plugin: str = ""
    queue: Any = None
    alignment: int = 64

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.memory_space = f"{info.device_type}:{info.index}"

    @abstractmethod
    def allocate(self, nbytes: int, align: int = 64) -> Storage:
        """A block of at least ``nbytes`` bytes, aligned to ``align``. Raises ResourceExhaustedError."""

    @abstractmethod
    def view(self, storage: Storage, offset: int, dtype: DType, shape: Sequence[int]) -> Buffer:
        """A contiguous, row-major buffer over ``storage`` from byte ``offset``; no memory is taken."""

    @abstractmethod
    def copy(self, src: Buffer, dst: Buffer) -> None:
        """Copy between two buffers of this memory space, of equal dtype and shape, in queue order. ``src`` may be strided."""

    @abstractmethod
    def from_host(self, array: Any, dst: Buffer) -> None:
        """Copy a contiguous NumPy array into ``dst`` in queue order; returns once ``array`` may be reused."""

    @abstractmethod
    def to_host(self, src: Buffer, dst: Any) -> None:
        """Copy into a contiguous NumPy array; returns once the data is there, so it waits for the queue."""

    def empty(self, dtype: DType, shape: Sequence[int]) -> Buffer:
        """A buffer of its own. Optional; default: ``allocate`` and ``view``."""
        size = dtype.size
        for d in shape:
            size *= d
        return self.view(self.allocate(max(size, 1)), 0, dtype, shape)

    def shape_of(self, buffer: Buffer) -> tuple[int, ...]:
        """Shape of a buffer that a kernel made fresh. Optional; default: its ``shape``."""
        return tuple(buffer.shape)

    def dtype_of(self, buffer: Buffer) -> Any:
        """The ``numpy.dtype`` of a buffer that a kernel made fresh, where the device can tell; None where it can't.

        Optional; default: the buffer's ``dtype``, where that is a ``numpy.dtype``. Only what a kernel returned is held against it.
        """
        import numpy as np

        found = getattr(buffer, "dtype", None)
        return found if isinstance(found, np.dtype) else None

    def activate(self) -> Any:
        """Make this device current on the calling thread. Optional; default: nothing. A QueuedDevice returns what was current."""
        return None

    def synchronize(self) -> None:
        """Wait until all queued work is done; raises the first error of that work. Optional; default: nothing."""

    def capture(self, body: Callable[[], None]) -> Callable[[], None] | None:
        """Record the work that ``body`` queues and return a function that replays it, or None when it can't.

        Optional; default: None. Offered once per instance of a plan whose kernels are all ``capture_safe``; every buffer that
        ``body`` touches keeps its address. ``body`` runs once, to record; recording does not execute the work. Feeds are copied in
        before a replay and results out after it, outside of ``body``. Other threads may queue work while one records; to
        keep it out of the recording is the device's affair.
        """
        return None

    def service(self, name: str, version: int) -> Any:
        """A versioned object for plugins that bring kernels for this device. Raises NotFoundError. Optional; default: none."""
        raise NotFoundError(f"device type {self.info.device_type!r} offers no service {name!r}, version {version}")

    def rates(self) -> Rates | None:
        """Rates at which the device computes and moves per second, measured by whatever takes it some milliseconds; None where it
        can't tell.

        Asked once per machine, when a plan first needs it, of one of all devices of equal type, architecture, multiprocessors and
        memory: the host keeps the answer in the user's cache. Never of a ``declared`` device. May be called from any
        thread while steps run. Optional; default: None.
        """
        return None

    def close(self) -> None:
        """Release the device. Optional; default: nothing."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.info.device_type}:{self.info.index}>"


class DeviceFactory(ABC):
    """Finds and opens the devices of one type. ``device_type`` is a class attribute.

    Attributes:
      virtual: the type may be opened any number of times (``device_count={"cpu": 4}``).
    """

    device_type: str
    virtual: bool = False

    @abstractmethod
    def probe(self) -> list[DeviceInfo]:
        """The devices that are there; opens none. Raises DeviceUnavailable(reason, hint) when there is none (not a fault)."""

    @abstractmethod
    def open(self, info: DeviceInfo, options: Mapping[str, Any]) -> Device:
        """Open one device. ``options`` are the plugin's, checked against its manifest, defaults filled in."""

    def declared(self, architecture: str, options: Mapping[str, Any]) -> Device:
        """A device of an architecture that need not be here, for planning: kernels are prepared and compiled for it, and nothing is
        ever allocated, copied or run. Probes nothing.

        Raises DeviceUnavailable, for an architecture that is not known too, with those that are. Optional; default: it raises.
        """
        raise DeviceUnavailable(f"devices of type {self.device_type!r} can't be planned for without one")
