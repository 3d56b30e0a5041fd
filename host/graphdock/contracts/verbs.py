"""Verbs: what a step does with a node of an op, said once. An OpDef names its verb; each stage keys one table by it.

A plugin's op is a ``kernel`` (the default), an ``alias``, a ``handle`` or ``none``. The others belong to ops of the host's own
specs: the host makes their nodes and interprets them. A verb's facts stand here; what a stage does about a verb is that stage's
table, and a test holds every table to every verb.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["ANYONE", "VERBS", "Verb"]


@dataclass(frozen=True, slots=True)
class Verb:
    """Facts of one verb.

    Attributes:
      summary: what a step does with such a node; printed by ``graphdock ops`` and ``graphdock kernels``.
      anyone: a plugin's spec may name it.
      kernel: placement chooses a kernel for it. Without one the host runs the node itself.
      silent: a step runs nothing for it: no statement, no row in ``explain``.
      bodies: the node has nested graphs.
      on_host: its tensors lie in host memory whatever the device.
    """

    name: str
    summary: str
    anyone: bool = False
    kernel: bool = False
    silent: bool = False
    bodies: bool = False
    on_host: bool = False


_ALL = (
    Verb("kernel", "a kernel computes it", anyone=True, kernel=True),
    Verb("alias", "its output is its first input under another name; nothing runs", anyone=True, silent=True),
    Verb("none", "nothing runs; it holds control dependencies, or is an empty slot", anyone=True, silent=True),
    Verb("constant", "each reader gets the array, in its own memory space", silent=True),
    Verb("feed", "the caller gives its value", silent=True),
    Verb("handle", "names a resource; resolved when a plan is made", anyone=True, silent=True),
    Verb("read", "reads a variable: its own storage while no write can run, else a copy"),
    Verb("assign", "copies a value into a variable"),
    Verb("move", "copies a tensor to another memory space"),
    Verb("send", "hands a tensor to another executor"),
    Verb("receive", "waits for a tensor of another executor"),
    Verb("branch", "runs one of its bodies", bodies=True),
    Verb("loop", "runs its body while its condition holds", bodies=True),
    Verb("call", "runs its body once", bodies=True),
    Verb("host", "the host calls a Python function of its own", on_host=True),
)

#: Name -> facts.
VERBS: Mapping[str, Verb] = MappingProxyType({v.name: v for v in _ALL})

#: Verbs that a plugin's spec may name.
ANYONE: tuple[str, ...] = tuple(v.name for v in _ALL if v.anyone)
