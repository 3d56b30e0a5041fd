"""Variables by reference, as TensorFlow 1 made them at first, become handles, reads and updates.

A reference (``VariableV2``) is a tensor that a variable changes. Where it is updated here the handle stands; where its
value is taken,
a read with the control inputs of whoever takes it. An update that gives the reference on makes what follows wait for it.
"""

from __future__ import annotations

from graphdock.errors import InvalidArgumentError

from graphdock_tensorflow.graphs.convert import convert
from graphdock_tensorflow.graphs.nodes import Level, Node, op_of
from graphdock_tensorflow.graphs.values import dims_of

__all__ = ["without_references"]

_VARIABLES = ("VariableV2", "Variable")
_UPDATES = {"Assign": "AssignVariableOp", "AssignAdd": "AssignAddVariableOp", "AssignSub": "AssignSubVariableOp"}
#: Nodes that hand a reference on as they get it.
_PASSED = ("RefIdentity",)


def without_references(level: Level, keep: frozenset[str] = frozenset()) -> None:
    """Change the nodes of variables by reference. ``keep``: tensors that are replaced by others, which are no references."""
    variables = [n for n in level.values() if n.wrote in _VARIABLES and not n.why and n.raw is not None]
    if not variables:
        return
    sources: dict[str, str] = {}  # tensor that is a reference -> the node that gives it
    for node in variables:
        sources[f"{node.name}:0"] = node.name
    updates = {n.name: n for n in level.values() if n.wrote in (*_UPDATES, *_PASSED) or _resource_op(level, n)}
    readers: dict[str, list[str]] = {}
    for node in updates.values():
        if node.inputs:
            readers.setdefault(node.inputs[0], []).append(node.name)
    waiting = list(sources)
    while waiting:
        tensor = waiting.pop()
        for name in readers.get(tensor, ()) if tensor not in keep else ():
            if f"{name}:0" not in sources and not _gives_a_value(level, updates[name]):
                sources[f"{name}:0"] = name
                waiting.append(f"{name}:0")
    for out in keep:
        sources.pop(out, None)
    for node in variables:
        _make_handle(node)
    for node in list(level.values()):
        _rewire(level, node, sources, updates)


def _resource_op(level: Level, node: Node) -> bool:
    return node.why == "op" and f"Resource{node.op}" in level.ops


def _gives_a_value(level: Level, node: Node) -> bool:
    """Return whether the update has an output of its own, such as a counter's value before, and gives no reference on."""
    opdef = level.ops.get(f"Resource{node.wrote}") if _resource_op(level, node) else None
    return opdef is not None and bool(opdef.outputs)


def _make_handle(node: Node) -> None:
    shape = dims_of(node.raw.attr["shape"].shape, f"node {node.name!r}: shape")
    if "dtype" not in node.attrs:
        raise InvalidArgumentError(f"GraphDef: the variable {node.name!r} has no dtype")
    node.op, node.attrs = "VarHandleOp", {"dtype": node.attrs["dtype"], "shape": {"shape": shape}}
    for attr in ("container", "shared_name"):
        text = node.raw.attr[attr].s.decode("utf-8", "replace") if attr in node.raw.attr else ""
        node.attrs[attr] = {"string": text}
    node.raw = None


def _origin(level: Level, tensor: str, sources: dict[str, str]) -> tuple[str, list[str]]:
    """The handle behind a reference, and the updates that it went through."""
    after: list[str] = []
    name = sources[tensor]
    while level[name].op != "VarHandleOp":
        after.append(name)
        tensor = level[name].inputs[0]
        name = sources.get(tensor, op_of(tensor))
    return name, after


def _rewire(level: Level, node: Node, sources: dict[str, str], updates: dict[str, Node]) -> None:
    """Let a node take handles where it took references to update, and reads elsewhere."""
    if node.op == "VarHandleOp" or not any(t in sources for t in node.inputs):
        return
    taken = 0
    if node.inputs[0] in sources:
        taken = _as_update(level, node) if node.name in updates else _as_test(node)
    inputs: list[str] = []
    controls = list(node.controls)
    for i, tensor in enumerate(node.inputs):
        if tensor not in sources:
            inputs.append(tensor)
            continue
        handle, after = _origin(level, tensor, sources)
        if i < taken or node.op == "Identity":
            inputs.append(f"{handle}:0")
            node.controls += [a for a in after if a != node.name]
        else:
            read = Node(level.fresh(f"{node.name}/Read"), "ReadVariableOp", [f"{handle}:0"], [*controls, *after])
            read.attrs, read.device, read.wrote = (
                {"dtype": level[handle].attrs["dtype"]},
                level[handle].device,
                node.wrote,
            )
            inputs.append(level.put(read))
    node.inputs = inputs
    if node.op == "Identity":  # of a reference: it takes the value
        node.op, node.attrs = "ReadVariableOp", {"dtype": level[op_of(inputs[0])].attrs["dtype"]}


def _as_test(node: Node) -> int:
    if node.op != "IsVariableInitialized":
        return 0
    node.op, node.attrs, node.raw = "VarIsInitializedOp", {}, None
    return 1


def _as_update(level: Level, node: Node) -> int:
    """Make the update one through handles; returns how many of its first inputs these are."""
    if node.wrote in _PASSED:
        node.op, node.attrs, node.raw = "Identity", {}, None
        return 1
    node.op, node.why = _UPDATES.get(node.wrote) or f"Resource{node.wrote}", ""
    opdef = level.ops.get(node.op)
    convert(level, node.name, 1 << 30)
    return sum(a.dtype == "resource" for a in opdef.inputs)
