"""Nodes on their way from TensorFlow's graphs to graphdock's plain data, and what is known of their tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphdock import ops as _ops
from graphdock.contracts.opdef import ArgDef, OpDef
from graphdock.errors import InvalidArgumentError

__all__ = ["Level", "Node", "Room", "op_of", "output_counts", "port"]

#: As many outputs as a node may have.
_MOST = 1 << 16
#: Bytes that elements which a file does not hold may take in all; the last element of a tensor stands for those behind it.
MOST_REPEATED = 1 << 28
#: Bytes that all calls of functions may become, besides so many times those of the file.
MOST_BODIES, LARGEST = 1 << 17, 64


@dataclass(slots=True)
class Node:
    """A node.

    Attributes:
      inputs: names of tensors, ``"x:0"``, the port always there. ``controls``: names of nodes.
      attrs: name -> ``{type: value}``, as in graphdock's plain data, where a tensor may be an array and a body is a dict.
      wrote: the op that the file has. ``why``: why it can't be imported; empty for one that can.
      raw: TensorFlow's own node, while it is one of control flow's primitives.
    """

    name: str
    op: str
    inputs: list[str] = field(default_factory=list)
    controls: list[str] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)
    device: str = ""
    colocate: list[str] = field(default_factory=list)
    gradient: str | None = None
    wrote: str = ""
    why: str = ""
    raw: Any = None
    lengths: list[int] | None = None

    def data(self) -> dict[str, Any]:
        """The plain data of it."""
        made: dict[str, Any] = {"name": self.name, "op": self.op}
        inputs = [*self.inputs, *[f"^{c}" for c in dict.fromkeys(self.controls)]]
        if inputs:
            made["inputs"] = inputs
        if self.lengths is not None:
            made["input_lengths"] = self.lengths
        if self.device:
            made["device"] = self.device
        if self.colocate:
            made["colocate"] = self.colocate
        if self.gradient is not None:
            made["gradient"] = self.gradient
        if self.attrs:
            made["attrs"] = self.attrs
        return made


def port(text: str) -> tuple[str, int]:
    """Name and port of an input: ``"x"`` is ``x:0``. Raises InvalidArgumentError: it is no input."""
    name, colon, number = text.rpartition(":")
    if not colon:
        return text, 0
    if not name or not number.isdecimal() or len(number) > 6:
        raise InvalidArgumentError(f"GraphDef: {text[:100]!r} is no tensor")
    return name, int(number)


def op_of(tensor: str) -> str:
    """The name of a tensor's node."""
    return tensor.rpartition(":")[0]


def output_counts(opdef: OpDef, attrs: Mapping[str, Any]) -> list[int]:
    """Return how many tensors each output of a node is. Raises InvalidArgumentError: its attributes do not say."""
    return [_count(opdef, arg, attrs) for arg in opdef.outputs]


def _count(opdef: OpDef, arg: ArgDef, attrs: Mapping[str, Any]) -> int:
    if arg.arity == "one":
        return 1
    plain = {a.name: a.default for a in opdef.attrs}
    for name, value in attrs.items():
        (plain[name],) = value.values()
    try:
        count = int(_ops.compile_expression(arg.count or "1")[0](plain))
    except (KeyError, TypeError, ValueError):
        count = -1
    if not 0 <= count <= _MOST:
        raise InvalidArgumentError(f"GraphDef: the outputs of a {opdef.name} can't be counted")
    return count


class Room:
    """Bytes that an import may still make of a file beyond the file's own: by what stands for more than it is long.

    Args:
      nbytes: the size of the file.
    """

    def __init__(self, nbytes: int) -> None:
        self._left = {"repeated elements": MOST_REPEATED, "bodies": MOST_BODIES + LARGEST * nbytes}

    def take(self, what: str, nbytes: int, op: str) -> None:
        """Use some of it. Raises InvalidArgumentError: there is no more; ``op`` names the node."""
        if nbytes > self._left[what]:
            raise InvalidArgumentError(f"GraphDef: the {what} are too many for a file of its size", op=op)
        self._left[what] -= nbytes


