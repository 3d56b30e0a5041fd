"""From the user's graph to the plan IR: what the fetches need, once per plan."""

from __future__ import annotations

import heapq
import operator
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from graphdock.contracts.bodies import (
    Contents,
    KeepLoops,
    LoopNote,
    LoopWriter,
    carried,
    first_given,
    may_hold,
    scanned,
)
from graphdock.contracts.effects import effects_of, handle_of, lay_order
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.contracts.rewriter import Builder
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.graph.body import BodyGraph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.planning.plan_shapes import PlanShapes, fed_extent
from graphdock.shape import Dims, Symbol, compatible, plain, show
from graphdock.trampoline import Visit, trampoline

__all__ = ["is_shared_read", "needed_operations", "translate"]


def needed_operations(
    roots: Sequence[Operation], fed: Mapping[Tensor, Any], done: Collection[Operation] = ()
) -> list[Operation]:
    """Every operation that ``roots`` need when the ``fed`` tensors are given, in an order that keeps all dependencies.

    Among operations that could run next, the one created first runs first.

    Args:
      done: operations that have run already: nobody waits for them.

    Raises:
      InvalidArgumentError: the control inputs make a cycle.
    """
    needed = dict.fromkeys(roots)
    stack = list(needed)
    monotone = True
    while stack:
        op = stack.pop()
        for tensor in (*op.inputs, *op.later) if op.later else op.inputs:
            if tensor not in fed:
                maker = tensor.op
                if maker not in needed:
                    needed[maker] = None
                    stack.append(maker)
        for before in op._control:
            if before not in done:
                monotone = monotone and before._id < op._id
                if before not in needed:
                    needed[before] = None
                    stack.append(before)
    ordered = sorted(needed, key=operator.attrgetter("_id"))
    return ordered if monotone else _topological(ordered, fed, done)


def _topological(ops: Sequence[Operation], fed: Mapping[Tensor, Any], done: Collection[Operation]) -> list[Operation]:
    followers: dict[Operation, list[Operation]] = {op: [] for op in ops}
    pending: dict[Operation, int] = {}
    for op in ops:
        before = {t.op for t in op.inputs if t not in fed} | {b for b in op._control if b not in done}
        pending[op] = len(before)
        for b in before:
            followers[b].append(op)
    ready = [(op._id, i) for i, op in enumerate(ops) if pending[op] == 0]
    index = {op: i for i, op in enumerate(ops)}
    heapq.heapify(ready)
    result = []
    while ready:
        _, i = heapq.heappop(ready)
        op = ops[i]
        result.append(op)
        for follower in followers[op]:
            pending[follower] -= 1
            if pending[follower] == 0:
                heapq.heappush(ready, (follower._id, index[follower]))
    if len(result) < len(ops):
        stuck = [op for op in ops if pending[op] > 0]
        raise InvalidArgumentError(
            "the graph has a cycle through " + ", ".join(op.name for op in stuck[:5]),
            op=stuck[0].name,
            site=stuck[0].site,
            hint="a control input was added that waits for its own follower",
        )
    return result


def translate(
    outputs: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[tuple[Tensor, Dims]],
    name: str = "main",
    unrolling: LoopWriter | None = None,
    done: Collection[Operation] = (),
    handles: Mapping[Tensor, Operation] = MappingProxyType({}),
    pieces: bool = False,
) -> PlanGraph:
    """The plan graph that computes ``outputs`` and runs ``targets``, given tensors of the shapes in ``feeds``.

    Nodes stand in the order of their creation where edges allow, and order edges keep what conflicts in that order. An output that
    is a variable's shared read stands behind the last update of the variable (docs/adr/0058). Shapes are inferred again from the
    feeds' own; nothing that the outputs and targets do not need is translated.

    Args:
      unrolling: which loops may be written out, and what became of them; None where none may be.
      done: operations that have run already, in a part of the step before: nobody waits for them.
      handles: placeholder of a handle, of a body that is translated by itself -> the operation that makes the handle.
      pieces: feeds come one by one, so that nothing can be assumed of what the plan does not know of their shapes.

    Raises:
      InvalidArgumentError: a placeholder is needed and not fed; a cycle. ShapeError: the feeds' shapes do not fit the ops.
    """
    if unrolling is not None and not any(op.graph.primitives for op in (*targets, *(t.op for t in outputs))):
        try:
            return _translate(outputs, targets, feeds, name, unrolling, done, handles, pieces)
        except (KeepLoops, ShapeError) as error:  # an error of the program's comes again
            unrolling.notes = [LoopNote(n.origin, 0, n.why or str(error)) for n in unrolling.notes]
    changing: set[Operation] = set()
    while True:
        try:
            return _translate(outputs, targets, feeds, name, None, done, handles, pieces, changing)
        except _ChangesShape as error:
            changing.add(error.merge)


