"""Variables in parts along one axis: partitioners, which say how many, and the parts as one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphdock import TensorShape, Variable
from graphdock.dtypes import DType, as_dtype, float32
from graphdock.errors import InvalidArgumentError
from graphdock.ops import Tensor, apply_op, convert_to_tensor, get_default_graph, register_tensor_conversion_function
from graphdock.typing import DTypeLike

Partitioner = Callable[..., Sequence[int]]


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """Part that an initializer fills: the shape of the whole, and where the part begins."""

    full_shape: list[int]
    var_offset: list[int]


@dataclass(frozen=True, slots=True)
class SaveSliceInfo:
    """Place of a variable in a whole: its name in a checkpoint, its shape, and where the part lies in it."""

    full_name: str
    full_shape: list[int]
    var_offset: list[int]
    var_shape: list[int]

    @property
    def spec(self) -> str:
        """As checkpoints spell it: ``"5 2 0,3:0,2"``."""
        axes = ":".join(f"{start},{size}" for start, size in zip(self.var_offset, self.var_shape, strict=True))
        return "".join(f"{d} " for d in self.full_shape) + axes


class PartitionedVariable:
    """Variables ``name/part_0``, ``name/part_1``, ... that stand for one, cut along one axis.

    Where a tensor is expected it stands for the parts, joined. Iterating over it gives the parts.

    Args:
      name: of the whole. shape, dtype: of the whole. variable_list: the parts in order. partitions: number of parts of each axis.
    """

    def __init__(
        self, name: str, shape: Any, dtype: DTypeLike, variable_list: Sequence[Variable], partitions: Sequence[int]
    ) -> None:
        self._name = name
        self._shape = TensorShape(shape)
        self.dtype: DType = as_dtype(dtype)
        self._parts = list(variable_list)
        self._partitions = list(partitions)
        offset = [0] * len(self._shape)
        for part in self._parts:
            sizes = [int(d) for d in part.shape]
            part._save_slice_info = SaveSliceInfo(name, [int(d) for d in self._shape], [*offset], sizes)
            if offset:
                offset[self.axis] += sizes[self.axis]

    @property
    def name(self) -> str:
        return self._name

    @property
    def shape(self) -> TensorShape:
        return self._shape

    def get_shape(self) -> TensorShape:
        return self._shape

    @property
    def axis(self) -> int:
        """The axis it is cut along."""
        return next((i for i, n in enumerate(self._partitions) if n > 1), 0)

    def as_tensor(self) -> Tensor:
        """The parts, joined."""
        if len(self._parts) == 1:
            return self._parts[0].value()
        joined: Tensor = apply_op(
            "Concat", values=self._parts, axis=self.axis, name=self._name.rpartition("/")[2] + "/ConcatPartitions"
        )
        return joined

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None) -> list[Tensor]:
        """Set every part to its piece of ``value``; returns their new values."""
        return self._each("assign", value, name)

    def assign_add(self, value: Any, use_locking: bool = False, name: str | None = None) -> list[Tensor]:
        return self._each("assign_add", value, name)

    def assign_sub(self, value: Any, use_locking: bool = False, name: str | None = None) -> list[Tensor]:
        return self._each("assign_sub", value, name)

    def _each(self, method: str, value: Any, name: str | None) -> list[Tensor]:
        whole = convert_to_tensor(value, self.dtype)
        sizes = [int(part.shape[self.axis]) for part in self._parts]
        count = len(sizes)
        with get_default_graph().name_scope(name or method):
            pieces = apply_op("SplitV", value=whole, size_splits=sizes, axis=self.axis, num_split=count)
            return [getattr(part, method)(piece) for part, piece in zip(self._parts, pieces, strict=True)]

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, index: int) -> Variable:
        return self._parts[index]

    def __repr__(self) -> str:
        return f"<tf.PartitionedVariable {self._name!r} shape={self._shape} dtype={self.dtype.name} parts={len(self)}>"


def _to_tensor(variable: PartitionedVariable, dtype: DType | None, name: str | None) -> Tensor:
    return convert_to_tensor(variable.as_tensor(), dtype)


register_tensor_conversion_function(PartitionedVariable, _to_tensor)


def partitions_of(partitioner: Partitioner, shape: Sequence[int], dtype: DType, name: str) -> list[int]:
    """Return how many parts of each axis a partitioner wants, checked.

    Raises:
      InvalidArgumentError: another number of axes, a number below 1, or more than one axis that is cut.
    """
    found = [int(n) for n in partitioner(shape=TensorShape(shape), dtype=dtype)]
    if len(found) != len(shape) or any(n < 1 for n in found) or sum(n > 1 for n in found) > 1:
        raise InvalidArgumentError(
            f"the partitioner of {name!r} says what can't be",
            expected="a number per axis, one of them above 1",
            got=str(found),
        )
    return found


def parts_of(shape: Sequence[int], partitions: Sequence[int]) -> Iterator[tuple[list[int], PartitionInfo]]:
    """Shape and place of each part; the first ones are one larger where the axis does not divide evenly."""
    axis = next((i for i, n in enumerate(partitions) if n > 1), 0)
    count = partitions[axis] if partitions else 1
    rows = shape[axis] if shape else 1
    sizes = [rows // count + (i < rows % count) for i in range(count)]
    for size, start in zip(sizes, itertools.accumulate([0, *sizes]), strict=False):
        part, offset = list(shape), [0] * len(shape)
        if shape:
            part[axis], offset[axis] = size, start
        yield part, PartitionInfo(list(shape), offset)


def _element_size(dtype: DType, bytes_per_string_element: int) -> int:
    return dtype.size or bytes_per_string_element


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """Cut every variable into ``num_shards`` parts along an axis, or into single slices where it has fewer."""

    def partitioner(shape: Any, **_: Any) -> list[int]:
        partitions = [1] * len(shape)
        partitions[axis] = min(num_shards, int(shape[axis]))
        return partitions

    return partitioner


def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: int | None = None
) -> Partitioner:
    """Cut a variable along an axis into parts of at most ``max_shard_bytes``, but into at most ``max_shards``.

    Raises:
      InvalidArgumentError: a number that is not positive.
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise InvalidArgumentError("both max_shard_bytes and bytes_per_string_element must be positive")
    if max_shards is not None and max_shards < 1:
        raise InvalidArgumentError("max_shards must be positive", got=str(max_shards))

    def partitioner(shape: Any, dtype: Any) -> list[int]:
        whole = TensorShape(shape)
        whole.assert_is_fully_defined()
        rows = int(whole[axis])
        per_slice = (
            math.prod(int(d) for d in whole) / max(rows, 1) * _element_size(as_dtype(dtype), bytes_per_string_element)
        )
        slices = max(1, math.floor(max_shard_bytes / max(per_slice, 1)))
        count = max(1, math.ceil(rows / slices))
        partitions = [1] * len(whole)
        partitions[axis] = count if max_shards is None else min(max_shards, count)
        return partitions

    return partitioner


