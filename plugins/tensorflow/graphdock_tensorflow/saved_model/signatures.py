"""Signatures of SavedModels: what a graph's inputs and outputs are called by those who call it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import graphdock as _tf
from graphdock.errors import ArgumentTypeError, InvalidArgumentError
from graphdock.messages import make
from graphdock_storage.tensor_messages import number_of, shape_proto

from graphdock_tensorflow.saved_model import constants

__all__ = [
    "build_signature_def",
    "build_tensor_info",
    "classification_signature_def",
    "get_tensor_from_tensor_info",
    "is_valid_signature",
    "predict_signature_def",
    "regression_signature_def",
]


def build_tensor_info(tensor: Any) -> Any:
    """The TensorInfo of a Tensor, Variable or SparseTensor: its name, dtype and shape.

    Raises:
      ArgumentTypeError: it is none of these.
    """
    if isinstance(tensor, _tf.SparseTensor):
        made = make("TensorInfo", dtype=number_of(tensor.dtype.name), tensor_shape=_shape(tensor.get_shape()))
        made.coo_sparse.values_tensor_name = tensor.values.name
        made.coo_sparse.indices_tensor_name = tensor.indices.name
        made.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
        return made
    if not isinstance(tensor, _tf.Tensor | _tf.Variable):
        raise ArgumentTypeError("a TensorInfo is of a Tensor", got=repr(tensor))
    return make(
        "TensorInfo", name=tensor.name, dtype=number_of(tensor.dtype.name), tensor_shape=_shape(tensor.get_shape())
    )


def _shape(shape: Any) -> Any:
    return shape_proto(None if shape.ndims is None else shape.as_list())


def get_tensor_from_tensor_info(tensor_info: Any, graph: Any = None, import_scope: str | None = None) -> Any:
    """The Tensor or SparseTensor of a TensorInfo in a graph, by default the default one.

    Raises:
      NotFoundError: the graph has no such tensor. InvalidArgumentError: the TensorInfo names none.
    """
    graph = _tf.get_default_graph() if graph is None else graph
    prefix = f"{import_scope}/" if import_scope else ""
    kind = tensor_info.WhichOneof("encoding")
    if kind == "name":
        return graph.get_tensor_by_name(prefix + tensor_info.name)
    if kind == "coo_sparse":
        names = ("indices_tensor_name", "values_tensor_name", "dense_shape_tensor_name")
        return _tf.SparseTensor(*[graph.get_tensor_by_name(prefix + getattr(tensor_info.coo_sparse, n)) for n in names])
    raise InvalidArgumentError("the TensorInfo names no tensor", got=str(tensor_info))


def build_signature_def(
    inputs: Mapping[str, Any] | None = None, outputs: Mapping[str, Any] | None = None, method_name: str | None = None
) -> Any:
    """A SignatureDef of TensorInfos by name."""
    made = make("SignatureDef", method_name=method_name or "")
    for field, given in ((made.inputs, inputs), (made.outputs, outputs)):
        for name, info in (given or {}).items():
            field[name].MergeFromString(info.SerializeToString())
    return made


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """The SignatureDef of tensors by name, for predictions.

    Raises:
      InvalidArgumentError: there are no inputs or no outputs.
    """
    if not inputs or not outputs:
        raise InvalidArgumentError(f"predict_signature_def needs {'inputs' if not inputs else 'outputs'}")
    taken, given = ({name: build_tensor_info(t) for name, t in named.items()} for named in (inputs, outputs))
    return build_signature_def(taken, given, constants.PREDICT_METHOD_NAME)


def regression_signature_def(examples: Any, predictions: Any) -> Any:
    """The SignatureDef of a regression: serialised examples in, float32 predictions out.

    Raises:
      InvalidArgumentError: one is not given. DTypeError: the dtypes are others.
    """
    _check("regression_signature_def", examples, "examples", "string")
    _check("regression_signature_def", predictions, "predictions", "float32")
    return build_signature_def(
        {constants.REGRESS_INPUTS: build_tensor_info(examples)},
        {constants.REGRESS_OUTPUTS: build_tensor_info(predictions)},
        constants.REGRESS_METHOD_NAME,
    )


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> Any:
    """The SignatureDef of a classification: serialised examples in, names of classes or float32 scores out, or both.

    Raises:
      InvalidArgumentError: examples, or both outputs, are not given. DTypeError: the dtypes are others.
    """
    _check("classification_signature_def", examples, "examples", "string")
    if classes is None and scores is None:
        raise InvalidArgumentError("classification_signature_def needs classes or scores")
    outputs = {}
    for tensor, name, dtype in (
        (classes, constants.CLASSIFY_OUTPUT_CLASSES, "string"),
        (scores, constants.CLASSIFY_OUTPUT_SCORES, "float32"),
    ):
        if tensor is not None:
            _check("classification_signature_def", tensor, name, dtype)
            outputs[name] = build_tensor_info(tensor)
    return build_signature_def(
        {constants.CLASSIFY_INPUTS: build_tensor_info(examples)}, outputs, constants.CLASSIFY_METHOD_NAME
    )


def _check(function: str, tensor: Any, what: str, dtype: str) -> None:
    if tensor is None:
        raise InvalidArgumentError(f"{function} needs {what}")
    if tensor.dtype.name != dtype:
        raise _tf.errors.DTypeError(f"{function}: {what} has another dtype", expected=dtype, got=tensor.dtype.name)


_METHODS = {
    constants.PREDICT_METHOD_NAME: ("", ()),
    constants.REGRESS_METHOD_NAME: (constants.REGRESS_INPUTS, (constants.REGRESS_OUTPUTS,)),
    constants.CLASSIFY_METHOD_NAME: (
        constants.CLASSIFY_INPUTS,
        (constants.CLASSIFY_OUTPUT_CLASSES, constants.CLASSIFY_OUTPUT_SCORES),
    ),
}


def is_valid_signature(signature_def: Any) -> bool:
    """Return whether a signature is one of a prediction, regression or classification as those who serve models expect it."""
    if signature_def is None or signature_def.method_name not in _METHODS:
        return False
    name, outputs = _METHODS[signature_def.method_name]
    if not outputs:
        return bool(signature_def.inputs) and bool(signature_def.outputs)
    given = set(signature_def.outputs)
    return set(signature_def.inputs) == {name} and bool(given) and given <= {*outputs}
