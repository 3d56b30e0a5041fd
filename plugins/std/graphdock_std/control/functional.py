"""``map_fn``, ``scan``, ``foldl``, ``foldr``: a function over the rows of tensors, as one loop that keeps what its iterations make.

``elems`` is a tensor of rank 1 or more, or a nested structure of such with one number of rows; the function is given a structure of
rows. It is called once, while the graph is made. Gradients flow through all of it, in time linear in the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf
from graphdock import nest
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """Return what ``fn`` returns for each row of ``elems``, stacked.

    Args:
      fn: takes a row, or the structure of rows; returns tensors whose shapes don't depend on the row.
      dtype: what ``fn`` returns: a dtype, or a structure of them; by default that of ``elems``.
      back_prop: False stops gradients. ``swap_memory`` and ``infer_shape`` are taken and mean nothing.

    Raises:
      DTypeError: ``fn`` returns another dtype. InvalidArgumentError: another structure. ShapeError: ``elems`` has a scalar.
    """
    with _tf.name_scope(name or "map"):
        rows = _rows("map_fn", elems)
        expected = [_tf.as_dtype(d) for d in nest.flatten(dtype)] if dtype is not None else [t.dtype for t in rows]

        def step(_: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
            return [], _as(fn(nest.pack_sequence_as(elems, row)), expected, "map_fn", "pass dtype= what fn returns")

        _, stacked = _ops.scan_loop(step, [], rows, parallel_iterations=parallel_iterations or 10)
        return nest.pack_sequence_as(elems if dtype is None else dtype, _kept(stacked, back_prop))


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All values of an accumulator over the rows of ``elems``: ``fn(fn(initializer, row 0), row 1)`` and so on, stacked.

    Args:
      fn: takes the accumulator and a row, returns the next accumulator, of the same structure, dtypes and shapes.
      initializer: the first accumulator; by default the first row, which is then the first result too.
      reverse: begin with the last row; the results stand beside their rows.
      back_prop: False stops gradients. ``swap_memory`` and ``infer_shape`` are taken and mean nothing.

    Raises:
      DTypeError, InvalidArgumentError: ``fn`` returns another dtype or structure. ShapeError: ``elems`` has a scalar.
    """
    with _tf.name_scope(name or "scan"):
        _, stacked, first, like = _accumulate(fn, elems, initializer, reverse, True, parallel_iterations, "scan")
        if first is not None:
            stacked = [_tf.concat([_tf.expand_dims(f, 0), s], 0) for f, s in zip(first, stacked, strict=True)]
        if reverse:
            stacked = [_tf.reverse(s, [0]) for s in stacked]
        return nest.pack_sequence_as(like, _kept(stacked, back_prop))


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last value of an accumulator over the rows of ``elems``, from the first row on. Arguments and errors as of ``scan``."""
    with _tf.name_scope(name or "foldl"):
        last, _, _, like = _accumulate(fn, elems, initializer, False, False, parallel_iterations, "foldl")
        return nest.pack_sequence_as(like, _kept(last, back_prop))


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last value of an accumulator over the rows of ``elems``, from the last row on. Arguments and errors as of ``scan``."""
    with _tf.name_scope(name or "foldr"):
        last, _, _, like = _accumulate(fn, elems, initializer, True, False, parallel_iterations, "foldr")
        return nest.pack_sequence_as(like, _kept(last, back_prop))


def _accumulate(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, reverse: bool, keep: bool, parallel: int, what: str
) -> tuple[list[Any], list[Any], list[Any] | None, Any]:
    """The last accumulator, all of them where they are kept, the first row where it is the initial one, and the structure."""
    rows = _rows(what, elems)
    if reverse:
        rows = [_tf.reverse(t, [0]) for t in rows]
    first = None
    if initializer is None:
        like, start = elems, [t[0] for t in rows]
        first, rows = start, [t[1:] for t in rows]
    else:
        like, start = initializer, [_tf.convert_to_tensor(v) for v in nest.flatten(initializer)]
    dtypes = [t.dtype for t in start]

    def step(before: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        after = _as(
            fn(nest.pack_sequence_as(like, before), nest.pack_sequence_as(elems, row)),
            dtypes,
            what,
            "an accumulator keeps its dtype: tf.cast it",
        )
        return after, after if keep else []

    last, stacked = _ops.scan_loop(step, start, rows, parallel_iterations=parallel)
    return last, stacked, first, like


def _rows(what: str, elems: Any) -> list[Any]:
    tensors = [_tf.convert_to_tensor(e, name="elems") for e in nest.flatten(elems)]
    if not tensors:
        raise InvalidArgumentError(f"{what}: elems is empty")
    for tensor in tensors:
        if tensor.shape.rank == 0:
            raise ShapeError(
                f"{what}: elems has a scalar, which has no rows",
                hint="a list is a structure: pass np.array or tf.stack of it",
            )
    return tensors


def _as(returned: Any, dtypes: Sequence[Any], what: str, hint: str) -> list[Any]:
    """Return what a function returned, as flat tensors of these dtypes."""
    values = nest.flatten(returned)
    if len(values) != len(dtypes):
        raise InvalidArgumentError(
            f"{what}: fn returned another structure", expected=f"{len(dtypes)} tensors", got=str(len(values)), hint=hint
        )
    made = []
    for value, dtype in zip(values, dtypes, strict=True):
        if isinstance(value, _tf.Tensor | _tf.Variable) and value.dtype != dtype:
            raise DTypeError(f"{what}: fn returned another dtype", expected=dtype.name, got=value.dtype.name, hint=hint)
        made.append(_tf.convert_to_tensor(value, dtype))
    return made


def _kept(tensors: list[Any], back_prop: bool) -> list[Any]:
    return tensors if back_prop else [_tf.stop_gradient(t) for t in tensors]
