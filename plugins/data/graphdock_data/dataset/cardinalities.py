"""Cardinality: how many elements a dataset has, as far as its stages tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import graphdock as _tf

from graphdock_data.dataset.dataset import Dataset
from graphdock_data.dataset.stages.stage import Stage, Value

#: Of a dataset without an end; of one whose stages do not tell.
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2


class _UnknownError(Exception):
    pass


def cardinality(dataset: Dataset) -> Any:
    """The number of elements of a dataset, a scalar int64.

    INFINITE_CARDINALITY where there is no end; UNKNOWN_CARDINALITY where only reading it would tell.
    """
    try:
        found = _count(dataset._stage)
    except _UnknownError:
        found = UNKNOWN_CARDINALITY
    return _tf.constant(found, _tf.int64)


def _count(stage: Stage) -> int:
    rule = _RULES.get(stage.title)
    if rule is None:
        raise _UnknownError
    return rule(stage)


def _number(value: Value) -> int:
    if value.array is None:
        raise _UnknownError
    return int(value.array)


def _slices(stage: Any) -> int:
    first = stage.values[2 if 0 in stage.sparse else 0].array
    if first is None:
        raise _UnknownError
    return int(first[0] if 0 in stage.sparse else len(first))


def _batches(stage: Any) -> int:
    count, size = _count(stage.source), _number(stage.size)
    if size <= 0:
        raise _UnknownError
    if count < 0:
        return count
    return count // size if _number(stage.drop) else -(-count // size)


def _windows(stage: Any) -> int:
    count, size, shift, stride = (_count(stage.source), *map(_number, (stage.size, stage.shift, stage.stride)))
    if min(size, shift, stride) <= 0:
        raise _UnknownError
    if count < 0:
        return count
    return max(0, -(-(count - (size - 1) * stride) // shift)) if _number(stage.drop) else -(-count // shift)


def _repeated(stage: Any) -> int:
    count, times = _count(stage.source), _number(stage.count)
    if 0 in (count, times):
        return 0
    return INFINITE_CARDINALITY if count < 0 or times < 0 else count * times


def _taken(stage: Any) -> int:
    count, first = _count(stage.source), _number(stage.count)
    if first < 0:
        return count
    return first if count < 0 else min(count, first)


def _skipped(stage: Any) -> int:
    count, first = _count(stage.source), _number(stage.count)
    if first < 0:
        return 0
    return count if count < 0 else max(count - first, 0)


def _sharded(stage: Any) -> int:
    count, every, at = _count(stage.source), _number(stage.count), _number(stage.index)
    if every < 1:
        raise _UnknownError
    return count if count < 0 else len(range(at, count, every))


def _zipped(stage: Any) -> int:
    ends = [count for count in map(_count, stage.sources) if count >= 0]
    return min(ends, default=INFINITE_CARDINALITY)


def _joined(stage: Any) -> int:
    counts = [_count(source) for source in stage.sources]
    return INFINITE_CARDINALITY if min(counts) < 0 else sum(counts)


def _same(stage: Any) -> int:
    return _count(stage.source)


#: Title of a stage -> what counts its elements.
_RULES: Mapping[str, Callable[[Any], int]] = {
    "TensorDataset": lambda stage: 1,
    "TensorSliceDataset": _slices,
    "RangeDataset": lambda stage: len(range(_number(stage.start), _number(stage.stop), _number(stage.step))),
    "RandomDataset": lambda stage: INFINITE_CARDINALITY,
    "BatchDataset": _batches,
    "PaddedBatchDataset": _batches,
    "WindowDataset": _windows,
    "ReduceDataset": lambda stage: 1,
    "DenseToSparseBatchDataset": _batches,
    "RepeatDataset": _repeated,
    "TakeDataset": _taken,
    "SkipDataset": _skipped,
    "ShardDataset": _sharded,
    "ZipDataset": _zipped,
    "ConcatenateDataset": _joined,
    "MapDataset": _same,
    "ParallelMapDataset": _same,
    "CacheDataset": _same,
    "PrefetchDataset": _same,
    "ShuffleDataset": _same,
    "ScanDataset": _same,
}
