"""One node of a TensorFlow graph as graphdock's: names of ops and attributes, and the few ops that are several here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import as_dtype
from graphdock.errors import GraphdockError, InvalidArgumentError
from graphdock.messages import make
from graphdock_storage.tensor_reading import sole

from graphdock_tensorflow.graphs.nodes import Level, Node, op_of, port
from graphdock_tensorflow.graphs.table import ATTRS, HARMLESS, INPUTS, NAMES
from graphdock_tensorflow.graphs.values import array_of, dims_of, dtype_name, from_attr, repeated

__all__ = ["PRIMITIVES", "constant", "convert", "node_of"]

#: What is control flow, a call or a variable by reference, of which later stages make other nodes.
PRIMITIVES = frozenset(
    "Switch Merge Enter Exit NextIteration LoopCond RefSwitch RefMerge RefEnter RefExit RefNextIteration ControlTrigger "
    "If StatelessIf While StatelessWhile PartitionedCall StatefulPartitionedCall Variable VariableV2 RefIdentity "
    "IsVariableInitialized GraphdockWhile".split()
)
#: Before this version of the form a placeholder of shape [] took any shape.
_SCALARS_ARE_SCALARS = 24
#: Bytes that a constant of one number takes at most as it is; larger ones are filled by the step that reads them.
_FILLED = 1 << 16


def node_of(message: Any) -> Node:
    """The bare node of a NodeDef: inputs, device, colocation and gradient; nothing of its op is looked at.

    Raises:
      InvalidArgumentError: an input is none.
    """
    node = Node(message.name, message.op, device=message.device, wrote=message.op, raw=message)
    for text in message.input:
        if text.startswith("^"):
            node.controls.append(text[1:])
        else:
            name, index = port(text)
            node.inputs.append(f"{name}:{index}")
    if "_class" in message.attr:
        names = (s.decode("utf-8", "replace") for s in message.attr["_class"].list.s)
        node.colocate = [n.removeprefix("loc:@") for n in names if n.startswith("loc:@")]
    if "_gradient_op_type" in message.attr:
        node.gradient = message.attr["_gradient_op_type"].s.decode("utf-8", "replace")
    return node


def convert(level: Level, name: str, producer: int) -> None:
    """Make the node of that name one of graphdock's, with helpers beside it where it takes several; or say ``why`` not.

    Raises:
      InvalidArgumentError: it has too few inputs.
    """
    node = level[name]
    if len(node.inputs) < INPUTS.get(node.op, 0):
        raise InvalidArgumentError(
            f"GraphDef: {name!r} is no {node.op}: it lacks inputs",
            expected=str(INPUTS[node.op]),
            got=str(len(node.inputs)),
        )
    if node.op in PRIMITIVES:
        _primitive(node)
        return
    try:
        special = _SPECIAL.get(node.op)
        if special is not None:
            special(level, node)
        else:
            _plain(level, node, NAMES.get(node.op, node.op))
    except GraphdockError as error:
        node.why = error.message
    if node.op == "Placeholder" and producer < _SCALARS_ARE_SCALARS and node.attrs.get("shape") == {"shape": []}:
        node.attrs["shape"] = {"shape": None}
    if not node.why:
        node.raw = None


def _primitive(node: Node) -> None:
    for attr in ("T", "dtype"):
        if attr in node.raw.attr and node.raw.attr[attr].WhichOneof("value") == "type":
            try:
                node.attrs[attr] = {"type": dtype_name(node.raw.attr[attr].type, f"node {node.name!r}")}
            except GraphdockError as error:
                node.why = error.message


def _plain(level: Level, node: Node, op: str, skip: Sequence[str] = (), **more: Any) -> None:
    """Give the node its op and attributes; ``skip`` names TensorFlow's that a rule has read, ``more`` are of graphdock's."""
    if op not in level.ops:
        node.why = "op"
        return
    node.op = op
    opdef = level.ops.get(op)
    names = {theirs: ours for ours, theirs in ATTRS.get(op, {}).items() if theirs is not None}
    for theirs in sorted(node.raw.attr):
        if theirs.startswith("_") or theirs in skip:
            continue
        value = node.raw.attr[theirs]
        if value.WhichOneof("value") == "placeholder":
            node.why = f"attribute {theirs!r} is open"
            return
        ours = names.get(theirs, theirs)
        kind = _kind(opdef, ours)
        if kind is None:
            _check_harmless(node, theirs, value)
        elif kind == "func":
            node.why = "Python function"
            return
        else:
            level.room.take("repeated elements", repeated(value), node.name)
            node.attrs[ours] = {kind: from_attr(kind, value, f"node {node.name!r}: attribute {theirs!r}")}
    node.attrs.update(more)


def _kind(opdef: OpDef, name: str) -> str | None:
    attr = opdef.attr(name)
    if attr is not None:
        return attr.type
    var = next((t for t in opdef.types if t.name == name), None)
    return None if var is None else ("list(type)" if var.is_list else "type")


def _check_harmless(node: Node, name: str, value: Any) -> None:
    field = value.WhichOneof("value")
    if field in ("type", "shape") or (field == "list" and value.list.type):  # the inputs say the same
        return
    if name not in HARMLESS:
        node.why = f"attribute {name!r}"
        return
    wanted = HARMLESS[name]
    if wanted is not None and getattr(value, field or "s") != wanted:
        node.why = f"attribute {name!r} with another value than {wanted}"


# -- ops that are made of others ----------------------------------------------------------------------------------------


def constant(level: Level, name: str, value: Any, dtype: str, near: Node) -> str:
    """A new constant beside a node; returns its tensor."""
    array = np.asarray(value, as_dtype(dtype).np)
    attrs = {"value": {"tensor": array}, "dtype": {"type": dtype}}
    made = Node(level.fresh(f"{near.name}/{name}"), "Const", attrs=attrs, device=near.device, wrote=near.wrote)
    made.controls = list(near.controls)
    return level.put(made)


def _beside(level: Level, near: Node, op: str, inputs: Sequence[str], label: str = "", **attrs: dict[str, Any]) -> str:
    made = Node(level.fresh(f"{near.name}/{label or op}"), op, list(inputs), attrs=attrs, wrote=near.wrote)
    made.device, made.controls = near.device, list(near.controls)
    return level.put(made)


def _type(node: Node, attr: str = "T") -> str:
    return dtype_name(node.raw.attr[attr].type, f"node {node.name!r}: attribute {attr!r}")


def _const(level: Level, node: Node) -> None:
    """A large constant of one number, as Adagrad's are: a Fill, which takes no memory before a step."""
    value, kind = node.raw.attr["value"], node.raw.attr["dtype"].type
    large = repeated(value) > _FILLED and value.tensor.dtype == kind
    one = sole(value.tensor, f"node {node.name!r}: attribute 'value'") if large else None
    if one is None:
        _plain(level, node, "Const")
        return
    dims = [int(d.size) for d in value.tensor.tensor_shape.dim]
    dtype, index = dtype_name(kind, f"node {node.name!r}"), "int64" if max(dims) >> 31 else "int32"
    node.op = "Fill"
    node.inputs = [constant(level, "dims", dims, index, node), constant(level, "value", one, dtype, node)]
    node.attrs = {"T": {"type": dtype}, "Tdims": {"type": index}}


