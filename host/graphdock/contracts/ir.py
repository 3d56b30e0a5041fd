"""The plan IR: the graph that passes, placement, region compilers, kernels' checks and ``explain`` work on.

Grammar (the printer writes it, :func:`graphdock.contracts.ir_check.check` enforces it)::

    graph  := "graph" NAME "(" value* ")" "{" node* "return" value* "}"
    node   := value* "=" OP "(" value* ")" attrs? ("after" node*)? ("ordered" "after" node*)? draws? ("on" DEVICE)? body*
    draws  := "draws" "from" NAME*
    body   := graph
    value  := "%" NAME ":" dtype shape

Rules: nodes stand in an order in which every value is defined before it is used; a body sees nothing of the graph around it
but its own inputs (captures are explicit); ``Cond`` has bodies (then, else) over its inputs after the predicate; ``While`` has
bodies (cond, body) over loop variables and captures, the body also over one element of each history that the loop scans, and the
body returns next values of the loop variables and then elements of the histories that the loop makes
(:mod:`graphdock.contracts.bodies`). A value of dtype variant is a history, or what a branch leaves if it is taken; it is handed on,
scanned, or named anew, and nothing computes with it.

Three kinds of edges say what runs before what. An input and a control edge (``after``) also keep the earlier node alive. An order
edge (``ordered after``) does not: it stands between two accesses of one resource, or two nodes that talk to the world
(:mod:`graphdock.contracts.effects`). Every order of a level's nodes that keeps the three kinds gives the same results.

A PlanGraph belongs to one plan under construction and to one thread. :class:`graphdock.contracts.rewriter.Builder`
makes one, a Rewriter changes it. Once the plan is made nothing changes it any more.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, TypeAlias

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.opdef import OpDef
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import DType
from graphdock.shape import Dims, Extent, show

if TYPE_CHECKING:
    from graphdock.contracts.kernel import Decision
    from graphdock.contracts.loop_program import LoopProgram
    from graphdock.contracts.opdef import ArgDef, OpDef
    from graphdock.contracts.region_program import RegionProgram
    from graphdock.contracts.streams import StreamName
    from graphdock.device_name import DeviceSpec

__all__ = [
    "Conditions",
    "DimRef",
    "Guard",
    "PlanGraph",
    "PlanNode",
    "Region",
    "Value",
    "arg_of",
    "attr_key",
    "copy_node",
    "make_node",
    "users",
]


#: A dim of a feed, as (feed, axis), or a number.
DimRef: TypeAlias = "tuple[int, int] | int"


@lazy_dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions on the feeds' shapes for a plan's shape rules to accept them.

    Attributes:
      equal: pairs of dims that are the same.
      one_or_equal: pairs of a dim that is 1 or the other one.
      at_least: pairs of a dim and its smallest size.
      proven: whether these suffice. If not, or where they do not hold, only translating the graph for those very shapes tells.
      relied: whether code of the plan needs ``equal``: where one dim may be 1 in place of equal, other shapes get another plan.
    """

    equal: tuple[tuple[DimRef, DimRef], ...] = ()
    one_or_equal: tuple[tuple[DimRef, DimRef], ...] = ()
    at_least: tuple[tuple[DimRef, int], ...] = ()
    proven: bool = True
    relied: bool = False

    def agree(self, shapes: Sequence[Sequence[int]]) -> bool:
        """Return whether the dims of ``equal`` are the same."""
        return all(_dim(a, shapes) == _dim(b, shapes) for a, b in self.equal)

    def hold(self, shapes: Sequence[Sequence[int]]) -> bool:
        """Return whether they suffice and hold for the feeds' shapes."""

        def dim(ref: DimRef) -> int:
            return _dim(ref, shapes)

        return (
            self.proven
            and self.agree(shapes)
            and all(dim(a) in (1, dim(b)) for a, b in self.one_or_equal)
            and all(dim(a) >= least for a, least in self.at_least)
        )


def _dim(ref: DimRef, shapes: Sequence[Sequence[int]]) -> int:
    return ref if isinstance(ref, int) else shapes[ref[0]][ref[1]]


