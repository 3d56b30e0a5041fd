"""Matrices of diagonals and diagonals of matrices, of the main one or of others.

Names, argument names and defaults are TensorFlow 1.15's. Diagonal k has the elements ``[i, i + k]``; a negative k is below the main
one. ``k`` is a number, or a pair of them for all diagonals from the first to the second: these are the rows of one more axis, the
highest diagonal first, each filled up at its end to the length of the longest.
"""

from __future__ import annotations

from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape


def matrix_diag(
    diagonal: TensorLike,
    name: str | None = "diag",
    k: Any = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: Any = 0,
) -> _ops.Tensor:
    """Matrices that have these diagonals, and ``padding_value`` elsewhere.

    Args:
      diagonal: ``[..., L]``, or ``[..., diagonals, L]`` where ``k`` is a pair of different numbers.
      num_rows, num_cols: of the matrices; default: of the least square ones, or where one is given the least for the other.

    Raises:
      ShapeError: sizes are not static, or the diagonals do not fit.
    """
    low, high = _band(k)
    x = _ops.convert_to_tensor(diagonal)
    if (low, high, num_rows, num_cols) == (0, 0, -1, -1) and isinstance(padding_value, int) and padding_value == 0:
        return _ops.apply_op("MatrixDiag", diagonal=x, name=name)
    with _ops.name_scope(name, "diag"):
        count, length = _diagonals(x, low, high)
        least_rows, least_cols = length - min(high, 0), length + max(low, 0)
        if num_rows == -1 and num_cols == -1:
            rows = columns = max(least_rows, least_cols)
        else:
            rows = least_rows if num_rows == -1 else int(num_rows)
            columns = least_cols if num_cols == -1 else int(num_cols)
        if length != _longest(rows, columns, low, high):
            raise ShapeError(
                "matrix_diag: the diagonals do not fit into the matrices",
                expected=f"length {_longest(rows, columns, low, high)}",
                got=str(length),
            )
        places, there = _places(rows, columns, low, high, length)
        flat = _flat(x, 1 if low == high else 2, count * length)
        return _tf.select(there, _tf.gather(flat, places, axis=-1), _ops.convert_to_tensor(padding_value, x.dtype))


def matrix_diag_part(
    input: TensorLike, name: str | None = "diag_part", k: Any = 0, padding_value: Any = 0
) -> _ops.Tensor:
    """The diagonals of matrices ``[..., M, N]``; ``padding_value`` fills up the shorter ones.

    Raises:
      ShapeError: a diagonal is outside of the matrices; where ``k`` is not 0 also that sizes are not static.
    """
    low, high = _band(k)
    x = _ops.convert_to_tensor(input)
    if low == high == 0:
        return _ops.apply_op("MatrixDiagPart", input=x, name=name)
    with _ops.name_scope(name, "diag_part"):
        rows, columns = _matrix(x)
        _within(rows, columns, low, high)
        length = _longest(rows, columns, low, high)
        along, number = np.arange(length), np.arange(high, low - 1, -1)[:, None]
        i, j = np.maximum(0, -number) + along, np.maximum(0, number) + along
        there = (i < rows) & (j < columns)
        places = np.where(there, i * columns + j, 0)
        if low == high:
            places, there = places[0], there[0]
        found = _tf.gather(_flat(x, 2, rows * columns), places, axis=-1)
        return found if there.all() else _tf.select(there, found, _ops.convert_to_tensor(padding_value, x.dtype))


def matrix_set_diag(input: TensorLike, diagonal: TensorLike, name: str | None = "set_diag", k: Any = 0) -> _ops.Tensor:
    """Matrices ``[..., M, N]`` with other diagonals, which have the shape that :func:`matrix_diag_part` gives.

    Raises:
      ShapeError: the diagonals do not fit; where ``k`` is not 0 also that sizes are not static.
    """
    low, high = _band(k)
    x = _ops.convert_to_tensor(input)
    new = _ops.convert_to_tensor(diagonal, x.dtype)
    if low == high == 0:
        return _ops.apply_op("MatrixSetDiag", input=x, diagonal=new, name=name)
    with _ops.name_scope(name, "set_diag"):
        rows, columns = _matrix(x)
        _within(rows, columns, low, high)
        count, length = _diagonals(new, low, high)
        if length != _longest(rows, columns, low, high):
            raise ShapeError(
                "matrix_set_diag: the diagonals do not fit into the matrices",
                expected=f"length {_longest(rows, columns, low, high)}",
                got=str(length),
            )
        places, there = _places(rows, columns, low, high, length)
        flat = _flat(new, 1 if low == high else 2, count * length)
        return _tf.select(there, _tf.gather(flat, places, axis=-1), x)


def _band(k: Any) -> tuple[int, int]:
    """The lowest and the highest diagonal."""
    try:
        numbers = [int(v) for v in np.asarray(k).reshape(-1)]
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError("k must be an integer or a pair of integers", got=repr(k)) from error
    if len(numbers) not in (1, 2) or numbers[0] > numbers[-1]:
        raise InvalidArgumentError("k must be an integer or a pair of integers in order", got=repr(k))
    return numbers[0], numbers[-1]


def _longest(rows: int, columns: int, low: int, high: int) -> int:
    """Elements of the longest of the diagonals."""
    return min(rows + min(high, 0), columns - max(low, 0))


def _within(rows: int, columns: int, low: int, high: int) -> None:
    if not -rows < low <= high < columns:
        raise ShapeError(f"the matrices have no such diagonals: k is {(low, high)}, sizes are {rows} and {columns}")


def _places(rows: int, columns: int, low: int, high: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """For each element of a matrix the number of its element among the diagonals, and whether it has one."""
    i, j = np.arange(rows)[:, None], np.arange(columns)
    number = j - i
    there = (number >= low) & (number <= high)
    return np.where(there, (high - number) * length + j - np.maximum(0, number), 0), there


def _matrix(x: Any) -> tuple[int, int]:
    shape = static_shape(x)
    if shape is None or len(shape) < 2 or shape[-1] is None or shape[-2] is None:
        raise ShapeError("diagonals other than the main one need matrices of static size", got=f"shape {x.shape}")
    return shape[-2], shape[-1]


def _diagonals(x: Any, low: int, high: int) -> tuple[int, int]:
    """Return how many diagonals a tensor holds, and their length."""
    shape, count = static_shape(x), high - low + 1
    if shape is None or not shape or shape[-1] is None:
        raise ShapeError("diagonals other than the main one need a static length", got=f"shape {x.shape}")
    if low != high and (len(shape) < 2 or shape[-2] != count):
        raise ShapeError("the diagonals are not as many as k says", expected=f"[..., {count}, L]", got=str(x.shape))
    return count, shape[-1]


def _flat(x: Any, axes: int, size: int) -> Any:
    """``x`` with its last ``axes`` axes as one."""
    if axes == 1:
        return x
    shape = static_shape(x)
    assert shape is not None
    if shape[:-2].count(None) == 0:
        return _tf.reshape(x, [*shape[:-2], size])
    return _tf.reshape(x, _tf.concat([_ops.shape(x)[:-2], [size]], 0))
