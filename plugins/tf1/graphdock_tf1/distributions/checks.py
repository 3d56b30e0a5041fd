"""Checks that ``validate_args`` makes of parameters and samples, as operations of the step."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError


def _assert(condition: Any, said: str, x: Any) -> Any:
    return _tf.Assert(_tf.reduce_all(condition), [said, x])


def counts(x: Any) -> Any:
    """Each element is a whole number, 0 or more."""
    whole = _assert(_tf.equal(x, _tf.floor(x)), f"{x.name} cannot contain fractional components.", x)
    return _tf.group(_tf.assert_non_negative(x, message=f"{x.name} must be non-negative."), whole)


def integers(x: Any) -> Any:
    """Each element, of any dtype, is a number of int32, 0 or more."""
    if x.dtype.is_integer:
        largest = _ops.constant(min(dtypes.int32.max, x.dtype.max), x.dtype)
        return _tf.group(_tf.assert_non_negative(x), _tf.assert_less_equal(x, largest))
    fits = _tf.equal(x, _tf.cast(_tf.cast(x, dtypes.int32), x.dtype))
    return _tf.group(_tf.assert_non_negative(x), _assert(fits, "is no number of int32", x))


def bits(x: Any) -> Any:
    """Each element, of any dtype, is 0 or 1."""
    return _tf.group(
        _tf.assert_non_negative(x, message="Elements must be non-negative."),
        _tf.assert_less_equal(x, _tf.ones_like(x), message="Elements cannot exceed 1."),
        _assert(_tf.equal(x, _tf.floor(x)) if x.dtype.is_floating else True, "Elements must be 0 or 1.", x),
    )


def inside_unit(x: Any) -> Any:
    """Each element is above 0 and below 1."""
    return _tf.group(
        _tf.assert_positive(x, message="sample must be positive"),
        _tf.assert_less(x, _tf.ones_like(x), message="sample must be less than `1`."),
    )


def of_simplex(x: Any) -> Any:
    """Vectors of positive numbers that sum to 1."""
    sums = _tf.reduce_sum(x, -1)
    return _tf.group(
        _tf.assert_positive(x, message="samples must be positive"),
        _tf.assert_near(_tf.ones_like(sums), sums, message="sample last-dimension must sum to `1`"),
    )


def total(of: Any, vectors: str = "counts") -> Any:
    """The check that vectors sum to ``of``."""
    said = f"{vectors} must sum to `self.total_count`"
    return lambda x: _tf.assert_equal(of, _tf.reduce_sum(x, -1), message=said)


def enough_classes(x: Any) -> Any:
    """The last dim counts two classes or more. Raises InvalidArgumentError where that is known to be wrong."""
    known = x.shape.with_rank_at_least(1)[-1].value
    if known is not None and known < 2:
        raise InvalidArgumentError("the last dim of a parameter counts classes", expected="2 or more", got=known)
    return _tf.no_op() if known is not None else _tf.assert_less(1, _tf.shape(x)[-1])