class Level(dict[str, Node]):
    """The nodes of a graph, or of the body of one, by name, in the order of the file.

    Attributes:
      room: of the whole import.
      lost: control flow that can't be imported: what it is, why, and its name. ``dropped``: the nodes that went with it.
    """

    def __init__(self, ops: Any, room: Room) -> None:
        super().__init__()
        self.ops = ops
        self.room = room
        self.taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._places: dict[str, int] = {}
        self._place = 0
        self.lost: list[tuple[str, str, str]] = []
        self.dropped: set[str] = set()

    def __setitem__(self, name: str, node: Node) -> None:
        if name not in self:
            self._places[name] = self._place = self._place + 1
        super().__setitem__(name, node)

    def ordered(self, names: Iterable[str]) -> list[str]:
        """Those of the names that there are, in the order of the file."""
        return sorted([n for n in names if n in self], key=self._places.__getitem__)

    def drop(self, names: Iterable[str]) -> None:
        """Take nodes out that can't be imported; whatever reads them can't be either."""
        for name in list(names):
            if self.pop(name, None) is not None:
                self.dropped.add(name)

    def fresh(self, name: str) -> str:
        """A name that no node has: ``name``, or with a number behind it."""
        made, number = name, self._numbers.get(name, 0)
        while made in self or made in self.taken:
            number += 1
            made = f"{name}_{number}"
        self._numbers[name] = number
        self.taken.add(made)
        return made

    def put(self, node: Node) -> str:
        """Add a node; returns its first tensor."""
        self[node.name] = node
        self.taken.add(node.name)
        return f"{node.name}:0"

    def replace_inputs(self, changes: Mapping[str, str]) -> None:
        """Let every node read the values of ``changes`` where it reads their keys."""
        if changes:
            for node in self.values():
                if not changes.keys().isdisjoint(node.inputs):
                    node.inputs = [changes.get(t, t) for t in node.inputs]

    def before(self, node: Node) -> Iterator[str]:
        """The names of the nodes that it reads or follows."""
        yield from map(op_of, node.inputs)
        yield from node.controls

    def behind(self, names: Iterable[str], stop: Iterable[str] = ()) -> set[str]:
        """These nodes, and all that they need; ``stop`` is not looked behind."""
        found: set[str] = set()
        stack, ends = list(names), set(stop)
        while stack:
            name = stack.pop()
            if name in found or name not in self:
                continue
            found.add(name)
            if name not in ends:
                stack.extend(self.before(self[name]))
        return found

    def readers(self) -> dict[str, list[str]]:
        """Name -> the names of the nodes that read it or follow it."""
        found: dict[str, list[str]] = {}
        for node in self.values():
            for name in self.before(node):
                found.setdefault(name, []).append(node.name)
        return found

    def ahead(
        self, names: Iterable[str], stop: Iterable[str] = (), readers: Mapping[str, Sequence[str]] | None = None
    ) -> set[str]:
        """These nodes, and all that need them; ``stop`` is not looked beyond. ``readers``: as :meth:`readers` gives them."""
        readers = self.readers() if readers is None else readers
        found: set[str] = set()
        stack, ends = list(names), set(stop)
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                if name not in ends:
                    stack.extend(readers.get(name, ()))
        return found

    def dtype(self, tensor: str) -> str | None:
        """The dtype of a tensor; None where that is not known."""
        seen: set[str] = set()
        while tensor not in seen:
            seen.add(tensor)
            name, index = port(tensor)
            node = self.get(name)
            if node is None:
                return None
            if node.op not in self.ops:
                return next((node.attrs[a]["type"] for a in ("T", "dtype") if a in node.attrs), None)
            opdef = self.ops.get(node.op)
            try:
                counts = output_counts(opdef, node.attrs)
            except InvalidArgumentError:
                return None
            arg = None
            for each, count in zip(opdef.outputs, counts, strict=True):
                if index < count:
                    arg = each
                    break
                index -= count
            if arg is None:
                return None
            if arg.dtype in node.attrs:
                ((kind, value),) = node.attrs[arg.dtype].items()
                return str(value[index]) if kind == "list(type)" else str(value)
            var = next((t for t in opdef.types if t.name == arg.dtype), None)
            if var is None:
                return None if opdef.attr(arg.dtype) is not None else arg.dtype
            source = _position(opdef.inputs, arg.dtype)
            if source is None or source >= len(node.inputs):
                default: str | None = var.default
                return default
            tensor = node.inputs[source]
        return None


def _position(inputs: Sequence[ArgDef], dtype: str) -> int | None:
    """The position of the first input of that dtype, where only single ones stand before it."""
    for i, arg in enumerate(inputs):
        if arg.dtype == dtype:
            return i
        if arg.arity != "one":
            return None
    return None
