"""Graphdock's plain data as a GraphDef of TensorFlow: its names of ops, attributes and outputs, bodies as functions of its library.

An op that TensorFlow does not have keeps its name, so that the GraphDef comes back here; TensorFlow then says which one it lacks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from graphdock.dtypes import as_dtype
from graphdock.messages import make
from graphdock_storage.tensor_messages import number_of, shape_proto

from graphdock_tensorflow.graphs.nodes import op_of, output_counts, port
from graphdock_tensorflow.graphs.table import ATTRS, HISTORIES, OUTPUTS, OWN_WHILE, WRITE_AS
from graphdock_tensorflow.graphs.values import attr_of

__all__ = ["PRODUCER", "write_graph"]

#: TensorFlow 1.15's version of the form.
PRODUCER = 134
_SEGMENTS = ("SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSum")


def write_graph(data: Mapping[str, Any], ops: Any, add_shapes: bool = False) -> Any:
    """The GraphDef of plain data, whose nodes have the key ``shapes`` (``as_data(graph, exact=True)``).

    Raises:
      UnavailableError: the library protobuf is not installed.
    """
    made = make("GraphDef")
    made.versions.producer = PRODUCER
    writer = _Writer(ops, made.library, add_shapes)
    writer.level(data["nodes"], made.node, {}, function=False)
    return made


class _Writer:
    def __init__(self, ops: Any, library: Any, add_shapes: bool) -> None:
        self.ops = ops
        self.library = library
        self.add_shapes = add_shapes
        self._names: set[str] = set()

    def level(
        self, nodes: Sequence[Mapping[str, Any]], out: Any, arguments: Mapping[str, str], function: bool
    ) -> _Names:
        """Write the nodes of a graph, or of a function whose ``arguments`` are placeholders of the body."""
        names = _Names(function, arguments)
        shapes: dict[str, Any] = {}
        for node in nodes:
            if function and f"{node['name']}:0" in arguments:
                for i, dims in enumerate(node["shapes"]):
                    shapes[f"{node['name']}:{i}"] = dims
                continue
            for i, dims in enumerate(node["shapes"]):
                shapes[f"{node['name']}:{i}"] = dims
            self._declare(node, names, shapes)
        for node in nodes:
            if not (function and f"{node['name']}:0" in arguments):
                self._node(node, out, names, shapes)
        return names

    def _declare(self, node: Mapping[str, Any], names: _Names, shapes: Mapping[str, Any]) -> None:
        """Note what TensorFlow calls the outputs of a node."""
        opdef = self.ops.get(node["op"])
        ours = [a.name for a in opdef.outputs]
        theirs = OUTPUTS.get(_op(node, shapes), ())
        counts = output_counts(opdef, node.get("attrs", {}))
        if node["op"] == "While" and not _plain_loop(attrs_of(node)) and not attrs_of(node)["scanned"]["int"]:
            names.histories[node["name"]] = len(attrs_of(node)["output_shapes"]["list(shape)"])
        names.outputs[node["name"]] = [
            (theirs[i] if i < len(theirs) else n, c) for i, (n, c) in enumerate(zip(ours, counts, strict=True))
        ]

    def _node(self, node: Mapping[str, Any], out: Any, names: _Names, shapes: Mapping[str, Any]) -> None:
        op, attrs = _op(node, shapes), node.get("attrs", {})
        inputs = [t for t in node.get("inputs", ()) if not t.startswith("^")]
        made = out.add(name=node["name"], op=op, device=node.get("device", ""))
        made.input.extend(names.ref(t) for t in inputs)
        rule = _RULES.get(node["op"])
        if rule is not None:
            rule(self, node, made, names, out)
        else:
            self._attrs(node["op"], attrs, made)
        made.input.extend(
            t for t in node.get("inputs", ()) if t.startswith("^") and (not names.function or names.has(t[1:]))
        )
        if "colocate" in node:
            made.attr["_class"].list.s.extend(f"loc:@{n}".encode() for n in node["colocate"])
        if "gradient" in node:
            made.attr["_gradient_op_type"].s = node["gradient"].encode()
        if self.add_shapes:
            made.attr["_output_shapes"].list.SetInParent()
            shown = [shape_proto(s) for s in node["shapes"]]
            if op == "While":  # which gives its captures too
                shown += list(made.attr["output_shapes"].list.shape)[len(shown) :]
            made.attr["_output_shapes"].list.shape.extend(shown)

    def _attrs(self, op: str, attrs: Mapping[str, Any], made: Any) -> None:
        renamed = ATTRS.get(op, {})
        for name, value in attrs.items():
            theirs = renamed.get(name, name)
            if theirs is not None:
                ((kind, plain),) = value.items()
                made.attr[theirs].Clear()
                attr_of(kind, plain, made.attr[theirs])

    # -- functions ----------------------------------------------------------------------------------------------------

    def function(
        self, node: str, label: str, body: Mapping[str, Any], change: Callable[..., None] | None = None
    ) -> tuple[str, list[int]]:
        """Add the function of a body; returns its name and the dtypes of what it returns.

        Args:
          change: given the function, the references of its arguments, and those of its results with their dtypes, to add to them.
        """
        name = _fresh(re.sub(r"\W", "_", f"{node}_{label}"), self._names)
        made = self.library.function.add()
        made.signature.name = name
        made.signature.is_stateful = True
        given = [*body["parameters"], *body["captures"]]
        by_name = {n["name"]: n for n in body["nodes"]}
        needed = _needed(by_name, [*map(op_of, body["outputs"]), *body.get("targets", ()), *given])
        arguments: dict[str, str] = {}
        used: set[str] = set()
        for each in given:
            plain = _fresh("a_" + re.sub(r"\W", "_", each).lower(), used)
            number = number_of(by_name[each]["attrs"]["dtype"]["type"])
            made.signature.input_arg.add(name=plain, type=number)
            arguments[f"{each}:0"] = plain
        names = self.level([n for n in body["nodes"] if n["name"] in needed], made.node_def, arguments, function=True)
        results = [(names.ref(t), self._dtype(by_name, t)) for t in body["outputs"]]
        if change is not None:
            change(made, [arguments[f"{n}:0"] for n in given], results)
        for i, (ref, number) in enumerate(results):
            made.signature.output_arg.add(name=f"r_{i}", type=number)
            made.ret[f"r_{i}"] = ref
        for i, target in enumerate(body.get("targets", ())):
            made.signature.control_output.append(f"c_{i}")
            made.control_ret[f"c_{i}"] = target
        return name, [number for _, number in results]

    def _dtype(self, nodes: Mapping[str, Any], tensor: str) -> int:
        name, index = port(tensor)
        node = nodes[name]
        opdef, attrs = self.ops.get(node["op"]), node.get("attrs", {})
        for arg, count in zip(opdef.outputs, output_counts(opdef, attrs), strict=True):
            if index < count:
                if arg.dtype not in attrs:
                    return number_of(arg.dtype)
                ((kind, value),) = attrs[arg.dtype].items()
                return number_of(value[index] if kind == "list(type)" else value)
            index -= count
        return 0


class _Names:
    """Names of the tensors of a level in what is written."""

    def __init__(self, function: bool, arguments: Mapping[str, str]) -> None:
        self.function = function
        self.arguments = arguments
        self.outputs: dict[str, list[tuple[str, int]]] = {}
        self.histories: dict[str, int] = {}  # loop that keeps histories -> the number of its loop variables

    def has(self, name: str) -> bool:
        return name in self.outputs

    def ref(self, tensor: str) -> str:
        if tensor in self.arguments:
            return self.arguments[tensor]
        name, index = port(tensor)
        if index >= self.histories.get(name, index + 1):
            name += HISTORIES
            return f"{name}:outputs:{index}" if self.function else f"{name}:{index}"
        if not self.function:
            return name if index == 0 else f"{name}:{index}"
        for output, count in self.outputs[name]:
            if index < count:
                return f"{name}:{output}:{index}"
            index -= count
        return f"{name}:output:{index}"


def _needed(nodes: Mapping[str, Any], roots: Sequence[str]) -> set[str]:
    """The nodes of a body that run: those that its results need."""
    found: set[str] = set()
    stack = list(roots)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack.extend(t[1:] if t.startswith("^") else op_of(t) for t in nodes[name].get("inputs", ()))
    return found


def attrs_of(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """The attributes of a node; none where the key is left out."""
    found: Mapping[str, Any] = node.get("attrs", {})
    return found


def _fresh(name: str, taken: set[str]) -> str:
    made, number = name, 0
    while made in taken:
        number += 1
        made = f"{name}_{number}"
    taken.add(made)
    return made


def _op(node: Mapping[str, Any], shapes: Mapping[str, Any]) -> str:
    """TensorFlow's op of a node."""
    op, attrs = node["op"], node.get("attrs", {})
    if op == "MatMul":
        ranks = [shapes.get(t) for t in node["inputs"] if not t.startswith("^")]
        return "MatMul" if all(d is not None and len(d) == 2 for d in ranks) else "BatchMatMulV2"
    if op == "Pad":
        return "PadV2" if attrs["mode"]["string"] == "constant" else "MirrorPad"
    if op in _SEGMENTS and len([t for t in node["inputs"] if not t.startswith("^")]) == 4:
        return f"{op}WithNumSegments"
    if op == "SumTo":
        return "Reshape"
    if op == "Cond":
        return "If"
    if op == "While" and attrs["scanned"]["int"]:
        return OWN_WHILE
    return WRITE_AS.get(op) or str(op)


