"""Shapes of a plan's values: inferred again from the feeds, with symbols for what the plan does not know.

Where inference relies on something that the static shapes do not prove, it is recorded: what concerns the feeds alone as
conditions of the plan, the rest as a guard of the node, which is checked when the node runs
(:mod:`graphdock.contracts.ir`).

What the feeds make known of a loop variable at the start may change with an iteration. A nest of loops is translated in rounds. A
round translates every body of the nest once, for the shapes that are assumed to last; a dim that an iteration changed is unknown
from then on, for the rest of the plan. Few rounds find all of them in practice; the last one assumes only what the loops' shape
invariants promise, which holds by construction. So the work is linear in the nest, however deep.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from graphdock.contracts.bodies import Contents, carried
from graphdock.contracts.ir import Guard, PlanGraph, PlanNode, Value, arg_of
from graphdock.errors import ShapeError
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.opdef.shape_context import Assumptions
from graphdock.opdef.shape_rule import rule_for
from graphdock.opdef.shape_values import Known, is_known, known_elements, plan_integers
from graphdock.shape import Dims, Extent, Symbol, compatible, plain, show

__all__ = ["ROUNDS", "LoopShapes", "PlanShapes", "fed_extent", "infer_outputs"]

_DIMS, _EXTENT = operator.attrgetter("_dims"), operator.attrgetter("extent")


def infer_outputs(node: PlanNode, shapes: Sequence[Dims], elements: Mapping[int, Any]) -> Sequence[Dims]:
    """The shapes of a node's outputs from actual shapes of its inputs, and the elements of some of them (input -> host array).

    Raises:
      ShapeError: the shapes do not fit the op.
    """

    def known(index: int) -> Known:
        return known_elements(elements[index] if index in elements else node.constant(index))

    grouped: list[list[Any]] = [[] for _ in node.opdef.inputs]
    places = {arg.name: i for i, arg in enumerate(node.opdef.inputs)}
    for arg, dims in zip(arg_of(node), shapes, strict=True):
        grouped[places[arg.name]].append(dims)
    return rule_for(node.opdef).infer(node.attrs, grouped, known)


def fed_extent(dims: Dims, feed: int) -> Extent:
    """The extent of a feed: a symbol for each dim that the plan leaves open."""
    if dims is None:
        return Symbol(True)
    return tuple([Symbol(True, (feed, axis)) if d is None else d for axis, d in enumerate(dims)])


class PlanShapes:
    """Shapes that one translation knows, and what it assumed.

    Attributes:
      facts: the assumptions of the whole plan. ``loops``: shapes of its loop variables. ``contents``: what its histories hold.
    """

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.facts = Assumptions()
        self.loops = LoopShapes(self.facts.is_same)
        self.integers = plan_integers(symbols=True)
        #: handle that a body captures -> the handle around the body
        self._captured: dict[Value, Value] = {}
        #: what operations are alike by -> the extents of their outputs, where all dims are numbers
        self._alike: dict[Any, list[Any]] = {}

    def infer(
        self, op: Operation, inputs: Sequence[Value], bodies: Sequence[PlanGraph]
    ) -> tuple[list[Any], Guard | None]:
        """The extents of an operation's outputs, and what has to be checked when it runs.

        Raises:
          ShapeError: the shapes do not fit the op.
        """
        static: list[Any] = list(map(_DIMS, op.outputs))
        if self._is_settled(op, inputs, static):
            return static, None
        held = self._held(inputs[0]) if op.verb == "read" else None
        key = (held, static[0]) if op.verb == "read" else _likeness(op, inputs, static)
        try:
            known = self._alike.get(key)
        except TypeError:  # an attribute has no hash
            key = known = None
        if known is not None:
            return known, None
        self.facts.begin(map(_EXTENT, inputs))
        found: list[Any]
        asked: set[int] = set()
        try:
            if bodies:
                _check_predicate(op, inputs, bodies)
                found = self._either(op, bodies, static)
            elif op.verb == "read":
                found = [held]
            elif op.verb == "alias":
                found = [self._alias(op, inputs[0])]
            else:
                found = self._by_rule(op, inputs, asked)
            if op.verb == "host":  # compares what its function returns with the static shape itself
                found = [s if d is None else d for s, d in zip(static, found, strict=True)]
            promised: set[int] = set()
            extents: list[Any] = [
                self._merged(s, d, i, promised) for i, (s, d) in enumerate(zip(static, found, strict=True))
            ]
        except ShapeError as error:
            if error.op is None:
                error.op, error.site = op.name, op.site
            raise
        ruled = self.facts.late and op.verb != "read" and not bodies
        if not (ruled or promised):
            if key is not None and not self.facts.open and all([e is not None and plain(e) is e for e in extents]):
                self._alike[key] = extents
            return extents, None
        return extents, Guard(ruled, tuple(sorted(asked)), tuple(sorted(promised)))

    def _is_settled(self, op: Operation, inputs: Sequence[Value], static: Sequence[Dims]) -> bool:
        """Return whether everything was known and checked when the operation was made, and feeds have changed nothing."""
        if op.bodies or op.verb == "read" or op in op.graph._promising:
            return False
        for dims in static:
            if dims is None or None in dims:
                return False
        for tensor in op.inputs:
            if tensor._dims is None or None in tensor._dims:
                return False
        if op.op_def.shape_fn is None:
            return True
        for tensor, value in zip(op.inputs, inputs, strict=True):
            if value.dtype.kind in "iu" and not self._is_known_as_then(tensor, value):
                return False
        return True

    def _is_known_as_then(self, tensor: Tensor, value: Value) -> bool:
        """Return whether the elements of a small integer tensor were known when the graph was made, and are the same here."""
        if value.node is not None and value.node.verb == "constant":
            return True
        then = tensor.op.graph._known(tensor)
        return is_known(then) and bool(then == self.integers.value(value))

    def _by_rule(self, op: Operation, inputs: Sequence[Value], asked: set[int]) -> list[Any]:
        def known(index: int) -> Any:
            asked.add(index)
            return self.integers.value(inputs[index])

        extents = map(_EXTENT, inputs)
        if op._input_lengths is None:
            shapes: list[Sequence[Any]] = list(zip(extents))
        else:
            shapes = [list(itertools.islice(extents, length)) for length in op._input_lengths]
        return rule_for(op.op_def).infer(op.node_attrs, shapes, known, self.facts)

    def bind(self, inner: Value, outer: Value) -> None:
        """``inner`` is what a body captures of ``outer``."""
        self.contents.bind(inner, outer)
        if outer.dtype.name == "resource":
            self._captured[inner] = outer

    def unknown_extent(self, dims: Dims) -> Extent:
        """The extent of something of which only the step knows more than the static shape."""
        return Symbol(False) if dims is None else tuple([Symbol(False) if d is None else d for d in dims])

    def element(self, dims: Dims, held: Any, renamed: dict[Symbol, Symbol]) -> Extent:
        """The extent of an element of a history, given that of what was put into it in one iteration of another loop."""
        if not isinstance(held, tuple):
            return self.unknown_extent(dims)
        known = (None,) * len(held) if dims is None else dims
        return tuple(
            [
                s if s is not None else d if isinstance(d, int) or d.fed else renamed.setdefault(d, Symbol(False))
                for s, d in zip(known, held, strict=True)
            ]
        )

    def _alias(self, op: Operation, source: Value) -> Any:
        """The extent of what an alias passes on: its input, or what a branch left in it."""
        result = op.outputs[0]
        if source.dtype.kind != "V":
            return source.extent if result.dtype.kind != "V" else result._dims
        if result.dtype.kind == "V":
            return source.extent
        held = self.contents.of(source)
        return self.unknown_extent(result._dims) if held is None or held.dtype is not result.dtype else held.extent

    def _held(self, handle: Value) -> Dims:
        """The shape of the variable that a handle names; None where that is open, or the handle a loop variable."""
        while handle in self._captured or (
            handle.node is not None and (handle.node.verb == "alias" or handle.node.opdef.verb.primitive)
        ):
            handle = self._captured[handle] if handle.node is None else handle.node.inputs[0]
        return None if handle.node is None else handle.node.attrs.get("shape")

    def _either(self, op: Operation, bodies: Sequence[PlanGraph], static: Sequence[Any]) -> list[Any]:
        """The extents of what one or another of the bodies gives, or none of them, as a loop that ends at once."""
        loop = op.verb == "loop"
        count = carried(op.op_def, op.node_attrs) if loop else len(op.outputs)
        pairs = zip((bodies[1].inputs if loop else bodies[0].outputs)[:count], bodies[1].outputs[:count], strict=True)
        return [*(self._common(a.extent, b.extent) for a, b in pairs), *static[count:]]

    def of_either(self, values: Sequence[Value]) -> Any:
        """Facts that hold of the extents of all."""
        return functools.reduce(self._common, [v.extent for v in values])

    def _common(self, a: Any, b: Any) -> Extent:
        """Facts that hold of both extents."""
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            return tuple([x if self.facts.is_same(x, y) else Symbol(False) for x, y in zip(a, b, strict=True)])
        return a if isinstance(a, Symbol) and self.facts.is_same(a, b) else Symbol(False)

    def _merged(self, static: Dims, found: Any, index: int, promised: set[int]) -> Any:
        """The extent of an output from its static shape and what was inferred, None in which only the step knows."""
        if found is None or isinstance(found, Symbol):
            if static is None:
                return Symbol(False) if found is None else found
            self.facts.unproven()
            promised.add(index)
            return tuple([Symbol(False) if d is None else d for d in static])
        if found == static:
            if None not in found:
                return found
        elif static is None:
            return tuple([Symbol(False) if d is None else d for d in found])
        elif not compatible(static, known := plain(found)):
            raise ShapeError(f"shapes {show(static)} and {show(known)} do not agree")
        elif known is found:  # all dims are numbers
            return found
        assert static is not None
        extent: list[Any] = []
        for s, d in zip(static, found, strict=True):
            if s is None:
                extent.append(Symbol(False) if d is None else d)
            elif isinstance(d, int):
                extent.append(d)
            else:
                if d is None or not d.fed:
                    promised.add(index)
                extent.append(s if d is None else self.facts.equal(d, s))
        return tuple(extent)


def _likeness(op: Operation, inputs: Sequence[Value], static: Sequence[Dims]) -> Any:
    """Key of an operation's shapes, where all dims of its inputs are known; None of one that asks for more."""
    if op.verb == "alias" and inputs[0].dtype.kind == op.outputs[0].dtype.kind != "V":
        return inputs[0].extent, static[0]
    if op.verb != "kernel" or op.bodies:
        return None
    rule, elements = op.op_def.compiled or rule_for(op.op_def), []
    if rule.cacheable:
        attrs = tuple(map(op.node_attrs.__getitem__, rule.read_attrs))
    else:
        attrs = tuple(op.node_attrs.items())
        for value in inputs:
            if value.dtype.kind in "biu":
                if value.node is None or value.node.verb != "constant":
                    return None
                elements.append(known_elements(value.node.attrs["value"]))
    return rule, op._input_lengths, tuple(map(_EXTENT, inputs)), tuple(static), attrs, tuple(elements)


