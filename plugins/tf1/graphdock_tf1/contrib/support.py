"""Names of the variables of contrib's layers, and collections of variables and outputs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError

from graphdock_tf1.contrib.variables import model_variable
from graphdock_tf1.layers.base import add_once

#: Tensor -> the names that layers gave it.
_aliases: weakref.WeakKeyDictionary[Any, list[str]] = weakref.WeakKeyDictionary()


def getter(rename: Mapping[str, str]) -> Callable[..., Any]:
    """A custom getter that makes model variables, under other last names."""

    def make(real: Callable[..., Any], name: str, *args: Any, **keywords: Any) -> Any:
        before, _, last = name.rpartition("/")
        last = rename.get(last, last)

        def get(name: str, **given: Any) -> Any:
            return real(name, *args, **{**keywords, **given})

        told = ("shape", "dtype", "initializer", "regularizer", "trainable", "collections", "partitioner")
        return model_variable(
            f"{before}/{last}" if before else last, custom_getter=get, **{k: keywords[k] for k in told if k in keywords}
        )

    return make


def collections_of(variables_collections: Any, name: str) -> list[str]:
    """The collections of a kind of variable: of all kinds, or by kind."""
    if isinstance(variables_collections, Mapping):
        variables_collections = variables_collections.get(name)
    if isinstance(variables_collections, str):
        return [variables_collections]
    return list(variables_collections or ())


def collect_variable(variable: Any, variables_collections: Any, name: str) -> None:
    """Put a variable into the collections of its kind, once."""
    if variable is not None:
        parts = list(variable) if isinstance(variable, _tf.PartitionedVariable) else [variable]
        for key in collections_of(variables_collections, name):
            add_once(key, parts)


def collect_named_outputs(collections: Any, alias: str, outputs: Any) -> Any:
    """Put a tensor into collections under a name; the tensor."""
    if collections:
        _aliases.setdefault(outputs, []).append(alias)
        _tf.add_to_collections(collections, outputs)
    return outputs


def convert_collection_to_dict(collection: str, clear_collection: bool = False) -> dict[str, Any]:
    """The tensors of a collection by the names that layers gave them, else by that of their operation."""
    found = {name: t for t in _tf.get_collection(collection) for name in _aliases.get(t, [t.op.name])}
    if clear_collection:
        _tf.get_default_graph().clear_collection(collection)
    return found


def finished(
    outputs: Any, normalizer_fn: Any, normalizer_params: Any, activation_fn: Any, outputs_collections: Any, alias: str
) -> Any:
    """An output that is normalised, activated and collected."""
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    return collect_named_outputs(outputs_collections, alias, outputs)


def weighted(
    kind: Callable[..., Any], given: Mapping[str, Any], default: str, names: Mapping[str, str], **own: Any
) -> Any:
    """The output of a layer with a bias, which is normalised, activated and collected; its variables are collected too.

    Args:
      kind: the layer's class.
      given: arguments of a function of contrib, by their names.
      default: the name of its variable scope.
      names: of variables: the layer's -> contrib's; they are collected in this order.
      own: what the class takes besides: all but those of the bias, of the scope and the dtype.
    """
    with _tf.variable_scope(
        given["scope"], default, [given["inputs"]], reuse=given["reuse"], custom_getter=getter(names)
    ) as sc:
        inputs = _ops.convert_to_tensor(given["inputs"])
        layer = kind(
            **own,
            use_bias=given["normalizer_fn"] is None and given["biases_initializer"] is not None,
            bias_initializer=given["biases_initializer"],
            bias_regularizer=given["biases_regularizer"],
            trainable=given["trainable"],
            name=sc.name,
            dtype=inputs.dtype,
            _scope=sc,
            _reuse=given["reuse"],
        )
        outputs = layer(inputs)
        for name in names:
            collection = "biases" if name == "bias" else "weights"
            collect_variable(getattr(layer, name), given["variables_collections"], collection)
        normalizer = given["normalizer_fn"], given["normalizer_params"]
        return finished(outputs, *normalizer, given["activation_fn"], given["outputs_collections"], sc.name)


def channels_word(data_format: str | None) -> str:
    """``channels_first`` or ``channels_last`` of TensorFlow's words.

    Raises:
      InvalidArgumentError: no such format.
    """
    if data_format is not None and not (data_format.startswith("N") and "C" in (data_format[1:2], data_format[-1:])):
        raise InvalidArgumentError("no such data_format", expected="NHWC, NCHW or their like", got=repr(data_format))
    return "channels_first" if data_format is not None and data_format[1] == "C" else "channels_last"
