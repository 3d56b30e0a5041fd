"""Accesses of a step, or of one statement of it, to resources: its lock set, and the locks that it is of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from graphdock.contracts.ir import PlanGraph, Value
from graphdock.contracts.runtime.resource_lock import Limit, LockRequest, LockSet, with_locks
from graphdock.contracts.runtime.resources import Current, Resource
from graphdock.errors import AbortedError

__all__ = ["Access", "step_name"]

#: Fetches and targets that a step's name lists at most.
SHOWN = 3


class Access:
    """A lock set of resources of any number of containers. Immutable; may be used from many threads at once.

    Resources whose kind synchronises itself are left out. Called, it runs a function under its locks, once the host knows that no
    work is in flight on what they guard: that is how a step which may block, and therefore holds nothing while it runs, reads or
    updates one resource.

    Args:
      graph: of the step, for its name in messages.

    Attributes:
      lock_set: None when nothing need be locked.
      locks: of the containers concerned, in canonical order.
    """

    __slots__ = ("_resources", "_written", "lock_set", "locks")

    def __init__(self, graph: PlanGraph, reads: Iterable[Resource] = (), writes: Iterable[Resource] = ()) -> None:
        written = [r for r in writes if r.locked_by_steps]
        read = [r for r in reads if r.locked_by_steps]
        self._written = frozenset(written)
        self._resources = tuple(dict.fromkeys([*written, *read]))
        self.lock_set = LockSet(lambda: step_name(graph), read, written) if self._resources else None
        self.locks = tuple(sorted({r.store.resource_lock for r in self._resources}, key=lambda g: g.number))

    def __bool__(self) -> bool:
        """Return whether there is anything to lock."""
        return self.lock_set is not None

    def __call__(self, limit: Limit | None, function: Callable[..., Any], *args: Any) -> Any:
        """``function(*args)`` under its locks, for which it waits within the limit.

        A Current among the arguments becomes its variable's buffer, under the locks.

        Raises:
          AbortedError: a resource was reset since the step began. And what the function and :meth:`ResourceLock.wait` raise.
        """
        if self.lock_set is None:
            return self._within(function, args)
        return with_locks(self.locks, LockRequest(self.lock_set), limit, self._within, function, args)

    def _within(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        for resource in self._resources:
            if resource.closed:
                raise AbortedError(f"{resource} was reset while the step ran", hint="run the step again")
            resource.settle(resource in self._written)
        for resource in self._written:
            resource.version += 1
        return function(*[a.variable.buffer if isinstance(a, Current) else a for a in args])


def step_name(graph: PlanGraph) -> str:
    """``the step of loss, train``: its fetches and targets, wherever they are moved to."""
    names = list(dict.fromkeys([_moved(v).name for v in graph.outputs] + [n.name for n in graph.targets]))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"the step of {', '.join(names[:SHOWN])}{more}" if names else "a step without fetches"


def _moved(value: Value) -> Value:
    while value.node is not None and value.node.verb == "move":
        value = value.node.inputs[0]
    return value
