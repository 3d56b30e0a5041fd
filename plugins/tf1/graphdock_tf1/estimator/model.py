"""Calls of the program's functions: input functions and model functions, with the arguments that they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import graphdock as _tf

from graphdock_tf1.estimator.spec import EstimatorSpec

#: Arguments that a model function may take.
_ARGUMENTS = {"features", "labels", "mode", "params", "config", "self"}


def taken(function: Callable[..., Any]) -> set[str]:
    """Names of the arguments that a function takes."""
    return set(inspect.signature(function).parameters)


def check_model_fn(model_fn: Callable[..., Any], params: Any) -> None:
    """Refuse model functions of other arguments.

    Raises:
      ValueError: none is given, it lacks ``features`` or ``params``, or has an argument that is not known.
    """
    if model_fn is None:
        raise ValueError("model_fn must be provided to Estimator.")
    names = taken(model_fn)
    if "features" not in names:
        raise ValueError(f"model_fn ({model_fn}) must include features argument.")
    if params is not None and "params" not in names:
        raise ValueError(
            f"model_fn ({model_fn}) does not include params argument, but params ({params}) is passed to Estimator."
        )
    unknown = sorted(names - _ARGUMENTS)
    if unknown:
        raise ValueError(f"model_fn ({model_fn}) has following not expected args: {unknown}")


def call_model_fn(
    model_fn: Callable[..., Any], features: Any, labels: Any, mode: str, params: Any, config: Any
) -> EstimatorSpec:
    """Results of a model function for a mode.

    Raises:
      ValueError: it takes no labels and there are some, or returns no EstimatorSpec.
    """
    names = taken(model_fn)
    if labels is not None and "labels" not in names:
        raise ValueError("model_fn does not take labels, but input_fn returns labels.")
    may = {"labels": labels, "mode": mode, "params": params, "config": config}
    spec = model_fn(features, **{name: value for name, value in may.items() if name in names})
    if not isinstance(spec, EstimatorSpec):
        raise ValueError("model_fn should return an EstimatorSpec.")  # noqa: TRY004 - TensorFlow's class
    return spec


def call_input_fn(input_fn: Callable[..., Any], mode: str, params: Any, config: Any) -> tuple[Any, Any]:
    """``(features, labels)`` that an input function gives; of a dataset, its next element.

    Raises:
      ValueError: it gives a tuple or list of another length than 2.
    """
    names = taken(input_fn)
    may = {"mode": mode, "params": params, "config": config}
    found = input_fn(**{name: value for name, value in may.items() if name in names})
    if isinstance(found, _tf.data.Dataset):
        iterator = found.make_initializable_iterator()
        _tf.add_to_collection(_tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        found = iterator.get_next()
    if not isinstance(found, (list, tuple)):
        return found, None
    if len(found) != 2:
        raise ValueError(f"input_fn should return (features, labels) as a len 2 tuple; got {len(found)} items.")
    return found[0], found[1]