@lazy_dataclass(frozen=True, slots=True)
class Guard:
    """Assumption of a plan about the shapes of a node that only a step can tell; checked when the node runs.

    Attributes:
      shape_rule: the op's shape rule has to accept the actual shapes, before the node runs.
      asked: inputs whose elements the shape rule looks at.
      promised: outputs whose static shape inference does not prove (``set_shape``), to be compared with the actual one.
    """

    shape_rule: bool
    asked: tuple[int, ...] = ()
    promised: tuple[int, ...] = ()


class Value:
    """One tensor of a plan: output ``index`` of ``node``, or an input of its graph when ``node`` is None.

    Attributes:
      extent: ``shape`` with a :class:`graphdock.shape.Symbol` for each unknown dim, or one alone for an unknown rank: dims that
        hold one symbol are the same. None in what is made after translation.
    """

    __slots__ = ("dtype", "extent", "index", "name", "node", "shape")

    def __init__(self, name: str, dtype: DType, shape: Dims, node: PlanNode | None = None, index: int = 0) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.extent: Extent | None = None
        self.node = node
        self.index = index

    def __repr__(self) -> str:
        return f"%{self.name}: {self.dtype}{show(self.shape)}"


class PlanNode:
    """One op of a plan.

    Attributes:
      op: op type; ``opdef`` its OpDef. ``verb``: what a step does with it (:mod:`graphdock.contracts.opdef`).
      attrs: every attribute with its value: dtypes as DType, shapes as Dims, tensors as read-only arrays.
      inputs: values; a list argument is flattened, an absent optional input is left out (``present`` in attrs says which).
      control: nodes that run before this one, and run because this one does.
      order: nodes that run before this one if they run at all.
      requested: the device the user's scopes ask for; whole or partial.
      device: where it runs, once placed.
      decision: which kernel and why, once chosen.
      site: the user's own line, ``"train.py:14"``, resolved when it is asked for: that of ``site_of``, the user's operation.
      bodies: nested graphs of Cond and While.
      origins: names of the user's operations that this node computes; ``origin`` is the first.
      guard: what has to be checked when it runs; None where inference has proven all.
      streams: the random streams that it draws from, where they are those of nodes that it stands for
        (:func:`graphdock.contracts.streams.streams_of`); else None.
    """

    __slots__ = (
        "attrs",
        "bodies",
        "control",
        "decision",
        "device",
        "guard",
        "inputs",
        "name",
        "op",
        "opdef",
        "order",
        "origins",
        "outputs",
        "requested",
        "site_of",
        "streams",
        "verb",
    )

    def __init__(
        self,
        op: str,
        name: str,
        opdef: OpDef,
        attrs: Mapping[str, Any],
        inputs: Sequence[Value],
        control: Iterable[PlanNode] = (),
        requested: DeviceSpec | None = None,
        site_of: Any = None,
        bodies: Sequence[PlanGraph] = (),
        origins: tuple[str, ...] = (),
        order: Iterable[PlanNode] = (),
    ) -> None:
        self.op = op
        self.name = name
        self.opdef = opdef
        self.verb = opdef.executes
        self.attrs = attrs
        self.inputs: list[Value] = list(inputs)
        self.control: tuple[PlanNode, ...] = tuple(control) if control else ()
        self.order: tuple[PlanNode, ...] = tuple(order) if order else ()
        self.outputs: list[Value] = []
        self.requested = requested
        self.device: DeviceSpec | None = None
        self.decision: Decision | None = None
        self.guard: Guard | None = None
        self.streams: tuple[StreamName, ...] | None = None
        self.site_of = site_of
        self.bodies: tuple[PlanGraph, ...] = tuple(bodies) if bodies else ()
        self.origins = origins or (name,)

    @property
    def origin(self) -> str:
        return self.origins[0]

    @property
    def site(self) -> str | None:
        return None if self.site_of is None else str(self.site_of.site)

    def constant(self, index: int) -> Any:
        """The read-only array that input ``index`` always is, or None when it is not a constant."""
        node = self.inputs[index].node
        return node.attrs["value"] if node is not None and node.verb == "constant" else None

    def __repr__(self) -> str:
        return f"<PlanNode {self.name} {self.op}>"