def _plain_loop(attrs: Mapping[str, Any]) -> bool:
    """Return whether a loop keeps no histories, which TensorFlow's do not."""
    return not attrs["scanned"]["int"] and len(attrs["Tout"]["list(type)"]) == len(
        attrs["output_shapes"]["list(shape)"]
    )


# -- ops with rules of their own --------------------------------------------------------------------------------------


def _matmul(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    writer._attrs("MatMul", node["attrs"], made)
    if made.op == "BatchMatMulV2":
        for ours, theirs in (("transpose_a", "adj_x"), ("transpose_b", "adj_y")):
            made.attr[theirs].b = made.attr[ours].b
            del made.attr[ours]


def _pad(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    writer._attrs("Pad", node["attrs"], made)
    if made.op == "MirrorPad":
        made.attr["mode"].s = node["attrs"]["mode"]["string"].upper().encode()
        del made.input[2]


def _segments(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    writer._attrs(node["op"], node["attrs"], made)
    if made.op.endswith("WithNumSegments"):
        made.attr["Tnumsegments"].CopyFrom(attr_of("type", node["attrs"]["Tnum"]["type"]))


def _sum_to(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    """The sum along the axes that broadcasting made, then the shape: three nodes beside the one."""
    value, shape = made.input
    kinds = {n: v["type"] for n, v in node["attrs"].items()}
    index = kinds.get("Tidx", "int32")
    parts = {n: f"{node['name']}/{n}" for n in ("Shape", "BroadcastGradientArgs", "Sum")}
    steps = (
        ("Shape", "Shape", [value], {"T": kinds["T"], "out_type": index}),
        ("BroadcastGradientArgs", "BroadcastGradientArgs", [shape, "Shape:output"], {"T": index}),
        ("Sum", "Sum", [value, "BroadcastGradientArgs:r0"], {"T": kinds["T"], "Tidx": index}),
    )

    def ref(text: str) -> str:
        name, _, output = text.partition(":")
        if name not in parts:
            return text
        return f"{parts[name]}:{output}:0" if names.function else parts[name]

    for name, op, inputs, attrs in steps:
        each = out.add(name=parts[name], op=op, device=made.device)
        each.input.extend(t if t in (value, shape) else ref(t) for t in inputs)
        for attr, dtype in attrs.items():
            each.attr[attr].CopyFrom(attr_of("type", dtype))
    del made.input[:]
    made.input.extend([ref("Sum:output"), shape])
    made.attr["T"].CopyFrom(attr_of("type", kinds["T"]))
    made.attr["Tshape"].CopyFrom(attr_of("type", index))


def _merge(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    """There what comes later is one of its inputs."""
    writer._attrs("Merge", {n: v for n, v in node["attrs"].items() if n != "later"}, made)
    made.attr["N"].i += node["attrs"]["later"]["int"]


def _handle(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    """There all handles without a name are one variable."""
    writer._attrs("VarHandleOp", node["attrs"], made)
    made.attr["shared_name"].s = made.attr["shared_name"].s or node["name"].encode()


def _xor(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    made.attr["T"].CopyFrom(attr_of("type", "bool"))


def _py_func(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    writer._attrs("PyFunc", node["attrs"], made)


def _dense_table(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    """The empty and the deleted key, which are attributes here, are inputs there; TensorFlow's table needs both."""
    attrs = node["attrs"]
    writer._attrs(node["op"], attrs, made)
    dtype, dims = attrs["key_dtype"]["type"], attrs.get("key_shape", {"shape": []})["shape"]
    given = list(attr_of("list(string)", attrs["reserved"]["list(string)"]).list.s)
    keys = np.array(given if dtype == "string" else [*map(int, given)], as_dtype(dtype).np).reshape(-1, *dims)
    for key, label in zip(keys, ("empty_key", "deleted_key"), strict=False):
        name = f"{node['name']}/{label}"
        while names.has(name):
            name += "_"
        names.outputs[name] = [("output", 1)]
        const = out.add(name=name, op="Const", device=node.get("device", ""))
        attr_of("type", dtype, const.attr["dtype"])
        attr_of("tensor", np.asarray(key, keys.dtype), const.attr["value"])
        made.input.append(names.ref(f"{name}:0"))


def _max_pool_3d_grad(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    writer._attrs(node["op"], node["attrs"], made)
    made.attr["TInput"].CopyFrom(made.attr["T"])


def _optional(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    made.attr["Toutput_types"].list.type.append(number_of(node["attrs"]["T"]["type"]))


def _optional_value(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    made.attr["output_types"].list.type.append(number_of(node["attrs"]["T"]["type"]))
    made.attr["output_shapes"].list.shape.add().CopyFrom(shape_proto(node["shapes"][0]))


def _cond(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    attrs = node["attrs"]
    made.attr["Tcond"].CopyFrom(attr_of("type", "bool"))
    for name in ("Tin", "Tout"):
        made.attr[name].CopyFrom(attr_of("list(type)", attrs[name]["list(type)"]))
    for name in ("then_branch", "else_branch"):
        made.attr[name].func.name = writer.function(node["name"], name, attrs[name]["func"])[0]
    made.attr["output_shapes"].CopyFrom(attr_of("list(shape)", node["shapes"]))


def _own_while(writer: _Writer, node: Mapping[str, Any], made: Any) -> None:
    """A loop with histories, with the attributes that it has here."""
    attrs = node["attrs"]
    writer._attrs("While", {n: v for n, v in attrs.items() if "func" not in v}, made)
    for name in ("cond", "body"):
        made.attr[name].func.name = writer.function(node["name"], name, attrs[name]["func"])[0]


def _while(writer: _Writer, node: Mapping[str, Any], made: Any, names: _Names, out: Any) -> None:
    """All inputs are loop variables there; those that no iteration changes come back as they are. A limit is a counter more."""
    attrs = node["attrs"]
    types = list(attrs["Tin"]["list(type)"])
    limit = attrs["maximum_iterations"]["int"]
    invariants = list(attrs["output_shapes"]["list(shape)"])
    if made.op == OWN_WHILE:
        _own_while(writer, node, made)
        return
    if node["name"] in names.histories:
        whole = out.add(name=node["name"] + HISTORIES, op=OWN_WHILE, device=made.device)
        whole.input.extend([*made.input, *[t for t in node["inputs"] if t.startswith("^")]])
        _own_while(writer, node, whole)
        body = attrs["body"]["func"]
        attrs = {**attrs, "body": {"func": {**body, "outputs": body["outputs"][: len(invariants)]}}}
    counted = limit >= 0
    numbers = [number_of(t) for t in types]
    shapes = invariants + [None] * (len(types) - len(invariants))
    if counted:
        zero = out.add(name=_fresh(f"{node['name']}/counter", set(names.outputs)), op="Const", device=made.device)
        zero.attr["dtype"].CopyFrom(attr_of("type", "int32"))
        zero.attr["value"].CopyFrom(attr_of("tensor", np.zeros((), np.int32)))
        made.input.append(f"{zero.name}:output:0" if names.function else zero.name)
        types, shapes, numbers = [*types, "int32"], [*shapes, []], [*numbers, 3]

    def test(function: Any, given: list[str], results: list[tuple[str, int]]) -> None:
        if counted:
            function.signature.input_arg.add(name="a__counter", type=3)
            _add(
                function,
                "counter_limit",
                "Const",
                [],
                {"dtype": ("type", "int32"), "value": ("tensor", np.int32(limit))},
            )
            _add(function, "counter_left", "Less", ["a__counter", "counter_limit:output:0"], {"T": ("type", "int32")})
            _add(function, "counter_and", "LogicalAnd", [results[0][0], "counter_left:z:0"], {})
            results[0] = ("counter_and:z:0", 10)

    def step(function: Any, given: list[str], results: list[tuple[str, int]]) -> None:
        first = len(results)
        results += list(zip(given[first:], numbers[first:], strict=False))
        if counted:
            function.signature.input_arg.add(name="a__counter", type=3)
            _add(function, "counter_one", "Const", [], {"dtype": ("type", "int32"), "value": ("tensor", np.int32(1))})
            _add(function, "counter_next", "AddV2", ["a__counter", "counter_one:output:0"], {"T": ("type", "int32")})
            results.append(("counter_next:z:0", 3))

    made.attr["cond"].func.name = writer.function(node["name"], "cond", attrs["cond"]["func"], test)[0]
    made.attr["body"].func.name = writer.function(node["name"], "body", attrs["body"]["func"], step)[0]
    made.attr["T"].CopyFrom(attr_of("list(type)", types))
    made.attr["output_shapes"].CopyFrom(attr_of("list(shape)", shapes))
    made.attr["parallel_iterations"].i = attrs["parallel_iterations"]["int"]


def _add(function: Any, name: str, op: str, inputs: Sequence[str], attrs: Mapping[str, tuple[str, Any]]) -> None:
    node = function.node_def.add(name=name, op=op)
    node.input.extend(inputs)
    for attr, (kind, value) in attrs.items():
        node.attr[attr].CopyFrom(attr_of(kind, value))


_RULES: dict[str, Callable[[_Writer, Mapping[str, Any], Any, _Names, Any], None]] = {
    "MatMul": _matmul,
    "Pad": _pad,
    **dict.fromkeys(_SEGMENTS, _segments),
    "SumTo": _sum_to,
    "LogicalXor": _xor,
    "Merge": _merge,
    "VarHandleOp": _handle,
    "PyFunc": _py_func,
    "MutableDenseHashTableV2": _dense_table,
    "MaxPool3DGrad": _max_pool_3d_grad,
    "OptionalFromValue": _optional,
    "OptionalGetValue": _optional_value,
    "Cond": _cond,
    "While": _while,
}
