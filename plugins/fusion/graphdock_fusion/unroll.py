"""Loops over rows whose number a plan knows, for devices that record their work: written out, an iteration behind the other.

The histories between such loops are no lists then: each element is a value of its own, in a buffer that is planned, and a recording
holds all iterations. What a loop kept is put together by one node, and what it reads is taken apart by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphdock.contracts import Builder, KeepLoops, LoopNote, OpDef, PlanNode, UserOp, Value
from graphdock.contracts.bodies import carried, scanned
from graphdock.errors import NotFoundError
from graphdock.shape import Dims, compatible, concrete, plain

__all__ = ["LIMIT", "Unrolling"]

#: Operations that a loop may become.
LIMIT = 4096
#: What an iteration may do besides computing.
_VERBS = frozenset({"alias", "constant", "feed", "kernel", "read"})


@dataclass(slots=True)
class Unrolling:
    """Knowledge that one translation has of the loops that it writes out.

    Attributes:
      opdef: the OpDef of a type.
      elements: history that is none -> its elements, in the order in which they were made.
      notes: what became of each loop.
    """

    opdef: Callable[[str], OpDef]
    elements: dict[Value, list[Value]] = field(default_factory=dict)
    notes: list[LoopNote] = field(default_factory=list)

    def count(self, op: UserOp, inputs: Sequence[Value], ops: int) -> int:
        """Return how many iterations of a loop are written out, whose body has so many operations; 0 for none, with a note.

        Raises:
          KeepLoops: it is none of these, and reads what another one made.
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
                raise KeepLoops(why)
            self.notes.append(LoopNote(op.name, 0, why))
            return 0
        assert count is not None
        self.notes.append(LoopNote(op.name, count))
        return count

    def _length(self, history: Value) -> int | None:
        """Return how many elements a history has."""
        known = self.elements.get(history)
        if known is not None:
            return len(known)
        node = history.node
        if node is None or "unstacks" not in node.opdef.traits or node.opdef.rows is None or node.guard is not None:
            return None
        shape = concrete(node.inputs[0].shape)
        return shape[0] if shape else None

    def read(self, op: UserOp, history: Value, builder: Builder) -> list[Value]:
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
            opdef, name = self._rows(node.opdef), f"{node.name}/rows"
            found = builder.node(
                opdef, name, [rows], attrs, [(rows.dtype, (*rest,))] * count, node.control, origins=node.origins
            )
            for value in found:
                value.extent = (*rest,)
            found = found[::-1] if node.attrs["reverse"] else list(found)
            self.elements[history] = found
        return found

    def stack(self, op: UserOp, history: Value, builder: Builder) -> PlanNode:
        """The node that puts together what a loop kept, for an op that makes a tensor of a history.

        Raises:
          KeepLoops: the elements differ in shape, or it is another op.
        """
        elements = self.elements[history]
        shape = concrete(elements[0].shape)
        if op.op_def.rows is None or len(op.outputs) != 1:
            raise KeepLoops(f"{op.name} reads what it keeps")
        made = op.outputs[0]
        if (
            shape is None
            or any(e.shape != shape for e in elements)
            or not compatible(_dims(made), (len(elements), *shape))
        ):
            raise KeepLoops("its iterations keep values of several shapes, or of unknown ones")
        attrs = {"T": made.dtype, "N": len(elements), "axis": 0}
        ordered = elements[::-1] if op.node_attrs["reverse"] else elements
        dims = (len(elements), *shape)
        (value,) = builder.node(self._rows(op.op_def), op.name, ordered, attrs, [(made.dtype, plain(dims))])
        value.extent = dims
        return builder.graph.nodes[-1]

    def _rows(self, opdef: OpDef) -> OpDef:
        """The op that makes rows of one tensor, or one tensor of rows, as ``opdef`` does with a history."""
        try:
            return self.opdef(opdef.rows or "")
        except NotFoundError as error:
            raise KeepLoops(f"there is no op {opdef.rows}") from error


def _dims(tensor: Any) -> Dims:
    """The shape that a tensor of the user's graph has there."""
    return None if tensor.shape.dims is None else tuple(tensor.shape.as_list())


def _unfit(op: UserOp) -> str:
    """Return why a loop is none that could be written out; empty where it is one."""
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
        if each.device:
            return f"{each.name} within asks for a device"
    return ""
