"""Items of every dtype, and what makes them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

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


@pytest.fixture(scope="session")
def tensorflow_files():
    """The module ``tensorflow_files.py`` beside this one."""
    spec = importlib.util.spec_from_file_location("tensorflow_files", Path(__file__).with_name("tensorflow_files.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tensors():
    """Arrays of every dtype of TensorFlow's checkpoints, and two in slices."""
    rng = np.random.default_rng(3)
    found = {}
    for i, kind in enumerate(NUMBERS):
        dtype = np.dtype(getattr(ml_dtypes, kind, kind))
        found[f"layer/{kind}"] = (rng.standard_normal((i % 3 + 1, 5)) * 40).astype(np.int8).astype(dtype)
    found["text"] = np.array([[b"ab", b""], [b"\0\xff", b"c" * 300]], object)
    found["nothing"] = np.zeros((0, 3), np.float32)
    found["scalar"] = np.array(3.5, np.float64)
    found["ü"] = np.arange(5000, dtype=np.float32)
    whole = np.arange(1000, dtype=np.int64).reshape(500, 2)
    found["rows"] = ((500, 2), [([(0, 70), (0, 2)], whole[:70]), ([(70, 430), (0, 2)], whole[70:])])
    found["columns"] = ((500, 2), [([None, (0, 1)], whole[:, :1].copy()), ([None, (1, 1)], whole[:, 1:].copy())])
    return found
