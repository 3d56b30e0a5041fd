"""BodyGraph: the graph of a Cond branch or of a While's condition or body, with explicit captures; and copies of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.dtypes import DType
from graphdock.errors import InvalidArgumentError
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.shape import Dims
from graphdock.trampoline import Visit, trampoline

__all__ = ["BodyGraph", "captured", "copy_operation"]


class BodyGraph(Graph):
    """A graph inside another. A tensor of an outer graph that is used in here becomes a capture: an input of the node.

    Attributes:
      name: for people, ``"while/body"``.
      outer: the graph around it.
      parameters: placeholders for loop variables, in order.
      captures: outer tensor -> placeholder in here, in order of first use.
      outputs: what the body returns.
      targets: operations that its function returned. An operation in here runs if an output or a target depends on it.
      awaited: outer operations that the node is to run after, whatever runs in here.
    """

    def __init__(self, name: str, outer: Graph) -> None:
        super().__init__(outer._host)
        self.name = name
        self.outer = outer
        self.parameters: list[Tensor] = []
        self.captures: dict[Tensor, Tensor] = {}
        self.outputs: list[Tensor] = []
        self.targets: list[Operation] = []
        self.awaited: dict[Operation, None] = {}
        self._waiting: dict[Operation, list[Operation]] = {}
        self.seed = outer.seed
        self._scopes.devices = outer._scopes.devices
        self._scopes.colocation = outer._scopes.colocation
        self._scopes.container = outer._scopes.container

    def add_parameter(self, name: str, dtype: DType, dims: Dims) -> Tensor:
        """A new loop variable's placeholder."""
        tensor = self._placeholder(name, dtype, dims)
        self.parameters.append(tensor)
        return tensor

    def capture(self, tensor: Tensor) -> Tensor:
        """The placeholder in here for a tensor of an outer graph; outer bodies capture it as well."""
        if tensor.op.graph is self:
            return tensor
        found = self.captures.get(tensor)
        if found is not None:
            return found
        if tensor.op.graph is not self.outer:
            if not isinstance(self.outer, BodyGraph):
                raise InvalidArgumentError(
                    f"{tensor.name} is used in the body {self.name!r} but belongs to another graph",
                    op=tensor.op.name,
                    site=tensor.op.site,
                    hint="make both inside of one `with graph.as_default():`",
                )
            return self.capture(self.outer.capture(tensor))
        inner = self._placeholder(tensor.op.name.rpartition("/")[2], tensor.dtype, tensor._dims)
        self.bind(tensor, inner)
        return inner

    def bind(self, tensor: Tensor, placeholder: Tensor) -> None:
        """Let a placeholder in here be the capture of a tensor of the graph around."""
        if tensor.op.verb == "handle" or tensor.op._original is not None:
            placeholder.op._original = tensor.op._original or tensor.op
        self.captures[tensor] = placeholder

    def replace(self, changes: Mapping[Tensor, Tensor]) -> None:
        """Let everything in here read each value of ``changes`` where it reads the key; for bodies that are not in a node yet."""
        for op in self._ops:
            if any(t in changes for t in op.inputs):
                op.inputs = tuple(changes.get(t, t) for t in op.inputs)
            for inner in op.bodies:
                if any(t in changes for t in inner.captures):
                    inner.captures = {changes.get(outer, outer): v for outer, v in inner.captures.items()}
        self.outputs = [changes.get(t, t) for t in self.outputs]

    def forget(self, gone: Mapping[Operation, Operation]) -> None:
        """Take out operations whose values nothing reads any more; another stands for each as what others run behind."""
        for op in self._ops:
            if not gone.keys().isdisjoint(op._control):
                op._control = tuple(dict.fromkeys(gone.get(c, c) for c in op._control))
        self.targets = list(dict.fromkeys(gone.get(t, t) for t in self.targets))
        self._ops = [op for op in self._ops if op not in gone]
        for op in gone:
            del self._by_name[op.name]

    def _placeholder(self, name: str, dtype: DType, dims: Dims) -> Tensor:
        scopes = self._scopes
        before, scopes.prefix, control, scopes.control = scopes.prefix, "", scopes.control, ()
        try:
            opdef = self.host.ops.get("Placeholder")
            return self.add_op(opdef, [], {"dtype": dtype, "shape": dims}, name or "capture").outputs[0]
        finally:
            scopes.prefix, scopes.control = before, control

    def _adopt(self, tensor: Tensor, op_type: str) -> Tensor:
        return self.capture(tensor)

    def add_op(self, *args: Any, **kwargs: Any) -> Operation:
        op = super().add_op(*args, **kwargs)
        outer = [before for before in self._scopes.control if before.graph is not self]
        if outer:
            self._waiting[op] = outer
        return op

    def _adopt_controls(self, control: Sequence[Operation], inputs: Sequence[Tensor]) -> Sequence[Operation]:
        return [op for op in control if op.graph is self]

    def running(self) -> list[Operation]:
        """The operations that run: those that an output or a target depends on, in creation order."""
        found: set[Operation] = set()
        stack = [*self.targets, *[t.op for t in self.outputs]]
        while stack:
            op = stack.pop()
            if op not in found:
                found.add(op)
                stack.extend(op._control)
                stack.extend([t.op for t in op.inputs])
        return sorted(found, key=lambda op: op._id)

    def lifted(self) -> list[Operation]:
        """The outer operations that what runs in here is to run after; they become control inputs of the node."""
        return list(dict.fromkeys([*self.awaited, *[b for op in self.running() for b in self._waiting.get(op, ())]]))

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """As of any graph; what belongs to a graph around this one is seen too."""
        convert = getattr(obj, "_as_graph_element", None)
        element = convert() if convert is not None else obj
        if isinstance(element, (Tensor, Operation)) and element.graph is not self:
            return self.outer.as_graph_element(element, allow_tensor, allow_operation)
        return super().as_graph_element(obj, allow_tensor, allow_operation)

    def _known(self, tensor: Tensor) -> Any:
        outer = next((o for o, i in self.captures.items() if i is tensor), None) if tensor.op.verb == "feed" else None
        return self.outer._known(outer) if outer is not None else super()._known(tensor)


