"""PartGraph: the graph of one part, made of copies of a step's operations, and of what is sent and received between them.

Operations keep their names, attributes and lines, and stand in the order of the whole. Their bodies are the whole's own.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from graphdock.contracts.cluster import TaskName
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import as_dtype
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor

__all__ = ["PartGraph"]

_INT64, _BOOL = as_dtype("int64"), as_dtype("bool")


class PartGraph:
    """One part while it is made.

    Args:
      whole: the graph of the step. ``task``: where the part runs.
      exchange: of the task, for its sends and receives. ``compress``: float32 travels as 16 bits.

    Attributes:
      graph: what was made so far. ``became``: tensor of the whole -> the part's.
      copies: operation of the whole -> the part's.
      fed: tensors of the whole that are fed here. ``sends``: operations. ``received``: edges.
    """

    def __init__(self, whole: Graph, task: TaskName, exchange: str, compress: bool) -> None:
        self.whole = whole
        self.task = task
        self.graph = Graph(whole._host)
        self.graph.seed = whole.seed
        self.became: dict[Tensor, Tensor] = {}
        self.copies: dict[Operation, Operation] = {}
        self.fed: list[Tensor] = []
        self.sends: list[Operation] = []
        self.received: list[str] = []
        self._receipts: dict[Operation, Operation] = {}
        self._exchange, self._compress = exchange, compress
        self._step: Tensor | None = None

    @property
    def step(self) -> Tensor | None:
        """The placeholder of the step's number; None where nothing is sent or received."""
        return self._step

    def add(self, op: Operation, control: Sequence[Operation]) -> Operation:
        """A copy of an operation whose inputs are here, behind operations of the part."""
        graph, became = self.graph, self.became
        device = op._device
        if device is not None and (device.job is not None or device.task is not None):
            kind, index = device.type, device.index
            device = None if kind is None and index is None else DeviceSpec(None, None, kind, index)
        made = Operation(
            graph,
            op.op_def,
            op.name,
            [became[t] for t in op.inputs],
            op.node_attrs,
            control,
            device,
            op._site,
            len(graph._ops),
            op._input_lengths,
        )
        made.gradient_type, made._output_lengths = op.gradient_type, op._output_lengths
        made.colocation = tuple([name for name in op.colocation if name in graph._by_name])
        for tensor in op.outputs:
            twin = Tensor(made, tensor.value_index, tensor.dtype, tensor._dims)
            made.outputs.append(twin)
            became.setdefault(tensor, twin)
        if op.bodies:
            bodies = {id(body): self._body(body) for body in op.bodies}
            made.bodies = tuple(bodies.values())
            made.node_attrs = {k: bodies.get(id(v), v) for k, v in op.node_attrs.items()}
        graph.waits = graph.waits or "waits" in op.op_def.effects or any([b.waits for b in made.bodies])
        graph._ops.append(made)
        graph._by_name[op.name] = made
        self.copies[op] = made
        read = self.whole._reads.get(op.inputs[0].op) if op.verb == "read" else None
        if read is not None and read.op is op:
            graph.let_read(made.inputs[0].op, made.outputs[0])
        return made

    def _body(self, body: Any) -> Any:
        """A body whose captures are tensors of the part."""
        twin = copy.copy(body)
        twin.outer = self.graph
        twin.captures = {self.became[outer]: inner for outer, inner in body.captures.items()}
        return twin

    def feed(self, tensor: Tensor) -> None:
        """Let a tensor be fed here."""
        self.became[tensor] = self._placeholder(f"fed/{len(self.fed)}", tensor.dtype, tensor._dims)
        self.fed.append(tensor)

    def send(self, tensor: Tensor, to: TaskName) -> None:
        """Send a tensor that is here."""
        self._send(tensor.name, self.became[tensor], to, ())

    def send_receipt(self, op: Operation, to: TaskName) -> None:
        """Send word that an operation has run: an empty tensor."""
        empty = self._make("Const", f"ran/{len(self.sends)}", [], {"dtype": _BOOL, "value": _nothing()}, ())
        self._send(f"^{op.name}", empty.outputs[0], to, (self.copies[op],))

    def receive(self, tensor: Tensor, source: TaskName) -> None:
        """Receive a tensor of another part."""
        self.became[tensor] = self._recv(tensor.name, tensor.dtype, tensor._dims, source).outputs[0]

    def receipt(self, op: Operation, source: TaskName) -> Operation:
        """The operation that runs when one of another part has run."""
        found = self._receipts.get(op)
        if found is None:
            found = self._receipts[op] = self._recv(f"^{op.name}", _BOOL, (0,), source)
        return found

    def _send(self, edge: str, value: Tensor, to: TaskName, control: Sequence[Operation]) -> None:
        attrs = {
            "T": value.dtype,
            "exchange": self._exchange,
            "edge": edge,
            "task": str(to),
            "compress": self._compress and to != self.task,
        }
        self.sends.append(self._make("Send", f"send/{len(self.sends)}", [self._number(), value], attrs, control))

    def _recv(self, edge: str, dtype: Any, dims: Any, source: TaskName) -> Operation:
        attrs = {
            "T": dtype,
            "exchange": self._exchange,
            "edge": edge,
            "task": str(source),
            "shape": dims,
            "compress": self._compress and source != self.task,
        }
        self.received.append(edge)
        return self._make("Recv", f"recv/{len(self.received)}", [self._number()], attrs, ())

    def _number(self) -> Tensor:
        if self._step is None:
            self._step = self._placeholder("step", _INT64, ())
        return self._step

    def _placeholder(self, name: str, dtype: Any, dims: Any) -> Tensor:
        return self._make("Placeholder", name, [], {"dtype": dtype, "shape": dims}, ()).outputs[0]

    def _make(
        self, op: str, name: str, inputs: Sequence[Tensor], attrs: dict[str, Any], control: Sequence[Operation]
    ) -> Operation:
        """An operation of the part's own, below a scope whose name the whole does not have."""
        while f"{self._scope}/{name}" in self.whole._by_name:
            self._scope += "_"
        made = self.graph.add_op(self.graph.host.ops.get(op), inputs, attrs, f"{self._scope}/{name}/")
        made._control, made._site = tuple(control), None
        return made

    _scope = "graphdock.part"


def _nothing() -> Any:
    import numpy as np

    array = np.zeros((0,), bool)
    array.flags.writeable = False
    return array