def min_max_variable_partitioner(
    max_partitions: int = 1, axis: int = 0, min_slice_size: int = 256 << 10, bytes_per_string_element: int = 16
) -> Partitioner:
    """Cut a variable along an axis into parts of at least ``min_slice_size`` bytes, but into at most ``max_partitions``."""

    def partitioner(shape: Any, dtype: Any) -> list[int]:
        whole = TensorShape(shape)
        if axis >= len(whole):
            raise InvalidArgumentError(f"cannot partition a variable along axis {axis}: its shape is {whole}")
        total = math.prod(int(d) for d in whole) * _element_size(as_dtype(dtype), bytes_per_string_element)
        partitions = [1] * len(whole)
        partitions[axis] = max(1, min(int(whole[axis]), max_partitions, math.ceil(total / min_slice_size)))
        return partitions

    return partitioner


def create_partitioned_variables(
    shape: Any,
    slicing: Sequence[int],
    initializer: Any,
    dtype: DTypeLike = float32,
    trainable: bool = True,
    collections: Any = None,
    name: str | None = None,
    reuse: bool | None = None,
) -> list[Any]:
    """The parts of a variable that is cut along one axis: ``tf.get_variable`` with a partitioner, as of before that took one.

    Args:
      shape: of the whole. slicing: how many parts of each axis; all but one are 1. The others: as ``tf.get_variable``.

    Raises:
      InvalidArgumentError: ``slicing`` cuts several axes, or is as long as no shape of this rank.
    """
    import graphdock as tf  # the modules of variable scopes import this one

    cut = tuple(int(parts) for parts in slicing)
    with tf.variable_scope(name, "PartitionedVariable") as scope:
        full = scope.name
    outer = tf.get_variable_scope()
    with tf.variable_scope(outer, reuse=reuse):
        own = full[len(outer.name) + 1 :] if outer.name else full
        more = {"trainable": trainable, "collections": collections, "partitioner": lambda **_: cut}
        return list(tf.get_variable(own, shape, dtype, initializer, **more))
