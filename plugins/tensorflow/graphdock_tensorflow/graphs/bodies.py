"""Parts of a graph become the bodies of a Cond or a While."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphdock_tensorflow.graphs.nodes import Level, Node

__all__ = ["Body", "identity_n", "take_out"]

#: Bytes that a node has in a file, at least.
_NODE = 32


class Body:
    """A body as it is made.

    Attributes:
      level: its nodes. ``outputs``: its tensors that it returns. ``targets``: nodes in it that run besides.
      arguments: the placeholder of each tensor that it is given, in order.
    """

    def __init__(self, name: str, level: Level) -> None:
        self.name = name
        self.level = level
        self.outputs: list[str] = []
        self.targets: list[str] = []
        self.arguments: list[str] = []

    def argument(self, label: str, dtype: str, dims: Any = None) -> str:
        """A new placeholder; returns its tensor."""
        attrs = {"dtype": {"type": dtype}, "shape": {"shape": dims}}
        tensor = self.level.put(Node(self.level.fresh(label), "Placeholder", attrs=attrs, wrote="Placeholder"))
        self.arguments.append(tensor)
        return tensor

    def why(self) -> str:
        """Return why it can't be imported: the first of its nodes that can't. Empty where it can."""
        if self.level.lost:
            return self.level.lost[0][1]
        found = next((n for n in self.level.values() if n.why), None)
        if found is None:
            return "what is behind a branch" if self.level.dropped else ""
        return f"needs {found.wrote}" if found.why == "op" else found.why

    def data(self, parameters: int = 0) -> dict[str, Any]:
        """The plain data; the first so many arguments are loop variables, the others captures."""
        names = [t.rpartition(":")[0] for t in self.arguments]
        made: dict[str, Any] = {
            "name": self.name,
            "parameters": names[:parameters],
            "captures": names[parameters:],
            "outputs": self.outputs,
        }
        if self.targets:
            made["targets"] = self.targets
        return {"func": {**made, "nodes": [n.data() for n in self.level.values()]}}


def take_out(
    level: Level,
    name: str,
    outputs: Sequence[str],
    targets: Iterable[str],
    given: Mapping[str, str],
    ends: Iterable[str],
    ignored: frozenset[str] = frozenset(),
) -> Body:
    """A body of copies of what the outputs and targets need.

    Args:
      given: tensor of the level -> label of the argument that stands for it; an argument is made for every one, in this order.
      ends: nodes that give these tensors; what is behind them stays outside.
      ignored: nodes that nobody in the body waits for.
    """
    stop = set(ends)
    roots = [t.rpartition(":")[0] for t in outputs if t not in given]
    names = level.behind([r for r in [*roots, *targets] if r not in stop], stop) - stop - ignored
    level.room.take("bodies", _NODE * len(names), name)
    body = Body(name, Level(level.ops, level.room))
    body.level.taken |= names
    arguments = {}
    for tensor, label in given.items():
        arguments[tensor] = body.argument(label, level.dtype(tensor) or "float32")
    for each in level.ordered(names):
        node = level[each]
        inputs = [arguments.get(t, t) for t in node.inputs]
        controls = [c for c in node.controls if c in names]
        copy = Node(node.name, node.op, inputs, controls, node.attrs, node.device, wrote=node.wrote, why=node.why)
        copy.raw, copy.gradient, copy.lengths = node.raw, node.gradient, node.lengths
        body.level.put(copy)
    body.outputs = [arguments.get(t, t) for t in outputs]
    body.targets = [t for t in dict.fromkeys(targets) if t in names]
    return body


def identity_n(level: Level, name: str, tensors: Sequence[str], like: Node, controls: Iterable[str] = ()) -> None:
    """A node of that name whose outputs are these tensors."""
    dtypes = [level.dtype(t) or "float32" for t in tensors]
    node = Node(name, "IdentityN", list(tensors), list(controls), {"T": {"list(type)": dtypes}}, wrote=like.wrote)
    if not tensors:
        node.op, node.attrs = "NoOp", {}
    level.put(node)