class _ChangesShape(Exception):
    """The shape of what a Merge hands on is another one in a later iteration."""

    def __init__(self, merge: Operation) -> None:
        super().__init__(merge.name)
        self.merge = merge


def _translate(
    outputs: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[tuple[Tensor, Dims]],
    name: str,
    unrolling: LoopWriter | None,
    done: Collection[Operation],
    handles: Mapping[Tensor, Operation],
    pieces: bool,
    changing: Collection[Operation] = (),
) -> PlanGraph:
    builder = Builder(name)
    shapes = PlanShapes(Contents())
    values: dict[Tensor, Value] = {}
    for tensor, dims in feeds:
        # a later output of a node that runs for its others is named like this too
        fed = "/fed" if tensor.value_index else ""
        values[tensor] = builder.input(f"{tensor.op.name}:{tensor.value_index}{fed}", tensor.dtype, dims)
        values[tensor].extent = shapes.unknown_extent(dims) if pieces else fed_extent(dims, len(values) - 1)
    level = _Translation(builder, values, shapes, {}, unrolling, changing=changing)
    if handles:
        trampoline(level.run(list(dict.fromkeys(handles.values()))))
        values.update({placeholder: values[op.outputs[0]] for placeholder, op in handles.items()})
    roots = [t.op for t in outputs if t not in values] + list(targets)
    trampoline(level.run(needed_operations(roots, values, done)))
    level.check_merges()
    graph = builder.graph
    late = _read_late(level, [t for t in outputs if is_shared_read(t) and values[t].node is not None])
    graph.outputs = [late.get(t) or values[t] for t in outputs]
    graph.targets = list(dict.fromkeys([node for op in targets for node in level.after(op)]))
    if unrolling is not None and not unrolling.elements.keys().isdisjoint(graph.outputs):
        raise KeepLoops("a history is fetched")
    graph.conditions = shapes.facts.conditions()
    if graph.conditions.equal or not graph.conditions.proven:
        for inner in graph.all_graphs():
            for value in (*inner.inputs, *(v for n in inner.nodes for v in n.outputs)):
                value.extent = shapes.facts.canonical(value.extent)
    lay_order(graph)
    return graph


def is_shared_read(tensor: Tensor) -> bool:
    """Return whether a tensor is what a fetch of a variable means: the variable's shared read."""
    op = tensor.op
    return op.verb == "read" and op.graph._reads.get(op.inputs[0].op) is tensor


def _read_late(level: _Translation, fetched: Sequence[Tensor]) -> dict[Tensor, Value]:
    """Reads behind the last update, of those among the ``fetched`` reads that stand before an update of their variable."""
    if not fetched:
        return {}
    graph = level.builder.graph
    handles = handle_of(graph)
    reads = {level.nodes[t.op]: t for t in fetched}
    standing: dict[Value, list[Tensor]] = {}
    early: list[Tensor] = []
    for node, touched in effects_of(graph, handles)[0][1].items():
        if node in reads:
            standing.setdefault(handles[node.inputs[0]], []).append(reads[node])
        for handle, writes in touched.resources.items():
            if writes:
                early.extend(standing.pop(handle, ()))
    late: dict[Tensor, Value] = {}
    for tensor in early:
        op, before = tensor.op, level.nodes[tensor.op]
        values = dict(zip(op.inputs, before.inputs, strict=True))
        again = _Translation(level.builder, values, level.shapes, {}, None, "/last", before.control)
        trampoline(again.run([op]))
        late[tensor] = values[tensor]
    return late