def captured(graph: Graph, tensor: Tensor) -> Tensor:
    """The tensor as ops of ``graph`` read it: a body's captures stand for tensors of the graphs around it."""
    return graph.capture(tensor) if isinstance(graph, BodyGraph) else tensor


def copy_operation(op: Operation, graph: Graph, became: dict[Tensor, Tensor], name: str) -> Operation:
    """The same operation in ``graph``, over what its inputs ``became``; its control inputs are the caller's affair."""
    return trampoline(_operation(op, graph, became, name))


def _body(
    body: BodyGraph, name: str, outer: Graph, outer_of: Callable[[Tensor], Tensor]
) -> Visit[tuple[BodyGraph, dict[Tensor, Tensor]]]:
    made = BodyGraph(name, outer)
    became: dict[Tensor, Tensor] = {}
    copies: dict[Operation, Operation] = {}
    with made.as_default(), made.name_scope(name + "/"):
        for tensor in body.parameters:
            became[tensor] = made.add_parameter(tensor.op.name, tensor.dtype, tensor._dims)
        for around, inner in body.captures.items():
            became[inner] = made.capture(outer_of(around))
        for op in body.get_operations():
            if op.verb == "feed":
                continue
            copy = yield _operation(op, made, became, op.name.removeprefix(body.name + "/"))
            became.update(zip(op.outputs, copy.outputs, strict=True))
            copies[op] = copy
    for (
        op,
        copy,
    ) in copies.items():  # only now, since a control input may have been added that is younger than its follower
        copy._control = tuple([copies[before] for before in op._control if before in copies])
    made.outputs = [became[t] for t in body.outputs]
    made.targets = [copies[op] for op in body.targets]
    return made, became


def _operation(op: Operation, graph: Graph, became: dict[Tensor, Tensor], name: str) -> Visit[Operation]:
    prefix = graph._scopes.prefix
    copies: dict[int, Any] = {}
    for i, body in enumerate(op.bodies):
        copies[id(body)], _ = yield _body(body, f"{prefix}{name}/{i}", graph, became.__getitem__)
    attrs = {k: copies.get(id(v), v) for k, v in op.node_attrs.items()} if copies else op.node_attrs
    bodies = tuple(copies.values())
    made = graph.add_op(op.op_def, [became[t] for t in op.inputs], attrs, name, op._input_lengths, bodies)
    made._device, made.gradient_type, made._site = op._device, op.gradient_type, op._site
    for before, after in zip(op.outputs, made.outputs, strict=True):
        after._dims = before._dims
    return made
