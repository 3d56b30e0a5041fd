"""A kernel of a Python function that takes and returns NumPy arrays, held to what its op declares at every call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.kernel import Bound, BuildContext, OutInfo
from graphdock.dtypes import as_dtype
from graphdock.errors import DTypeError, GraphdockError, InvalidArgumentError, ShapeError, also
from graphdock.shape import compatible, show

from graphdock_customop.signature import Signature

__all__ = ["attribute_values", "kernel_of", "results_of"]


def attribute_values(signature: Signature, attrs: Any) -> dict[str, Any]:
    """A node's attributes as the function takes them: Enum members, lists where it asks for lists."""
    values: dict[str, Any] = {}
    for attr in signature.attrs:
        if attr.inferred:
            continue
        value = attrs[attr.name]
        if attr.name in signature.enums and value is not None:
            value = signature.enums[attr.name][value]
        elif attr.name in signature.lists and isinstance(value, tuple):
            value = list(value)
        elif attr.type == "type" and value is not None:
            value = as_dtype(value)
        values[attr.name] = value
    return values


def kernel_of(op_type: str, signature: Signature, function: Callable[..., Any]) -> Callable[[BuildContext], Bound]:
    """The ``build`` of a kernel that calls the function with read-only arrays of its own and copies what it returns.

    A step raises, with the function's name: InvalidArgumentError for another number of results, for what is no array, or for a
    write to an input; DTypeError, ShapeError for a result that is not what the op declares.
    """
    label = f"{function.__qualname__}, a kernel of {op_type},"

    def build(ctx: BuildContext) -> Bound:
        spaces = [i.memory_space for i in ctx.inputs] + [o.memory_space for o in ctx.outputs]
        if any(space != HOST_MEMORY for space in spaces):
            raise InvalidArgumentError(
                f"{label} takes NumPy arrays, but the memory of {ctx.node.device} is not the host's",
                hint="register a kernel of that device's own buffers: register_kernel(device, build=True)",
            )
        attrs = attribute_values(signature, ctx.node.attrs)
        lengths = [sum(info.name == arg.name for info in ctx.inputs) for arg in signature.inputs]
        outputs, count, fresh = ctx.outputs, len(ctx.inputs), ctx.fresh

        def compute(*buffers: Any) -> Any:
            arguments: dict[str, Any] = dict(attrs)
            at = 0
            for arg, length in zip(signature.inputs, lengths, strict=True):
                own = [_read_only(b) for b in buffers[at : at + length]]
                at += length
                arguments[arg.name] = own if arg.arity == "many" else own[0] if own else None
            made = results_of(label, function, arguments, outputs, signature)
            if fresh:
                copies = [np.array(a, order="C") for a in made]
                return copies[0] if len(copies) == 1 else tuple(copies)
            for target, array in zip(buffers[count:], made, strict=True):
                np.copyto(target, array)
            return None

        return Bound(compute, capture_safe=False)

    return build


def _read_only(buffer: Any) -> Any:
    """A copy: a function may keep what it is given, and later steps write the buffer."""
    copy = np.array(buffer, order="C")
    copy.flags.writeable = False
    return copy


def results_of(
    label: str,
    function: Callable[..., Any],
    arguments: dict[str, Any],
    outputs: Sequence[OutInfo],
    signature: Signature,
) -> list[Any]:
    """The arrays that a function returns for these arguments, one per output."""
    try:
        result = function(**arguments)
    except GraphdockError:
        raise
    except Exception as error:
        hint = "an input is read-only: copy it before writing" if "read-only" in str(error) else None
        made = InvalidArgumentError(f"{label} raised {type(error).__name__}: {error}", hint=hint)
        raise also(made, error) from error
    if not outputs:
        if result is not None:
            raise InvalidArgumentError(f"{label} has no outputs, but it returned {type(result).__name__}")
        return []
    several = len(signature.outputs) > 1 or signature.outputs[0].arity == "many"
    if not several:
        found: Sequence[Any] = (result,)
    elif isinstance(result, (tuple, list)):
        found = _flat(result, signature)
    else:
        found = ()
    if len(found) != len(outputs):
        raise InvalidArgumentError(
            f"{label} returned the wrong number of arrays",
            expected=f"{len(outputs)} ({', '.join([o.name for o in outputs])})",
            got=f"{len(found)}" if found else type(result).__name__,
        )
    return [_checked(label, value, out) for value, out in zip(found, outputs, strict=True)]


def _flat(result: Sequence[Any], signature: Signature) -> list[Any]:
    if len(signature.outputs) == 1:
        return list(result)
    found: list[Any] = []
    for item in result:
        found.extend(item if isinstance(item, (tuple, list)) else (item,))
    return found


def _checked(label: str, value: Any, out: OutInfo) -> Any:
    if value is None or isinstance(value, (tuple, list)):
        raise InvalidArgumentError(
            f"{label} returned no array for its output {out.name!r}", expected="an array", got=type(value).__name__
        )
    array = np.asarray(value)
    if out.dtype.kind != "S" and array.dtype != out.dtype.np:
        raise DTypeError(
            f"{label} returned the wrong dtype for its output {out.name!r}",
            expected=out.dtype.name,
            got=str(array.dtype),
            hint=f'return result.astype("{out.dtype.name}")' if out.dtype.name != "bfloat16" else None,
        )
    if not compatible(out.shape, array.shape):
        raise ShapeError(
            f"{label} returned the wrong shape for its output {out.name!r}",
            expected=f"{show(out.shape)}, as its shape rule says",
            got=show(array.shape),
        )
    return array
