"""Values that are made of one variable and stay from step to step, in hidden variables beside it.

A step that only reads a variable may want it in another form: a weight in panels, say. That form is a variable of the same
container, so that plans share it, and that a reset closes it. It is made again where the variable was written since, before the
step runs, under the locks that keep others from writing the variable meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphdock.contracts.effects import resource_name
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, arg_of, make_node
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.runtime.resources import Variable, unset
from graphdock.dtypes import string
from graphdock.locks import new_lock
from graphdock.shape import Dims, concrete

__all__ = ["Derived", "Derivation", "constant_reads", "derive"]

#: Held while one is made: two steps that only read may come at once.
_making = new_lock()


@lazy_dataclass(frozen=True, slots=True)
class Derivation:
    """Request for a derived value: handle of the variable, and ``fill(array, room)``, which makes it."""

    source: Value
    fill: Callable[[Any, Any], object]


class Derived:
    """A derived value of a plan. Its version is that of the variable of which it was made, ``source``."""

    __slots__ = ("_fill", "_made", "source")

    def __init__(self, source: Variable, made: Variable, fill: Callable[[Any, Any], object]) -> None:
        self.source, self._made, self._fill = source, made, fill
        made.initialized = True  # before anyone reads it
        if not made.made:
            made.version = -1  # of no variable

    def refresh(self) -> None:
        """Make it where the variable was written since. Of a step that has locked the variable to read it.

        Raises UninitializedError: the variable holds no value.
        """
        source = self.source
        if self._made.version != source.version:
            with _making:
                version = source.version
                if self._made.version != version:
                    if not source.initialized:
                        raise unset(source)
                    source.settle(False)
                    self._fill(source.open(), self._made.open())
                    self._made.version = version


def constant_reads(graph: PlanGraph, handles: Mapping[Value, Value]) -> tuple[dict[Value, Value], dict[Value, str]]:
    """Values of variables of static shape that no node of a plan does more with than read -> the handles that stand for these; and
    why other values of variables are not among them, as those that are read in bodies, which may never run.
    """
    written = {
        handles[value]
        for level in graph.all_graphs()
        for node in level.nodes
        if node.opdef.accesses
        for value, arg in zip(node.inputs, arg_of(node), strict=True)
        if arg.access in ("writes", "uses") and value in handles
    }
    kept, others = dict[Value, Value](), dict[Value, str]()
    for level in graph.all_graphs():
        for node in level.nodes:
            if node.verb != "read" or node.inputs[0] not in handles:
                continue
            value, owner = node.outputs[0], handles[node.inputs[0]]
            if owner in written:
                others[value] = "the step writes it"
            elif level is not graph:
                others[value] = "a loop or a branch reads it"
            elif not _is_plain(owner):
                others[value] = "its shape may change"
            else:
                kept[value] = owner
    return kept, others


def _is_plain(owner: Value) -> bool:
    assert owner.node is not None
    attrs = owner.node.attrs
    return attrs["dtype"] is not string and concrete(attrs["shape"]) is not None


def derive(value: Value, owner: Value, key: str, dims: Dims) -> PlanNode:
    """A node that reads what is derived of a variable in the place of its value, and the node of its handle: in no graph yet."""
    read, named = value.node, owner.node
    assert read is not None and named is not None
    container, name = resource_name(named)
    attrs = {"container": container, "shared_name": f"{name}//{key}", "dtype": value.dtype, "shape": dims}
    where: dict[str, Any] = {"site_of": read.site_of, "origins": read.origins}
    handle = make_node(named.opdef, f"{read.name}/{key}", [], attrs, [(owner.dtype, ())], **where)
    made = make_node(read.opdef, f"{read.name}/{key}/read", handle.outputs, read.attrs, [(value.dtype, dims)], **where)
    handle.device, handle.decision = named.device, named.decision
    made.device, made.decision = read.device, read.decision
    return made
