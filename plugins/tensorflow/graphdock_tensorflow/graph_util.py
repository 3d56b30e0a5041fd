"""Parts of GraphDefs: what some nodes need, without what only training needs, with values in the place of variables."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock.errors import ArgumentTypeError, InvalidArgumentError, NotFoundError, did_you_mean

from graphdock_tensorflow.graphs.table import OWN_WHILE
from graphdock_tensorflow.graphs.values import tensor_proto

__all__ = [
    "convert_variables_to_constants",
    "extract_sub_graph",
    "must_run_on_cpu",
    "remove_training_nodes",
    "tensor_shape_from_node_def_name",
]

#: Ops with functions, and how many inputs stand before those that these take.
_WITH_BODIES = {"If": 1, "StatelessIf": 1, "While": 0, "StatelessWhile": 0, OWN_WHILE: 0}
_HANDLES = ("VarHandleOp", "VariableV2", "Variable")


def _name(text: str) -> str:
    """The node of an input: ``"^x"``, ``"x"`` and ``"x:1"`` are all of ``x``."""
    return text.removeprefix("^").partition(":")[0]


def extract_sub_graph(graph_def: Any, dest_nodes: Sequence[str]) -> Any:
    """A new ``tf.GraphDef`` of the nodes that some nodes need, these among them, in the order of the old one.

    Raises:
      ArgumentTypeError: ``graph_def`` is none, or ``dest_nodes`` is a string. NotFoundError: there is no such node.
    """
    if not hasattr(graph_def, "node"):
        raise ArgumentTypeError("graph_def must be a tf.GraphDef", got=repr(graph_def)[:80])
    if isinstance(dest_nodes, str):
        raise ArgumentTypeError("dest_nodes must be a list", got=repr(dest_nodes))
    by_name = {node.name: node for node in graph_def.node}
    waiting = deque(dest_nodes)
    for name in waiting:
        if name not in by_name:
            raise NotFoundError(f"the GraphDef has no node {name!r}", hint=did_you_mean(name, by_name))
    found: set[str] = set()
    while waiting:
        name = waiting.popleft()
        if name not in found and name in by_name:
            found.add(name)
            waiting.extend(map(_name, by_name[name].input))
    made = type(graph_def)()
    made.node.extend(node for node in graph_def.node if node.name in found)
    made.library.CopyFrom(graph_def.library)
    made.versions.CopyFrom(graph_def.versions)
    return made


def remove_training_nodes(input_graph: Any, protected_nodes: Sequence[str] | None = None) -> Any:
    """A new ``tf.GraphDef`` without ``CheckNumerics`` and ``Identity`` nodes that only pass a tensor on.

    One that is protected stays, and so does one with control inputs, or one that others wait for or that is of a function.
    """
    kept = set(protected_nodes or ())
    waited = {_name(i) for node in input_graph.node for i in node.input if i.startswith("^")}
    passed: dict[str, str] = {}
    for node in input_graph.node:
        plain = node.op in ("Identity", "CheckNumerics") and len(node.input) == 1 and not node.input[0].startswith("^")
        if plain and node.name not in kept and node.name not in waited:
            passed[node.name] = node.input[0]

    def source(text: str) -> str:
        while not text.startswith("^") and text.removesuffix(":0") in passed:
            text = passed[text.removesuffix(":0")]
        return text

    made = type(input_graph)()
    for node in input_graph.node:
        if node.name not in passed:
            copy = made.node.add()
            copy.CopyFrom(node)
            inputs = [source(i) for i in node.input]
            del copy.input[:]
            copy.input.extend(inputs)
    made.library.CopyFrom(input_graph.library)
    made.versions.CopyFrom(input_graph.versions)
    return made


def convert_variables_to_constants(
    sess: Any,
    input_graph_def: Any,
    output_node_names: Sequence[str],
    variable_names_whitelist: Sequence[str] | None = None,
    variable_names_blacklist: Sequence[str] | None = None,
) -> Any:
    """A new ``tf.GraphDef`` of what the outputs need, in which variables are constants of the values that a session has.

    Args:
      sess: the session. ``input_graph_def``: its graph as a ``tf.GraphDef``.
      output_node_names: names of nodes, without ``":0"``.
      variable_names_whitelist, variable_names_blacklist: the only variables that become constants; those that do not.

    Raises:
      NotFoundError: there is no such node. UninitializedError: a variable has no value.
      InvalidArgumentError: what the outputs need updates a variable.
    """
    made = extract_sub_graph(input_graph_def, output_node_names)
    names = [n.name for n in made.node if n.op in _HANDLES]
    if variable_names_whitelist is not None:
        names = [n for n in names if n in variable_names_whitelist]
    if variable_names_blacklist is not None:
        names = [n for n in names if n not in variable_names_blacklist]
    graph = sess.graph
    found = [op for op in graph.get_operations() if op.type == "ReadVariableOp" and not op.control_inputs]
    reads = {op.inputs[0].op.name: op.outputs[0] for op in found}
    lacking = [n for n in names if n not in reads]
    if lacking:
        raise InvalidArgumentError(
            f"nothing in the session's graph reads the variable {lacking[0]!r} outside of conds and loops"
        )
    values = dict(zip(names, sess.run([reads[n] for n in names]), strict=True)) if names else {}
    library = {f.signature.name: f for f in made.library.function}
    for node in made.node:
        if node.name in values:
            _become(node, "Const", _constant(values[node.name]))
        elif any(_name(i) in values for i in node.input):
            _of_value(node, values, library)
    return made


def _constant(value: Any) -> Callable[[Any], None]:
    def fill(node: Any) -> None:
        proto = tensor_proto(value)
        node.attr["dtype"].type = proto.dtype
        node.attr["value"].tensor.CopyFrom(proto)

    return fill


def _become(node: Any, op: str, fill: Callable[[Any], None]) -> None:
    inputs = list(node.input)
    node.op = op
    del node.input[:]
    if op != "Const":
        node.input.extend(inputs)
    for attr in list(node.attr):
        del node.attr[attr]
    fill(node)


def _of_value(node: Any, values: Mapping[str, Any], library: Mapping[str, Any]) -> None:
    """Let a node read the constant where it read the variable; the functions of a cond or loop too, which are nobody else's."""
    if node.op == "ReadVariableOp":
        _pass_on(node)
        return
    given = {i: values[_name(text)] for i, text in enumerate(node.input) if _name(text) in values}
    if node.op not in _WITH_BODIES:
        name = next(_name(i) for i in node.input if _name(i) in values)
        raise InvalidArgumentError(
            f"{node.name!r} ({node.op}) uses the variable {name!r}, which is to be a constant",
            hint="what updates variables can't be frozen: name outputs that only read them",
        )
    numbers = {i: tensor_proto(value).dtype for i, value in given.items()}
    _retype(node, numbers, library)


