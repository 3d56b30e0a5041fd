"""One resource of a container: declared when a plan names it, made when the first step needs it, closed with its container."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

from graphdock.contracts.device import Device
from graphdock.contracts.resource import ResourceKind, ResourceRequest
from graphdock.contracts.runtime.access_history import AccessHistory
from graphdock.errors import DeviceLostError, FailedPreconditionError, GraphdockError, InternalError

if TYPE_CHECKING:
    from graphdock.contracts.runtime.resources.store import ResourceStore

__all__ = ["Resource", "ResourceClosed"]

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
      access_history: of the steps that may still be at work on it though they hold it no more.
    """

    __slots__ = ("__weakref__", "_object", "access_history", "closed", "kind", "made", "number", "request", "store")

    static: bool = True

    def __init__(self, kind: ResourceKind, request: ResourceRequest, store: ResourceStore) -> None:
        self.kind = kind
        self.request = request
        self.store = store
        self.number = next(_numbers)
        self.closed = False
        self.made = False
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
        """Whether steps lock it; else it synchronises itself."""
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
