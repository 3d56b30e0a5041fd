"""Losses of logits: cross-entropies with softmax and sigmoid, and the Poisson loss of a logarithm.

Names, argument names and defaults are TensorFlow 1's.
"""

from __future__ import annotations

import math
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape
from graphdock_std.nn.functions import axis_from_end
from graphdock_std.shape_support import show


def _named(what: str, sentinel: Any, labels: Any, logits: Any) -> None:
    """Labels and logits are given by name, because their order differs between libraries."""
    if sentinel is not None or labels is None or logits is None:
        raise InvalidArgumentError(
            f"{what} needs labels and logits, by name", hint=f"tf.nn.{what}(labels=y, logits=layer)"
        )


def _labels(labels: Any, logits: Any) -> Any:
    """Labels as a tensor of the dtype of ``logits``, of whatever number they are."""
    if not isinstance(labels, _tf.Tensor):
        labels = _ops.convert_to_tensor(labels, preferred_dtype=logits.dtype)
    return _ops.cast(labels, logits.dtype)


def _fit(what: str, labels: Any, logits: Any, dropped: int, spreads: bool) -> None:
    """Labels have the shape of ``logits`` without their last ``dropped`` dims, or dims of 1 where one ``spreads``.

    Raises:
      ShapeError: they have not, as far as their static shapes tell.
    """
    of, like = static_shape(labels), static_shape(logits)
    if like is not None and not like:
        raise ShapeError(f"{what}: logits must have rank 1 or more", got=show(like))
    if of is None or like is None:
        return
    wanted = like[: len(like) - dropped]
    if len(of) == len(wanted) and all(
        None in (a, b) or a == b or (spreads and a == 1) for a, b in zip(of, wanted, strict=True)
    ):
        return
    raise ShapeError(
        f"{what}: labels have shape {show(of)} and logits {show(like)}",
        expected=f"labels of shape {show(wanted)}",
        got=show(of),
    )


def _folds(labels: Any, logits: Any) -> bool:
    """Return whether labels and logits may differ in their outer dims, all of which are the rows of one matrix then."""
    of, like = static_shape(labels), static_shape(logits)
    if of is None or like is None:
        return () not in (of, like)
    return len(of) != len(like) and all((of, like)) and (None in (of[-1], like[-1]) or of[-1] == like[-1])


def _spread(labels: Any, logits: Any) -> Any:
    """Labels of one row, or of one class, for all of them."""
    of, like = static_shape(labels), static_shape(logits)
    if (
        of is None
        or like is None
        or len(of) != len(like)
        or all(a != 1 or b == 1 for a, b in zip(of, like, strict=True))
    ):
        return labels
    return _tf.broadcast_to(labels, _ops.shape(logits))


def softmax_cross_entropy_with_logits_v2(
    labels: TensorLike,
    logits: TensorLike,
    axis: int | None = None,
    name: str | None = None,
    dim: int | None = None,
) -> _ops.Tensor:
    """Cross-entropy between the softmax of ``logits`` and ``labels``, one number per row. Gradients flow to both.

    Args:
      labels: a distribution over the classes per row, of the shape of ``logits``; numbers of any dtype.
      logits: floating tensor of rank 1 or more.
      axis: the axis of the classes; default: the last. ``dim`` is its older name.

    Returns:
      A tensor of the dtype of ``logits`` and of their shape without ``axis``.

    Raises:
      InvalidArgumentError: labels or logits are missing.
      ShapeError: their shapes differ.
    """
    return _softmax_loss("softmax_cross_entropy_with_logits", labels, logits, axis, dim, name)


def softmax_cross_entropy_with_logits(
    _sentinel: None = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> _ops.Tensor:
    """As :func:`softmax_cross_entropy_with_logits_v2`, with labels that are constants: no gradient flows to them.

    Labels and logits are given by name.
    """
    what = "softmax_cross_entropy_with_logits"
    _named(what, _sentinel, labels, logits)
    if axis is not None and dim != -1:
        raise InvalidArgumentError(f"{what}: axis and dim are one argument under two names", got=f"{axis} and {dim}")
    with _tf.name_scope(name or f"{what}_sg") as scope:
        logits = _ops.convert_to_tensor(logits)
        labels = _ops.convert_to_tensor(labels, preferred_dtype=logits.dtype)
        constant = _ops.stop_gradient(labels, name="labels_stop_gradient")
        return _softmax_loss(what, constant, logits, dim if axis is None else axis, None, scope)


def _softmax_loss(what: str, labels: Any, logits: Any, axis: Any, dim: Any, name: str | None) -> Any:
    _named(what, None, labels, logits)
    op = "SoftmaxCrossEntropyWithLogits"
    with _tf.name_scope(name or what) as scope:
        logits = _ops.convert_to_tensor(logits)
        at = axis_from_end(logits, axis, dim, what)
        labels, outer = _labels(labels, logits), None
        if at == -1 and _folds(labels, logits):
            outer = _ops.shape(logits)[:-1]
            logits, labels = (_tf.reshape(t, [-1, _ops.shape(t)[-1]]) for t in (logits, labels))
        _fit(what, labels, logits, 0, True)
        labels = _spread(labels, logits)
        if at != -1:
            rank = len(static_shape(logits) or ())
            order = [i for i in range(rank) if i != rank + at] + [rank + at]
            logits, labels = _tf.transpose(logits, order), _tf.transpose(labels, order)
        loss = _ops.apply_op(op, features=logits, labels=labels, name=None if outer is not None else scope).loss
        return loss if outer is None else _tf.reshape(loss, outer, name=scope)


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: None = None, labels: TensorLike | None = None, logits: TensorLike | None = None, name: str | None = None
) -> _ops.Tensor:
    """Cross-entropy between the softmax of ``logits`` and one class per row.

    Args:
      labels: int32 or int64 class indices, of the shape of ``logits`` without its last dim. One outside the classes is
        an InvalidArgumentError of the step.
      logits: floating tensor of rank 1 or more; classes are its last dim.

    Returns:
      A tensor of the dtype of ``logits`` and the shape of ``labels``.

    Raises:
      InvalidArgumentError: labels or logits are missing. ShapeError: their shapes do not fit.
    """
    what, op = "sparse_softmax_cross_entropy_with_logits", "SparseSoftmaxCrossEntropyWithLogits"
    _named(what, _sentinel, labels, logits)
    with _tf.name_scope(name or op) as scope:
        logits = _ops.convert_to_tensor(logits)
        given, labels = labels, _ops.convert_to_tensor(labels)
        if not isinstance(given, _tf.Tensor) and labels.dtype not in (_tf.int32, _tf.int64):
            labels = _ops.convert_to_tensor(given, _tf.int64)
        _fit(what, labels, logits, 1, False)
        return _ops.apply_op(op, features=logits, labels=labels, name=scope).loss