def _pass_on(node: Any) -> None:
    dtype = node.attr["dtype"].type

    def fill(made: Any) -> None:
        made.attr["T"].type = dtype

    _become(node, "Identity", fill)


def _retype(node: Any, numbers: Mapping[int, int], library: Mapping[str, Any]) -> None:
    """Let a cond or loop take tensors of these dtypes at these inputs, in the place of handles."""
    skipped = _WITH_BODIES[node.op]
    types = node.attr["T" if node.op in ("While", "StatelessWhile") else "Tin"].list.type
    for i, number in numbers.items():
        types[i - skipped] = number
    histories = node.attr["scanned"].i if node.op == OWN_WHILE else 0  # for the body alone; handles stand behind them
    for attr in ("cond", "body", "then_branch", "else_branch"):
        if attr in node.attr:
            function = library[node.attr[attr].func.name]
            absent = skipped + (histories if attr == "cond" else 0)
            arguments = {function.signature.input_arg[i - absent].name: n for i, n in numbers.items()}
            for arg in function.signature.input_arg:
                arg.type = arguments.get(arg.name, arg.type)
            for arg in function.signature.output_arg:
                arg.type = arguments.get(function.ret[arg.name], arg.type)
            read: dict[str, str] = {}
            for inner in function.node_def:
                found = {i: arguments[t] for i, t in enumerate(inner.input) if t in arguments}
                if not found:
                    continue
                if inner.op == "ReadVariableOp":
                    _pass_on(inner)
                    read[f"{inner.name}:value:0"] = f"{inner.name}:output:0"
                elif inner.op in _WITH_BODIES:
                    _retype(inner, found, library)
                else:
                    raise InvalidArgumentError(
                        f"{inner.name!r} ({inner.op}) in a body of {node.name!r} uses a variable, which is to be a constant"
                    )
            for inner in function.node_def:
                inputs = [read.get(t, t) for t in inner.input]
                del inner.input[:]
                inner.input.extend(inputs)
            for name, tensor in list(function.ret.items()):
                function.ret[name] = read.get(tensor, tensor)


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Return whether a node holds strings, or variables where these are pinned, which TensorFlow keeps on the CPU."""
    definition = node.node_def if isinstance(node, _tf.Operation) else node
    op, attrs = definition.op, definition.attr
    if pin_variables_on_cpu and op in _HANDLES:
        return True
    if op not in ("Const", "DynamicStitch", "ParameterizedTruncatedNormal"):
        return False
    key = "dtype" if op == "Const" else "T"
    if key not in attrs:
        return False
    return bool(_tf.as_dtype(getattr(attrs[key], "type", attrs[key])) in (_tf.string, _tf.int32))


def tensor_shape_from_node_def_name(graph: Any, input_name: str) -> Any:
    """The static shape of the tensor that an input of a node names: ``"^x"`` has none, ``"x"`` is ``x:0``."""
    if input_name.startswith("^"):
        raise InvalidArgumentError(f"{input_name!r} is a control input, which has no shape")
    text = input_name if ":" in input_name else f"{input_name}:0"
    return graph.get_tensor_by_name(text).get_shape()
