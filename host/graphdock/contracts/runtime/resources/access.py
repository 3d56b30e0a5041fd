"""What a step, or one statement of it, does to resources: the claim, and the gates where it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from graphdock.contracts.ir import PlanGraph, Value
from graphdock.contracts.runtime.resource_lock import Claim, Limit, Visit, through
from graphdock.contracts.runtime.resources.resource import Resource
from graphdock.contracts.runtime.resources.variable import Current
from graphdock.errors import AbortedError

__all__ = ["Access", "step_name"]

#: Fetches and targets that a step's name lists at most.
SHOWN = 3


class Access:
    """A claim on resources of any number of containers. Immutable; may be used from many threads at once.

    Resources whose kind synchronises itself are left out. Called, it runs a function under its claim, once the host knows that no
    work is in flight on what it claims: that is how a step which may block, and therefore holds nothing while it runs, reads or
    updates one resource.

    Args:
      graph: of the step, for its name in messages.

    Attributes:
      claim: None when nothing need be claimed.
      gates: of the containers concerned, in canonical order.
    """

    __slots__ = ("_resources", "_written", "claim", "gates")

    def __init__(self, graph: PlanGraph, reads: Iterable[Resource] = (), writes: Iterable[Resource] = ()) -> None:
        written = [r for r in writes if r.claimed]
        read = [r for r in reads if r.claimed]
        self._written = frozenset(written)
        self._resources = tuple(dict.fromkeys([*written, *read]))
        self.claim = Claim(lambda: step_name(graph), read, written) if self._resources else None
        self.gates = tuple(sorted({r.store.gate for r in self._resources}, key=lambda g: g.number))

    def __bool__(self) -> bool:
        """Whether there is anything to claim."""
        return self.claim is not None

    def __call__(self, limit: Limit | None, function: Callable[..., Any], *args: Any) -> Any:
        """``function(*args)`` under the claim, for which it waits within the limit.

        A Current among the arguments becomes its variable's buffer, under the claim.

        Raises:
          AbortedError: a resource was reset since the step began. And what the function and :meth:`Gate.wait` raise.
        """
        if self.claim is None:
            return self._within(function, args)
        return through(self.gates, Visit(self.claim), limit, self._within, function, args)

    def _within(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        for resource in self._resources:
            if resource.closed:
                raise AbortedError(f"{resource} was reset while the step ran", hint="run the step again")
            resource.settle(resource in self._written)
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
