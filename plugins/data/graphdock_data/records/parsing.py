"""Parsing of Examples and SequenceExamples into tensors. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_data.records.features import FixedLenFeature, FixedLenSequenceFeature, SparseFeature, VarLenFeature

_KINDS = (dtypes.float32, dtypes.int64, dtypes.string)


class Request:
    """What features ask for: keys of any length, and keys of a shape with their defaults, in the order of the keys."""

    def __init__(self, features: Mapping[str, Any] | None, allowed: tuple[type, ...]) -> None:
        self.features = dict(features or {})
        self.sparse: dict[str, Any] = {}
        self.dense: dict[str, tuple[Any, Any, Any]] = {}
        self.optional: list[str] = []
        for key in sorted(self.features):
            feature = self.features[key]
            if not isinstance(feature, allowed):
                raise InvalidArgumentError(
                    f"the feature {key!r} is of a kind that can't stand here",
                    expected=" or ".join(kind.__name__ for kind in allowed),
                    got=repr(feature),
                )
            if not feature.dtype:
                raise InvalidArgumentError(f"Missing type for feature {key}.")
            self._add(key, feature, _dtype_of(key, feature.dtype))
        both = sorted(set(self.sparse) & set(self.dense))
        if both:
            raise InvalidArgumentError(f"Dense and sparse keys must not intersect: {', '.join(map(repr, both))}")

    def _add(self, key: str, feature: Any, dtype: Any) -> None:
        if isinstance(feature, VarLenFeature):
            self._add_sparse(key, dtype)
            return
        if isinstance(feature, SparseFeature):
            if not feature.index_key or not feature.value_key:
                raise InvalidArgumentError(
                    f"Missing {'value_key' if feature.index_key else 'index_key'} for SparseFeature {key!r}."
                )
            for index_key in sorted(_listed(feature.index_key)):
                self._add_sparse(index_key, dtypes.int64)
            self._add_sparse(feature.value_key, dtype)
            return
        if feature.shape is None:
            raise InvalidArgumentError(f"Missing shape for feature {key}.")
        shape = tuple(_tf.TensorShape(feature.shape).as_list())
        if None in shape:
            raise InvalidArgumentError(
                f"All dimensions of shape for feature {key} need to be known but received {feature.shape}.",
                hint="FixedLenSequenceFeature has any number of blocks",
            )
        if isinstance(feature, FixedLenSequenceFeature) and feature.allow_missing:
            self.optional.append(key)
        self.dense[key] = (dtype, shape, feature.default_value)

    def _add_sparse(self, key: str, dtype: Any) -> None:
        if self.sparse.setdefault(key, dtype) is not dtype:
            raise InvalidArgumentError(f"Conflicting type {self.sparse[key].name} vs {dtype.name} for feature {key}.")

    def blocks(self, key: str) -> bool:
        return isinstance(self.features[key], FixedLenSequenceFeature)

    def shapes(self) -> list[tuple[int | None, ...]]:
        """Of the dense keys; a feature of blocks has an unknown first dim."""
        return [(None, *shape) if self.blocks(key) else shape for key, (_, shape, _) in self.dense.items()]

    def defaults(self) -> list[Any]:
        """Of the dense keys; a tensor without elements stands for none."""
        return [self._default(key, *wanted) for key, wanted in self.dense.items()]

    def _default(self, key: str, dtype: Any, shape: tuple[int, ...], given: Any) -> Any:
        name = re.sub(r"[^A-Za-z0-9_.\-/]", "_", key)
        if self.blocks(key):
            fill = ("" if dtype is dtypes.string else 0) if given is None else given
            return _tf.reshape(_ops.convert_to_tensor(fill, dtype, name=f"padding_{name}"), [])
        if given is None:
            return _tf.constant([], dtype)
        made = _ops.convert_to_tensor(given, dtype, name=f"key_{name}")
        return made if isinstance(given, _tf.Tensor) else _tf.reshape(made, shape)

    def tensors(self, outs: Any, dense: Any) -> dict[str, Any]:
        """Key of a feature -> its Tensor or SparseTensor."""
        found: dict[str, Any] = dict(zip(self.sparse, map(_tf.SparseTensor, *outs), strict=True) if self.sparse else ())
        found.update(zip(self.dense, dense, strict=True))
        merged = {
            key: _tf.sparse_merge(
                found[f.index_key] if isinstance(f.index_key, str) else [found[k] for k in f.index_key],
                found[f.value_key],
                vocab_size=f.size,
                already_sorted=f.already_sorted,
            )
            for key, f in self.features.items()
            if isinstance(f, SparseFeature)
        }
        return {key: merged[key] if key in merged else found[key] for key in self.features}


def _listed(keys: Any) -> list[str]:
    return [keys] if isinstance(keys, str) else list(keys)


def _dtype_of(key: str, given: Any) -> Any:
    dtype = _tf.as_dtype(given)
    if dtype not in _KINDS:
        raise InvalidArgumentError(
            f"the feature {key!r} has a dtype that no Example holds",
            expected="float32, int64 or string",
            got=dtype.name,
        )
    return dtype


_OF_EXAMPLES = (VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature)


def parse_example(
    serialized: TensorLike,
    features: Mapping[str, Any],
    name: str | None = None,
    example_names: TensorLike | None = None,
) -> dict[str, Any]:
    """The features of a batch of Examples.

    Args:
      serialized: string vector, each the bytes of a ``tf.train.Example``.
      features: key -> FixedLenFeature, FixedLenSequenceFeature, VarLenFeature or SparseFeature.
      example_names: string vector with a name for each Example, which errors then tell.

    Returns:
      Key -> Tensor with the batch in front, ``[B, ...]``; of a VarLenFeature or SparseFeature a SparseTensor.

    Raises:
      InvalidArgumentError: ``features`` says what can't be; in the step: a string is no Example, or a required feature is missing
        or of another dtype or length; it names the key, the Example's index, and the keys that are there.
    """
    if not features:
        raise InvalidArgumentError(f"Missing: features was {features}.")
    wanted = Request(features, _OF_EXAMPLES)
    for key, feature in wanted.features.items():
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise InvalidArgumentError(
                f"Unsupported: FixedLenSequenceFeature requires allow_missing to be True ({key!r})."
            )
    with _ops.name_scope(name or "ParseExample") as scope:
        outs = _ops.apply_op(
            "ParseExample",
            serialized=serialized,
            names=_tf.constant([], dtypes.string) if example_names is None else example_names,
            sparse_keys=_keys(wanted.sparse),
            dense_keys=_keys(wanted.dense),
            dense_defaults=wanted.defaults(),
            Nsparse=len(wanted.sparse),
            Ndense=len(wanted.dense),
            sparse_types=list(wanted.sparse.values()),
            Tdense=[dtype for dtype, _, _ in wanted.dense.values()],
            dense_shapes=wanted.shapes(),
            name=scope,
        )
        return wanted.tensors(outs[:3], outs[3])


def parse_single_example(
    serialized: TensorLike,
    features: Mapping[str, Any],
    name: str | None = None,
    example_names: TensorLike | None = None,
) -> dict[str, Any]:
    """The features of one Example: as of :func:`parse_example`, without a batch in front.

    Args:
      serialized: scalar string. example_names: scalar string, its name, which errors then tell.
    """
    if not features:
        raise InvalidArgumentError("Missing features.")
    wanted = Request(features, _OF_EXAMPLES)
    with _ops.name_scope(name or "ParseSingleExample") as scope:
        text = _ops.convert_to_tensor(serialized, dtypes.string)
        text.shape.assert_has_rank(0)
        if example_names is not None:
            return _of_one(text, features, example_names)
        outs = _ops.apply_op(
            "ParseSingleExample",
            serialized=text,
            dense_defaults=wanted.defaults(),
            num_sparse=len(wanted.sparse),
            sparse_keys=list(wanted.sparse),
            dense_keys=list(wanted.dense),
            sparse_types=list(wanted.sparse.values()),
            Tdense=[dtype for dtype, _, _ in wanted.dense.values()],
            dense_shapes=wanted.shapes(),
            name=scope,
        )
        return wanted.tensors(outs[:3], outs[3])


def _of_one(text: Any, features: Mapping[str, Any], names: Any) -> dict[str, Any]:
    """As parse_single_example, of an Example with a name: a batch of one, taken out of it."""
    batch = parse_example(_tf.expand_dims(text, 0), features, example_names=_tf.expand_dims(names, 0))

    def out(value: Any) -> Any:
        if not isinstance(value, _tf.SparseTensor):
            return _tf.squeeze(value, [0])
        return _tf.SparseTensor(value.indices[:, 1:], value.values, value.dense_shape[1:])

    return {key: out(value) for key, value in batch.items()}


def parse_single_sequence_example(
    serialized: TensorLike,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: TensorLike | None = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features of one SequenceExample, and its lists of features.

    Args:
      serialized: scalar string, the bytes of a ``tf.train.SequenceExample``.
      context_features: key -> FixedLenFeature or VarLenFeature.
      sequence_features: key -> FixedLenSequenceFeature or VarLenFeature.
      example_name: its name, which errors then tell.

    Returns:
      Two dicts: of the context; of the lists, whose tensors have the list's length in front.

    Raises:
      InvalidArgumentError: as of :func:`parse_example`.
    """
    if not (context_features or sequence_features):
        raise InvalidArgumentError("Missing features.")
    context = Request(context_features, (VarLenFeature, FixedLenFeature))
    lists = Request(sequence_features, (VarLenFeature, FixedLenSequenceFeature))
    with _ops.name_scope(name or "ParseSingleSequenceExample") as scope:
        outs = _ops.apply_op(
            "ParseSingleSequenceExample",
            serialized=serialized,
            feature_list_dense_missing_assumed_empty=_tf.constant(lists.optional, dtypes.string),
            context_sparse_keys=_keys(context.sparse),
            context_dense_keys=_keys(context.dense),
            feature_list_sparse_keys=_keys(lists.sparse),
            feature_list_dense_keys=_keys(lists.dense),
            context_dense_defaults=context.defaults(),
            debug_name="" if example_name is None else example_name,
            Ncontext_sparse=len(context.sparse),
            Ncontext_dense=len(context.dense),
            Nfeature_list_sparse=len(lists.sparse),
            Nfeature_list_dense=len(lists.dense),
            context_sparse_types=list(context.sparse.values()),
            Tcontext_dense=[dtype for dtype, _, _ in context.dense.values()],
            context_dense_shapes=context.shapes(),
            feature_list_sparse_types=list(lists.sparse.values()),
            feature_list_dense_types=[dtype for dtype, _, _ in lists.dense.values()],
            feature_list_dense_shapes=[shape for _, shape, _ in lists.dense.values()],
            name=scope,
        )
        return context.tensors(outs[:3], outs[3]), lists.tensors(outs[4:7], outs[7])


def _keys(keys: Mapping[str, Any]) -> list[Any]:
    return [_tf.constant(key, dtypes.string) for key in keys]