class _Translation:
    """Translates the operations of one graph into one builder."""

    def __init__(
        self,
        builder: Builder,
        values: dict[Tensor, Value],
        shapes: PlanShapes,
        active: dict[BodyGraph, list[Operation]],
        unrolling: LoopWriter | None = None,
        iteration: str = "",
        waits: Sequence[PlanNode] = (),
        changing: Collection[Operation] = (),
    ) -> None:
        self.builder = builder
        self.values = values
        self.shapes = shapes
        self.active = active
        self.unrolling = unrolling
        #: of what is translated again, such as the body of a loop that is written out: what names of nodes end in, and what
        #: all of them wait for
        self.iteration = iteration
        self.waits = waits
        #: Merges whose shape is not that of what they take first
        self.changing = changing
        #: NextIteration -> the Merges that take what it gives, by name and number of the input
        self.taken: dict[Operation, list[tuple[str, int]]] = {}
        self.nodes: dict[Operation, PlanNode] = {}
        #: loop that is written out -> the nodes that stand for it
        self.written: dict[Operation, tuple[PlanNode, ...]] = {}

    def after(self, op: Operation) -> Sequence[PlanNode]:
        """The nodes that whoever waits for an operation waits for."""
        return self.written.get(op) or ((self.nodes[op],) if op in self.nodes else ())

    def run(self, ops: Sequence[Operation]) -> Visit[None]:
        """Translate operations whose dependencies come first; yields the translation of each body that it meets."""
        values, nodes, graph = self.values, self.nodes, self.builder.graph
        for op in ops:
            verb = op.verb
            if verb == "feed":
                if op.outputs[0] not in values:
                    raise _not_fed(op)
                continue
            inputs = list(map(values.__getitem__, op.inputs))
            bodies: list[PlanGraph] = []
            if self.unrolling is not None and (yield from self._written(op, inputs, self.unrolling)):
                continue
            if op.bodies:
                bodies = yield from self._bodies(op, inputs)
            extents, guard = self.shapes.infer(op, inputs, bodies)
            if op.later:
                if op not in self.changing:
                    extents[0] = self.shapes.of_either(inputs)
                for i, tensor in enumerate(op.later, len(inputs)):
                    self.taken.setdefault(tensor.op, []).append((op.name + self.iteration, i))
            name = op.name + self.iteration
            before: Sequence[PlanNode] = self.waits
            if op._control and not (self.written or before):
                before = [nodes[b] for b in op._control if b in nodes]
            elif op._control:
                before = [n for b in op._control for n in self.after(b)] + [*before]
            node = nodes[op] = PlanNode(
                op.type,
                name,
                op.op_def,
                op.node_attrs,
                inputs,
                before,
                _requested(op) if op.colocation else op._device,
                op,
                bodies,
                (op.name,),
            )
            node.guard = guard
            if verb == "next":
                node.attrs = {**node.attrs, "merges": tuple(self.taken.get(op, ()))}
            outputs = node.outputs
            for index, tensor in enumerate(op.outputs):
                extent = extents[index]
                dims = extent if extent is tensor._dims else plain(extent)
                value = Value(f"{name}:{index}" if index else name, tensor.dtype, dims, node, index)
                value.extent = extent
                outputs.append(value)
                if tensor not in values:
                    values[tensor] = value
            graph.add(node)
            if (verb != "kernel" or "unstacks" in node.opdef.traits) and may_hold(node):
                self.shapes.contents.leave(node)
            if op.colocation:
                node.attrs = {**node.attrs, "_colocate": op.colocation}

    def check_merges(self) -> None:
        """Raise _ChangesShape where what a NextIteration gives has another shape than the Merge that takes it was given."""
        for op in [op for op in self.nodes if op.later and op not in self.changing]:
            given = self.values[op.outputs[0]].extent
            if not all(self.shapes.facts.is_same(self.values[t].extent, given) for t in op.later if t in self.values):
                raise _ChangesShape(op)

    def _written(self, op: Operation, inputs: list[Value], unrolling: LoopWriter) -> Visit[bool]:
        """Yield whether the operation was translated otherwise: a loop that is written out, and what puts together what one
        kept.
        """
        if op.verb == "loop" and op._device is None:
            body = op.bodies[1]
            given = {*body.parameters, *body.captures.values()}
            ops = needed_operations([t.op for t in body.outputs if t not in given], dict.fromkeys(given))
            count = unrolling.count(op, inputs, len(ops))
            if count:
                yield from self._iterations(op, inputs, unrolling, ops, count)
                return True
        histories = [v for v in inputs if v in unrolling.elements and v.node is None]
        if not histories:
            return False
        node = self.nodes[op] = unrolling.stack(op, histories[0], self.builder)
        node.site_of = op
        node.control = tuple([n for b in op._control for n in self.after(b)])
        self.values.setdefault(op.outputs[0], node.outputs[0])
        return True

    def _iterations(
        self, op: Operation, inputs: list[Value], unrolling: LoopWriter, ops: Sequence[Operation], count: int
    ) -> Visit[None]:
        """The iterations of a loop as nodes of this level."""
        first = carried(op.op_def, op.node_attrs)
        last = first + scanned(op.op_def, op.node_attrs)
        body, state, made = op.bodies[1], inputs[:first], list[Value]()
        elements = [unrolling.read(op, history, self.builder) for history in inputs[first:last]]
        outer = {body.captures[t]: v for t, v in zip(op.inputs[last:], inputs[last:], strict=True)}
        kept: list[list[Value]] = [[] for _ in op.outputs[first:]]
        waits = [n for b in op._control for n in self.after(b)]
        for number in range(count):
            values = {**outer, **dict(zip(body.parameters[:first], state, strict=True))}
            values |= {t: e[-1 - number] for t, e in zip(body.parameters[first:], elements, strict=True)}
            within = f"{self.iteration}/{number}"
            level = _Translation(self.builder, values, self.shapes, self.active, unrolling, within, waits)
            yield from level.run(ops)
            made = [values[t] for t in body.outputs]
            state = made[:first]
            for each, value in zip(kept, made[first:], strict=True):
                each.append(value)
        for tensor, value in zip(op.outputs, state, strict=False):
            self.values.setdefault(tensor, value)
        for tensor, found in zip(op.outputs[first:], kept, strict=True):
            history = Value(f"{op.name}/kept", tensor.dtype, ())
            unrolling.elements[history] = found
            self.values.setdefault(tensor, history)
        self.written[op] = tuple(dict.fromkeys([v.node for v in made if v.node is not None]))

    def _bodies(self, op: Operation, inputs: list[Value]) -> Visit[list[PlanGraph]]:
        bodies: list[PlanGraph] = []
        if op.verb != "loop":
            skip = first_given(op.op_def)
            captures = list(zip(op.inputs[skip:], inputs[skip:], strict=True))
            for body in op.bodies:
                bodies.append((yield self._body(body, [], [], captures)))
        elif self.shapes.loops.running:
            bodies = yield from self._loop(op, inputs)
        else:
            for _ in self.shapes.loops.rounds():
                bodies = yield from self._loop(op, inputs)
        return bodies

    def _loop(self, op: Operation, inputs: list[Value]) -> Visit[list[PlanGraph]]:
        """The condition and the body for the loop variables' shapes as far as they are known to last."""
        count, loops = carried(op.op_def, op.node_attrs), self.shapes.loops
        last = count + scanned(op.op_def, op.node_attrs)
        extents = loops.parameters(op, [v.extent for v in inputs[:count]], op.node_attrs["output_shapes"])
        captures = list(zip(op.inputs[last:], inputs[last:], strict=True))
        test = yield self._body(op.bodies[0], extents, [], captures)
        step = yield self._body(op.bodies[1], extents, inputs[count:last], captures)
        loops.note(op, extents, [v.extent for v in step.outputs[:count]])
        bodies: list[PlanGraph] = [test, step]
        return bodies

    def _body(
        self,
        body: BodyGraph,
        parameters: Sequence[Any],
        histories: Sequence[Value],
        captures: Sequence[tuple[Tensor, Value]],
    ) -> Visit[PlanGraph]:
        """One body, whose parameters have these extents, and of which the last are elements of ``histories``."""
        builder = Builder(body.name)
        values: dict[Tensor, Value] = {}
        count = len(parameters)
        for tensor, extent in zip(body.parameters[:count], parameters, strict=True):
            values[tensor] = _input(builder, tensor, extent)
        renamed: dict[Symbol, Symbol] = {}
        for tensor, history in zip(body.parameters[count:], histories, strict=True):
            values[tensor] = self._element(builder, tensor, self.shapes.contents.of(history), renamed)
        for outer, value in captures:
            inner = body.captures[outer]
            values[inner] = _input(builder, inner, value.extent)
            self.shapes.bind(values[inner], value)
        active = _active(body, self.active)
        roots = [t.op for t in body.outputs if t not in values] + active
        level = _Translation(builder, values, self.shapes, self.active, self.unrolling)
        yield from level.run(needed_operations(roots, values))
        graph = builder.graph
        graph.outputs = [values[t] for t in body.outputs]
        if self.unrolling is not None and not self.unrolling.elements.keys().isdisjoint(graph.outputs):
            raise KeepLoops("a body returns its history")
        graph.targets = [level.nodes[op] for op in active]
        return graph

    def _element(self, builder: Builder, tensor: Tensor, held: Value | None, renamed: dict[Symbol, Symbol]) -> Value:
        """The parameter for an element of a history, of the shape that the elements have in this plan.

        Args:
          renamed: dims that change from one iteration to the next -> what stands for them in this loop.
        """
        if held is None:
            return _input(builder, tensor, self.shapes.unknown_extent(tensor._dims))
        if held.dtype is not tensor.dtype or not compatible(held.shape, tensor._dims):
            raise InvalidArgumentError(
                f"the body reads elements of a history as {tensor.dtype.name}{show(tensor._dims)}, "
                f"but they are {held.dtype.name}{show(held.shape)}",
                op=tensor.op.name,
                site=tensor.op.site,
            )
        value = _input(builder, tensor, self.shapes.element(tensor._dims, held.extent, renamed))
        self.shapes.contents.bind(value, held)
        return value


