"""Gradients beside differences of the function: ``tf.test.compute_gradient`` and ``compute_gradient_error``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock.errors import DTypeError, FailedPreconditionError, ShapeError


def compute_gradient(
    x: Any,
    x_shape: Sequence[int] | Sequence[Sequence[int]],
    y: Any,
    y_shape: Sequence[int],
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> Any:
    """The Jacobian of ``y`` by ``x``, by ``tf.gradients`` and by central differences, in the default session.

    Args:
      x: a floating or complex tensor, or a list of some. x_shape: its shape, or a list of theirs.
      y: a floating or complex tensor that comes of ``x``. y_shape: its shape.
      x_init_value: where the Jacobian is taken, or a list; default: random numbers.
      delta: half the step of the differences.
      init_targets: operations that are run first. extra_feed_dict: fed besides ``x``.

    Returns:
      ``(theoretical, numeric)``: arrays ``[elements of x, elements of y]``, a complex element being two; a list of such pairs for a
      list of tensors.

    Raises:
      DTypeError: a tensor is neither floating nor complex. ShapeError: ``x_init_value`` has another shape than ``x_shape``,
        or the gradient of an empty ``x`` another than it.
      FailedPreconditionError: there is no default session.
    """
    session = _tf.get_default_session()
    if session is None:
        raise FailedPreconditionError("compute_gradient needs a default session", hint="with tf.Session():")
    several = isinstance(x, (list, tuple))
    xs = list(x) if several else [x]
    shapes = list(x_shape) if several else [x_shape]
    for tensor in (*xs, y):
        if not (tensor.dtype.is_floating or tensor.dtype.is_complex):
            raise DTypeError(f"compute_gradient: {tensor.name} is neither floating nor complex", got=tensor.dtype.name)
    if init_targets is not None:
        session.run(init_targets)
    given = [None] * len(xs) if x_init_value is None else list(x_init_value) if several else [x_init_value]
    values = [_value(t, s, v) for t, s, v in zip(xs, shapes, given, strict=True)]
    feeds = {**dict(zip(xs, values, strict=True)), **(extra_feed_dict or {})}
    pairs = [_pair(session, xs[i], values[i], y, list(y_shape), delta, feeds) for i in range(len(xs))]
    return pairs if several else pairs[0]


def compute_gradient_error(
    x: Any,
    x_shape: Sequence[int] | Sequence[Sequence[int]],
    y: Any,
    y_shape: Sequence[int],
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> float:
    """The largest difference of the two Jacobians of :func:`compute_gradient`, whose arguments these are."""
    found = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    error = 0.0
    for theoretical, numeric in [found] if isinstance(found, tuple) else found:
        if theoretical.size:
            error = float(np.maximum(error, np.abs(theoretical - numeric).max()))
    return error


def _value(x: Any, shape: Any, given: Any) -> np.ndarray[Any, Any]:
    dtype = x.dtype.as_numpy_dtype
    if given is None:
        made = np.random.random_sample(shape)  # noqa: NPY002 - the seed of a test is this generator's
        return np.asarray(made + 1j * made if x.dtype.is_complex else made).astype(dtype)
    value = np.array(given, dtype)
    if list(value.shape) != list(shape):
        raise ShapeError("x_init_value has another shape than x_shape", expected=str(list(shape)), got=str(value.shape))
    return value


def _parts(value: Any) -> Any:
    """An array as a new vector of reals; a complex element is two of them."""
    flat = np.array(value).reshape(-1)
    return flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat


def _pair(session: Any, x: Any, at: Any, y: Any, y_shape: list[int], delta: float, feeds: Any) -> tuple[Any, Any]:
    dy = _tf.placeholder(y.dtype, y_shape)
    dx = _tf.gradients(y, x, dy)[0]
    if dx is None:  # y does not come of x
        dx = _tf.zeros_like(x)
    out = np.zeros(y_shape, y.dtype.as_numpy_dtype)
    rows, columns = _parts(at).size, _parts(out).size
    if not rows or not columns:
        got = np.shape(session.run(_tf.convert_to_tensor(dx), {**feeds, dy: out}))
        if got != at.shape:
            raise ShapeError(f"Empty gradient has wrong shape: expected {at.shape}, got {got}")
    theoretical = np.zeros((rows, columns), _parts(at).dtype)
    for j in range(columns):
        theoretical[:, j] = _parts(session.run(_tf.convert_to_tensor(dx), {**feeds, dy: _moved(out, j, 1)}))
    numeric = np.zeros((rows, columns), theoretical.dtype)
    for i in range(rows):
        above, below = (session.run(y, {**feeds, x: _moved(at, i, step)}) for step in (delta, -delta))
        numeric[i] = (_parts(above) - _parts(below)) / (2 * delta)
    return theoretical, numeric


def _moved(value: Any, index: int, step: float) -> Any:
    """An array with one of its reals changed by ``step``."""
    parts = _parts(value)
    parts[index] += step
    return parts.view(value.dtype).reshape(value.shape)
