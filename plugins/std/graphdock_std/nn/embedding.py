"""Rows of a table, or of one that is cut into shards."""

from __future__ import annotations

from typing import Any, Literal

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape


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
      A tensor of shape ``ids.shape + dims``. The gradient of each shard is IndexedSlices of the ids that it owns.

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
        rows = _rows(shards[0], ids) if len(shards) == 1 else _sharded(shards, ids, partition_strategy)
        if max_norm is None:
            return rows
        dims, at = static_shape(shards[0]), static_shape(ids)
        if dims is None or at is None:
            raise InvalidArgumentError("max_norm needs a table and ids of known rank")
        return _tf.clip_by_norm(rows, max_norm, axes=list(range(len(at), len(at) + len(dims) - 1)))


def _rows(shard: Any, ids: Any) -> Any:
    """Rows of a shard, gathered where it lies: rows travel, never tables."""
    with _ops.get_default_graph().colocate_with(shard):
        return _tf.gather(shard, ids)


def _sharded(shards: list[Any], ids: Any, strategy: str) -> Any:
    """Each shard is asked for the ids that it owns, and for no other: its gradient names no row that nobody read."""
    n = len(shards)
    flat = _tf.reshape(ids, [-1])
    if strategy == "mod":
        count = _ops.constant(n, ids.dtype)
        owner, local = _ops.cast(flat % count, _tf.int32), flat // count
    else:
        # an id beyond either end goes to the shard at that end, whose gather refuses it
        starts = _starts(shards, ids.dtype)
        owner = _ops.add_n([_ops.cast(flat >= start, _tf.int32) for start in starts[1:]])
        local = flat - _tf.gather(_tf.stack(starts), owner)
    within = _tf.dynamic_partition(local, owner, n)
    places = _tf.dynamic_partition(_tf.range(_tf.size(flat)), owner, n)
    rows = _tf.dynamic_stitch(places, [_rows(shard, own) for shard, own in zip(shards, within, strict=True)])
    dims = static_shape(shards[0])
    last = _ops.shape(shards[0])[1:] if dims is None else list(dims[1:])
    found = _tf.reshape(rows, _tf.concat([_ops.shape(ids), last], 0))
    if dims is not None:
        found.set_shape(_tf.TensorShape(static_shape(ids)).concatenate(dims[1:]))
    return found


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
