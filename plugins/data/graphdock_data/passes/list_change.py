"""A loop with histories in the place of lists: what an iteration wrote it keeps, what it read is a row that it is given."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from graphdock.contracts import PlanNode, Rewriter, Value, dtypes
from graphdock.contracts.bodies import captures, carried, elements, scanned
from graphdock.contracts.ir import make_node
from graphdock.shape import Symbol, concrete

from graphdock_data.passes.affine import Affine, length_of
from graphdock_data.passes.list_uses import ElementRead, ListUses, ListVariable
from graphdock_data.passes.plan_nodes import NodeMaker
from graphdock_data.passes.rows_of_lists import Listed, is_gradient, is_nothing
from graphdock_data.passes.trips import Indices, Trips

__all__ = ["change_loop"]

#: What a loop keeps in the place of a write: of which list, where, and what.
_Kept = tuple[ListVariable, Indices, Value]


def change_loop(uses: ListUses, make: NodeMaker, known: dict[Value, Listed]) -> None:
    """Put a loop without lists in the place of one, which leaves the lists that are read behind it.

    Args:
      make: of the loop's level. ``known``: gets what is known of those lists.

    Raises:
      NotKnown: a number that is needed is not to be had where the loop stands; nothing is changed then.
    """
    change = _Change(uses, make)
    change.apply()
    known.update(change.known)


class _Change:
    def __init__(self, uses: ListUses, make: NodeMaker) -> None:
        self.uses, self.make = uses, make
        self.loop, self.level, self.facts = uses.loop, uses.level, uses.scopes.facts
        self.known: dict[Value, Listed] = {}
        #: result of the loop -> that of the one that is made
        self._results: Mapping[Value, Value] = {}
        self._all_read: Affine | None = None

    def apply(self) -> None:
        loop, count = self.loop, carried(self.loop.opdef, self.loop.attrs)
        reads, variables = self.uses.reads, self.uses.variables
        histories = [self._history(read) for read in reads]
        kept = [(v, *w) for v in variables if self.uses.outside[loop.outputs[v.number]] for w in v.writes]
        arrays = {v.number: loop.inputs[v.number] for v in variables}
        asked = {v.number: self._asked(v) for v, _, _ in kept if v.asked}
        arrays.update(asked)
        gone = {v.number for v in variables}
        gone.update(p for p, _, inside in captures(loop) if inside[1] in [r.node.inputs[0] for r in reads])
        stay = [i for i in range(len(loop.outputs)) if i not in gone or i >= count]
        made = self._loop(histories, gone, stay, len(kept), [v.node for v in asked.values() if v.node is not None])
        self._results = dict(zip([loop.outputs[i] for i in stay], made.outputs, strict=False))
        self._learn()
        values = [self._results.get(old) for old in loop.outputs]
        for variable in variables:
            written = [(at, item, made.outputs[len(stay) + i]) for i, (v, at, item) in enumerate(kept) if v is variable]
            if written or not variable.writes:
                values[variable.number] = self._list(variable, arrays[variable.number], written)
        self._bodies(gone, stay, kept)
        self._bind(made, values)
        self.uses.scopes.see(made)

    def _bind(self, made: PlanNode, values: list[Value | None]) -> None:
        """Put the nodes that are made in the place of the loop."""
        loop, level = self.loop, self.level
        level.targets = [made if n is loop else n for n in level.targets]
        with Rewriter(level) as change:
            for node in self.make.made:
                change.insert(node if node is made else change.number(node), before=loop)
            for old, new in zip(loop.outputs, values, strict=True):
                if new is not None:
                    change.redirect(old, new)
            for node in level.nodes:
                if node.control and loop in node.control:
                    change.rebind(node, control=[made if n is loop else n for n in node.control])
            change.erase(loop)

    def _loop(
        self, histories: list[Value], gone: set[int], stay: list[int], kept: int, asked: list[PlanNode]
    ) -> PlanNode:
        """The node of the loop that is made, which waits for ``asked``."""
        loop = self.loop
        first = carried(loop.opdef, loop.attrs) + scanned(loop.opdef, loop.attrs)
        inputs = [v for i, v in enumerate(loop.inputs[:first]) if i not in gone] + histories
        inputs += [v for i, v in enumerate(loop.inputs) if i >= first and i not in gone]
        types = [(loop.outputs[i].dtype, loop.outputs[i].shape) for i in stay] + [(dtypes.variant, ())] * kept
        attrs = {
            **loop.attrs,
            "Tin": tuple([v.dtype for v in inputs]),
            "Tout": tuple([dtype for dtype, _ in types]),
            "output_shapes": tuple([s for i, s in enumerate(loop.attrs["output_shapes"]) if i not in gone]),
            "scanned": loop.attrs["scanned"] + len(histories),
        }
        control = (*loop.control, *asked)
        named = (loop.requested, loop.site_of, loop.bodies, loop.origins)
        made = make_node(loop.opdef, loop.name, inputs, attrs, types, control, *named, loop.order)
        for i, new in zip(stay, made.outputs, strict=False):
            new.extent = loop.outputs[i].extent
        self.make.made.append(made)
        return made

    def _bodies(self, gone: set[int], stay: list[int], kept: list[_Kept]) -> None:
        """Let the bodies take elements, and return what is kept."""
        loop, (condition, body) = self.loop, self.loop.bodies
        count = carried(loop.opdef, loop.attrs)
        first = count + scanned(loop.opdef, loop.attrs)
        outside = {v for p, _, inside in captures(loop) if p in gone for v in inside}
        outside.update(level.inputs[i] for level in loop.bodies for i in gone if i < count)
        with Rewriter(body) as inner:
            rows = []
            for read in self.uses.reads:
                rows.append(Value(f"{read.node.name}/row", read.node.outputs[0].dtype, read.dims))
                inner.replace(read.node, rows[-1:])
            for variable in self.uses.variables:
                for node in variable.gone:
                    inner.erase(node)
            inputs = [*body.inputs[:first], *rows, *body.inputs[first:]]
            inner.takes([v for v in inputs if v not in outside])
            inner.returns([*(body.outputs[i] for i in stay), *(item for _, _, item in kept)])
        with Rewriter(condition) as inner:
            inner.takes([v for v in condition.inputs if v not in outside])

    def _learn(self) -> None:
        """Note what a loop that counts ends with."""
        trips = self.uses.trips.get(self.loop)
        if trips is None:
            return
        late = [(at, variable.array) for variable in self.uses.variables if variable.asked for at, _ in variable.writes]
        late += [(read.at, read.array) for read in self.uses.reads if read.source is None and read.at.trips is trips]
        for at, array in late:  # there are not more iterations than the list has elements
            end, size = at.end(self._done(trips)), length_of(array, self.uses.scopes)
            if size is not None and at.step > 0:
                results = [v for v, factor in end.terms if isinstance(v, Value) and factor == 1]
                for made in set(results) & set(self._results.values()):
                    self.facts.most[made] = size.minus(end.minus(Affine(((made, 1),))))
        for inner, number in trips.numbers.items():
            form = trips.counters[inner]
            step = dict(form.terms)[trips.iteration]
            final = form.minus(Affine(((trips.iteration, step),))).plus(_some(trips.most), step)
            made = self._results[self.loop.outputs[number]]
            if trips.exact and not late:
                self.facts.finals[made] = final
            if step > 0 and final.known is not None:
                self.facts.most[made] = final

    # -- what is read

    def _history(self, read: ElementRead) -> Value:
        """The history of the rows that iterations read, the first one's last."""
        trips, at, make = read.at.trips, read.at, self.make
        own = trips.loop is self.loop
        count = self._count(trips)
        number = make.scalar(count, clamped=own)
        if own and not count.at_least_zero():
            count = Affine(((number, 1),))
        if read.source is None:
            in_order = not is_gradient(read.array)
            return make.unstacked(self._gathered(read, count), number, in_order or not at.falling, False)
        rows, low = read.source.rows, at.low(count).minus(read.source.low)
        whole = read.source.end.minus(read.source.low).minus(self._count(trips)).is_zero()
        if not low.is_zero():
            rows = make.part(rows, low)
        return make.unstacked(rows, number, not at.falling, not (whole and (trips.exact or not own)))

    def _count(self, trips: Trips) -> Affine:
        """Number of iterations of the loop; at most, where it counts them itself."""
        return _some(trips.most) if trips.loop is self.loop else self._done(trips)

    def _done(self, trips: Trips) -> Affine:
        """Number of iterations that the loop had."""
        if trips.exact and trips.most.known is not None:
            return _some(trips.most)
        if trips.loop is not self.loop:
            here = all(self.uses.scopes.scalar(base, self.level) is not None for base, _ in trips.done.terms)
            return trips.done if here else self._read_to_its_end()
        terms = [(self._results.get(b, b) if isinstance(b, Value) else b, factor) for b, factor in trips.done.terms]
        return Affine(tuple(terms), trips.done.number)

    def _read_to_its_end(self) -> Affine:
        """Number of elements of the histories that the loop reads, where the loop that made them stands elsewhere."""
        if self._all_read is None:
            history = next(h for h, e in elements(self.loop) if e.dtype is dtypes.int32 and e.shape == ())
            self._all_read = Affine(((self.make.elements_of(history), 1),))
        return self._all_read

    def _gathered(self, read: ElementRead, count: Affine) -> Value:
        """The elements that a loop reads, taken off a list of which little is known: those of a gradient by rising index; else in
        the order in which the loop would read them, up to the first that is not there, which is an error.
        """
        make, low, end = self.make, read.at.low(count), read.at.end(count)
        if is_gradient(read.array):
            indices = make.indices(low, end)
        else:
            length, one = make.length(read.array), make.integers(1)
            first = make.scalar(read.at.first)
            if read.at.step > 0:
                least = make.binary("Add", make.binary("Maximum", length, first), one)
                indices = make.span(first, make.binary("Minimum", make.scalar(end), least))
            else:
                least = make.binary("Sub", make.binary("Sub", first, length), one)
                indices = make.span(first, make.binary("Maximum", make.scalar(low.add(-1)), least), -1)
        dims = concrete(read.dims)
        assert dims is not None
        return make.gathered(read.array, indices, read.node.attrs["element_dtype"], dims, count.known)

    # -- what is written

    def _asked(self, variable: ListVariable) -> Value:
        """The list before the loop, to which all that is written can be written: else there is the error of the first write for
        which there is no place. It writes one row of zeros there, or none.
        """
        make, array = self.make, self.loop.inputs[variable.number]
        ((at, item),) = variable.writes
        count, one = _some(at.trips.most), make.integers(1)
        first = make.binary("Maximum", make.length(array), make.scalar(at.low(count)))
        over = make.binary("Sub", make.scalar(at.end(count)), first)
        some = make.binary("Maximum", make.binary("Minimum", over, one), make.integers(0))
        dims = concrete(item.shape)
        assert dims is not None
        zeros = make.constant(np.zeros((1, *dims), item.dtype.np), item.dtype)
        begin = make.integers([0] * (1 + len(dims)))
        sizes = make.vector([some, *(make.integers(d) for d in dims)])
        attrs = {"T": item.dtype, "Index": dtypes.int32}
        rows = make.node("Slice", [zeros, begin, sizes], attrs, (item.dtype, (None, *dims)), "over")
        return make.scattered(array, rows, make.span(first, make.binary("Add", first, some)))

    def _list(self, variable: ListVariable, array: Value, kept: list[tuple[Indices, Value, Value]]) -> Value:
        """The list behind the loop, of what it was before and of the histories of what was written."""
        make = self.make
        parts = [] if variable.adds and is_nothing(array) else [array]
        for at, item, history in kept:
            count = self._done(at.trips)
            rows = make.stacked(history, count.known, item, at.falling)
            if count.known is None:
                dims = concrete(item.shape)
                assert dims is not None
                number = Symbol(False)
                rows.extent = (number, *dims)
                self.facts.dims[number] = self._settled(count)
            into = array if not variable.adds else array if is_nothing(array) else make.nothing()
            made = make.scattered(into, rows, make.indices(at.low(count), at.end(count)))
            self._note(variable, at, count, rows, made)
            parts = [*parts, made] if variable.adds else [made]
        return parts[0] if len(parts) == 1 else make.added(parts)

    def _note(self, variable: ListVariable, at: Indices, count: Affine, rows: Value, made: Value) -> None:
        """Note what is known of a list that was made of what a loop wrote, where that can't have been an error."""
        root, into = self.loop.inputs[variable.number].node, made.node
        if root is None or root.op != "TensorListReserve" or root.control or into is None:
            return
        size = self.uses.scopes.affine(root.inputs[1])
        nodes = (into, root, *([asked] if variable.asked and (asked := into.inputs[0].node) is not None else []))
        low, end = self._settled(at.low(count)), self._settled(at.end(count))
        self.known[made] = Listed(rows, low, end, root, size, nodes)

    def _settled(self, form: Affine) -> Affine:
        """A form with what results of loops are known to be in their place."""
        for base, factor in form.terms:
            if isinstance(base, Value) and base in self.facts.finals:
                form = form.minus(Affine(((base, factor),))).plus(self.facts.finals[base], factor)
        return form


def _some(most: Affine) -> Affine:
    """A number of iterations, which is not negative, where it is known."""
    return most if most.known is None else Affine((), max(most.known, 0))
