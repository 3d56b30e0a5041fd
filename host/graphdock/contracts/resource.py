"""Resources: what outlives a step and is named by a handle. A variable is one kind; a package may bring others.

A kind says how a resource is made and closed, and who keeps two steps from disturbing each other in it. An op of the verb
``handle`` names its kind in its spec (``resource: mypkg.counters``) and makes a handle; ops that take the handle say what they do
through it (``access: reads``, ``writes`` or ``uses``), and their kernels get the resource itself as that argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphdock.contracts.device import Buffer, Device
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.version import renamed_word
from graphdock.errors import InvalidArgumentError

__all__ = ["LOCKS", "VARIABLE", "ResourceKind", "ResourceRequest"]

#: Lock policies of a kind.
LOCKS = ("step", "own")


@lazy_dataclass(frozen=True, slots=True)
class ResourceRequest:
    """Request from which a resource is made.

    Attributes:
      kind: name of its kind.
      name: its name in the container: the handle's ``shared_name``, or the name of the handle's operation.
      container: ``""`` is private to a session; the resources of a named one are shared by the sessions of a host.
      attrs: the attributes of the handle's node.
      device: where the ops on it run, and where its memory is; host memory for a variable of strings.
    """

    kind: str
    name: str
    container: str
    attrs: Mapping[str, Any]
    device: Device


@lazy_dataclass(frozen=True, slots=True)
class ResourceKind:
    """A kind of resource. Data only.

    Attributes:
      name: what ``OpDef.resource`` says; bare for the host's and std's own, ``ns.Name`` for others.
      create: makes the resource, once per container and name, when the first step that needs it is about to run: never to explain
        a plan, and again after a reset. What it raises fails that step.
      lock: ``step``: a step locks it for its whole length, so that two never touch it at once unless both only read;
        ``own``: it synchronises itself, as a queue does, and steps use it at any time.
      close: gives back what ``create`` took; called once, with the resource and its request, when its container is reset or
        closed. No step holds it then; one of lock policy ``own`` may still be in use, and wakes whoever waits in it.
    """

    name: str
    create: Callable[[ResourceRequest], Any]
    lock: str = "step"
    close: Callable[[Any, ResourceRequest], None] | None = None

    def __post_init__(self) -> None:
        if self.lock not in LOCKS:
            raise InvalidArgumentError(
                f"the resource kind {self.name!r} has an unknown lock policy",
                expected=" or ".join(LOCKS),
                got=self.lock,
                hint=renamed_word(self.lock),
            )


def _storage(request: ResourceRequest) -> Buffer:
    """The buffer of a variable; None while its shape is not known."""
    dims = request.attrs["shape"]
    if dims is None or None in dims:
        return None
    return request.device.empty(request.attrs["dtype"], dims)


#: Tensors that keep their value between steps. The host's own: it reads, assigns and initialises them itself.
VARIABLE = ResourceKind("variable", _storage)
