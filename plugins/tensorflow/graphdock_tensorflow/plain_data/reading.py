"""Reading a graph: its plain data is checked, ordered and added to the default graph, or nothing is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.contracts.bodies import carried, first_given, returning, scanned
from graphdock.contracts.opdef import BodyDef, OpDef
from graphdock.dtypes import as_dtype, variant
from graphdock.errors import (
    AlreadyExistsError,
    GraphdockError,
    InvalidArgumentError,
    NotFoundError,
    UnknownOpError,
    did_you_mean,
)
from graphdock.ops import (
    BodyGraph,
    Graph,
    Operation,
    Tensor,
    check_name,
    complete_attrs,
    convert_to_tensor,
    get_default_graph,
)
from graphdock.shape import as_dims
from graphdock.trampoline import Visit, trampoline

from graphdock_tensorflow.plain_data.attr_values import attr_type, decode, expect
from graphdock_tensorflow.plain_data.format import JsonGraphs
from graphdock_tensorflow.plain_data.order import check_keys, comes_later, in_order
from graphdock_tensorflow.plain_data.writing import DEEPEST, FORMAT

__all__ = ["import_graph_def", "register_upgrade"]

_GRAPH_KEYS = ("graphdock_graph", "producer", "packages", "nodes")
#: The attribute of a placeholder of any shape.
_ANY = {"shape": None}
_BODY_KEYS = ("name", "parameters", "captures", "outputs", "targets", "nodes")

#: (op type, version) -> function that turns a node of that version into one of the next.
_upgrades: dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = {}


def register_upgrade(op: str, version: int, function: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Let nodes of ``op`` that were written at ``version`` be loaded: ``function`` turns the node into one of the
    next version.

    Raises:
      AlreadyExistsError: there is one.
    """
    if (op, version) in _upgrades:
        raise AlreadyExistsError(f"an upgrade of {op} from version {version} is registered already")
    _upgrades[(op, version)] = function


def import_graph_def(
    graph_def: Any,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = "import",
    op_dict: Any = None,
    producer_op_list: Any = None,
    allow_missing: bool = False,
) -> list[Any] | None:
    """Add the operations of a GraphDef to the default graph.

    Args:
      graph_def: graphdock's JSON text or its plain data; or what the graph format of a plugin accepts, such as a ``tf.GraphDef``,
        TensorFlow's or graphdock's own.
      input_map: name of a tensor (``"x:0"``) or operation (``"x"``, its first output) in the GraphDef -> tensor of the default
        graph to use instead of it.
      return_elements: names of operations (``"y"``) and tensors (``"y:0"``) in the GraphDef.
      name: name scope of the new operations; "" or None for none. Names that are taken get a number.
      op_dict, producer_op_list: taken for TensorFlow's sake.
      allow_missing: of a graph with ops that graphdock lacks, import the part that needs none of them.

    Returns:
      What ``return_elements`` asked for, in its order; None without it.

    Raises:
      InvalidArgumentError, DTypeError, ShapeError: the data is wrong, with the node's name. UnknownOpError: no loaded
      package declares an op; of a plugin's form all such ops are listed, with their nodes. NotFoundError: a name in
      ``input_map`` or ``return_elements`` is not there. The graph is
      as it was.
    """
    data = _read(graph_def, input_map or {}, allow_missing)
    check_keys(data, _GRAPH_KEYS, "the file")
    found = expect(data.get("graphdock_graph"), int, "graphdock_graph")
    if found != FORMAT:
        raise InvalidArgumentError("GraphDef: the form of the file is not known", expected=str(FORMAT), got=str(found))
    graph = get_default_graph()
    mapped = {(k if ":" in k else f"{k}:0"): k for k in [expect(k, str, "input_map") for k in input_map or {}]}
    with graph.all_or_nothing():
        replaced = {full: _replacement(graph, key, (input_map or {})[key]) for full, key in mapped.items()}
        reader = _Reader(graph, replaced, expect(data.get("packages", []), list, "packages"))
        with graph.name_scope(name or None):
            trampoline(reader.add(expect(data.get("nodes"), list, "nodes"), "nodes"))
        unused = [key for full, key in mapped.items() if full not in reader.used and full not in reader.tensors]
        if unused:
            raise NotFoundError(
                f"import_graph_def: input_map names {unused[0]!r}, which the GraphDef does not have",
                hint=did_you_mean(unused[0], reader.ops),
            )
        return None if return_elements is None else [reader.element(e) for e in return_elements]


