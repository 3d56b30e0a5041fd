"""Normalisations of contrib, with variables ``beta`` and ``gamma``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, ShapeError, UnimplementedError
from graphdock.typing import TensorLike

from graphdock_tf1.contrib.arg_scope import add_arg_scope
from graphdock_tf1.contrib.support import channels_word, collect_variable, collections_of, finished, getter
from graphdock_tf1.contrib.variables import model_variable
from graphdock_tf1.layers.normalization import BatchNormalization


@add_arg_scope
def batch_norm(
    inputs: TensorLike,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Callable[[Any], Any] | None = None,
    param_initializers: Mapping[str, Any] | None = None,
    param_regularizers: Mapping[str, Any] | None = None,
    updates_collections: Any = _tf.GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: Mapping[str, Any] | None = None,
    renorm_decay: float = 0.99,
    adjustment: Callable[..., Any] | None = None,
) -> _tf.Tensor:
    """Batch normalisation, with variables ``BatchNorm/beta``, ``gamma``, ``moving_mean`` and ``moving_variance``.

    Args:
      inputs: floating tensor; its channels are last, or dim 1 with ``data_format="NCHW"``.
      decay: of the moving averages.
      center, scale: whether there is a ``beta``, a ``gamma``.
      epsilon: added to the variance.
      param_initializers, param_regularizers: by name of the variable.
      updates_collections: where the updates of the averages are added; None: they run with the output.
      is_training: a bool, or a scalar tensor that says it in the step.
      activation_fn, reuse, variables_collections, outputs_collections, trainable, scope: as of ``fully_connected``.

    Raises:
      UnimplementedError: batch_weights, zero_debias_moving_mean, renorm or adjustment.
    """
    for word, value in (("batch_weights", batch_weights), ("zero_debias_moving_mean", zero_debias_moving_mean)):
        if value is not None and value is not False:
            raise UnimplementedError(f"batch_norm({word}=) is not here", hint="leave it out")
    first, regularized = dict(param_initializers or {}), dict(param_regularizers or {})
    with _tf.variable_scope(scope, "BatchNorm", [inputs], reuse=reuse, custom_getter=getter({})) as sc:
        inputs = _ops.convert_to_tensor(inputs)
        layer = BatchNormalization(
            axis=1 if channels_word(data_format) == "channels_first" else -1,
            momentum=decay,
            epsilon=epsilon,
            center=center,
            scale=scale,
            beta_initializer=first.get("beta", "zeros"),
            gamma_initializer=first.get("gamma", "ones"),
            moving_mean_initializer=first.get("moving_mean", "zeros"),
            moving_variance_initializer=first.get("moving_variance", "ones"),
            beta_regularizer=regularized.get("beta"),
            gamma_regularizer=regularized.get("gamma"),
            trainable=trainable,
            renorm=renorm,
            renorm_clipping=renorm_clipping,
            renorm_momentum=renorm_decay,
            adjustment=adjustment,
            fused=fused,
            name=sc.name,
            _scope=sc,
            _reuse=reuse,
        )
        held = _tf.get_collection_ref(_tf.GraphKeys.UPDATE_OPS)
        before = len(held)
        outputs = layer(inputs, training=is_training)
        updates = held[before:]
        if updates_collections is None:
            del held[before:]
            with _tf.control_dependencies(updates):
                outputs = _tf.identity(outputs)
        elif updates_collections != _tf.GraphKeys.UPDATE_OPS:
            del held[before:]
            for update in updates:
                _tf.add_to_collections(updates_collections, update)
        for name in ("beta", "gamma", "moving_mean", "moving_variance"):
            collect_variable(getattr(layer, name), variables_collections, name)
        return finished(outputs, None, None, activation_fn, outputs_collections, sc.name)  # type: ignore[no-any-return]


@add_arg_scope
def layer_norm(
    inputs: TensorLike,
    center: bool = True,
    scale: bool = True,
    activation_fn: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> _tf.Tensor:
    """Layer normalisation (Ba, Kiros and Hinton, 2016), with variables ``LayerNorm/beta`` and ``LayerNorm/gamma``.

    Args:
      inputs: floating tensor whose rank is known.
      center, scale: whether there is a ``beta``, a ``gamma``.
      begin_norm_axis: the dims from it on are normalised together.
      begin_params_axis: the dims from it on have parameters of their own, and known sizes.
      others: as of ``fully_connected``.

    Raises:
      ShapeError: the rank or a size is not known. InvalidArgumentError: an axis beyond the rank.
    """
    with _tf.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as sc:
        inputs = _ops.convert_to_tensor(inputs)
        rank = inputs.shape.rank
        if rank is None:
            raise ShapeError("layer_norm must know the rank of its inputs", expected="a rank", got="unknown")
        start = begin_norm_axis + rank if begin_norm_axis < 0 else begin_norm_axis
        if max(start, begin_params_axis) >= rank:
            raise InvalidArgumentError(
                "layer_norm: an axis beyond the rank", expected=f"below {rank}", got=str(begin_norm_axis)
            )
        shape = inputs.shape.as_list()[begin_params_axis:]
        if None in shape:
            raise ShapeError(
                "layer_norm must know the dims of its parameters", expected="numbers", got=str(inputs.shape)
            )
        half = inputs.dtype == dtypes.float16

        def made(name: str, initializer: Any) -> Any:
            kept = collections_of(variables_collections, name)
            return model_variable(name, shape, inputs.dtype, initializer, trainable=trainable, collections=kept)

        beta = made("beta", _tf.zeros_initializer()) if center else None
        gamma = made("gamma", _tf.ones_initializer()) if scale else None
        mean, variance = _tf.nn.moments(inputs, list(range(start, rank)), keep_dims=True)
        outputs = _tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-3 if half else 1e-12)
        outputs.set_shape(inputs.shape)
        return finished(outputs, None, None, activation_fn, outputs_collections, sc.name)  # type: ignore[no-any-return]
