"""Features: what is expected of an Example, key by key. Names, fields and defaults are TensorFlow 1's."""

from __future__ import annotations

from typing import Any, NamedTuple


class FixedLenFeature(NamedTuple):
    """A feature of one shape in all Examples.

    Attributes:
      shape: of an Example's values. dtype: float32, int64 or string.
      default_value: taken where an Example has none; without one the feature is required.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of blocks of one shape; in a batch shorter ones are filled up.

    Attributes:
      shape: of a block. dtype: float32, int64 or string.
      allow_missing: an Example may lack it. default_value: a scalar with which shorter ones are filled up.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature of any number of values; it becomes a SparseTensor.

    Attributes:
      dtype: float32, int64 or string.
    """

    dtype: Any


class SparseFeature(NamedTuple):
    """A SparseTensor whose places and elements are features of their own.

    Attributes:
      index_key: key of the places, a list of them with one per dim. value_key: key of the elements.
      dtype: of the elements. size: of each dim, a list where ``index_key`` is one.
      already_sorted: the places are in order.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False