def _read(value: Any, input_map: Mapping[str, Any], allow_missing: bool) -> dict[str, Any]:
    """The plain data of a value, of graphdock's own form or of one that a plugin's format accepts."""
    host = get_default_graph().host
    own = JsonGraphs()
    form = own if own.accepts(value) else next((f for f in host.graph_formats.all() if f.accepts(value)), own)
    if form is own and hasattr(value, "SerializeToString"):
        kind = type(value).__name__
        raise host.graph_formats.missing(f"no installed plugin reads a graph from a {kind}", kind)
    read = form.read(value, host.ops, [expect(k, str, "input_map") for k in input_map])
    if read.report.missing and not allow_missing:
        raise UnknownOpError(
            f"import_graph_def: the graph has ops that graphdock lacks:\n{read.report}",
            hint="allow_missing=True imports the part that needs none of them",
        )
    return read.data


def _replacement(graph: Graph, key: str, value: Any) -> Tensor:
    tensor = convert_to_tensor(value, name="input_map")
    if tensor.graph is not graph:
        raise InvalidArgumentError(f"import_graph_def: input_map[{key!r}] ({tensor.name}) belongs to another graph")
    return tensor


class _Reader:
    """Adds the nodes of one graph or body.

    Attributes:
      ops: name in the file -> operation made. ``tensors``: name in the file -> tensor to use. ``used``: replaced
      names that
        an input named.
    """

    def __init__(self, graph: Graph, replaced: Mapping[str, Tensor], packages: Sequence[Any], depth: int = 0) -> None:
        self.graph = graph
        self.replaced = replaced
        self.packages = packages
        self.depth = depth
        self.ops: dict[str, Operation] = {}
        self.tensors: dict[str, Tensor] = {}
        self.used: set[str] = set()
        self.later: list[tuple[str, list[str]]] = []

    def add(self, nodes: Sequence[Any], where: str) -> Visit[None]:
        """Add all nodes, whatever their order in the file."""
        ordered = in_order(nodes, where, self.replaced)
        known = {node["name"]: node for node in ordered}
        for node in ordered:
            label = node["name"]
            later = [n for n in node.get("inputs", []) if comes_later(node, n, known)]
            if later:
                node = {**node, "inputs": [n for n in node["inputs"] if n not in later]}
                self.later.append((label, later))
            try:
                yield self._add(node, f"node {label!r}")
            except GraphdockError as error:
                if error.op is None:
                    error.op = label
                raise
        for label, names in self.later:
            for name in names:
                self.ops[label]._add_later(self.tensor(name))
        self.later = []

    def element(self, name: Any) -> Any:
        """The operation or tensor of that name in the file."""
        expect(name, str, "return_elements")
        op_name, colon, port = name.partition(":")
        op = self.ops.get(op_name)
        if op is None:
            raise NotFoundError(
                f"import_graph_def: return_elements names {name!r}, which the GraphDef does not have",
                hint=did_you_mean(op_name, self.ops),
            )
        return self.tensor(name) if colon else op

    def tensor(self, name: str) -> Tensor:
        """The tensor an input of that name means."""
        full = name if ":" in name else f"{name}:0"
        found = self.replaced.get(full)
        if found is not None:
            self.used.add(full)
            return found
        found = self.tensors.get(full)
        if found is None:
            raise NotFoundError(f"GraphDef: there is no tensor {name!r}", hint=did_you_mean(full, self.tensors))
        return found

    def _add(self, node: dict[str, Any], where: str) -> Visit[None]:
        op_def = self._op_def(node["op"])
        node = self._upgraded(node, op_def, where)
        names = [n for n in node.get("inputs", []) if not n.startswith("^")]
        inputs = [self.tensor(n) for n in names]
        attrs, bodies = yield self._attrs(node, op_def, inputs, where)
        if bodies:
            _check_bodies(attrs, op_def, bodies, inputs, where)
            inputs, attrs = _without_repeats(inputs, attrs, op_def)
        lengths = node.get("input_lengths")
        if lengths is not None:
            lengths = tuple(expect(n, int, f"{where}: input_lengths") for n in expect(lengths, list, where))
        full, lengths = complete_attrs(op_def, inputs, attrs, lengths)
        if op_def.executes == "constant" and as_dtype(full["value"].dtype) is not full["dtype"]:
            raise InvalidArgumentError(f"GraphDef: {where}: attribute 'dtype' is not the dtype of its value")
        control = [self._control(n[1:]) for n in node.get("inputs", []) if n.startswith("^")]
        device = expect(node.get("device", ""), str, f"{where}: device")
        place = self.graph.device(device) if device else contextlib.nullcontext()
        with self.graph.control_dependencies(control), place:
            op = self.graph.add_op(op_def, inputs, full, node["name"], lengths, bodies)
        op.gradient_type = None if "gradient" not in node else expect(node["gradient"], str, f"{where}: gradient")
        colocate = [expect(n, str, where) for n in expect(node.get("colocate", []), list, f"{where}: colocate")]
        op.colocation = tuple(self.ops[n].name if n in self.ops else n for n in colocate)
        shapes = node.get("output_shapes")
        if shapes is not None:
            if len(expect(shapes, list, f"{where}: output_shapes")) != len(op.outputs):
                raise InvalidArgumentError(
                    f"GraphDef: {where}: output_shapes is wrong",
                    expected=f"{len(op.outputs)} shapes",
                    got=str(len(shapes)),
                )
            for tensor, dims in zip(op.outputs, shapes, strict=True):
                self.graph.learn_shape(tensor, as_dims(None if dims is None else expect(dims, list, where)))
        if op.verb == "read" and inputs[0].op.verb == "handle":  # TensorFlow's files say it of the handle alone
            self.graph.learn_shape(op.outputs[0], inputs[0].op.node_attrs["shape"])
        if op.verb == "read" and not control and inputs[0].op.verb == "handle":  # "w:0" is the value of w
            self.graph.let_read(inputs[0].op, op.outputs[0])
        self.ops[node["name"]] = op
        for tensor in op.outputs:
            self.tensors[f"{node['name']}:{tensor.value_index}"] = tensor

    def _op_def(self, op_type: str) -> Any:
        try:
            return self.graph.host.ops.get(op_type)
        except UnknownOpError as error:
            own = {"graphdock", *(s.found.package for s in self.graph.host.plugins() if s.found.is_own)}
            others = ", ".join(str(p) for p in self.packages if p not in own)
            if others:
                error.hint = f"the GraphDef uses ops of {others}; are they installed?" + (
                    f" {error.hint}" if error.hint else ""
                )
            raise

    def _upgraded(self, node: dict[str, Any], op_def: Any, where: str) -> dict[str, Any]:
        version = expect(node.get("version", op_def.version), int, f"{where}: version")
        if version > op_def.version:
            raise InvalidArgumentError(
                f"GraphDef: {where} was written with a newer {op_def.name}",
                expected=f"version {op_def.version} at most",
                got=str(version),
                hint=f"install a newer version of {op_def.package}",
            )
        while version < op_def.version:
            upgrade = _upgrades.get((op_def.name, version))
            if upgrade is None:
                raise InvalidArgumentError(
                    f"GraphDef: {where} was written with {op_def.name} version {version}, "
                    f"and nothing brings it to version {op_def.version}"
                )
            node = upgrade(dict(node))
            version += 1
        return node

    def _control(self, name: str) -> Operation:
        op = self.ops.get(name)
        if op is None:
            raise NotFoundError(f"GraphDef: there is no operation {name!r}", hint=did_you_mean(name, self.ops))
        return op

    def _attrs(
        self, node: dict[str, Any], op_def: Any, inputs: Sequence[Tensor], where: str
    ) -> Visit[tuple[dict[str, Any], tuple[BodyGraph, ...]]]:
        attrs: dict[str, Any] = {}
        bodies: list[BodyGraph] = []
        given = expect(node.get("attrs", {}), dict, f"{where}: attrs")
        known = [a.name for a in op_def.attrs] + [t.name for t in op_def.types]
        order = {n: i for i, n in enumerate(known)}
        functions = {b.attr: b for b in op_def.bodies}  # decoded last: other attributes say how they are bound
        for name in sorted(given, key=lambda n: (n in functions, order.get(n, -1))):
            kind = attr_type(op_def, name)
            at = f"{where}: attribute {name!r}"
            if kind is None:
                raise InvalidArgumentError(
                    f"GraphDef: {op_def.name} has no attribute {name!r}", hint=did_you_mean(name, known)
                )
            if kind == "func":
                if not op_def.verb.bodies:
                    raise InvalidArgumentError(f"GraphDef: {at} is a Python function, which a GraphDef cannot hold")
                attrs[name] = yield self._body(given[name], op_def, attrs, functions[name], inputs, at)
                bodies.append(attrs[name])
            else:
                attrs[name] = decode(kind, given[name], at)
        return attrs, tuple(bodies)

    def _body(
        self, value: Any, op_def: OpDef, attrs: dict[str, Any], bound: BodyDef, inputs: Sequence[Tensor], where: str
    ) -> Visit[BodyGraph]:
        expect(value, dict, where)
        data = expect(value.get("func"), dict, where)
        check_keys(data, _BODY_KEYS, where)
        if self.depth >= DEEPEST:
            raise InvalidArgumentError(f"GraphDef: {where}: bodies are nested deeper than {DEEPEST}")
        name = expect(data.get("name"), str, f"{where}: name")
        check_name(name, inner=True)
        scope = self.graph.get_name_scope()
        body = BodyGraph(f"{scope}/{name}" if scope else name, self.graph)
        parameters = [expect(n, str, where) for n in expect(data.get("parameters"), list, f"{where}: parameters")]
        captures = [expect(n, str, where) for n in expect(data.get("captures"), list, f"{where}: captures")]
        variables, histories = _counts(op_def, attrs)
        skip = first_given(op_def) + variables + histories
        taken = variables + (histories if bound.gives else 0)
        if skip + len(captures) != len(inputs) or len(parameters) != taken:
            raise InvalidArgumentError(
                f"GraphDef: {where} does not fit the inputs of its node",
                expected=f"{max(len(inputs) - skip, 0)} captures and {taken} parameters",
                got=f"{len(captures)} captures and {len(parameters)} parameters",
            )
        inner = _Reader(body, {}, self.packages, self.depth + 1)
        placeholders = {*parameters, *captures}
        nodes = _with_shapes(expect(data.get("nodes"), list, f"{where}: nodes"), captures, inputs[skip:])
        with body.as_default(), body.name_scope(f"{scope}/" if scope else None):
            yield inner.add(nodes, where)
        for names in (parameters, captures):
            for n in names:
                op = inner.ops.get(n)
                if op is None or op.verb != "feed":
                    raise InvalidArgumentError(f"GraphDef: {where}: there is no Placeholder {n!r} in the body")
        for op_name, op in inner.ops.items():
            if op.verb == "feed" and op_name not in placeholders:
                raise InvalidArgumentError(
                    f"GraphDef: {where}: Placeholder {op_name!r} is neither parameter nor capture"
                )
        body.parameters = [inner.ops[n].outputs[0] for n in parameters]
        body.captures = {}
        merged: dict[Tensor, Tensor] = {}  # two captures were mapped to one tensor
        for outer, n in zip(inputs[skip:], captures, strict=True):
            placeholder = inner.ops[n].outputs[0]
            if placeholder.dtype is not outer.dtype:
                raise InvalidArgumentError(
                    f"GraphDef: {where}: capture {n!r} has another dtype than {outer.name}",
                    expected=outer.dtype.name,
                    got=placeholder.dtype.name,
                )
            if outer in body.captures:
                merged[placeholder] = body.captures[outer]
                continue
            body.bind(outer, placeholder)
        outputs = [expect(n, str, where) for n in expect(data.get("outputs"), list, f"{where}: outputs")]
        body.outputs = [inner.tensor(n) for n in outputs]
        for n in expect(data.get("targets", []), list, f"{where}: targets"):
            if expect(n, str, where) not in inner.ops:
                raise InvalidArgumentError(f"GraphDef: {where}: there is no operation {n!r} to run in the body")
            body.targets.append(inner.ops[n])
        body.replace(merged)
        body.forget(
            {old.op: new.op for old, new in merged.items()}
        )  # a body has no placeholders but those of its captures
        return body