class PlanGraph:
    """A graph of a plan: inputs (the feeds, or a body's parameters), nodes in order, outputs, and nodes run for effect.

    Attributes:
      nodes: in order; :meth:`add` appends one. Whoever changes the list otherwise sets it anew.
      holders: the nodes with bodies, in order: few, and asked for by every stage. They follow from ``nodes``.
      targets: nodes that must run although no output needs them (fetched operations, a body's stateful nodes).
      conditions: of a plan's outermost graph, what has to hold of the feeds' shapes (:mod:`graphdock.contracts.ir`).
    """

    __slots__ = ("_nodes", "conditions", "holders", "inputs", "name", "outputs", "targets")

    def __init__(
        self,
        name: str,
        inputs: Sequence[Value] = (),
        nodes: Sequence[PlanNode] = (),
        outputs: Sequence[Value] = (),
        targets: Sequence[PlanNode] = (),
    ) -> None:
        self.name = name
        self.inputs = list(inputs)
        self.nodes = list(nodes)
        self.outputs = list(outputs)
        self.targets = list(targets)
        self.conditions: Conditions | None = None

    @property
    def nodes(self) -> list[PlanNode]:
        return self._nodes

    @nodes.setter
    def nodes(self, nodes: list[PlanNode]) -> None:
        self._nodes = nodes
        self.holders = [n for n in nodes if n.bodies]

    def leave(self, nodes: list[PlanNode]) -> None:
        """Set the nodes anew, none of which has bodies that had none here."""
        self._nodes = nodes
        if self.holders:
            self.holders = [n for n in nodes if n.bodies]

    def add(self, node: PlanNode) -> None:
        """Append a node, whose bodies are there already."""
        self._nodes.append(node)
        if node.bodies:
            self.holders.append(node)

    def all_graphs(self) -> Iterator[PlanGraph]:
        """This graph and every body in it, outermost first, without recursion."""
        stack = [self]
        while stack:
            graph = stack.pop()
            yield graph
            for node in reversed(graph.holders):
                stack.extend(reversed(node.bodies))

    def __str__(self) -> str:
        from graphdock.contracts.ir_print import print_graph

        return print_graph(self)


class Region:
    """Nodes of a placed plan as a graph of their own, offered to a region compiler.

    Attributes:
      graph: computes the region: its inputs are the values that enter, its outputs those that leave.
      device: where all of its nodes are placed.
      entering, leaving: the plan's values for them, where the region was cut from a plan.
      source: node of ``graph`` -> the plan's node that it copies.
      control, order: nodes of the plan, outside of the region, that must run before it.
      streams: the random streams that its nodes draw from, each once. Its kernel gets them behind its inputs.
      variables: input of ``graph`` that is a handle -> dtype and dims of its variable, where a compiler takes updates.
      program: what it computes, for a compiler that asks for programs; else None.
      loop: what it computes where it is a loop, which is then the only node; else None.
      step: whether it is to be part of a loop, where a node by itself is worth a region. ``stays``: numbers of the inputs that no
        iteration of that loop changes.
      parts: nodes of ``graph`` that only say where in what enters a part lies: copies, as constants are; the plan's own stay.
      arranged: number of an input -> key of the order in which its elements come (:class:`graphdock.contracts.region.Arrangement`).
      terms: node of ``graph`` -> numbers of the program's terms that it computes, literals and inputs among them; what several
        nodes compute is one term, with the ``origin`` of the first.
      reduces: node of ``graph`` -> the sets of axes of the program that it reduces over, of those that do.
    """

    __slots__ = (
        "arranged",
        "control",
        "device",
        "entering",
        "graph",
        "leaving",
        "loop",
        "order",
        "parts",
        "program",
        "reduces",
        "source",
        "stays",
        "step",
        "streams",
        "terms",
        "variables",
    )

    def __init__(
        self,
        graph: PlanGraph,
        device: DeviceSpec,
        entering: tuple[Value, ...] = (),
        leaving: tuple[Value, ...] = (),
        source: Mapping[PlanNode, PlanNode] | None = None,
        control: tuple[PlanNode, ...] = (),
        order: tuple[PlanNode, ...] = (),
        streams: tuple[StreamName, ...] = (),
    ) -> None:
        self.graph = graph
        self.device = device
        self.entering = entering
        self.leaving = leaving
        self.source = {} if source is None else source
        self.control = control
        self.order = order
        self.streams = streams
        self.variables: Mapping[Value, tuple[DType, Dims]] = {}
        self.program: RegionProgram | None = None
        self.loop: LoopProgram | None = None
        self.step = False
        self.stays: Set[int] = frozenset()
        self.parts: Set[PlanNode] = frozenset()
        self.arranged: dict[int, Hashable] = {}
        self.terms: Mapping[PlanNode, tuple[int, ...]] = {}
        self.reduces: Mapping[PlanNode, frozenset[tuple[int, ...]]] = {}


