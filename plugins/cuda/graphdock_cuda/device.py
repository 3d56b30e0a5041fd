"""A GPU as graphdock's device: memory, queues, staging, what is current on a thread, errors of kernels."""

from __future__ import annotations

import functools
import itertools
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from graphdock.contracts import Device, DeviceInfo, DType, Event, Queue, QueuedDevice, dtypes, errors

from graphdock_cuda.compiled import Images, Source
from graphdock_cuda.driver.api import Convolution, ConvolutionPlan, Driver, Gemm, GemmPlan, Toolkit, Unsupported
from graphdock_cuda.driver.errors import STICKY, explain
from graphdock_cuda.error_words import ErrorWords
from graphdock_cuda.memory import Array, Block, Pinned, Pool, array_over
from graphdock_cuda.queue import CudaEvent, CudaQueue

__all__ = ["FETCH_BYTES", "CudaDevice"]

T = TypeVar("T")

#: What is fetched and has so many bytes comes in pinned memory of its own; less is copied by the host in a few microseconds.
FETCH_BYTES = 1 << 18
_log = logging.getLogger("graphdock")
_CONDITION = Source("condition", ("condition.cuh",))


_open: weakref.WeakSet[CudaDevice] = weakref.WeakSet()


def _leave_behind() -> None:
    """In a forked child, where every call of CUDA fails or worse: none is made of a device of the parent's."""
    for device in list(_open):
        device._lost = "this process was forked from the one that opened it, and CUDA stays there"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_behind)