def _with_shapes(nodes: list[Any], captures: Sequence[str], outside: Sequence[Tensor]) -> list[Any]:
    """The nodes of a body, of which each capture has the shape that is known outside, where the file says none."""
    dims = {n: t.shape.as_list() for n, t in zip(captures, outside, strict=True) if t.shape.ndims is not None}
    made = list(nodes)
    for i, node in enumerate(made):
        if isinstance(node, dict) and isinstance(node.get("name"), str) and node["name"] in dims:
            attrs = node.get("attrs")
            if isinstance(attrs, dict) and "dtype" in attrs and attrs.get("shape", _ANY) == _ANY:
                made[i] = {**node, "attrs": {**attrs, "shape": {"shape": dims[node["name"]]}}}
    return made


def _counts(op_def: OpDef, attrs: dict[str, Any]) -> tuple[int, int]:
    """Numbers of loop variables and of histories that are read; none but for a loop."""
    given = {"output_shapes": (), "scanned": 0, **attrs}
    if given["scanned"] < 0:
        raise InvalidArgumentError("GraphDef: attribute 'scanned' is negative", got=str(given["scanned"]))
    return carried(op_def, given), scanned(op_def, given)


def _check_bodies(
    attrs: dict[str, Any], op_def: OpDef, bodies: Sequence[BodyGraph], inputs: Sequence[Tensor], where: str
) -> None:
    """Raise InvalidArgumentError unless the bodies take and return what the node promises."""
    promised = attrs.get("Tout", ())
    if len(bodies) != len(op_def.bodies):
        raise InvalidArgumentError(
            f"GraphDef: {where} needs another number of bodies", expected=str(len(op_def.bodies)), got=str(len(bodies))
        )
    variables, histories = _counts(op_def, attrs)
    own = promised[:variables] if op_def.executes == "loop" else promised
    if op_def.executes == "loop":
        test = bodies[0].outputs
        if len(test) != 1 or not test[0].dtype.is_bool:
            raise InvalidArgumentError(f"GraphDef: {where}: the condition must return one bool")
        for body in bodies:
            if tuple(t.dtype for t in body.parameters[:variables]) != own:
                raise InvalidArgumentError(
                    f"GraphDef: {where}: the parameters of {body.name!r} do not have the dtypes Tout"
                )
        if len(promised) < variables:
            raise InvalidArgumentError(f"GraphDef: {where}: output_shapes does not have a shape per loop variable")
        kept = [t.dtype for t in inputs[variables : variables + histories]] + list(promised[variables:])
        if any(dtype is not variant for dtype in kept):
            raise InvalidArgumentError(
                f"GraphDef: {where}: what it reads or makes besides its loop variables is no history"
            )
    for body in returning(op_def, bodies):
        if len(body.outputs) != len(promised) or tuple(t.dtype for t in body.outputs[: len(own)]) != own:
            raise InvalidArgumentError(f"GraphDef: {where}: the outputs of {body.name!r} do not have the dtypes Tout")


def _without_repeats(inputs: list[Tensor], attrs: dict[str, Any], op_def: OpDef) -> tuple[list[Tensor], dict[str, Any]]:
    """Inputs with each captured tensor once."""
    outside = first_given(op_def)
    skip = outside + sum(_counts(op_def, attrs))
    captured = list(dict.fromkeys(inputs[skip:]))
    if skip + len(captured) == len(inputs):
        return inputs, attrs
    kept = [*inputs[:skip], *captured]
    return kept, {**attrs, "Tin": tuple(t.dtype for t in kept[outside:])}
