"""Binding: the attributes of an operation from its input tensors and what the caller gave, by its OpDef."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.contracts.opdef import ArgDef, OpDef
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.graph.tensor import Tensor
from graphdock.opdef.attrs import bind_types, normal_attrs
from graphdock.opdef.expression import compile_expression
from graphdock.opdef.shape_rule import MOST_KEPT, rule_for

__all__ = ["bind_inputs", "bind_tensors", "complete", "is_list"]


def is_list(opdef: OpDef, dtype: str) -> bool:
    """Return whether ``dtype`` names a type-list variable of the op."""
    return any(t.is_list and t.name == dtype for t in opdef.types)


#: Types of attributes as callers give them, of which equal ones of one type mean the same. (0.0 and -0.0 are equal.)
_ATOMS = frozenset([bool, int, str, DType, type(None)])


def bind_tensors(opdef: OpDef, tensors: Sequence[Tensor], given: dict[str, Any]) -> Mapping[str, Any]:
    """As :func:`bind_inputs`, of an op each of whose inputs is one tensor. Nodes of equal dtypes and attributes share a mapping."""
    key: Any = tuple([t.dtype.name for t in tensors])
    if given:
        values = tuple(given.values())
        kinds = tuple(map(type, values))
        if not _ATOMS.issuperset(kinds):
            return bind_inputs(opdef, [(t,) for t in tensors], given)
        key = key, tuple(given), values, kinds
    known = rule_for(opdef).bindings
    found = known.get(key)
    if found is None:
        found = bind_inputs(opdef, [(t,) for t in tensors], given)
        if len(known) >= MOST_KEPT:
            known.clear()
        known[key] = found
    return found


def bind_inputs(opdef: OpDef, parts: Sequence[Sequence[Tensor]], given: dict[str, Any]) -> dict[str, Any]:
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
        if is_list(opdef, arg.dtype):
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
    attrs = bind_inputs(opdef, parts, given)
    return attrs, tuple(lengths) if open_args else None


def _possible(opdef: OpDef, lengths: Sequence[int], total: int) -> bool:
    """Return whether arguments of these lengths can be the op's inputs."""
    upper = {"one": 1, "optional": 1, "many": total}
    fits = len(lengths) == len(opdef.inputs) and sum(lengths) == total
    return fits and all(
        int(a.arity == "one") <= n <= upper[a.arity] for a, n in zip(opdef.inputs, lengths, strict=True)
    )
