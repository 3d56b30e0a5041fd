"""Bindings of the bodies of a branch, loop or call to their node: the only place that knows the layout of its inputs and outputs.

The node's inputs from :func:`first_given` on are given to its bodies, in order. Those of a loop are

- loop variables (:func:`carried`), which change from one iteration to the next;
- histories (:func:`scanned`), of which its body, not its condition, is given one element per iteration, from the last to the first;
- captures, which no iteration changes.

The outputs of a loop are its loop variables' last values and then histories of what its body returns besides their next values.
Those of other nodes are what their bodies return.

A loop may be written out while the user's graph becomes a plan: a pass of the phase ``translate`` returns a :class:`LoopWriter`.
Translation infers shapes as it goes, so that what comes after a loop that is written out knows how many rows there are; a pass that
finds the loop in a plan comes too late for that.

:class:`Contents` knows what the values of dtype variant hold: whose values a history keeps, and what a taken branch leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.opdef import OpDef
from graphdock.errors import PlanError
from graphdock.shape import compatible, show

if TYPE_CHECKING:
    from graphdock.contracts.ir import PlanNode, Value
    from graphdock.contracts.rewriter import Builder

__all__ = [
    "Contents",
    "KeepLoops",
    "LoopNote",
    "LoopWriter",
    "UserBody",
    "UserOp",
    "captures",
    "carried",
    "contents_of",
    "elements",
    "first_given",
    "given",
    "may_hold",
    "returning",
    "scanned",
    "stacked",
]


def first_given(opdef: OpDef) -> int:
    """Position of the first input that the bodies take; inputs before it (a predicate) stay outside."""
    takes = opdef.bodies[0].takes
    return next(i for i, arg in enumerate(opdef.inputs) if arg.name == takes)


def carried(opdef: OpDef, attrs: Mapping[str, Any]) -> int:
    """Number of loop variables; 0 but for a loop."""
    return len(attrs["output_shapes"]) if opdef.executes == "loop" else 0


def scanned(opdef: OpDef, attrs: Mapping[str, Any]) -> int:
    """Number of histories that a loop's body reads; 0 but for a loop."""
    count: int = attrs["scanned"] if opdef.executes == "loop" else 0
    return count


def returning(opdef: OpDef, bodies: Sequence[Any]) -> list[Any]:
    """The bodies whose outputs become the node's: both branches, a loop's body."""
    return [body for body, bound in zip(bodies, opdef.bodies, strict=True) if bound.gives]


def _scans(node: PlanNode, which: int) -> int:
    """Number of elements of histories that body number ``which`` takes."""
    return scanned(node.opdef, node.attrs) if node.opdef.bodies[which].gives else 0


def given(node: PlanNode, which: int) -> list[Value]:
    """The inputs for body number ``which``, in the order of its own inputs; for an element the history it is of."""
    inputs = node.inputs[first_given(node.opdef) :]
    skipped = scanned(node.opdef, node.attrs) - _scans(node, which)
    if not skipped:
        return inputs
    start = carried(node.opdef, node.attrs)
    return inputs[:start] + inputs[start + skipped :]


def captures(node: PlanNode) -> Iterator[tuple[int, Value, tuple[Value, ...]]]:
    """Each captured value: its position among the node's inputs, itself, and the input that it is in each body."""
    start = carried(node.opdef, node.attrs)
    first = first_given(node.opdef) + start + scanned(node.opdef, node.attrs)
    offsets = [(body.inputs, start + _scans(node, which)) for which, body in enumerate(node.bodies)]
    for i, outer in enumerate(node.inputs[first:]):
        yield first + i, outer, tuple([inputs[at + i] for inputs, at in offsets])


def elements(node: PlanNode) -> Iterator[tuple[Value, Value]]:
    """Each history that a loop reads, and its element in the loop's body; nothing but for a loop."""
    start, count = carried(node.opdef, node.attrs), scanned(node.opdef, node.attrs)
    if count:
        yield from zip(node.inputs[start : start + count], node.bodies[1].inputs[start : start + count], strict=True)


def stacked(node: PlanNode) -> Iterator[tuple[Value, Value]]:
    """Each history that a loop makes, and what its body returns for it; nothing but for a loop."""
    if node.verb == "loop":
        start = carried(node.opdef, node.attrs)
        yield from zip(node.outputs[start:], node.bodies[1].outputs[start:], strict=True)


class KeepLoops(Exception):
    """A loop that was written out has a reader that needs its history; the argument is the reason. The graph is translated again,
    with all loops as they are."""


@lazy_dataclass(frozen=True, slots=True)
class LoopNote:
    """Outcome for a loop that could be written out. ``count``: iterations that were; 0 where ``why`` says why none was."""

    origin: str
    count: int
    why: str = ""


class UserBody(Protocol):
    """A body of an operation, as far as a :class:`LoopWriter` reads it. ``outputs``: its tensors, each with its ``op``."""

    @property
    def outputs(self) -> Sequence[Any]: ...

    def running(self) -> Iterator[Any]:
        """The operations that run when it does."""


