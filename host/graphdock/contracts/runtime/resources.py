"""Resources: what outlives steps. One store per container, of all kinds; variables are the first kind.

A resource is declared when a plan names it, made when the first step needs it, and closed with its container. A variable is storage
with a stable address, and whether it holds a value.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import weakref
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

from graphdock.contracts.device import Buffer, Device
from graphdock.contracts.resource import VARIABLE, ResourceKind, ResourceRequest
from graphdock.contracts.runtime.resource_lock import Limit, LockRequest, LockSet, ResourceLock, with_locks
from graphdock.dtypes import DType
from graphdock.errors import (
    AlreadyExistsError,
    DeviceLostError,
    FailedPreconditionError,
    GraphdockError,
    InternalError,
    ShapeError,
    UninitializedError,
)
from graphdock.locks import new_lock
from graphdock.shape import Dims, compatible, show

__all__ = ["AccessHistory", "Current", "Fence", "Resource", "ResourceClosed", "ResourceStore", "Variable", "unset"]


class Fence(Protocol):
    """The point of a queue behind all that one step gave it."""

    @property
    def over(self) -> bool:
        """Return whether the host knows already that the work is done."""

    def wait_host(self) -> None:
        """Wait until the work is done. Raises DeviceLostError on a lost device."""


class AccessHistory:
    """The fences of the accesses of one resource.

    Attributes:
      writes: of the last step that wrote it, one per stream slot that did.
      reads: stream slot -> the fence of the last step that has read it there since.
    """

    __slots__ = ("reads", "writes")

    def __init__(self) -> None:
        self.writes: tuple[Fence, ...] = ()
        self.reads: dict[Hashable, Fence] = {}

    def before(self, writes: bool) -> Sequence[Fence]:
        """Fences that an access comes after and that the host does not know to be over; the writes that are over are dropped."""
        if self.writes:
            self.writes = tuple([t for t in self.writes if not t.over])
        if not (writes and self.reads):
            return self.writes
        return [*self.writes, *[t for t in self.reads.values() if not t.over]]

    def add(self, writes: tuple[Fence, ...], reads: Mapping[Any, Fence]) -> None:
        """A step is queued, which came after what was here.

        Args:
          writes: of its stream slots that write. reads: of those that only read.
        """
        if writes:
            self.writes = writes
            self.reads = dict(reads)
        else:
            self.reads.update(reads)

    def wait_host(self, writes: bool) -> None:
        """The host waits for what an access comes after. Raises DeviceLostError on a lost device."""
        for fence in self.before(writes):
            fence.wait_host()


_numbers = itertools.count()


class ResourceClosed(FailedPreconditionError):
    """A plan was made for a resource that has been closed since. The plan must be made again; no step has run."""


class Resource:
    """A name in a container, and what stands behind it.

    Attributes:
      number: order of declaration, for a canonical order of several.
      closed: its container was reset or closed. A plan that holds it is of no use any more.
      made: ``open`` has made it.
      static: what ``open`` returns stays the same for the resource's life.
      version: another number after each step that may have written it, and has locked it.
      access_history: of the steps that may still be at work on it though they hold it no more.
    """

    __slots__ = (
        "__weakref__", "_object", "access_history", "closed", "kind", "made", "number", "request", "store", "version",
    )  # fmt: skip

    static: bool = True

    def __init__(self, kind: ResourceKind, request: ResourceRequest, store: ResourceStore) -> None:
        self.kind = kind
        self.request = request
        self.store = store
        self.number = next(_numbers)
        self.closed = False
        self.made = False
        self.version = 0
        self._object: Any = None
        self.access_history = AccessHistory()

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def device(self) -> Device:
        return self.request.device

    @property
    def locked_by_steps(self) -> bool:
        """Return whether steps lock it; else it synchronises itself."""
        return self.kind.lock == "step"

    def open(self) -> Any:
        """Object that kernels get for a handle on it; made at the first call. From any thread.

        Raises:
          ResourceClosed: its container was reset or closed. InternalError: its kind failed to make it; ``__cause__`` says why.
        """
        with self.store.lock:
            if self.closed:
                raise ResourceClosed(f"{self} was reset")
            if not self.made:
                self._object = self._create()
                self.made = True
            return self._object

    def _create(self) -> Any:
        try:
            return self.kind.create(self.request)
        except GraphdockError:
            raise
        except Exception as error:
            raise InternalError(
                f"{self} could not be made on {self.device!r}: {type(error).__name__}: {error}", op=self.name
            ) from error

    def settle(self, writes: bool) -> None:
        """The host waits until it may read it by itself, or write it too. The caller has locked it.

        Raises DeviceLostError where the work that it waits for was lost with its device.
        """
        self.access_history.wait_host(writes)

    def close(self) -> None:
        """Give back what ``open`` made, once no work uses it. The caller has locked everything in the container."""
        with contextlib.suppress(DeviceLostError):  # nothing runs there any more
            self.settle(True)
        with self.store.lock:
            made, self._object = self._object, None
            was, self.made, self.closed = self.made, False, True
        if was and self.kind.close is not None:
            self.kind.close(made, self.request)

    def check_fits(self, request: ResourceRequest) -> None:
        """Raise FailedPreconditionError when another plan means something else by this name."""
        where = self.store.where
        mine = {k: v for k, v in self.request.attrs.items() if k not in _NAMING}
        theirs = {k: v for k, v in request.attrs.items() if k not in _NAMING}
        if mine != theirs:
            raise FailedPreconditionError(
                f"{self} exists in {where} with other attributes",
                expected=", ".join(f"{k}={v}" for k, v in mine.items()),
                got=", ".join(f"{k}={v}" for k, v in theirs.items()),
            )
        self._check_device(request)

    def _check_device(self, request: ResourceRequest) -> None:
        if self.device.memory_space != request.device.memory_space:
            raise FailedPreconditionError(
                f"{self} of {self.store.where} lives on {self.device!r}",
                got=f"a plan that places it on {request.device!r}",
                hint="place it on the same device in every session that shares the container",
            )

    def __str__(self) -> str:
        return f"{self.kind.name} {self.name!r}"


#: Attributes of a handle that name the resource and say nothing about it.
_NAMING = frozenset({"container", "shared_name"})


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


#: Epochs are never used twice, so that an old one can't come back whatever the threads do.
_epochs = itertools.count(1)


class User(Protocol):
    """Holder of resources between steps: a plan."""

    def resources_closed(self) -> None: ...


class ResourceStore:
    """The resources of one container. A session has one of its own; named containers' live in the Host.

    May be used from any thread. Steps lock what they touch by the ``resource_lock``.

    Attributes:
      container: its name; ``""`` for a session's own.
      resource_lock: of its resources.
      epoch: changes whenever a resource may have lost its value or been closed, so that plans check again.
      lock: guards the table and the making of resources; taken after the resource lock, never before it.
      overlapping: steps may release their locks here before their work is done; once it is set, it stays.
    """

    def __init__(self, container: str = "") -> None:
        self.container = container
        self.resource_lock = ResourceLock()
        self.epoch = next(_epochs)
        self.lock = new_lock()
        self.overlapping = False
        self._closed = False
        self._resources: dict[str, Resource] = {}
        self._users: weakref.WeakSet[User] = weakref.WeakSet()

    @property
    def where(self) -> str:
        """For messages."""
        return f"container {self.container!r}" if self.container else "this session"

    def declare(self, kind: ResourceKind, name: str, attrs: Mapping[str, Any], device: Device) -> Resource:
        """The resource of that name; a new one, of which nothing is made yet, when it is not there.

        One that no step has used yet makes room for one of another type.

        Raises:
          AlreadyExistsError: a resource of another kind has the name; names both kinds.
          FailedPreconditionError: it is there with another dtype, shape, attributes or device; or the session is closed.
        """
        request = ResourceRequest(kind.name, name, self.container, attrs, device)
        with self.lock:
            if self._closed:
                raise FailedPreconditionError("the session is closed", hint="make a new tf.Session()")
            found = self._resources.get(name)
            if found is not None:
                if found.kind is not kind:
                    raise AlreadyExistsError(
                        f"{self.where} has a {found.kind.name} named {name!r}",
                        got=f"a handle to a {kind.name} of that name",
                        hint="give one of them another name",
                    )
                try:
                    found.check_fits(request)
                    return found
                except FailedPreconditionError:
                    if found.made:
                        raise
                    found.close()
                    self.value_lost()
            made = Variable if kind is VARIABLE else Resource
            resource = self._resources[name] = made(kind, request, self)
            return resource

    def names(self) -> list[str]:
        return list(self._resources)

    def get(self, name: str) -> Resource | None:
        return self._resources.get(name)

    def made(self) -> list[Resource]:
        """The resources that some step has used."""
        return [r for r in list(self._resources.values()) if r.made]

    def add_user(self, user: User) -> None:
        """Remember a plan, which lets go of closed resources."""
        with self.lock:
            self._users.add(user)

    def value_lost(self) -> None:
        """Some resource may have lost its value: plans check again before their next step."""
        self.epoch = next(_epochs)

    def let_overlap(self) -> None:
        """From now on every step looks, under its locks, for work that is in flight on what they guard."""
        if not self.overlapping:
            self.overlapping = True
            self.value_lost()

    def clear(self, limit: Limit | None = None) -> None:
        """Close every resource, once no step holds any: the same names may then be declared with other types, on other devices.

        Raises:
          DeadlineExceededError: a step held one of them beyond the limit. FailedPreconditionError: it is
          a step of this thread.
        """
        lock_set = LockSet(f"the reset of {self.where}", everything=True)
        with_locks((self.resource_lock,), LockRequest(lock_set), limit, self._clear)

    def close(self, limit: Limit | None = None) -> None:
        """As :meth:`clear`, for good: nothing may be declared here any more."""
        with self.lock:
            self._closed = True
        self.clear(limit)

    def _clear(self) -> None:
        with self.lock:
            resources, self._resources = list(self._resources.values()), {}
            users = list(self._users)
        with contextlib.ExitStack() as last:
            for user in users:
                last.callback(user.resources_closed)
            last.callback(self.value_lost)
            for resource in reversed(resources):
                last.callback(resource.close)  # each of them, whatever another one raises