def _gather(level: Level, node: Node) -> None:
    _plain(level, node, "Gather")
    node.inputs.append(constant(level, "axis", 0, "int32", node))


def _concat(level: Level, node: Node) -> None:
    _plain(level, node, "Concat")
    node.inputs = [*node.inputs[1:], *node.inputs[:1]]


def _pad(level: Level, node: Node) -> None:
    _plain(level, node, "Pad", ("mode",))
    node.inputs.append(constant(level, "constant_values", np.zeros((), as_dtype(_type(node)).np), _type(node), node))


def _mirror_pad(level: Level, node: Node) -> None:
    _pad(level, node)
    node.attrs["mode"] = {"string": from_attr("string", node.raw.attr["mode"], f"node {node.name!r}: mode").lower()}


def _div(level: Level, node: Node) -> None:
    _plain(level, node, "TruncateDiv" if as_dtype(_type(node)).is_integer else "RealDiv")


def _matmul(level: Level, node: Node) -> None:
    flips = {ours: node.raw.attr[theirs].b for ours, theirs in (("transpose_a", "adj_x"), ("transpose_b", "adj_y"))}
    _plain(level, node, "MatMul", ("adj_x", "adj_y"))
    if any(flips.values()) and as_dtype(node.attrs["T"]["type"]).is_complex:
        node.why = "adjoint of complex matrices"
    node.attrs.update({k: {"bool": v} for k, v in flips.items()})


