"""``optimize_loss``: a training step from a loss, in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, did_you_mean
from graphdock.typing import TensorLike

#: Name -> how an optimizer is made of a rate.
OPTIMIZER_CLS_NAMES: dict[str, Callable[[Any], Any]] = {
    "Adagrad": _tf.train.AdagradOptimizer,
    "Adam": _tf.train.AdamOptimizer,
    "Ftrl": _tf.train.FtrlOptimizer,
    "Momentum": lambda learning_rate: _tf.train.MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": _tf.train.RMSPropOptimizer,
    "SGD": _tf.train.GradientDescentOptimizer,
}


#: What ``optimize_loss`` can summarize.
OPTIMIZER_SUMMARIES = ["learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm"]


def optimize_loss(
    loss: _tf.Tensor,
    global_step: Any,
    learning_rate: TensorLike | None,
    optimizer: Any,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Callable[[Any, Any], Any] | None = None,
    update_ops: Sequence[Any] | None = None,
    variables: Sequence[Any] | None = None,
    name: str | None = None,
    summaries: Sequence[str] | None = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> _tf.Tensor:
    """The loss, after whose reading a step of an optimizer is done.

    Args:
      loss: a scalar.
      global_step: a variable to count up; None: the graph's, if it has one.
      learning_rate: a number, which becomes the variable ``OptimizeLoss/learning_rate``, or a scalar tensor; None for an optimizer
        that has one.
      optimizer: a name of :data:`OPTIMIZER_CLS_NAMES`, an optimizer, its class, or a function of a rate (or of nothing).
      gradient_noise_scale: of normal noise that is added to gradients.
      gradient_multipliers: variable, or its operation's name -> factor of its gradient.
      clip_gradients: the largest norm of all gradients together, or a function of pairs of gradient and variable.
      learning_rate_decay_fn: function of the rate and the global step.
      update_ops: operations that run before; default ``GraphKeys.UPDATE_OPS``.
      variables: those to train; default: the trainable ones.
      name: variable scope; default ``OptimizeLoss``.
      summaries: of :data:`OPTIMIZER_SUMMARIES`; default: the loss, the rate and the norm of all gradients.
      increment_global_step: whether ``global_step`` is counted up.

    Raises:
      InvalidArgumentError: no such optimizer or summary, no rate where it needs one, or nothing to train.
    """
    step = _tf.train.get_global_step() if global_step is None else global_step
    if step is not None:
        _tf.train.assert_global_step(step)
    told = ["loss", "learning_rate", "global_gradient_norm"] if summaries is None else list(summaries)
    for word in told:
        if word not in OPTIMIZER_SUMMARIES:
            raise InvalidArgumentError(
                f"there is no summary {word!r}", expected=", ".join(OPTIMIZER_SUMMARIES), got=repr(word)
            )
    with _tf.variable_scope(name, "OptimizeLoss", [loss, step]):
        updates = list(_tf.get_collection(_tf.GraphKeys.UPDATE_OPS) if update_ops is None else update_ops)
        if updates:
            with _tf.control_dependencies(updates):
                loss = _tf.identity(loss)
        rate = _rate(learning_rate, learning_rate_decay_fn, step)
        if rate is not None and "learning_rate" in told:
            _tf.summary.scalar("learning_rate", rate)
        made = _optimizer(optimizer, rate)
        pairs = made.compute_gradients(
            loss, list(_tf.trainable_variables() if variables is None else variables),
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )  # fmt: skip
        if gradient_noise_scale is not None:
            pairs = [(_noisy(g, gradient_noise_scale), v) for g, v in pairs]
        if gradient_multipliers is not None:
            pairs = _multiplied(pairs, gradient_multipliers)
        if "global_gradient_norm" in told:
            _tf.summary.scalar("global_norm/gradient_norm", _tf.global_norm([g for g, _ in pairs]))
        if callable(clip_gradients):
            pairs = clip_gradients(pairs)
        elif clip_gradients is not None:
            clipped, _ = _tf.clip_by_global_norm([g for g, _ in pairs], float(clip_gradients))
            pairs = [(g, v) for g, (_, v) in zip(clipped, pairs, strict=True)]
        if "loss" in told:
            _tf.summary.scalar("loss", loss)
        _summarize(pairs, told, clip_gradients is not None)
        train = made.apply_gradients(pairs, global_step=step if increment_global_step else None, name="train")
        with _tf.control_dependencies([train]):
            return _tf.identity(loss)


def _summarize(pairs: Sequence[Any], told: Sequence[str], clipped: bool) -> None:
    """Summaries of gradients, one by one and together."""
    for gradient, variable in pairs:
        if gradient is not None:
            values = gradient.values if isinstance(gradient, _tf.IndexedSlices) else gradient
            name = variable.name.replace(":", "_")
            if "gradients" in told:
                _tf.summary.histogram(f"gradients/{name}", values)
            if "gradient_norm" in told:
                _tf.summary.scalar(f"gradient_norm/{name}", _tf.global_norm([values]))
    if clipped and "global_gradient_norm" in told:
        _tf.summary.scalar("global_norm/clipped_gradient_norm", _tf.global_norm([g for g, _ in pairs]))


def _rate(given: Any, decay: Any, step: Any) -> Any:
    if given is None:
        return None
    if isinstance(given, float | int):
        if given < 0:
            raise InvalidArgumentError("a learning rate must not be negative", got=str(given))
        rate: Any = _tf.get_variable(
            "learning_rate", [], trainable=False, initializer=_tf.constant_initializer(float(given))
        )
    else:
        rate = _ops.convert_to_tensor(given)
        if rate.shape.rank not in (None, 0):
            raise InvalidArgumentError("a learning rate is a scalar", got=str(rate.shape))
    if decay is None:
        return rate
    if step is None:
        raise InvalidArgumentError(
            "learning_rate_decay_fn needs a global step", hint="tf.train.get_or_create_global_step()"
        )
    return decay(rate, step)


def _optimizer(given: Any, rate: Any) -> Any:
    if isinstance(given, str):
        if given not in OPTIMIZER_CLS_NAMES:
            raise InvalidArgumentError(
                f"there is no optimizer {given!r}",
                expected=", ".join(OPTIMIZER_CLS_NAMES),
                got=repr(given),
                hint=did_you_mean(given, OPTIMIZER_CLS_NAMES),
            )
        given = OPTIMIZER_CLS_NAMES[given]
    elif isinstance(given, _tf.train.Optimizer):
        return given
    if isinstance(given, type) or given in OPTIMIZER_CLS_NAMES.values():
        if isinstance(given, type) and not issubclass(given, _tf.train.Optimizer):
            raise InvalidArgumentError("optimizer is none", expected="a class of optimizers", got=repr(given))
        if rate is None:
            raise InvalidArgumentError("optimize_loss needs a learning rate for an optimizer by name or class")
        return given(learning_rate=rate)
    if not callable(given):
        raise InvalidArgumentError(
            "optimizer is none", expected="a name, an optimizer, its class or a function", got=repr(given)
        )
    made = given() if rate is None else given(rate)
    if not isinstance(made, _tf.train.Optimizer):
        raise InvalidArgumentError("the function that makes the optimizer made none", got=repr(made))
    return made


def _noisy(gradient: Any, scale: float) -> Any:
    if gradient is None:
        return None
    dense = _ops.convert_to_tensor(gradient)
    return dense + _tf.truncated_normal(_tf.shape(dense), dtype=dense.dtype) * scale


def _multiplied(pairs: Sequence[Any], factors: Mapping[Any, Any]) -> list[Any]:
    made = []
    for gradient, variable in pairs:
        factor = factors.get(variable, factors.get(variable.op.name))
        if gradient is not None and factor is not None:
            factor = _tf.cast(_ops.convert_to_tensor(factor), dtypes.as_dtype(gradient.dtype))
            if isinstance(gradient, _tf.IndexedSlices):
                gradient = _tf.IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
            else:
                gradient = gradient * factor
        made.append((gradient, variable))
    return made
