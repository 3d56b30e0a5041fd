"""Loops over rows whose number a plan knows, for devices that record their work: written out, an iteration behind the other.

The histories between such loops are no lists then: each element is a value of its own, in a buffer that is planned, and a recording
holds all iterations. What a loop kept is put together by one node, and what it reads is taken apart by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from graphdock.contracts.bodies import carried, scanned
from graphdock.contracts.builder import Builder
from graphdock.contracts.ir import PlanNode, Value
from graphdock.contracts.opdef import OpDef
from graphdock.errors import NotFoundError
from graphdock.graph.operation import Operation
from graphdock.shape import compatible, concrete, plain

__all__ = ["LIMIT", "CannotUnroll", "Unrolled", "Unrolling"]

#: Operations that a loop may become.
LIMIT = 4096
#: What an iteration may do besides computing.
_VERBS = frozenset({"alias", "constant", "feed", "kernel", "read"})


class CannotUnroll(Exception):
    """A loop that was written out has a reader that needs its history; the argument is the reason."""


@dataclass(frozen=True, slots=True)
class Unrolled:
    """What became of a loop. ``count``: iterations that were written out; 0 where ``why`` says why none was."""

    origin: str
    count: int
    why: str = ""


@dataclass(slots=True)
class Unrolling:
    """What one translation knows of the loops that it writes out.

    Attributes:
      elements: history that is none -> its elements, in the order in which they were made.
      notes: what became of each loop.
    """

    elements: dict[Value, list[Value]] = field(default_factory=dict)
    notes: list[Unrolled] = field(default_factory=list)

    def count(self, op: Operation, inputs: list[Value], ops: int) -> int:
        """How many iterations of a loop are written out, whose body has so many operations; 0 for none, with a note.

        Raises:
          CannotUnroll: it is none of these, and reads what another one made.
        """
        first = carried(op.op_def, op.node_attrs)
        read = inputs[first : first + scanned(op.op_def, op.node_attrs)]
        lengths = {self._length(history) for history in read}
        count = next(iter(lengths)) if len(lengths) == 1 else None
        why = _unfit(op)
        if not why and not count:
            why = "only the step knows how many iterations it has" if count is None else "it has no iteration"
        if not why and count is not None and count * ops > LIMIT:
            why = f"its {count} iterations are {count * ops} operations, more than {LIMIT}"
        if why:
            if not self.elements.keys().isdisjoint(inputs):
                raise CannotUnroll(why)
            self.notes.append(Unrolled(op.name, 0, why))
            return 0
        assert count is not None
        self.notes.append(Unrolled(op.name, count))
        return count

    def _length(self, history: Value) -> int | None:
        """How many elements a history has."""
        known = self.elements.get(history)
        if known is not None:
            return len(known)
        node = history.node
        if node is None or "unstacks" not in node.opdef.traits or node.opdef.rows is None or node.guard is not None:
            return None
        shape = concrete(node.inputs[0].shape)
        return shape[0] if shape else None

    def read(self, op: Operation, history: Value, builder: Builder) -> list[Value]:
        """The elements of a history that a loop reads, in the order in which they were made."""
        found = self.elements.get(history)
        if found is None:
            node = history.node
            assert node is not None
            rows = node.inputs[0]
            shape = concrete(rows.shape)
            assert shape is not None
            count, *rest = shape
            attrs = {"T": rows.dtype, "num": count, "axis": 0}
            opdef, name = _find(op, node.opdef), f"{node.name}/rows"
            found = builder.node(
                opdef, name, [rows], attrs, [(rows.dtype, (*rest,))] * count, node.control, origins=node.origins
            )
            for value in found:
                value.extent = (*rest,)
            found = found[::-1] if node.attrs["reverse"] else list(found)
            self.elements[history] = found
        return found

    def stack(self, op: Operation, history: Value, builder: Builder) -> PlanNode:
        """The node that puts together what a loop kept, for an op that makes a tensor of a history.

        Raises:
          CannotUnroll: the elements differ in shape, or it is another op.
        """
        elements = self.elements[history]
        shape = concrete(elements[0].shape)
        if op.op_def.rows is None or len(op.outputs) != 1:
            raise CannotUnroll(f"{op.name} reads what it keeps")
        made = op.outputs[0]
        if (
            shape is None
            or any(e.shape != shape for e in elements)
            or not compatible(made._dims, (len(elements), *shape))
        ):
            raise CannotUnroll("its iterations keep values of several shapes, or of unknown ones")
        attrs = {"T": made.dtype, "N": len(elements), "axis": 0}
        ordered = elements[::-1] if op.node_attrs["reverse"] else elements
        dims = (len(elements), *shape)
        (value,) = builder.node(_find(op, op.op_def), op.name, ordered, attrs, [(made.dtype, plain(dims))])
        value.extent = dims
        return builder.graph.nodes[-1]


def _find(op: Operation, opdef: OpDef) -> OpDef:
    try:
        return op.graph.host.ops.get(opdef.rows or "")
    except NotFoundError as error:
        raise CannotUnroll(f"there is no op {opdef.rows}") from error


def _unfit(op: Operation) -> str:
    """Why a loop is none that could be written out; empty where it is one."""
    test, body = op.bodies
    if op.node_attrs["maximum_iterations"] >= 0:
        return "it counts its iterations"
    (going,) = test.outputs
    if going.op.verb != "constant" or not going.op.node_attrs["value"] or not scanned(op.op_def, op.node_attrs):
        return "its condition decides how many iterations it has"
    for each in body.running():
        if each.bodies:
            return f"{each.name} within has bodies of its own"
        if each.verb not in _VERBS or each.verb == "kernel" and "pure" not in each.op_def.traits:
            return f"{each.name} within does more than compute"
        if each._device is not None:
            return f"{each.name} within asks for a device"
    return ""
