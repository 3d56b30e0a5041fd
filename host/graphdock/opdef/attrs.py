"""Attributes: turning what a caller gave into the normal form that nodes hold, or a clear error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphdock.contracts.opdef import REQUIRED, AttrDef, OpDef, TypeVarDef
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import DTypeError, InvalidArgumentError, did_you_mean
from graphdock.shape import as_dims

__all__ = ["check_type", "normal_attr", "normal_attrs"]


def _int(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError("a bool is not an int")
    number = int(value.__index__())
    if not -(2**63) <= number < 2**63:
        raise InvalidArgumentError("a number", hint=f"it has {number.bit_length()} bits; 63 and a sign fit")
    return number


def _float(value: Any) -> float:
    if isinstance(value, (bool, str, bytes)):
        raise TypeError("not a number")
    return float(value)


def _bool(value: Any) -> bool:
    if isinstance(value, bool) or str(getattr(value, "dtype", "")) == "bool":
        return bool(value)
    raise TypeError("not a bool")


def _string(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError("not a string")
    return value


def _tensor(value: Any) -> Any:
    import numpy as np

    array = np.array(value, copy=True)
    array.flags.writeable = False
    return array


def _func(value: Any) -> Any:
    if value is None:
        raise TypeError("not a function")
    return value


_NORMAL: dict[str, Callable[[Any], Any]] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "string": _string,
    "type": as_dtype,
    "shape": as_dims,
    "tensor": _tensor,
    "func": _func,
}


def _shown(value: Any) -> str:
    return repr(value) if not isinstance(value, int) or value.bit_length() <= 64 else "a larger number"


def normal_attr(opdef: OpDef, attr: AttrDef, value: Any) -> Any:
    """The value in normal form: DType, Dims, tuple for a list, read-only array for a tensor.

    Raises:
      InvalidArgumentError: wrong type, below the minimum, or not among the allowed values.
    """
    kind = attr.type
    try:
        if kind.startswith("list("):
            if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
                raise TypeError("not a list")
            one = _NORMAL[kind[5:-1]]
            result: Any = tuple(one(v) for v in value)
        else:
            result = _NORMAL[kind](value)
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, InvalidArgumentError) and error.hint:
            hint: str | None = error.hint
        else:
            hint = None
        raise InvalidArgumentError(
            f"attribute {attr.name!r} of {opdef.name} has a wrong value", expected=kind, got=_shown(value), hint=hint
        ) from None
    measured = len(result) if isinstance(result, tuple) and kind.startswith("list(") else result
    if attr.minimum is not None and measured < attr.minimum:
        raise InvalidArgumentError(
            f"attribute {attr.name!r} of {opdef.name} is too small",
            expected=f"at least {attr.minimum}",
            got=repr(value),
        )
    if attr.maximum is not None and measured > attr.maximum:
        raise InvalidArgumentError(
            f"attribute {attr.name!r} of {opdef.name} is too large", expected=f"at most {attr.maximum}", got=repr(value)
        )
    if attr.allowed:
        items = result if kind.startswith("list(") else (result,)
        for item in items:
            shown = item.name if isinstance(item, DType) else item
            if shown not in attr.allowed:
                raise InvalidArgumentError(
                    f"attribute {attr.name!r} of {opdef.name} has a value that is not allowed",
                    expected="one of " + ", ".join(map(repr, attr.allowed)),
                    got=repr(shown),
                    hint=did_you_mean(str(shown), map(str, attr.allowed)),
                )
    return result


def normal_attrs(opdef: OpDef, given: dict[str, Any], attrs: dict[str, Any]) -> None:
    """Move every declared attribute from ``given`` (or its default) into ``attrs`` in normal form; inferred ones stay.

    Raises:
      InvalidArgumentError: a required attribute is missing, or ``given`` holds a name the op does not have.
    """
    for attr in opdef.attrs:
        if attr.name in attrs:
            if attr.name in given:
                value = normal_attr(opdef, attr, given.pop(attr.name))
                if value != attrs[attr.name]:
                    raise InvalidArgumentError(
                        f"attribute {attr.name!r} of {opdef.name} contradicts its inputs",
                        expected=str(attrs[attr.name]),
                        got=str(value),
                    )
            if attr.minimum is not None and attrs[attr.name] < attr.minimum:
                raise InvalidArgumentError(
                    f"{opdef.name} needs at least {attr.minimum} tensors ({attr.name})", got=str(attrs[attr.name])
                )
            continue
        value = given.pop(attr.name, REQUIRED)
        if value is REQUIRED or (value is None and attr.default is not REQUIRED):
            if attr.default is REQUIRED:
                raise InvalidArgumentError(f"{opdef.name} needs attribute {attr.name!r}", expected=attr.type)
            value = attr.default
            if value is None:
                attrs[attr.name] = None
                continue
        attrs[attr.name] = normal_attr(opdef, attr, value)
    if given:
        name = next(iter(given))
        known = [a.name for a in opdef.inputs] + [a.name for a in opdef.attrs] + [t.name for t in opdef.types]
        raise InvalidArgumentError(f"{opdef.name} has no argument {name!r}", hint=did_you_mean(name, known))


def check_type(opdef: OpDef, var: TypeVarDef, dtype: DType, because: str) -> None:
    """Raise DTypeError unless the type variable may stand for ``dtype``."""
    if dtype.kind == "V" and opdef.verb.name == "alias":
        return  # another name for a list is a list
    if var.allow and dtype.name not in var.allow:
        raise DTypeError(
            f"{opdef.name} does not take {dtype.name} ({because})",
            expected="one of " + ", ".join(var.allow),
            got=dtype.name,
        )
    if dtype.kind == "V" and opdef.verb.kernel:
        raise DTypeError(
            f"{opdef.name} does not take {dtype.name} ({because}): no op computes with what a loop or a branch keeps",
            got=dtype.name,
        )


def bind_types(opdef: OpDef, given: dict[str, Any], attrs: dict[str, Any], binding: Mapping[str, str]) -> None:
    """Complete and check the type variables in ``attrs``; ``binding`` says which argument bound each, for messages."""
    for var in opdef.types:
        if var.name in given:
            value = given.pop(var.name)
            if value is not None:
                asked: Any = tuple(as_dtype(v) for v in value) if var.is_list else as_dtype(value)
                bound = attrs.setdefault(var.name, asked)
                if bound != asked:
                    raise DTypeError(
                        f"{opdef.name}: {var.name} contradicts its inputs", expected=str(bound), got=str(asked)
                    )
        if var.name not in attrs:
            if var.default is None:
                raise InvalidArgumentError(f"{opdef.name} needs the dtype {var.name!r}")
            attrs[var.name] = as_dtype(var.default)
        bound = attrs[var.name]
        for dtype in bound if var.is_list else (bound,):
            check_type(opdef, var, dtype, binding.get(var.name, var.name))
