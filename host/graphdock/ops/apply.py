"""apply_op: from Python values to an operation, by an OpDef. Every wrapper ends here."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence, ValuesView
from typing import Any

import numpy as np

from graphdock.contracts.opdef import ArgDef, OpDef
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import GraphdockError, InvalidArgumentError
from graphdock.graph.binding import bind_inputs, bind_tensors, is_list
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor

__all__ = ["apply_op", "apply_op_of"]


def apply_op(op_type: str, name: str | None = None, **keywords: Any) -> Any:
    """Add an operation to the default graph.

    Args:
      op_type: a registered op type, such as ``"MatMul"`` or ``"so3.TensorProduct"``.
      name: its name, made unique; default: the op type.
      keywords: inputs (tensors or anything convertible) and attributes, by the names of the OpDef.

    Returns:
      The Tensor of an op with one output, a list for one list output, a namedtuple for several, the Operation for none.

    Raises:
      UnknownOpError, InvalidArgumentError, DTypeError, ShapeError: what is wrong, with the op's name and the user's line.
    """
    graph = get_default_graph()
    return _apply(graph, graph.host.ops.get(op_type), name, keywords)


def apply_op_of(module: str) -> Callable[..., Any]:
    """``apply_op`` for the wrappers of a module, which raises AlreadyExistsError where another package declared the op type."""
    package = module.partition(".")[0]

    def apply_own_op(op_type: str, name: str | None = None, **keywords: Any) -> Any:
        graph = get_default_graph()
        return _apply(graph, graph.host.ops.of_package(op_type, package), name, keywords)

    return apply_own_op


def _apply(graph: Graph, opdef: OpDef, name: str | None, keywords: dict[str, Any]) -> Any:
    op_type = opdef.name
    try:
        if opdef.deprecated:
            raise InvalidArgumentError(f"{op_type} is not for new graphs: {opdef.deprecated}")
        values = []
        plain = opdef.plain
        for arg in opdef.inputs:
            value = keywords.pop(arg.name, _ABSENT)
            if type(value) is not Tensor:
                plain, value = False, _value(opdef, arg, value)
            values.append(value)
        if plain:
            return _result(graph.add_op(opdef, values, bind_tensors(opdef, values, keywords), name))
        if "keeps_zero" in opdef.traits and hasattr(values[0], "_with_stored"):
            return values[0]._with_stored(
                lambda stored: _apply(graph, opdef, name, {opdef.inputs[0].name: stored, **keywords})
            )
        with graph.name_scope(name or op_type.rpartition(".")[2]) as scope:
            parts = _convert(opdef, values, keywords)
            attrs = bind_inputs(opdef, parts, keywords)
            flat = [t for part in parts for t in part]
            lengths = tuple(len(p) for p in parts)
            listed = any(a.arity != "one" for a in opdef.inputs)
            return _result(graph.add_op(opdef, flat, attrs, scope, lengths if listed else None))
    except GraphdockError as error:
        if error.op is None:
            from graphdock.graph.site import capture, describe

            if isinstance(name, str) and name.endswith("/"):
                error.op = name[:-1]
            else:
                error.op = graph.unique_name(name or op_type.rpartition(".")[2], mark_as_used=False)
            error.site = describe(capture())
        raise


_ABSENT: Any = object()


def _value(opdef: OpDef, arg: ArgDef, value: Any) -> Any:
    """An argument that is no Tensor, as the conversion takes it. Raises InvalidArgumentError when it is not there."""
    if value is _ABSENT:
        if arg.arity != "optional":
            raise InvalidArgumentError(f"{opdef.name} needs its input {arg.name!r}")
        return None
    return list(value) if arg.arity == "many" and isinstance(value, (Iterator, np.ndarray)) else value


def _convert(opdef: OpDef, values: Sequence[Any], given: dict[str, Any]) -> list[list[Tensor]]:
    """Tensors per argument. Tensors and variables bind the type variables first; Python values then follow them."""
    types: dict[str, DType] = {}
    for arg, value in zip(opdef.inputs, values, strict=True):
        if arg.name in types or is_list(opdef, arg.dtype):
            continue
        for item in value if arg.arity == "many" and isinstance(value, (list, tuple)) else (value,):
            dtype = getattr(item, "dtype", None)
            if isinstance(dtype, DType) and dtype.name != "resource":
                types.setdefault(arg.dtype, dtype)
    for var in opdef.types:
        asked = given.get(var.name)
        if asked is not None and not var.is_list:
            types.setdefault(var.name, as_dtype(asked))
    parts: list[list[Tensor]] = []
    variables = {t.name: t for t in opdef.types}
    for arg, value in zip(opdef.inputs, values, strict=True):
        if value is None and arg.arity == "optional":
            parts.append([])
            continue
        if value is None:
            raise InvalidArgumentError(f"{opdef.name}: input {arg.name!r} is None")
        listed_types = is_list(opdef, arg.dtype)
        if arg.arity == "many":
            if isinstance(value, ValuesView):
                value = list(value)
            if isinstance(value, Tensor) or not isinstance(value, (list, tuple)):
                raise InvalidArgumentError(f"{opdef.name}: {arg.name!r} must be a list of tensors", got=repr(value))
            items: Sequence[Any] = value
        else:
            items = (value,)
        converted: list[Tensor] = []
        for i, item in enumerate(items):
            wanted = None if listed_types else types.get(arg.dtype)
            if wanted is None and not listed_types and arg.dtype not in variables:
                wanted = as_dtype(arg.dtype)
            label = f"{arg.name}_{i}" if arg.arity == "many" else arg.name
            try:
                tensor = convert_to_tensor(item, wanted, label)
            except GraphdockError as error:
                raise _refused(opdef, label, error, error.hint) from None
            if wanted is None and not listed_types:
                var = variables[arg.dtype]
                if var.allow and tensor.dtype.name not in var.allow and var.default is not None:
                    default = as_dtype(var.default)
                    try:
                        tensor = convert_to_tensor(item, default, label)
                    except GraphdockError as error:
                        hint = f"pass an integer {label}" if default.is_integer else error.hint
                        raise _refused(opdef, label, error, hint) from None
                types[arg.dtype] = tensor.dtype
            converted.append(tensor)
        parts.append(converted)
    return parts


def _refused(opdef: OpDef, label: str, error: GraphdockError, hint: str | None) -> GraphdockError:
    """The error of a value that becomes no tensor, naming the input."""
    message = f"{opdef.name}: input {label!r}: {error.message}"
    return type(error)(message, expected=error.expected, got=error.got, hint=hint)


_results: dict[str, Any] = {}


def _result(op: Operation) -> Any:
    outputs = op.op_def.outputs
    if not outputs:
        return op
    if len(outputs) == 1:
        return op.outputs[0] if outputs[0].arity == "one" else list(op.outputs)
    kind = _results.get(op.type)
    if kind is None:
        kind = _results[op.type] = namedtuple(op.type.rpartition(".")[2], [o.name for o in outputs])  # noqa: PYI024
    return kind(*[op.result(o.name) for o in outputs])
