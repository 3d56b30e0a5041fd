"""The resources of one container, of all kinds, by name."""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Mapping
from typing import Any, Protocol

from graphdock.contracts.device import Device
from graphdock.contracts.resource import VARIABLE, ResourceKind, ResourceRequest
from graphdock.contracts.runtime.resource_lock import Limit, LockRequest, LockSet, ResourceLock, with_locks
from graphdock.contracts.runtime.resources.resource import Resource
from graphdock.contracts.runtime.resources.variable import Variable
from graphdock.errors import AlreadyExistsError, FailedPreconditionError
from graphdock.locks import new_lock

__all__ = ["ResourceStore"]

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
