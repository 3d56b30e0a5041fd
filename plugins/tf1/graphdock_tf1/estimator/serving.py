"""``tf.estimator.export``: what a served model is fed, what it answers, and the signatures of both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import graphdock as _tf


class _Receiver(NamedTuple):
    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Any


class ServingInputReceiver(_Receiver):
    """Inputs of a served model.

    Args:
      features: a tensor, or name -> tensor: what the model function is given, as a dict.
      receiver_tensors: a tensor, or name -> tensor: what is fed.
      receiver_tensors_alternatives: key -> what is fed in its place; kept, without effect.

    Raises:
      ValueError: there are none, or one is no tensor.
    """

    __slots__ = ()

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> ServingInputReceiver:
        named, fed = _named("feature", features), _named("input", receiver_tensors)
        return super().__new__(cls, named, fed, receiver_tensors_alternatives)


class TensorServingInputReceiver(_Receiver):
    """A ServingInputReceiver whose model function is given the one tensor itself. Arguments and errors as there."""

    __slots__ = ()

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> TensorServingInputReceiver:
        (feature,) = _named("feature", {"feature": features}).values()
        return super().__new__(cls, feature, _named("input", receiver_tensors), receiver_tensors_alternatives)


def _named(what: str, given: Any) -> dict[str, Any]:
    """Tensors by name; one alone is called ``what``. Raises ValueError: there is none, or one is no tensor."""
    if given is None:
        raise ValueError(f"{what} must be defined.")
    named = dict(given) if isinstance(given, Mapping) else {what: given}
    for name, tensor in named.items():
        if not isinstance(tensor, (_tf.Tensor, _tf.SparseTensor)):
            raise ValueError(f"{what} {name} must be a Tensor or SparseTensor; got {tensor!r}")  # noqa: TRY004 - TensorFlow's
    return named


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that gives a placeholder for each feature.

    Args:
      features: name -> a tensor with its dtype and shape, the batch first. default_batch_size: size of the batch; None: any.
    """
    wanted = {name: (t.dtype, [default_batch_size, *t.shape.as_list()[1:]]) for name, t in features.items()}

    def receiver() -> ServingInputReceiver:
        made = {name: _tf.placeholder(dtype, shape, name=name) for name, (dtype, shape) in wanted.items()}
        return ServingInputReceiver(made, made)

    return receiver


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that gives what is parsed of ``tf.train.Example`` messages, fed as texts ``[default_batch_size]``.

    Args:
      feature_spec: as ``tf.parse_example`` takes it.
    """

    def receiver() -> ServingInputReceiver:
        examples = _tf.placeholder(_tf.string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(_tf.parse_example(examples, dict(feature_spec)), {"examples": examples})

    return receiver


class ExportOutput(ABC):
    """Outputs of a model function that a served model answers with."""

    @abstractmethod
    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The signature of a model that is fed these."""


class PredictOutput(ExportOutput):
    """Outputs of a signature of any kind. ``outputs``: a tensor, or name -> tensor."""

    def __init__(self, outputs: Any) -> None:
        self.outputs = dict(outputs) if isinstance(outputs, Mapping) else {"output": outputs}

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The signature of a model that is fed these."""
        return _tf.saved_model.predict_signature_def(dict(receiver_tensors), self.outputs)


class ClassificationOutput(ExportOutput):
    """Outputs of a classifier.

    Args:
      scores: floating ``[batch, classes]``. classes: strings; one of them is given.

    Raises:
      ValueError: neither is.
    """

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is None and classes is None:
            raise ValueError("At least one of scores and classes must be set.")
        self.scores, self.classes = scores, classes

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The signature of a model that is fed one string tensor. Raises ValueError: it is fed something else."""
        return _tf.saved_model.classification_signature_def(_examples(receiver_tensors), self.classes, self.scores)


class RegressionOutput(ExportOutput):
    """The output of a regression. ``value``: floating. Raises ValueError: it is not."""

    def __init__(self, value: Any) -> None:
        if not (isinstance(value, _tf.Tensor) and value.dtype.is_floating):
            raise ValueError(f"Regression output value must be a float32 Tensor; got {value}")
        self.value = value

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The signature of a model that is fed one string tensor. Raises ValueError: it is fed something else."""
        return _tf.saved_model.regression_signature_def(_examples(receiver_tensors), self.value)


def _examples(fed: Mapping[str, Any]) -> Any:
    """The one string tensor that is fed. Raises ValueError: there are others."""
    tensors = list(fed.values())
    if len(tensors) != 1 or tensors[0].dtype != _tf.string:
        raise ValueError(f"classification and regression inputs must be a single string Tensor; got {dict(fed)}")
    return tensors[0]


def signatures(spec: Any, fed: Mapping[str, Any]) -> dict[str, Any]:
    """Key -> signature of the outputs that a model function exports; one of them is the default one.

    Raises:
      ValueError: there are several and none is the default, or one is no output.
    """
    default = _tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    outputs = spec.export_outputs
    if outputs is None:
        outputs = {default: PredictOutput(spec.predictions)}
    if not isinstance(outputs, Mapping):
        raise TypeError(f"export_outputs must be dict, given: {outputs}")
    for key, each in outputs.items():
        if not isinstance(each, ExportOutput):
            raise TypeError(f"Values in export_outputs must be ExportOutput objects. Given: {key}: {each}")
    if default not in outputs:
        if len(outputs) > 1:
            raise ValueError(
                "Multiple export_outputs were provided, but none of them is specified as the default. Do this by naming "
                f"one of them with {default}."
            )
        outputs = {**outputs, default: next(iter(outputs.values()))}
    return {key: each.as_signature_def(fed) for key, each in outputs.items()}
