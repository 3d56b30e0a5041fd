"""Uses of lists of tensors in a loop whose iterations each read or write the element at its counter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphdock.contracts import PlanGraph, PlanNode, Value
from graphdock.contracts.bodies import captures, carried, scanned
from graphdock.shape import Dims, compatible, concrete

from graphdock_data.passes.affine import Affine, Scopes, length_of, root_of
from graphdock_data.passes.rows_of_lists import (
    WRITES,
    Listed,
    dims_given,
    forgets,
    is_gradient,
    is_nothing,
    keeps_promise,
    listed,
    named,
    reads_of,
    row,
)
from graphdock_data.passes.trips import Indices, NotKnown, Trips, indices_of, lengths_of

__all__ = ["ElementRead", "ListUses", "ListVariable"]


@dataclass(frozen=True, slots=True)
class ElementRead:
    """A read of one element an iteration.

    Attributes:
      number: which input of the loop the list is, and ``array`` that.
      source: what is known of it; None where its elements have to be gathered.
      dims: shape of an element.
    """

    node: PlanNode
    at: Indices
    number: int
    array: Value
    source: Listed | None
    dims: Dims


@dataclass
class ListVariable:
    """A list that is a loop variable.

    Attributes:
      number: which, and ``array`` the list before the loop.
      writes: what an iteration writes, and where. ``adds``: whether to what is there, zeros if nothing is.
      gone: nodes of the body that write, or make the next value otherwise.
      asked: whether a step has to say, before the loop, that all that is written has a place.
    """

    number: int
    array: Value
    writes: list[tuple[Indices, Value]] = field(default_factory=list)
    adds: bool = False
    gone: list[PlanNode] = field(default_factory=list)
    asked: bool = False


class ListUses:
    """Uses of lists by one loop.

    Attributes:
      reads, variables: what can be done without lists. ``refused``: name of a list -> why it stays one.
      outside: how often the level reads each value.
    """

    def __init__(
        self,
        loop: PlanNode,
        level: PlanGraph,
        scopes: Scopes,
        trips: dict[PlanNode, Trips],
        known: Mapping[Value, Listed],
    ) -> None:
        self.loop, self.level, self.scopes, self.trips, self.known = loop, level, scopes, trips, known
        self.reads: list[ElementRead] = []
        self.variables: list[ListVariable] = []
        self.refused: dict[str, str] = {}
        self.outside = reads_of(level)
        #: whether it does something that an error before or behind it would leave out, or not
        self._acts = any(
            n.opdef.is_active and not n.op.startswith("TensorList")
            for b in loop.bodies
            for g in b.all_graphs()
            for n in g.nodes
        )
        self._look()

    def _look(self) -> None:
        loop, scopes = self.loop, self.scopes
        count = carried(loop.opdef, loop.attrs)
        arrays = [(i, loop.inputs[i]) for i in range(count)] + [(i, outer) for i, outer, _ in captures(loop)]
        for position, array in arrays:
            if not _is_list(loop, position):
                continue
            try:
                if loop.guard is not None:
                    raise NotKnown("the loop's shapes are checked by the step")
                if position < count:
                    variable, found = self._variable(position)
                    self.variables.append(variable)
                else:
                    found = self._captured(position)
                self.reads += found
            except NotKnown as reason:
                self.refused[named(array, scopes)] = str(reason)
        self._in_order()

    def _in_order(self) -> None:
        """Refuse what may be an error that is told before the loop or behind it, where something else may be one within it, or
        another one there comes first.
        """
        late = {v.number: moment for v in self.variables if (moment := self._late(v)) is not None}
        late.update({r.number: (length_of(r.array, self.scopes), r.at.first) for r in self.reads if _is_late(r)})
        moments = list(late.values())
        alone = len(moments) == 1 or len(set(moments)) == 1 and None not in moments[0]
        if not moments or alone and not self.refused:
            return
        for number in late:
            name = named(self.loop.inputs[number], self.scopes)
            self.refused[name] = "whether an error of it comes first is not known before the loop"
        self.variables = [v for v in self.variables if v.number not in late]
        self.reads = [r for r in self.reads if r.number not in late]

    def _late(self, variable: ListVariable) -> tuple[Affine | None, Affine | None] | None:
        """The size that a write may exceed, and the first index of a write that may be an error; None where none may be."""
        first = self.loop.inputs[variable.number]
        if not variable.writes or is_gradient(first):
            return None
        at = variable.writes[0][0]
        if variable.asked:
            return length_of(first, self.scopes), at.first
        while first.node is not None and first.node.op == "TensorListSetItem":
            before = self.scopes.affine(first.node.inputs[1])
            if not self.scopes.at_least_zero(at.low(at.trips.most).minus(before).add(-1)):
                break
            first = first.node.inputs[0]
        return None if first.node is not None and first.node.op == "TensorListReserve" else (None, None)

    def _captured(self, position: int) -> list[ElementRead]:
        (inner,) = [inside for p, _, inside in captures(self.loop) if p == position]
        condition, body = self.loop.bodies
        users = [n for n in body.nodes if inner[1] in n.inputs]
        self._only_read(users, reads_of(condition)[inner[0]], body.outputs.count(inner[1]))
        return self._reads(position, users, None)

    def _only_read(self, users: list[PlanNode], tested: int, returned: int) -> None:
        if tested:
            raise NotKnown("the condition reads it")
        other = next((n.op for n in users if n.op != "TensorListGetItem"), "the body" if returned else None)
        if other is not None:
            raise NotKnown(f"{other} takes it, too")

    def _variable(self, number: int) -> tuple[ListVariable, list[ElementRead]]:
        loop, (condition, body) = self.loop, self.loop.bodies
        inner, out, first = body.inputs[number], body.outputs[number], loop.inputs[number]
        found = ListVariable(number, first)
        if out is not inner:
            self._written(found, inner, out)
        users = [n for n in body.nodes if inner in n.inputs and n not in found.gone]
        returned = body.outputs.count(inner) - (out is inner)
        self._only_read(users, reads_of(condition)[condition.inputs[number]], returned)
        gradient = is_gradient(first)
        for at, item in found.writes:
            if concrete(item.shape) is None or item.dtype.kind in "SVR":
                raise NotKnown("the shape of what is written is not known")
            if not at.within(Affine(), None, self.scopes):
                raise NotKnown("whether its indices are negative is not known")
        if found.writes and not gradient:
            self._may_write(found, first)
            if users:
                raise NotKnown("the loop reads what it writes")
        if found.adds and users:
            raise NotKnown("the loop reads what it adds up")
        unread = not self.outside[loop.outputs[number]]
        if not found.writes and not unread and forgets(first, self.scopes):
            raise NotKnown("it is read behind the loop, too, and each element may be read once")
        return found, self._reads(number, users, found.writes[0][0] if found.writes else None)

    # -- writes

    def _written(self, found: ListVariable, inner: Value, out: Value) -> None:
        """Note what makes the next value of a list."""
        body, node = self.loop.bodies[1], out.node
        if node is None or node not in body.nodes:
            raise NotKnown("an iteration puts another one in its place")
        if node.op == "TensorListSetItem" and node.inputs[0] is inner:
            sets = found.gone = [node]
        elif node.op == "AddLists":
            sets = self._sum(found, inner, node)
        else:
            several = node.op in WRITES and node.inputs[0].node is not None
            raise NotKnown("an iteration writes several elements" if several else f"{node.op} makes its next value")
        reads = reads_of(body)
        for each in found.gone:
            if reads[each.outputs[0]] != 1:
                raise NotKnown("the loop reads what it writes")
            if each.control:
                raise NotKnown(f"{each.origin} waits for something else")
        found.writes = [(indices_of(n.inputs[1], self.loop, self.scopes, self.trips), n.inputs[2]) for n in sets]

    def _sum(self, found: ListVariable, inner: Value, node: PlanNode) -> list[PlanNode]:
        """The writes of which a gradient adds up a list: to the one before, or to that with zeros where it writes."""
        leaves, sums = _added(node)
        sets = [v.node for v in leaves if v is not inner and v.node is not None and v.node.op == "TensorListSetItem"]
        clears = [n for n in sets if n.inputs[0] is inner and _is_zeros(n.inputs[2])]
        found.gone = [*sums, *sets]
        writes = [n for n in sets if n not in clears]
        before = leaves.count(inner) + len(clears)
        if (
            before != 1
            or leaves.count(inner) + len(sets) != len(leaves)
            or not all(is_nothing(n.inputs[0]) for n in writes)
        ):
            raise NotKnown("what is added to it is not known before the loop")
        if clears and (len(writes) != 1 or writes[0].inputs[1] is not clears[0].inputs[1]):
            raise NotKnown("an iteration writes several elements")
        found.adds = not clears
        return writes

    def _may_write(self, found: ListVariable, first: Value) -> None:
        """Raise NotKnown unless a write of the loop is no error, or one that can be told before or behind it."""
        root = root_of(first, self.scopes)
        if root is None or root.op != "TensorListReserve" or found.adds:
            raise NotKnown("where it is made is not known")
        ((at, item),) = found.writes
        dims = dims_given(root, 0)
        if isinstance(dims, bool) or not compatible(dims, item.shape) or root.attrs["element_dtype"] is not item.dtype:
            raise NotKnown("the shape of its elements is not known")
        size = None if root.attrs["dynamic_size"] else self.scopes.affine(root.inputs[1])
        found.asked = not at.within(Affine(), size, self.scopes)
        own = at.trips.loop is self.loop and at.trips.exact and not at.falling
        if found.asked and not own:
            raise NotKnown(
                "whether all indices at which it is written are within its size is not known before the loop"
            )
        if self._acts and self._late(found) is not None:
            raise NotKnown("the loop does other things before a write that may be an error")

    # -- reads

    def _reads(self, number: int, users: list[PlanNode], written: Indices | None) -> list[ElementRead]:
        """The reads of a list, which see it as it was before the loop."""
        array = self.loop.inputs[number]
        if len(users) > 1 and forgets(array, self.scopes):
            raise NotKnown("an iteration reads several elements, and each may be read once")
        found = []
        for node in users:
            if node.attrs["element_dtype"].kind in "SVR":
                raise NotKnown("its elements are no numbers")
            if node.control:
                raise NotKnown(f"{node.origin} waits for something else")
            at = indices_of(node.inputs[1], self.loop, self.scopes, self.trips)
            if written is not None and written != at:
                raise NotKnown("it is read at other indices than it is written")
            if at.trips.loop is self.loop:
                self._as_many(at.trips)
            found.append(self._read(number, node, at))
        return found

    def _as_many(self, trips: Trips) -> None:
        """Raise NotKnown unless the histories that the loop reads are as long as the ones to come."""
        if trips.most.known is not None and trips.most.known < 1:
            raise NotKnown("the loop has no iterations")
        if any(c is None or not c.minus(trips.most).is_zero() for c in lengths_of(self.loop, self.scopes)):
            raise NotKnown("the loop reads histories of another length")

    def _read(self, number: int, node: PlanNode, at: Indices) -> ElementRead:
        array, dims = self.loop.inputs[number], dims_given(node, 2)
        try:
            source = self._rows(array, node, at, dims)
            return ElementRead(node, at, number, array, source, row(source.rows))
        except NotKnown:
            # where all of these elements are read, whatever is an error is one before the loop
            all_read = at.trips.exact and at.trips.loop is self.loop and not self._acts
            if isinstance(dims, bool) or dims is None or None in dims or not (all_read or is_gradient(array)):
                raise
            if not all_read and not at.within(Affine(), None, self.scopes) or not keeps_promise(node, dims):
                raise
            return ElementRead(node, at, number, array, None, dims)

    def _rows(self, array: Value, node: PlanNode, at: Indices, dims: Dims | bool) -> Listed:
        """Knowledge of a list, where a read gives its rows. Raises NotKnown where it may do anything else."""
        source = listed(array, self.known, self.scopes)
        if forgets(array, self.scopes) and any(self.outside[n.outputs[0]] > 1 for n in source.nodes):
            raise NotKnown("it is read at several places, and each element may be read once")
        if not at.within(source.low, source.end, self.scopes):
            raise NotKnown("whether all indices at which it is read are those of rows is not known before the loop")
        if (
            isinstance(dims, bool)
            or not compatible(dims, row(source.rows))
            or not keeps_promise(node, row(source.rows))
        ):
            raise NotKnown("the shape of its elements is not known")
        if node.attrs["element_dtype"] is not source.rows.dtype:
            raise NotKnown("it is read as of another dtype")
        return source


def _is_late(read: ElementRead) -> bool:
    """Return whether a read may be an error that is told before the loop."""
    return read.source is None and not is_gradient(read.array)


def _is_list(loop: PlanNode, position: int) -> bool:
    """Return whether an input of a loop is a list that its body reads or writes."""
    count = carried(loop.opdef, loop.attrs)
    if loop.inputs[position].dtype.kind != "V" or count <= position < count + scanned(loop.opdef, loop.attrs):
        return False
    inner = loop.bodies[1].inputs[position]
    return any(
        inner in n.inputs and (n.op.startswith("TensorList") or n.op == "AddLists") for n in loop.bodies[1].nodes
    )


def _is_zeros(value: Value) -> bool:
    return value.node is not None and value.node.verb == "constant" and not value.node.attrs["value"].any()


def _added(node: PlanNode) -> tuple[list[Value], list[PlanNode]]:
    """The lists that a sum of lists is made of, sums among them looked into, and the nodes that are sums."""
    leaves, sums, stack = list[Value](), list[PlanNode](), [node]
    while stack:
        each = stack.pop()
        sums.append(each)
        for value in each.inputs:
            if value.node is not None and value.node.op == "AddLists":
                stack.append(value.node)
            else:
                leaves.append(value)
    return leaves, sums