class UserOp(Protocol):
    """An operation of the user's graph, as far as a :class:`LoopWriter` reads it.

    ``outputs``: its tensors, each with ``dtype`` and ``shape``. ``device``: what its scopes ask for; empty for nothing.
    """

    @property
    def name(self) -> str: ...

    @property
    def verb(self) -> str: ...

    @property
    def op_def(self) -> OpDef: ...

    @property
    def node_attrs(self) -> Mapping[str, Any]: ...

    @property
    def outputs(self) -> Sequence[Any]: ...

    @property
    def bodies(self) -> Sequence[UserBody]: ...

    @property
    def device(self) -> str: ...


class LoopWriter(Protocol):
    """Says which loops of a plan are written out, and makes what stands for their histories. Used once, by one translation.

    Attributes:
      elements: history that is none -> its elements, in the order in which they were made.
      notes: what became of each loop.
    """

    elements: dict[Value, list[Value]]
    notes: list[LoopNote]

    def count(self, op: UserOp, inputs: Sequence[Value], ops: int) -> int:
        """Return how many iterations of a loop are written out, whose body has so many operations; 0 for none.

        Raises:
          KeepLoops: it is none of these, and reads what another one made.
        """

    def read(self, op: UserOp, history: Value, builder: Builder) -> list[Value]:
        """The elements of a history that a loop reads, in the order in which they were made."""

    def stack(self, op: UserOp, history: Value, builder: Builder) -> PlanNode:
        """The node that puts together what a loop kept, for an op that makes a tensor of a history.

        Raises:
          KeepLoops: it can't.
        """


def may_hold(node: PlanNode) -> bool:
    """Return whether an output of the node may be a variant of which :class:`Contents` knows something."""
    return bool(node.bodies) or node.verb == "alias" or "unstacks" in node.opdef.traits


class Contents:
    """Variant -> one value that stands for all that it holds, of their dtype and shape: an element, or what a branch leaves.

    Filled along the order of the plan: :meth:`enter` before a body, :meth:`leave` after a node.
    """

    def __init__(self) -> None:
        self._of: dict[Value, Value] = {}

    def of(self, value: Value) -> Value | None:
        """Contents of a variant; None where nothing is known to be in it."""
        return self._of.get(value)

    def bind(self, inner: Value, outer: Value | None) -> None:
        """``inner`` is ``outer`` under another name; nothing is kept of what is no variant."""
        held = None if outer is None else self._of.get(outer)
        if held is not None:
            self._of[inner] = held

    def enter(self, node: PlanNode, which: int) -> None:
        """Bind the inputs of body number ``which``."""
        histories = {element: history for history, element in elements(node)}
        for outer, inner in zip(given(node, which), node.bodies[which].inputs, strict=True):
            self.bind(inner, self._of.get(outer) if inner in histories else outer)

    def leave(self, node: PlanNode) -> None:
        """Note what the node's outputs hold; its bodies have been visited."""
        if node.verb == "alias":
            result, source = node.outputs[0], node.inputs[0]
            if source.dtype.kind == "V":
                self.bind(result, source)
            elif result.dtype.kind == "V":
                self._of[result] = source
            return
        if "unstacks" in node.opdef.traits:
            self._of[node.outputs[0]] = _row(node.inputs[0])
            return
        self._of.update(stacked(node))
        if node.verb in ("branch", "call"):
            for i, result in enumerate(node.outputs):
                held = [v for v in (self._of.get(b.outputs[i]) for b in node.bodies) if v is not None]
                if len(held) == 1 or held and all(_alike(v, held[0]) for v in held):
                    self._of[result] = held[0]


def _row(tensor: Value) -> Value:
    """A value that stands for the rows of a tensor."""
    row = Value(f"{tensor.name}/row", tensor.dtype, None if tensor.shape is None else tensor.shape[1:])
    row.extent = tensor.extent[1:] if isinstance(tensor.extent, tuple) else None
    return row


def _alike(a: Value, b: Value) -> bool:
    return a.dtype is b.dtype and a.shape == b.shape


def contents_of(graph: PlanGraph) -> Contents:
    """The contents of every variant of a plan and its bodies, in one pass without recursion.

    Raises:
      PlanError: a loop takes elements of another dtype or shape than the history that it reads was made of.
    """
    found = Contents()
    stack: list[Iterator[PlanGraph]] = [_visit(graph, found)]
    while stack:
        body = next(stack[-1], None)
        if body is None:
            stack.pop()
        else:
            stack.append(_visit(body, found))
    return found


def _visit(graph: PlanGraph, found: Contents) -> Iterator[PlanGraph]:
    """Visit one level; yields each body, to be visited before the level goes on."""
    for node in graph.nodes:
        for history, element in elements(node):
            _check(graph, node, found.of(history), element)
        for which, body in enumerate(node.bodies):
            found.enter(node, which)
            yield body
        if may_hold(node):
            found.leave(node)


def _check(graph: PlanGraph, node: PlanNode, held: Value | None, element: Value) -> None:
    if held is not None and (held.dtype is not element.dtype or not compatible(held.shape, element.shape)):
        raise PlanError(
            f"graph {graph.name}, node {node.name} ({node.op}): reads elements of a history as "
            f"{element.dtype.name}{show(element.shape)}, but they are {held.dtype.name}{show(held.shape)}"
        )
