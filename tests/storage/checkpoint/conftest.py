"""Items of every dtype, and what makes them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from graphdock.dtypes import as_dtype, string
from graphdock_storage.checkpoint import Item, Slice

NUMBERS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64 complex128".split()


def make_item(name, array, shape=None, part=""):
    """An Item of an array; ``part`` spells the slice of a tensor of ``shape``."""
    dtype = string if array.dtype == object else as_dtype(array.dtype.name)
    shape = tuple(array.shape if shape is None else shape)
    return Item(name, array, dtype, shape, Slice.parse(part, shape))


@pytest.fixture
def item():
    return make_item


@pytest.fixture
def items():
    """A tensor of each dtype, some without elements, one in slices."""
    rng = np.random.default_rng(3)
    found = []
    for i, kind in enumerate(NUMBERS):
        dtype = np.dtype(getattr(ml_dtypes, kind, kind))
        array = (rng.standard_normal((i % 3 + 1, 5)) * 40).astype(np.int8).astype(dtype)
        found.append(make_item(f"layer/{kind}", array))
    found.append(make_item("text", np.array([[b"ab", b""], [b"\0\xff", b"c" * 300]], object)))
    found.append(make_item("one word", np.array(b"alone", object)))
    found.append(make_item("nothing", np.zeros((0, 3), np.float32)))
    found.append(make_item("no words", np.zeros((0,), object)))
    found.append(make_item("scalar", np.array(3.5, np.float64)))
    found.append(make_item("cut", np.arange(6, dtype=np.int64).reshape(3, 2), (5, 2), "0,3:-"))
    found.append(make_item("cut", np.arange(6, 10, dtype=np.int64).reshape(2, 2), (5, 2), "3,2:-"))
    return found
