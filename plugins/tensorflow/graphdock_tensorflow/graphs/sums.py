"""The sum that undoes a broadcast, which TensorFlow's gradients make of three nodes, is one op here.

Reshape(Sum(v, BroadcastGradientArgs(s, t):0), s)  is  SumTo(v, s)
"""

from __future__ import annotations

from graphdock_tensorflow.graphs.nodes import Level, Node, port

__all__ = ["make_sums"]

_ARGS = "BroadcastGradientArgs"
#: Ops of one input that change no shape, which may stand between the sum and the reshape.
_BETWEEN = ("Neg", "Identity")


def make_sums(level: Level) -> None:
    """Replace the sums whose results nothing sees but through that reshape; what nobody needs any more goes."""
    if "SumTo" not in level.ops or not any(n.wrote == _ARGS for n in level.values()):
        return
    readers: dict[str, list[Node]] = {}
    for node in level.values():
        for tensor in node.inputs:
            readers.setdefault(tensor, []).append(node)
    for node in level.values():
        if node.op != "Sum" or node.why or "T" not in node.attrs:
            continue
        name, which = port(node.inputs[1])
        axes = level.get(name)
        if axes is None or axes.wrote != _ARGS or which > 1 or len(axes.inputs) != 2:
            continue
        shape = axes.inputs[which]
        if _is_reshaped(f"{node.name}:0", shape, readers):
            node.op, node.inputs = "SumTo", [node.inputs[0], shape]
            node.attrs = {"T": node.attrs["T"], "Tidx": {"type": level.dtype(shape) or "int32"}}
    used = {n for node in level.values() for n in level.before(node)}
    for name in [n.name for n in level.values() if n.wrote == _ARGS and n.name not in used]:
        del level[name]


def _is_reshaped(tensor: str, shape: str, readers: dict[str, list[Node]]) -> bool:
    """Return whether all that reads the tensor gives it that shape."""
    waiting, seen = list(readers.get(tensor, ())), set()
    while waiting:
        node = waiting.pop()
        if node.name in seen:
            continue
        seen.add(node.name)
        if node.op in _BETWEEN and f"{node.name}:0" in readers:
            waiting.extend(readers[f"{node.name}:0"])
        elif node.op != "Reshape" or node.inputs[1] != shape:
            return False
    return True