def _select(level: Level, node: Node) -> None:
    """A condition of rank 1 chooses rows there; here it broadcasts from the right. So it gets ones behind its shape."""
    _plain(level, node, "Select")
    test, value = node.inputs[:2]
    one: dict[str, Any] = {"T": {"type": "int32"}}
    shape = _beside(level, node, "Shape", [test], T={"type": "bool"})
    ranks = [_beside(level, node, "Rank", [t], T={"type": d}) for t, d in ((value, _type(node)), (test, "bool"))]
    more = _beside(level, node, "Pack", [_beside(level, node, "Sub", ranks, **one)], N={"int": 1}, **one)
    ones = _beside(level, node, "Fill", [more, constant(level, "one", 1, "int32", node)], **one)
    axis = constant(level, "axis", 0, "int32", node)
    whole = _beside(level, node, "Concat", [shape, ones, axis], N={"int": 2}, **one)
    node.inputs[0] = _beside(level, node, "Reshape", [test, whole], "condition", T={"type": "bool"})


def _fused_v3(level: Level, node: Node) -> None:
    """The last of its outputs is for the gradient's kernel alone."""
    _plain(level, node, "FusedBatchNorm")
    level.replace_inputs({f"{node.name}:5": f"{node.name}:4"})


def _fused_grad_v3(level: Level, node: Node) -> None:
    _plain(level, node, "FusedBatchNormGrad")
    node.inputs = node.inputs[:5]


def _top_k(level: Level, node: Node) -> None:
    _plain(level, node, "TopKV2", ("k",))
    node.inputs.append(constant(level, "k", node.raw.attr["k"].i, "int32", node))


def _resource_gather(level: Level, node: Node) -> None:
    dtype = _type(node, "dtype")
    _plain(level, node, "Gather", ("dtype",), T={"type": dtype})
    read = _beside(level, node, "ReadVariableOp", node.inputs[:1], dtype={"type": dtype})
    node.inputs = [read, *node.inputs[1:], constant(level, "axis", 0, "int32", node)]


def _shape_n(level: Level, node: Node) -> None:
    """As many Shapes; what reads the others' outputs is told by ``IdentityN``, which has as many."""
    attrs: dict[str, Any] = {n: {"type": _type(node, n)} for n in ("T", "out_type") if n in node.raw.attr}
    shapes = [_beside(level, node, "Shape", [t], **attrs) for t in node.inputs]
    out = attrs.get("out_type", {"type": "int32"})["type"]
    node.op, node.inputs, node.attrs = "IdentityN", shapes, {"T": {"list(type)": [out] * len(shapes)}}


def _dense_table(level: Level, node: Node) -> None:
    """The empty and the deleted key, which are inputs there, are attributes here."""
    keys = []
    for tensor in node.inputs:
        key = level.get(op_of(tensor))
        if key is None or key.wrote != "Const":
            node.why = "its empty_key or deleted_key is not a constant"
            return
        value = key.attrs["value"]["tensor"] if key.raw is None else array_of(key.raw.attr["value"].tensor, key.name)
        keys.append(np.asarray(value))
    elements = [k for key in keys for k in key.ravel().tolist()]
    listed = make("AttrValue")
    listed.list.s.extend(k if isinstance(k, bytes) else str(k).encode() for k in elements)
    reserved = {"list(string)": from_attr("list(string)", listed, f"node {node.name!r}")}
    node.inputs = []
    _plain(level, node, node.op, key_shape={"shape": list(keys[0].shape)}, reserved=reserved)