def _pair(what: str, labels: Any, logits: Any, names: tuple[str, str] = ("labels", "logits")) -> tuple[Any, Any]:
    x = _ops.convert_to_tensor(logits)
    z = _ops.convert_to_tensor(labels, x.dtype)
    if not x.shape.is_compatible_with(z.shape):
        raise ShapeError(
            f"{what}: {names[0]} and {names[1]} must have the same shape", expected=str(x.shape), got=str(z.shape)
        )
    return z, x


def sigmoid_cross_entropy_with_logits(
    _sentinel: None = None, labels: TensorLike | None = None, logits: TensorLike | None = None, name: str | None = None
) -> _ops.Tensor:
    """Cross-entropy between the sigmoid of ``logits`` and ``labels``, element by element.

    ``max(x, 0) - x * z + log(1 + exp(-abs(x)))``, written so that the gradient at 0 is right too.

    Args:
      labels, logits: floating tensors of one shape and dtype.
    """
    what = "sigmoid_cross_entropy_with_logits"
    _named(what, _sentinel, labels, logits)
    with _tf.name_scope(name or "logistic_loss") as scope:
        z, x = _pair(what, labels, logits)
        positive, zeros = x >= 0, _ops.zeros_like(x)
        part, low = _tf.where(positive, x, zeros), _tf.where(positive, -x, x)
        return _tf.add(_tf.log1p(_tf.exp(low)), part - x * z, name=scope)


def weighted_cross_entropy_with_logits(
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    pos_weight: TensorLike | None = None,
    name: str | None = None,
    targets: TensorLike | None = None,
) -> _ops.Tensor:
    """As :func:`sigmoid_cross_entropy_with_logits`, with the errors of positive labels weighted.

    ``(1 - z) * x + (1 + (pos_weight - 1) * z) * (log(1 + exp(-abs(x))) + max(-x, 0))``

    Args:
      labels, logits: floating tensors of one shape and dtype. ``targets`` is an older name of ``labels``.
      pos_weight: a number, or a tensor that broadcasts with them; above 1 for recall, below 1 for precision.
    """
    what = "weighted_cross_entropy_with_logits"
    if labels is not None and targets is not None:
        raise InvalidArgumentError(f"{what}: labels and targets are one argument under two names")
    labels = targets if labels is None else labels
    if labels is None or logits is None or pos_weight is None:
        raise InvalidArgumentError(f"{what} needs labels, logits and pos_weight")
    with _tf.name_scope(name or "logistic_loss") as scope:
        z, x = _pair(what, labels, logits)
        weight = 1 + (_ops.convert_to_tensor(pos_weight, x.dtype) - 1) * z
        softplus = _tf.log1p(_tf.exp(-_tf.abs(x))) + _tf.nn.relu(-x)
        return _tf.add((1 - z) * x, weight * softplus, name=scope)


def log_poisson_loss(
    targets: TensorLike, log_input: TensorLike, compute_full_loss: bool = False, name: str | None = None
) -> _ops.Tensor:
    """Negative log-likelihood of counts under Poisson distributions of which the rates' logarithms are given.

    ``exp(c) - z * c``, where c is ``log_input`` and z is ``targets``.

    Args:
      targets, log_input: floating tensors of one shape and dtype.
      compute_full_loss: add Stirling's approximation of ``log(z!)`` where z is above 1:
        ``z * log(z) - z + 0.5 * log(2 * pi * z)``.
    """
    with _tf.name_scope(name or "log_poisson_loss") as scope:
        z, c = _pair("log_poisson_loss", targets, log_input, ("targets", "log_input"))
        if not compute_full_loss:
            return _tf.subtract(_tf.exp(c), c * z, name=scope)
        ones = _ops.ones_like(z)
        large = z > ones
        safe = _tf.where(large, z, ones)
        stirling = safe * _tf.log(safe) - safe + 0.5 * _tf.log(2 * math.pi * safe)
        return _tf.add(_tf.exp(c) - c * z, _tf.where(large, stirling, _ops.zeros_like(z)), name=scope)
