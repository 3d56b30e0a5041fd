"""A variable: storage with a stable address, and whether it holds a value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from graphdock.contracts.device import Buffer
from graphdock.contracts.resource import ResourceKind, ResourceRequest
from graphdock.contracts.runtime.resources.resource import Resource
from graphdock.dtypes import DType
from graphdock.errors import FailedPreconditionError, ShapeError, UninitializedError
from graphdock.shape import Dims, compatible, show

if TYPE_CHECKING:
    from graphdock.contracts.runtime.resources.store import ResourceStore

__all__ = ["Current", "Variable", "unset"]


class Current:
    """Whichever buffer a variable has: among the arguments of an :class:`Access`, which looks it up under its locks."""

    __slots__ = ("variable",)

    def __init__(self, variable: Variable) -> None:
        self.variable = variable


class Variable(Resource):
    """One variable: declared by the first plan that touches it, holding a value once assigned.

    Its methods are called by steps that have locked it.

    Attributes:
      dims: static shape; while it is fully known ``buffer`` keeps its address for life.
      buffer: the device's array; None before the first step that needs it (for an unknown shape, before the first assignment).
      current: stands for whichever buffer it has.
      initialized: an assignment has run.
      static: its shape is fully known.
    """

    __slots__ = ("buffer", "current", "dims", "dtype", "initialized", "static")

    def __init__(self, kind: ResourceKind, request: ResourceRequest, store: ResourceStore) -> None:
        super().__init__(kind, request, store)
        self.dtype: DType = request.attrs["dtype"]
        self.dims: Dims = request.attrs["shape"]
        self.static = self.dims is not None and None not in self.dims
        self.initialized = False
        self.buffer: Buffer = None
        self.current = Current(self)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements; of an unknown shape, of those it holds now."""
        if self.static:
            shape: Any = self.dims
        elif self.buffer is None:
            return 0
        else:
            shape = self.device.shape_of(self.buffer)
        count: int = math.prod(shape)
        return self.dtype.size * count

    def open(self) -> Buffer:
        made = super().open()
        if self.static:
            self.buffer = made
        return self.buffer

    def close(self) -> None:
        self.initialized = False
        self.buffer = None
        super().close()

    def assign(self, value: Buffer, queue: Any = None) -> None:
        """Copy ``value`` in, taking new storage when a shape that is not static has changed.

        Args:
          queue: of the step, where its device has queues; the copy is made in its order.
        """
        shape = self.device.shape_of(value)
        if not compatible(self.dims, shape):
            raise ShapeError(
                f"variable {self.name!r} is assigned a value of shape {show(shape)}", expected=show(self.dims)
            )
        if self.buffer is None or (not self.static and self.device.shape_of(self.buffer) != shape):
            if queue is not None:
                queue.synchronize()  # what the step has queued may use the old storage
            self.buffer = self.device.empty(self.dtype, shape)
        (self.device if queue is None else queue).copy(value, self.buffer)
        self.initialized = True

    def snapshot(self, queue: Any = None) -> Buffer:
        """A copy of the value, for reads whose shape is not static. ``queue``: as :meth:`assign`."""
        worker = self.device if queue is None else queue
        copy = worker.empty(self.dtype, self.device.shape_of(self.buffer))
        worker.copy(self.buffer, copy)
        return copy

    def destroy(self) -> None:
        """Forget the value."""
        self.initialized = False
        self.store.value_lost()

    def check_fits(self, request: ResourceRequest) -> None:
        dtype, dims = request.attrs["dtype"], request.attrs["shape"]
        if self.dtype is not dtype or not compatible(self.dims, dims):
            raise FailedPreconditionError(
                f"variable {self.name!r} exists in {self.store.where} with another type",
                expected=f"{self.dtype.name}{show(self.dims)}",
                got=f"{dtype.name}{show(dims)}",
            )
        self._check_device(request)


def unset(variable: Variable, op: str | None = None, site: str | None = None) -> UninitializedError:
    """The error of a read before the first assignment."""
    return UninitializedError(
        f"variable {variable.name!r} is read before it was assigned",
        op=op,
        site=site,
        hint="run tf.global_variables_initializer() first",
    )