def arg_of(node: PlanNode) -> Sequence[ArgDef]:
    """The ArgDef of each flattened input."""
    args = node.opdef.inputs
    if node.opdef.plain and len(args) == len(node.inputs):
        return args
    fixed = sum(a.arity == "one" for a in args)
    open_count = sum(a.arity != "one" for a in args)
    rest = len(node.inputs) - fixed
    result: list[ArgDef] = []
    for arg in args:
        if arg.arity == "one":
            result.append(arg)
            continue
        open_count -= 1
        if open_count == 0:
            take = rest
        else:
            bound = node.attrs.get(arg.dtype)
            size = node.attrs.get(arg.count or "")
            take = (
                len(bound) if isinstance(bound, tuple) else size if isinstance(size, int) else rest // (open_count + 1)
            )
            take = min(take, rest)
        rest -= take
        result.extend([arg] * take)
    return result


def make_node(
    opdef: OpDef,
    name: str,
    inputs: Sequence[Value],
    attrs: Mapping[str, Any],
    outputs: Sequence[tuple[DType, Dims]],
    control: Iterable[PlanNode] = (),
    requested: DeviceSpec | None = None,
    site_of: Any = None,
    bodies: Sequence[PlanGraph] = (),
    origins: tuple[str, ...] = (),
    order: Iterable[PlanNode] = (),
) -> PlanNode:
    """A node with its outputs, in no graph yet."""
    node = PlanNode(opdef.name, name, opdef, attrs, inputs, control, requested, site_of, bodies, origins, order)
    for index, (dtype, shape) in enumerate(outputs):
        node.outputs.append(Value(name if index == 0 else f"{name}:{index}", dtype, shape, node, index))
    return node


def copy_node(
    node: PlanNode, inputs: Sequence[Value], control: Iterable[PlanNode] = (), order: Iterable[PlanNode] = ()
) -> PlanNode:
    """The same node over other inputs, with outputs of its own, in no graph yet. Its bodies are the original's."""
    copy = PlanNode(
        node.op,
        node.name,
        node.opdef,
        node.attrs,
        inputs,
        control,
        node.requested,
        node.site_of,
        node.bodies,
        node.origins,
        order,
    )
    copy.device, copy.decision, copy.guard, copy.streams = node.device, node.decision, node.guard, node.streams
    for value in node.outputs:
        made = Value(value.name, value.dtype, value.shape, copy, value.index)
        made.extent = value.extent
        copy.outputs.append(made)
    return copy


def users(graph: PlanGraph) -> dict[Value, list[PlanNode]]:
    """Value -> the nodes of this graph that read it, in order; a node that reads it twice stands there twice."""
    table: dict[Value, list[PlanNode]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            table.setdefault(value, []).append(node)
    return table


def attr_key(value: Any) -> Any:
    """A hashable key of an attribute's value. Raises TypeError where it has none."""
    if isinstance(value, DType):
        return value.name
    if hasattr(value, "tobytes"):  # an array; who declares kernels loads no NumPy
        if value.nbytes > 4096 or value.dtype.hasobject:
            return id(value)
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float):
        return repr(value)
    hash(value)
    return type(value).__name__, value