class CudaDevice(QueuedDevice):
    """An open GPU. Safe from any thread.

    Args:
      pinned: staging memory, shared by the GPUs of a process.
      options: the plugin's, resolved. ``workspace``: of those, bytes that a kernel may use besides its operands.

    Attributes:
      pool: its memory. ``images``: compiled code, loaded here.
      architecture: what code is compiled for, ``sm_90a``.
    """

    def __init__(self, info: DeviceInfo, toolkit: Toolkit, pinned: Pinned, options: Mapping[str, Any]) -> None:
        super().__init__(info)
        self.toolkit = toolkit
        self.driver: Driver = toolkit.driver
        self.index = info.index
        self.name = f"cuda:{info.index}"
        self.options = options
        self.stream_slots = int(options.get("lanes", 2))
        self.workspace = int(options.get("workspace", 1 << 25))
        self.fetch_bytes = FETCH_BYTES
        self.pinned = pinned
        self.pool = Pool(self.driver, self.index, int(options.get("memory_limit", 0)))
        assert info.architecture is not None
        self.architecture = info.architecture
        self._lost: str | None = None
        _open.add(self)
        self._reached: dict[int, bool] = {}
        self._made = itertools.count()
        self._thread = threading.local()
        self.images = Images(toolkit, self)
        self.words = ErrorWords(self)
        self._plans: dict[Gemm, GemmPlan | None] = {}
        with self.current():
            self._own_stream = self.pool.stream = self.driver.stream()

    # -- what is current on a thread

    @property
    def recording(self) -> Any:
        """Return what this thread records on this device; None where it records nothing."""
        return getattr(self._thread, "recording", None)

    @recording.setter
    def recording(self, recording: Any) -> None:
        self._thread.recording = recording

    @contextmanager
    def current(self) -> Iterator[None]:
        """The device's context is current on this thread."""
        previous = self.activate(None)
        try:
            yield
        finally:
            self.restore(previous)

    def activate(self, queue: Queue | None = None) -> Any:
        """The context becomes current; queues name their stream in every call, so that nothing else need be."""
        self._check()
        if queue is not None and queue.device is not self:
            raise errors.InvalidArgumentError(f"{self.name} can't make {queue.name} current, which is not its own")
        driver = self.driver
        previous = driver.get_device()
        if previous != self.index or not hasattr(self._thread, "entered"):
            driver.set_device(self.index)  # a new thread has no context, though its device is 0
            self._thread.entered = True
        return previous

    def restore(self, previous: Any) -> None:
        """Make current again what was; where that is lost, whoever uses it next is told."""
        if previous == self.index:
            return
        try:
            if self.driver.has_context(previous):  # else nobody uses it, and nobody is to open it
                self.driver.set_device(previous)
        except Exception as error:
            if getattr(error, "status", None) not in STICKY:
                raise

    # -- errors

    def _check(self) -> None:
        if self._lost is not None:
            raise errors.DeviceLostError(self.name, self._lost)

    def explained(self, error: Exception, doing: str) -> Exception:
        """graphdock's error for one of CUDA's; a device that is lost stays lost."""
        made = explain(error, self.name, doing)
        if isinstance(made, errors.DeviceLostError) and self._lost is None:
            self._lost = made.reason
        return made

    def check_errors(self, queue: CudaQueue) -> None:
        """After a fence of ``queue``: raise what kernels have noted in its error words."""
        self.words.check(queue)

    # -- memory

    def allocate(self, nbytes: int, align: int = 64) -> Block:
        self._refuse_in_recording("allocate")
        self._check()
        if align > 256:
            raise errors.InvalidArgumentError(f"{self.name} aligns memory to 256 bytes", got=str(align))
        with self.current():
            block = self.pool.take(nbytes, self._own_stream)
            self._fence_own("allocate")
        return block

    def lasting(self, nbytes: int) -> Array:
        """Bytes that live as long as their array, for any stream."""
        return array_over(self.allocate(nbytes, 256), 0, dtypes.uint8, (nbytes,))

    def _fence_own(self, doing: str) -> None:
        try:
            self.driver.stream_synchronize(self._own_stream)
        except Exception as error:
            raise self.explained(error, doing) from error

    def _refuse_in_recording(self, call: str) -> None:
        if self.recording is not None:
            raise self.recording.refuse(f"{call} of {self.name}")

    def view(self, storage: Block, offset: int, dtype: DType, shape: Sequence[int]) -> Array:
        return array_over(storage, offset, dtype, shape)

    def staging(self, nbytes: int) -> np.ndarray:
        self._refuse_in_recording("staging")
        self._check()
        return self.pinned.take(nbytes)

    def reaches(self, other: Device) -> bool:
        """Return where the two GPUs read each other's memory; asking for the first time lets this one do so."""
        if not isinstance(other, CudaDevice) or other.driver is not self.driver:
            return False
        found = self._reached.get(other.index)
        if found is None:
            with self.current():
                try:
                    found = self.driver.can_access_peer(self.index, other.index)
                    if found:
                        self.driver.enable_peer(other.index)
                except Exception as error:
                    raise self.explained(error, f"reach the memory of {other.name}") from error
            self._reached[other.index] = found
        return found

    def dtype_of(self, buffer: Array) -> Any:
        return buffer.dtype.np

    def extent(self, buffer: Array) -> tuple[int, int]:
        return buffer.address, buffer.nbytes

    # -- queues

    def new_queue(self) -> CudaQueue:
        self._check()
        try:
            return CudaQueue(self, f"{self.name}/queue:{next(self._made)}")
        except Exception as error:
            raised = self.explained(error, "make a queue")
            if raised is error:
                raise
            raise raised from error

    def passed(self, event: Event) -> bool:
        handle = self._handle(event, "passed")
        try:
            return self.driver.event_query(handle)
        except Exception as error:
            raise self.explained(error, "ask for an event") from error

    def wait_host(self, event: Event) -> None:
        handle = self._handle(event, "wait_host")
        try:
            self.driver.event_synchronize(handle)
        except Exception as error:
            raise self.explained(error, "wait for an event") from error

    def _handle(self, event: Event, call: str) -> int:
        self._refuse_in_recording(call)
        self._check()
        if not isinstance(event, CudaEvent) or event.queue.device is not self:
            raise errors.InvalidArgumentError(f"{call}: {event!r} is not of {self.name}")
        if not event.recorded:
            raise errors.FailedPreconditionError(f"{call}: {event!r} was never recorded")
        return event.handle

    def synchronize(self) -> None:
        self._refuse_in_recording("synchronize")
        with self.current():
            try:
                self.driver.device_synchronize()
            except Exception as error:
                raise self.explained(error, "run what was queued") from error

    # -- for kernels

    def gemm_plan(self, gemm: Gemm) -> GemmPlan | None:
        """The matrix library's algorithm for a product; None where there is no library, or it has none."""
        if gemm not in self._plans:
            if self.recording is not None:  # the library takes memory when it is first asked
                raise self.recording.want("plan a product", functools.partial(self.gemm_plan, gemm))
            doing = "plan a product"
            with self.current():
                try:
                    self._plans[gemm] = self.relieved(doing, functools.partial(self._planned, gemm))
                except Exception as error:
                    raise self.explained(error, doing) from error
        return self._plans[gemm]

    def _planned(self, gemm: Gemm) -> GemmPlan | None:
        if self.toolkit.blas is None:
            return None
        try:
            plans = self.toolkit.blas().plans(gemm, self.workspace)
        except Unsupported as error:
            if not self._plans:
                _log.warning("%s: products of matrices are tiles of the plugin's own: %s", self.name, error)
            return None
        return plans[0] if plans else None

    def relieved(self, doing: str, do: Callable[[], T]) -> T:
        """Return what ``do`` makes. Where a library or the driver finds no memory for it, the pool gives back what it
        keeps, and it is tried once more. Raises what ``do`` raises.
        """
        try:
            return do()
        except Exception as error:
            if not isinstance(self.explained(error, doing), errors.ResourceExhaustedError):
                raise
        self.pool.relieve()
        return do()

    def convolution_plan(self, convolution: Convolution) -> ConvolutionPlan:
        """The network library's algorithm for a convolution. Raises Unsupported where there is no library, or it has none."""
        self._refuse_in_recording("plan a convolution")
        if self.toolkit.dnn is None:
            raise Unsupported("there is no cuDNN")
        with self.current():
            return self.toolkit.dnn().plan(convolution, self.workspace)

    @functools.cached_property
    def undecided(self) -> str:  # type: ignore[override]
        """See QueuedDevice: the driver says it, and the kernel that sets conditions by a function of the driver's must load."""
        try:
            with self.current():
                missing = self.driver.conditions()
            if not missing:
                self.set_condition()
        except (errors.InternalError, errors.KernelRefused) as error:  # the host decides then, and plans say why
            return f"the kernel that sets conditions does not load ({str(error).splitlines()[0]})"
        return missing

    def set_condition(self) -> int:
        """The kernel that makes a bool the condition of recorded work."""
        return self.images.function(_CONDITION, "set_condition")

    def service(self, name: str, version: int) -> Any:
        """``cuda-launch``, version 1: :class:`graphdock_cuda.launch.Launcher`, for packages that bring kernels."""
        if (name, version) == ("cuda-launch", 1):
            from graphdock_cuda.launch import Launcher

            return Launcher(self)
        return super().service(name, version)

    def close(self) -> None:
        if self.forked:
            return
        self.pool.settle()
        self.pinned.close()
