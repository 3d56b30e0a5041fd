"""Rows of a table, or of one that is cut into shards."""

from __future__ import annotations

from typing import Any, Literal

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape

__all__ = ["embedding_lookup"]


def embedding_lookup(
    params: Any,
    ids: TensorLike,
    partition_strategy: Literal["mod", "div"] = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: Any = None,
) -> _ops.Tensor:
    """Rows of an embedding table.

    Args:
      params: the table, ``[rows, *dims]``; a list of its shards (tensors or Variables), which may lie on different devices; or a
        PartitionedVariable, which is the list of its parts.
      ids: integer tensor of any shape.
      partition_strategy: ``mod``: row i lies in shard ``i % n`` at ``i // n``; ``div``: shards hold runs of rows, the first
        ones one row more where the rows do not divide evenly.
      validate_indices: taken for TensorFlow's sake; an id that has no row is always an error of the step.
      max_norm: make rows whose Euclidean norm is above it shorter.

    Returns:
      A tensor of shape ``ids.shape + dims``. The gradient of each shard is IndexedSlices. Ids of other shards count there as
      row 0, with a gradient of zero.

    Raises:
      InvalidArgumentError: no shard, or an unknown strategy.
    """
    shards = list(params) if isinstance(params, list | tuple | _tf.PartitionedVariable) else [params]
    if params is None:
        raise InvalidArgumentError("embedding_lookup needs params", expected="a table, or its shards")
    if not shards:
        raise InvalidArgumentError("embedding_lookup needs at least one shard")
    if partition_strategy not in ("mod", "div"):
        raise InvalidArgumentError(
            "unknown partition_strategy", expected="'mod' or 'div'", got=repr(partition_strategy)
        )
    with _tf.name_scope(name or "embedding_lookup"):
        ids = _ops.convert_to_tensor(ids)
        shards = [s if isinstance(s, _tf.Variable) else _ops.convert_to_tensor(s) for s in shards]
        rows = _tf.gather(shards[0], ids) if len(shards) == 1 else _sharded(shards, ids, partition_strategy)
        if max_norm is None:
            return rows
        dims, at = static_shape(shards[0]), static_shape(ids)
        if dims is None or at is None:
            raise InvalidArgumentError("max_norm needs a table and ids of known rank")
        return _tf.clip_by_norm(rows, max_norm, axes=list(range(len(at), len(at) + len(dims) - 1)))


def _sharded(shards: list[Any], ids: Any, strategy: str) -> Any:
    n = len(shards)
    if strategy == "mod":
        count = _ops.constant(n, ids.dtype)
        owner, local = ids % count, ids // count
        mine = [_tf.equal(owner, _ops.constant(k, ids.dtype)) for k in range(n)]
        within = [local] * n
    else:
        limits = _starts(shards, ids.dtype)
        mine, within = [], []
        for k in range(n):
            # an id beyond either end goes to the shard at that end, whose gather refuses it
            low = ids >= limits[k] if k else _ops.ones_like(ids) > 0
            mine.append(_tf.logical_and(low, ids < limits[k + 1]) if k < n - 1 else low)
            within.append(ids - limits[k])
    zero = _ops.zeros_like(ids)
    dims = static_shape(shards[0])
    parts = []
    for shard, own, local in zip(shards, mine, within, strict=True):
        rows = _tf.gather(shard, _tf.where(own, local, zero))
        ones = _ops.ones_like(_ops.shape(shard)[1:]) if dims is None else [1] * (len(dims) - 1)
        own = _tf.reshape(own, _tf.concat([_ops.shape(ids), ones], 0))
        parts.append(_tf.select(own, rows, _ops.constant(0, rows.dtype)))
    return _ops.add_n(parts)


def _starts(shards: list[Any], dtype: Any) -> list[Any]:
    """The number of rows before each shard; and before all others, after the last one whose size is known."""
    rows = [(static_shape(shard) or (None,))[0] for shard in shards]
    known: int | None = 0
    starts = [_ops.constant(0, dtype)]
    for shard, count in zip(shards[:-1], rows, strict=False):
        known = None if known is None or count is None else known + count
        if known is not None:
            starts.append(_ops.constant(known, dtype))
        else:
            starts.append(starts[-1] + _ops.cast(_ops.shape(shard)[0], dtype))
    return starts
