"""Layers of contrib that are products and tables: fully_connected, its stacks, embed_sequence, and what has no kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.arguments import check_type
from graphdock.errors import ArgumentTypeError, InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_tf1.contrib.arg_scope import add_arg_scope
from graphdock_tf1.contrib.initializers import xavier_initializer
from graphdock_tf1.contrib.support import channels_word, collect_named_outputs, collections_of, finished, weighted
from graphdock_tf1.contrib.variables import model_variable
from graphdock_tf1.layers.dense import Dense


@add_arg_scope
def fully_connected(
    inputs: TensorLike,
    num_outputs: int,
    activation_fn: Callable[[Any], Any] | None = _tf.nn.relu,
    normalizer_fn: Callable[..., Any] | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = xavier_initializer(),
    weights_regularizer: Callable[[Any], Any] | None = None,
    biases_initializer: Any = _tf.zeros_initializer(),
    biases_regularizer: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> _tf.Tensor:
    """``activation_fn(inputs @ weights + biases)``, with variables ``fully_connected/weights`` and ``biases``.

    Args:
      inputs: floating tensor ``[..., n]`` of rank 2 or more.
      num_outputs: size of the last dim of the result.
      activation_fn: None for none.
      normalizer_fn, normalizer_params: function of the product, as ``batch_norm``, and its arguments; then there are no biases.
      weights_initializer, biases_initializer: of the variables; None for ``biases_initializer``: no biases.
      weights_regularizer, biases_regularizer: functions of a variable; results join ``GraphKeys.REGULARIZATION_LOSSES``.
      reuse: True: the variables must exist; ``tf.AUTO_REUSE``: they are made where they do not. Needs a ``scope``.
      variables_collections: collections of all variables, or ``{"weights": [...], "biases": [...]}``.
      outputs_collections: collections of the output.
      trainable: whether optimizers change the variables.
      scope: name of the variable scope, or a VariableScope; default ``fully_connected``, ``fully_connected_1`` for the second.

    Returns:
      A tensor ``[..., num_outputs]``.

    Raises:
      InvalidArgumentError: ``num_outputs`` is no positive number. ShapeError: the last dim is not known.
    """
    check_type(num_outputs, (int,), "fully_connected: num_outputs", "an integer")
    return weighted(  # type: ignore[no-any-return]
        Dense,
        locals(),
        "fully_connected",
        {"kernel": "weights", "bias": "biases"},
        units=num_outputs,
        kernel_initializer=weights_initializer,
        kernel_regularizer=weights_regularizer,
    )


#: ``fully_connected`` with other activations.
relu = functools.partial(fully_connected, activation_fn=_tf.nn.relu)
relu6 = functools.partial(fully_connected, activation_fn=_tf.nn.relu6)
linear = functools.partial(fully_connected, activation_fn=None)


@add_arg_scope
def bias_add(
    inputs: TensorLike,
    activation_fn: Callable[[Any], Any] | None = None,
    initializer: Any = _tf.zeros_initializer(),
    regularizer: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> _tf.Tensor:
    """Add a variable ``BiasAdd/biases`` to the channels; arguments as of ``fully_connected``."""
    with _tf.variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as sc:
        inputs = _ops.convert_to_tensor(inputs)
        first = channels_word(data_format) == "channels_first"
        biases = model_variable(
            "biases",
            [inputs.shape[1 if first else -1].value],
            inputs.dtype,
            initializer,
            regularizer,
            trainable,
            collections_of(variables_collections, "biases"),
        )
        outputs = _tf.nn.bias_add(inputs, biases, data_format=data_format)
        return finished(outputs, None, None, activation_fn, outputs_collections, sc.name)  # type: ignore[no-any-return]


@add_arg_scope
def one_hot_encoding(
    labels: TensorLike,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> _tf.Tensor:
    """``tf.one_hot`` of integers, in the scope ``OneHotEncoding``."""
    with _tf.name_scope(scope or "OneHotEncoding") as sc:
        labels = _tf.cast(_ops.convert_to_tensor(labels), _tf.int64)
        outputs = _tf.one_hot(labels, num_classes, on_value=on_value, off_value=off_value)
        return collect_named_outputs(outputs_collections, sc, outputs)  # type: ignore[no-any-return]


def embed_sequence(
    ids: TensorLike,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Callable[[Any], Any] | None = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> _tf.Tensor:
    """A row of the variable ``EmbedSequence/embeddings`` for each symbol.

    Args:
      ids: integers, ``[batch, length]``.
      vocab_size, embed_dim: shape of the table; both needed where it is made.
      unique: look each symbol up once.

    Returns:
      ``[batch, length, embed_dim]``.

    Raises:
      InvalidArgumentError: the table is to be made, and a size is missing.
    """
    if not reuse and (vocab_size is None or embed_dim is None):
        raise InvalidArgumentError(
            "embed_sequence must know vocab_size and embed_dim", got=f"{vocab_size}, {embed_dim}"
        )
    with _tf.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = None if vocab_size is None or embed_dim is None else [vocab_size, embed_dim]
        table = model_variable(
            "embeddings", shape, initializer=initializer, regularizer=regularizer, trainable=trainable
        )
        ids = _ops.convert_to_tensor(ids)
        if not unique:
            return _tf.nn.embedding_lookup(table, ids)
        found, places = _tf.unique(_tf.reshape(ids, [-1]))
        rows = _tf.gather(_tf.nn.embedding_lookup(table, found), _tf.reshape(places, _tf.shape(ids)))
        rows.set_shape([*ids.shape.as_list(), table.shape[-1].value])
        return rows


def _named(layer: Any, otherwise: str) -> str:
    return str(getattr(layer, "__name__", None) or getattr(getattr(layer, "func", None), "__name__", None) or otherwise)


def repeat(inputs: Any, repetitions: int, layer: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The same layer several times, each with variables of its own: ``Repeat/convolution2d_1``, ``_2``, ...

    Args:
      inputs: of the first.
      layer: function of inputs, ``args`` and ``kwargs`` that takes a ``scope``.
      scope: (in ``kwargs``) name of the outer scope, and beginning of the inner ones'.
    """
    return _stacked(inputs, layer, [args] * repetitions, "Repeat", kwargs)


def stack(inputs: Any, layer: Callable[..., Any], stack_args: Sequence[Any], **kwargs: Any) -> Any:
    """A layer several times, each with arguments of its own: ``stack(x, fully_connected, [32, 64])``.

    Args:
      stack_args: of each; a tuple, or one argument.
      kwargs: of all; ``scope`` as of :func:`repeat`, default ``Stack``.
    """
    if not isinstance(stack_args, list | tuple):
        raise ArgumentTypeError("stack_args must be a list or a tuple", got=repr(stack_args))
    each = [given if isinstance(given, list | tuple) else [given] for given in stack_args]
    return _stacked(inputs, layer, each, "Stack", kwargs)


def _stacked(inputs: Any, layer: Callable[..., Any], each: Sequence[Any], kind: str, keywords: dict[str, Any]) -> Any:
    """Layers on top of one another, whose scopes are counted from 1: below ``scope`` of the keywords, or one of that kind."""
    scope = keywords.pop("scope", None)
    with _tf.variable_scope(scope, kind, [inputs]):
        name = _named(layer, kind.lower()) if scope is None else scope
        outputs = _ops.convert_to_tensor(inputs)
        for i, own in enumerate(each, 1):
            outputs = layer(outputs, *own, **{**keywords, "scope": f"{name}_{i}"})
        return outputs
