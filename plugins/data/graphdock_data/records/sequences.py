"""Parsing of batches of SequenceExamples into tensors. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_data.records.features import FixedLenFeature, FixedLenSequenceFeature, VarLenFeature
from graphdock_data.records.parsing import Request


def parse_sequence_example(
    serialized: TensorLike,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_names: TensorLike | None = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The features of a batch of SequenceExamples, and their lists of features.

    Args:
      serialized: string vector, each the bytes of a ``tf.train.SequenceExample``.
      context_features: key -> FixedLenFeature or VarLenFeature.
      sequence_features: key -> FixedLenSequenceFeature or VarLenFeature.
      example_names: string vector with a name for each, which errors then tell.

    Returns:
      Three dicts: of the context; of the lists, ``[B, T, ...]`` where T is the length of the longest, filled up with 0 and the
      empty string; of the lists' lengths, int64 ``[B]``.

    Raises:
      InvalidArgumentError: as of ``tf.parse_example``.
    """
    if not (context_features or sequence_features):
        raise InvalidArgumentError("Missing features.")
    context = Request(context_features, (VarLenFeature, FixedLenFeature))
    lists = Request(sequence_features, (VarLenFeature, FixedLenSequenceFeature))
    with _ops.name_scope(name or "ParseSequenceExample") as scope:
        outs = _ops.apply_op(
            "ParseSequenceExample",
            serialized=serialized,
            debug_name=_tf.constant([], dtypes.string) if example_names is None else example_names,
            context_dense_defaults=context.defaults(),
            feature_list_dense_missing_assumed_empty=lists.optional,
            context_sparse_keys=list(context.sparse),
            context_dense_keys=list(context.dense),
            feature_list_sparse_keys=list(lists.sparse),
            feature_list_dense_keys=list(lists.dense),
            Ncontext_sparse=len(context.sparse),
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
        lengths = dict(zip(lists.dense, outs[8], strict=True))
        return context.tensors(outs[:3], outs[3]), lists.tensors(outs[4:7], outs[7]), lengths
