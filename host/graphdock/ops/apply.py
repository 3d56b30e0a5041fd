"""apply_op: from Python values to an operation, by an OpDef. Every wrapper ends here."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence, ValuesView
from typing import Any

import numpy as np

from graphdock.contracts.opdef import ArgDef, OpDef
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import DTypeError, GraphdockError, InvalidArgumentError
from graphdock.graph.graph import get_default_graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.opdef.attrs import bind_types, normal_attrs
from graphdock.opdef.expression import compile_expression
from graphdock.ops.convert import convert_to_tensor

__all__ = ["apply_op", "complete"]


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
    opdef = graph.host.ops.get(op_type)
    try:
        if opdef.deprecated:
            raise InvalidArgumentError(f"{op_type} is not for new graphs: {opdef.deprecated}")
        values = []
        plain = True
        for arg in opdef.inputs:
            try:
                value = keywords.pop(arg.name)
            except KeyError:
                if arg.arity != "optional":
                    raise InvalidArgumentError(f"{op_type} needs its input {arg.name!r}") from None
                value = None
            if arg.arity == "many" and isinstance(value, (Iterator, np.ndarray)):
                value = list(value)
            plain = plain and type(value) is Tensor and arg.arity == "one"
            values.append(value)
        if plain:
            attrs = _bind(opdef, [[v] for v in values], keywords)
            return _result(graph.add_op(opdef, values, attrs, name))
        if "keeps_zero" in opdef.traits and hasattr(values[0], "_with_stored"):
            return values[0]._with_stored(
                lambda stored: apply_op(op_type, name, **{opdef.inputs[0].name: stored}, **keywords)
            )
        with graph.name_scope(name or op_type.rpartition(".")[2]) as scope:
            parts = _convert(opdef, values, keywords)
            attrs = _bind(opdef, parts, keywords)
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


def _convert(opdef: OpDef, values: Sequence[Any], given: dict[str, Any]) -> list[list[Tensor]]:
    """Tensors per argument. Tensors and variables bind the type variables first; Python values then follow them."""
    types: dict[str, DType] = {}
    for arg, value in zip(opdef.inputs, values, strict=True):
        if arg.name in types or opdef_list(opdef, arg.dtype):
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
        is_list = opdef_list(opdef, arg.dtype)
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
            wanted = None if is_list else types.get(arg.dtype)
            if wanted is None and not is_list and arg.dtype not in variables:
                wanted = as_dtype(arg.dtype)
            label = f"{arg.name}_{i}" if arg.arity == "many" else arg.name
            try:
                tensor = convert_to_tensor(item, wanted, label)
            except GraphdockError as error:
                raise _refused(opdef, label, error, error.hint) from None
            if wanted is None and not is_list:
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


def opdef_list(opdef: OpDef, dtype: str) -> bool:
    """Whether ``dtype`` names a type-list variable of the op."""
    return any(t.is_list and t.name == dtype for t in opdef.types)


def _bind(opdef: OpDef, parts: Sequence[Sequence[Tensor]], given: dict[str, Any]) -> dict[str, Any]:
    """Complete attributes: type variables from the tensors, lengths of lists, then what the caller gave."""
    attrs: dict[str, Any] = {}
    binding: dict[str, str] = {}
    deferred: list[tuple[ArgDef, int]] = []
    for arg, tensors in zip(opdef.inputs, parts, strict=True):
        if arg.arity == "many":
            count = arg.count or ""
            if opdef.attr(count) is not None and count not in given:
                before = attrs.setdefault(count, len(tensors))
                if before != len(tensors):
                    raise InvalidArgumentError(
                        f"{opdef.name}: {arg.name!r} has {len(tensors)} tensors, but {count} is {before}"
                    )
            else:
                _check_count(opdef, arg, len(tensors), given)
                deferred.append((arg, len(tensors)))
        if opdef_list(opdef, arg.dtype):
            found = tuple(t.dtype for t in tensors)
            before = attrs.setdefault(arg.dtype, found)
            if before != found:
                raise DTypeError(
                    f"{opdef.name}: the dtypes of {arg.name!r} do not agree",
                    expected=", ".join(d.name for d in before),
                    got=", ".join(d.name for d in found),
                )
            binding.setdefault(arg.dtype, arg.name)
            continue
        for tensor in tensors:
            dtype = tensor.dtype
            bound = attrs.get(arg.dtype)
            if bound is None:
                if any(t.name == arg.dtype for t in opdef.types):
                    attrs[arg.dtype] = dtype
                    binding[arg.dtype] = arg.name
                elif as_dtype(arg.dtype) is not dtype:
                    raise DTypeError(
                        f"{opdef.name}: input {arg.name!r} ({tensor.name}) has the wrong dtype",
                        expected=arg.dtype,
                        got=dtype.name,
                    )
            elif bound is not dtype:
                raise DTypeError(
                    f"{opdef.name}: {arg.name!r} ({tensor.name}) is {dtype.name}, but {binding[arg.dtype]!r} is {bound.name}",
                    expected=bound.name,
                    got=dtype.name,
                    hint=f"use tf.cast(..., tf.{bound.name}); there is no promotion between tensors",
                )
    if opdef.types:
        bind_types(opdef, given, attrs, binding)
    if opdef.attrs or given:
        normal_attrs(opdef, given, attrs)
    for arg, length in deferred:
        _check_count(opdef, arg, length, attrs)
    return attrs


def _check_count(opdef: OpDef, arg: ArgDef, length: int, attrs: Mapping[str, Any]) -> None:
    """Raise unless a list argument is as long as its count expression says; nothing while that is not known."""
    try:
        want = _count(arg.count or "1")(attrs)
    except (KeyError, TypeError):
        return
    if want != length:
        raise InvalidArgumentError(f"{opdef.name}: {arg.name!r} needs {want} tensors ({arg.count})", got=str(length))


_counts: dict[str, Callable[[Any], Any]] = {}


def _count(text: str) -> Callable[[Any], Any]:
    found = _counts.get(text)
    if found is None:
        found = _counts[text] = compile_expression(text)[0]
    return found


def complete(
    opdef: OpDef, tensors: Sequence[Tensor], given: dict[str, Any], lengths_given: tuple[int, ...] | None = None
) -> tuple[dict[str, Any], tuple[int, ...] | None]:
    """Attributes and argument lengths for flat inputs (``Graph.create_op``, GraphDef).

    Args:
      lengths_given: number of tensors of each input argument, where several take a varying number.

    Raises:
      InvalidArgumentError: the number of inputs does not fit the op.
    """
    fixed = sum(a.arity == "one" for a in opdef.inputs)
    open_args = [a for a in opdef.inputs if a.arity != "one"]
    rest = len(tensors) - fixed
    lengths: list[int] = list(lengths_given or ())
    if lengths_given is not None and not _possible(opdef, lengths, len(tensors)):
        raise InvalidArgumentError(f"{opdef.name} does not take inputs of the lengths {lengths}", expected=str(opdef))
    for arg in opdef.inputs if lengths_given is None else ():
        if arg.arity == "one":
            lengths.append(1)
        elif arg is open_args[-1]:
            lengths.append(rest)
        else:
            take = 1
            if arg.arity == "many":
                known = {k: v for k, v in given.items() if isinstance(v, (int, tuple, list))}
                try:
                    take = int(_count(arg.count or "1")(known))
                except KeyError:
                    take = rest // len(open_args)
            take = min(take, rest)
            lengths.append(take)
            rest -= take
    if rest < 0 or not _possible(opdef, lengths, len(tensors)):
        raise InvalidArgumentError(f"{opdef.name} does not take {len(tensors)} inputs", expected=str(opdef))
    parts, start = [], 0
    for length in lengths:
        parts.append(list(tensors[start : start + length]))
        start += length
    attrs = _bind(opdef, parts, given)
    return attrs, tuple(lengths) if open_args else None


def _possible(opdef: OpDef, lengths: Sequence[int], total: int) -> bool:
    """Whether arguments of these lengths can be the op's inputs."""
    upper = {"one": 1, "optional": 1, "many": total}
    fits = len(lengths) == len(opdef.inputs) and sum(lengths) == total
    return fits and all(
        int(a.arity == "one") <= n <= upper[a.arity] for a, n in zip(opdef.inputs, lengths, strict=True)
    )


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