def _not_fed(op: Operation) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"placeholder {op.name!r} is needed and was not fed",
        op=op.name,
        site=op.site,
        expected=f"a {op.outputs[0].dtype.name} of shape {show(op.outputs[0]._dims)}",
        hint=f"pass feed_dict={{{op.name}: ...}}",
    )


def _input(builder: Builder, tensor: Tensor, extent: Any) -> Value:
    value = builder.input(tensor.op.name, tensor.dtype, plain(extent))
    value.extent = extent
    return value


def _active(body: BodyGraph, known: dict[BodyGraph, list[Operation]]) -> list[Operation]:
    """The operations of a body that do something besides what they return, or hold one that does; of those that its results need.

    Args:
      known: what was found before, of inner bodies too: each is looked at once.
    """
    stack = [body]
    while stack:
        graph = stack[-1]
        ops = graph.get_operations()
        inner = [b for op in ops for b in op.bodies if b not in known]
        if graph in known or not inner:
            stack.pop()
            known[graph] = [op for op in graph.running() if op.op_def.is_active or any(known[b] for b in op.bodies)]
        stack.extend(inner)
    return known[body]


def _requested(op: Operation) -> Any:
    """Device that an op's scopes ask for.

    A handle that asks for nothing asks for what the op does that it is colocated with, whether that is in the plan or not: a
    resource lives on one device in all plans.
    """
    if op._device is not None or not op.colocation:
        return op._device
    seen = {op}
    asking = op
    while asking._device is None and asking.colocation and op.verb == "handle":
        found = op.graph._by_name.get(asking.colocation[0])
        if found is None or found in seen:
            break
        seen.add(found)
        asking = found
    return asking._device