def _check_predicate(op: Operation, inputs: Sequence[Value], bodies: Sequence[PlanGraph]) -> None:
    """Refuse what is known to be no scalar; the rest is looked at when it steers the step."""
    loop = op.verb == "loop"
    extent = bodies[0].outputs[0].extent if loop else inputs[0].extent
    if isinstance(extent, tuple) and extent != ():
        what = "what cond returns" if loop else "pred"
        raise ShapeError(f"{op.type}: {what} must be a scalar", expected="[]", got=show(plain(extent)))


#: Rounds that look for the shapes that last, before one that assumes the invariants.
ROUNDS = 4


class LoopShapes:
    """Findings of one plan about the shapes of its loop variables.

    Args:
      is_same: whether two dims, or two extents, are known to be the same.

    Attributes:
      running: whether a nest is being translated: loops inside of it take part in its rounds.
    """

    def __init__(self, is_same: Callable[[Any, Any], bool]) -> None:
        self.running = False
        self._is_same = is_same
        self._changed = False
        self._last = False
        #: loop -> per variable, the dims that an iteration changed; None where it changed the rank
        self._open: dict[Operation, list[set[int] | None]] = {}

    def rounds(self) -> Iterator[int]:
        """Rounds over a nest, until one has changed nothing."""
        self.running = True
        for number in range(ROUNDS + 1):
            self._changed, self._last = False, number == ROUNDS
            yield number
            if not self._changed:
                break
        self.running = self._last = False

    def parameters(self, loop: Operation, start: Sequence[Any], invariants: Sequence[Dims]) -> list[Any]:
        """Extents of a loop's variables in its bodies, given those that they start with."""
        if self._last:
            return [_promised(s, i) for s, i in zip(start, invariants, strict=True)]
        found = self._open.get(loop)
        if found is None:
            return list(start)
        return [_without(s, dims) for s, dims in zip(start, found, strict=True)]

    def note(self, loop: Operation, assumed: Sequence[Any], after: Sequence[Any]) -> None:
        """Take in the extents that an iteration makes of those that it was given."""
        changed: set[int] | None
        for i, (before, extent) in enumerate(zip(assumed, after, strict=True)):
            if not isinstance(before, tuple):
                changed = None if self._changes(before, extent) else set()
            elif isinstance(extent, tuple) and len(extent) == len(before):
                changed = {k for k, (a, b) in enumerate(zip(before, extent, strict=True)) if self._changes(a, b)}
            else:
                changed = None
            if changed == set():
                continue
            found = self._open.setdefault(loop, [set() for _ in assumed])
            opened = found[i]
            found[i] = None if opened is None or changed is None else opened | changed
            self._changed = True

    def _changes(self, before: Any, after: Any) -> bool:
        """Return whether a dim that was assumed to last does not; one that only the step knows is not assumed to."""
        return not (isinstance(before, Symbol) and not before.fed) and not self._is_same(before, after)


def _promised(start: Any, invariant: Dims) -> Any:
    if invariant is None:
        return Symbol(False)
    known = start if isinstance(start, tuple) and len(start) == len(invariant) else invariant
    return tuple([Symbol(False) if i is None else s for s, i in zip(known, invariant, strict=True)])


def _without(start: Any, dims: set[int] | None) -> Any:
    if not isinstance(start, tuple) or dims is None:
        return Symbol(False) if dims is None else start
    return tuple([Symbol(False) if k in dims else d for k, d in enumerate(start)])
