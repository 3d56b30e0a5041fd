"""Variables of a session: storage with a stable address, whether it holds a value, and a lock."""

from __future__ import annotations

import itertools
import threading

from graphdock.contracts.device import Buffer, Device
from graphdock.dtypes import DType
from graphdock.errors import FailedPreconditionError, ShapeError
from graphdock.shape import Dims, compatible, show

__all__ = ["ReadWriteLock", "VariableState", "VariableStore"]

_numbers = itertools.count()


class ReadWriteLock:
    """Many readers or one writer. Not re-entrant. A writer costs one lock."""

    __slots__ = ("_count", "_gate", "_write")

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._write = threading.Lock()
        self._count = 0

    def acquire_read(self) -> None:
        with self._gate:
            self._count += 1
            if self._count == 1:
                self._write.acquire()

    def release_read(self) -> None:
        with self._gate:
            self._count -= 1
            if self._count == 0:
                self._write.release()

    def acquire_write(self) -> None:
        self._write.acquire()

    def release_write(self) -> None:
        self._write.release()


class VariableState:
    """One variable: declared by the first plan that touches it, holding a value once assigned.

    Attributes:
      number: canonical order of locking.
      dims: static shape; while it is fully known ``buffer`` keeps its address for life.
      buffer: the device's array; None before the first plan (or, for an unknown shape, the first assignment).
      initialized: an assignment has run.
      lock: held shared by steps that read, exclusively by steps that write.
    """

    __slots__ = ("buffer", "device", "dims", "dtype", "initialized", "lock", "name", "number", "store")

    def __init__(self, name: str, dtype: DType, dims: Dims, device: Device, store: VariableStore) -> None:
        self.name = name
        self.dtype = dtype
        self.dims = dims
        self.device = device
        self.store = store
        self.number = next(_numbers)
        self.initialized = False
        self.lock = ReadWriteLock()
        self.buffer: Buffer = None
        if dims is not None and None not in dims:
            self.buffer = device.empty(dtype, dims)  # type: ignore[arg-type]

    @property
    def static(self) -> bool:
        return self.dims is not None and None not in self.dims

    def assign(self, value: Buffer) -> None:
        """Copy ``value`` in, taking new storage when a shape that is not static has changed."""
        shape = self.device.shape_of(value)
        if self.static:
            if shape != self.dims:
                raise ShapeError(
                    f"variable {self.name!r} is assigned a value of shape {show(shape)}", expected=show(self.dims)
                )
        elif not compatible(self.dims, shape):
            raise ShapeError(
                f"variable {self.name!r} is assigned a value of shape {show(shape)}", expected=show(self.dims)
            )
        elif self.buffer is None or self.device.shape_of(self.buffer) != shape:
            self.buffer = self.device.empty(self.dtype, shape)
        self.device.copy(value, self.buffer)
        self.initialized = True

    def snapshot(self) -> Buffer:
        """A copy of the value, for reads whose shape is not static."""
        copy = self.device.empty(self.dtype, self.device.shape_of(self.buffer))
        self.device.copy(self.buffer, copy)
        return copy

    def destroy(self) -> None:
        self.initialized = False
        self.store.epoch += 1


class VariableStore:
    """The variables of one container, by name. A session has one of its own; named containers' live in the Host.

    Attributes:
      epoch: grows whenever a variable may have lost its value, so that plans check again.
    """

    def __init__(self, container: str = "") -> None:
        self.container = container
        self.epoch = 0
        self._states: dict[str, VariableState] = {}
        self._lock = threading.Lock()

    def declare(self, name: str, dtype: DType, dims: Dims, device: Device) -> VariableState:
        """The variable of that name, made when it is not there.

        Raises:
          FailedPreconditionError: it is there with another dtype, shape or device.
        """
        with self._lock:
            state = self._states.get(name)
            if state is None:
                state = self._states[name] = VariableState(name, dtype, dims, device, self)
                return state
        where = f"container {self.container!r}" if self.container else "this session"
        if state.dtype is not dtype or not compatible(state.dims, dims):
            raise FailedPreconditionError(
                f"variable {name!r} exists in {where} with another type",
                expected=f"{state.dtype.name}{show(state.dims)}",
                got=f"{dtype.name}{show(dims)}",
            )
        if state.device.memory_space != device.memory_space:
            raise FailedPreconditionError(
                f"variable {name!r} of {where} lives on {state.device!r}",
                got=f"a plan that places it on {device!r}",
                hint="place it on the same device in every session that shares the container",
            )
        return state

    def names(self) -> list[str]:
        return list(self._states)

    def get(self, name: str) -> VariableState | None:
        return self._states.get(name)

    def clear(self) -> None:
        """Forget every variable's value."""
        with self._lock:
            for state in self._states.values():
                state.initialized = False
            self.epoch += 1
