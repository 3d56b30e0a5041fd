"""Assertions about ranks and dtypes, which mostly are known while the graph is built; and about what is finite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.typing import DTypeLike, TensorLike


def assert_rank(
    x: TensorLike,
    rank: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails unless ``x`` has this rank.

    Args:
      x: any tensor. ``rank``: an integer or an integer scalar tensor.
      data: what the error shows; default: the shape. ``summarize``: elements of each to show.
      message: what the error begins with.

    Raises:
      ShapeError: the static rank is another. DTypeError: ``rank`` is no integer.
    """
    return _ranked(x, [rank], "equal to", _tf.equal, data, summarize, message, name or "assert_rank")


def assert_rank_at_least(
    x: TensorLike,
    rank: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails if ``x`` has less than this rank; as :func:`assert_rank`."""
    name = name or "assert_rank_at_least"
    return _ranked(x, [rank], "at least", _tf.greater_equal, data, summarize, message, name)


def assert_rank_in(
    x: TensorLike,
    ranks: Sequence[TensorLike],
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> _ops.Operation:
    """An operation that fails unless ``x`` has one of these ranks; as :func:`assert_rank`."""
    return _ranked(x, ranks, "one of", _tf.equal, data, summarize, message, name or "assert_rank_in")


def _ranked(
    x: Any,
    ranks: Sequence[Any],
    relation: str,
    test: Callable[[Any, Any], Any],
    data: Any,
    summarize: int | None,
    message: str | None,
    name: str,
) -> _ops.Operation:
    with _tf.name_scope(name):
        tensor = _ops.convert_to_tensor(x, name="x")
        wanted = [_ops.convert_to_tensor(rank, name="rank") for rank in ranks]
        for rank in wanted:
            if not rank.dtype.is_integer:
                raise DTypeError(f"{name}: a rank must be an integer", got=rank.dtype.name)
            if rank.shape.rank not in (None, 0):
                raise ShapeError(f"{name}: a rank must be a scalar", got=str(rank.shape))
        known = [_known(rank) for rank in wanted]
        actual = tensor.shape.rank
        if actual is not None and all(k is not None for k in known):
            if any(actual >= k if relation == "at least" else actual == k for k in known):
                return _tf.no_op(name="static_checks_determined_all_ok")
            raise ShapeError(
                f"{message + ': ' if message else ''}{tensor.name} has another rank",
                op=tensor.op.name,
                site=tensor.op.site,
                expected=f"{relation} {', '.join(map(str, known))}",
                got=f"{actual}, of the shape {tensor.shape}",
            )
        if data is None:
            told = [f"{tensor.name} must have a rank {relation}", *wanted, "but its shape is", _ops.shape(tensor)]
            data = [*([message] if message else []), *told]
        found = _tf.rank(tensor)
        fits = [test(found, _ops.cast(rank, found.dtype)) for rank in wanted]
        return _tf.Assert(_tf.reduce_any(_tf.stack(fits)), list(data), summarize)


def _known(tensor: Any) -> int | None:
    """The value of a constant."""
    return int(tensor.op.get_attr("value")) if tensor.op.op_def.executes == "constant" else None


def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> _ops.Operation:
    """Refuse a tensor that holds no integers: DTypeError. Returns an operation that does nothing."""
    with _tf.name_scope(name or "assert_integer"):
        tensor = _ops.convert_to_tensor(x, name="x")
        if not tensor.dtype.is_integer:
            raise DTypeError(
                f"{message + ': ' if message else ''}{tensor.name} must hold integers",
                op=tensor.op.name,
                site=tensor.op.site,
                got=tensor.dtype.name,
            )
        return _tf.no_op(name="statically_determined_is_integer")


def assert_same_float_dtype(tensors: Sequence[TensorLike] | None = None, dtype: DTypeLike | None = None) -> Any:
    """Return the floating dtype that all tensors have, float32 where nothing tells one.

    Raises:
      DTypeError: two differ, or differ from ``dtype``; or it is no floating one.
    """
    wanted = None if dtype is None else _tf.as_dtype(dtype).base_dtype
    for tensor in tensors or ():
        found = _ops.convert_to_tensor(tensor)
        if wanted not in (None, found.dtype):
            raise DTypeError(
                f"{found.name} has another dtype", op=found.op.name, expected=wanted.name, got=found.dtype.name
            )
        wanted = found.dtype
    wanted = wanted or _tf.float32
    if not wanted.is_floating:
        raise DTypeError("expected a floating dtype", got=wanted.name)
    return wanted


def assert_type(
    tensor: TensorLike, tf_type: DTypeLike, message: str | None = None, name: str | None = None
) -> _ops.Operation:
    """Refuse a tensor of another dtype: DTypeError. Returns an operation that does nothing."""
    with _tf.name_scope(name or "assert_type"):
        found, wanted = _ops.convert_to_tensor(tensor, name="tensor"), _tf.as_dtype(tf_type)
        if found.dtype is not wanted:
            raise DTypeError(
                f"{message + ': ' if message else ''}{found.name} has another dtype",
                op=found.op.name,
                site=found.op.site,
                expected=wanted.name,
                got=found.dtype.name,
            )
        return _tf.no_op(name="statically_determined_correct_type")


def assert_scalar(tensor: TensorLike, name: str | None = None, message: str | None = None) -> _ops.Tensor:
    """The tensor itself. Refuses one whose static rank is not 0: ShapeError."""
    with _tf.name_scope(name or "assert_scalar"):
        found = _ops.convert_to_tensor(tensor, name="scalar")
        if found.shape.rank != 0:
            raise ShapeError(
                f"{message + ': ' if message else ''}{found.name} must be a scalar",
                op=found.op.name,
                site=found.op.site,
                got=f"the shape {found.shape}",
            )
        return found


def assert_proper_iterable(values: Any) -> None:
    """Refuse what is no list of tensors: a tensor, an array, a string, or what cannot be iterated over. Raises TypeError."""
    if isinstance(values, _tf.Tensor | _tf.Variable | _tf.IndexedSlices | np.ndarray | str | bytes):
        raise TypeError(f"values must be a list of tensors, but they are a {type(values).__name__}")
    if not hasattr(values, "__iter__"):
        raise TypeError(f"values must be iterable, but they are a {type(values).__name__}")


def assert_variables_initialized(var_list: Sequence[Any] | None = None) -> _ops.Tensor | None:
    """A tensor that can only be computed when all variables have values; FailedPreconditionError names one that has none.

    Args:
      var_list: Variables; default: all global and local ones. None is returned if there is none.
    """
    variables = [*_tf.global_variables(), *_tf.local_variables()] if var_list is None else list(var_list)
    if not variables:
        return None
    with _tf.control_dependencies([v.read_value() for v in variables]):
        return _ops.constant([len(variables)])


def verify_tensor_all_finite(
    t: TensorLike | None = None,
    msg: str | None = None,
    name: str | None = None,
    x: TensorLike | None = None,
    message: str | None = None,
) -> _ops.Tensor:
    """The same tensor; InvalidArgumentError, with ``msg``, while the step runs if an element is infinite or NaN.

    Args:
      t: a floating tensor. ``x``, ``message``: the same two arguments under their newer names.
    """
    given, text = (x if t is None else t), (message if msg is None else msg)
    if given is None or (t is not None and x is not None) or (msg is not None and message is not None):
        raise InvalidArgumentError("verify_tensor_all_finite takes t and msg, or their newer names x and message")
    with _tf.name_scope(name or "VerifyFinite"):
        return _tf.check_numerics(_ops.convert_to_tensor(given), text or "")


def add_check_numerics_ops() -> _ops.Operation:
    """An operation that fails if any floating tensor of the default graph is infinite or NaN: fetch it beside others.

    It computes all of them, with their placeholders. Tensors inside of branches and loops are not looked at.
    """
    checks: list[Any] = []
    for op in _tf.get_default_graph().get_operations():
        for tensor in op.outputs:
            if tensor.dtype.is_floating:
                with _tf.control_dependencies(checks[-1:]):
                    checks.append(_tf.check_numerics(tensor, message=tensor.name))
    return _tf.group(*checks)