def _concat_offset(level: Level, node: Node) -> None:
    """Of each part the sizes of those before it along the axis, and 0 along the others."""
    axis, *shapes = node.inputs
    whole: dict[str, Any] = {"T": {"type": "int32"}}
    rank = _beside(level, node, "Size", shapes[:1], **whole)
    bits = [constant(level, n, v, "int32", node) for n, v in (("on", 1), ("off", 0))]
    mask = _beside(level, node, "OneHot", [axis, rank, *bits], T={"type": "int32"}, Tindices={"type": "int32"})
    found = [_beside(level, node, "ZerosLike", shapes[:1], **whole)]
    for shape in shapes[:-1]:
        found.append(
            _beside(level, node, "Add", [found[-1], _beside(level, node, "Mul", [shape, mask], **whole)], **whole)
        )
    node.op, node.inputs, node.attrs = "IdentityN", found, {"T": {"list(type)": ["int32"] * len(found)}}


def _optional(level: Level, node: Node) -> None:
    """Optionals of one tensor are the only ones here."""
    attr = node.raw.attr["Toutput_types" if node.op == "OptionalFromValue" else "output_types"].list.type
    if len(attr) != 1:
        node.why = "of several tensors"
        return
    dtype = {"type": dtype_name(attr[0], f"node {node.name!r}")}
    shapes = node.raw.attr["output_shapes"].list.shape if "output_shapes" in node.raw.attr else ()
    node.attrs = {"T": dtype}
    if shapes:
        node.attrs["shape"] = {"shape": dims_of(shapes[0], f"node {node.name!r}: output_shapes")}


#: What a formula makes of the node's inputs: given them and ``f(op, *tensors)`` and ``c(number)``, it returns op and
#: inputs of the last.
_Formula = Callable[[Sequence[str], Callable[..., str], Callable[[float], str]], tuple[str, list[str]]]


def _made_of(formula: _Formula, *skip: str) -> Callable[[Level, Node], None]:
    def rule(level: Level, node: Node) -> None:
        dtype = _type(node)
        if as_dtype(dtype).is_complex:
            node.why = "op"
            return

        def apply(op: str, *tensors: str) -> str:
            return _beside(level, node, op, tensors, T={"type": dtype})

        def number(value: float) -> str:
            return constant(level, "Const", value, dtype, node)

        op, inputs = formula([*node.inputs, *[number(node.raw.attr[s].f) for s in skip]], apply, number)
        _plain(level, node, op, skip)
        node.inputs = inputs

    return rule


_SPECIAL: dict[str, Callable[[Level, Node], None]] = {
    "Const": _const,
    "Gather": _gather,
    "Concat": _concat,
    "Pad": _pad,
    "MirrorPad": _mirror_pad,
    "Div": _div,
    "BatchMatMul": _matmul,
    "BatchMatMulV2": _matmul,
    "BatchMatMulV3": _matmul,
    "Select": _select,
    "FusedBatchNormV3": _fused_v3,
    "FusedBatchNormGradV3": _fused_grad_v3,
    "TopK": _top_k,
    "ResourceGather": _resource_gather,
    "ShapeN": _shape_n,
    "OptionalFromValue": _optional,
    "OptionalGetValue": _optional,
    "ConcatOffset": _concat_offset,
    "MutableDenseHashTableV2": _dense_table,
    "SoftplusGrad": _made_of(lambda t, f, c: ("Mul", [t[0], f("Sigmoid", t[1])])),
    "SoftsignGrad": _made_of(lambda t, f, c: ("RealDiv", [t[0], f("Square", f("Add", c(1.0), f("Abs", t[1])))])),
    "EluGrad": _made_of(
        lambda t, f, c: (
            "Select",
            [f("Less", t[1], f("ZerosLike", t[1])), f("Mul", t[0], f("Add", t[1], c(1.0))), t[0]],
        )
    ),
    "Relu6Grad": _made_of(
        lambda t, f, c: ("Select", [f("Less", t[1], c(6.0)), f("ReluGrad", t[0], t[1]), f("ZerosLike", t[0])])
    ),
}
