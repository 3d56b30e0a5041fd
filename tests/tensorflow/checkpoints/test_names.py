"""Keys of slices keep the order of what they stand for, and are those of TensorFlow's code."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from graphdock_tensorflow.checkpoints.names import _signed, dtype_of, key_of_slice
from hypothesis import given
from hypothesis import strategies as st

INTS = st.integers(-(2**63), 2**63 - 1)


@given(INTS, INTS)
def test_signed_numbers_keep_their_order(tensorflow_files, a, b):
    assert _signed(a) == tensorflow_files.signed_code(a)
    assert (_signed(a) < _signed(b)) == (a < b)


def test_a_key(tensorflow_files):
    """Seen in the index of a checkpoint that TensorFlow 2.15 wrote."""
    extents = [
        SimpleNamespace(start=0, length=167, HasField=lambda f: True),
        SimpleNamespace(start=0, HasField=lambda f: False),
    ]
    assert key_of_slice("p", SimpleNamespace(extent=extents)) == b"\x00p\x00\x01\x01\x02\x80\xc0\xa7\x80\x7f"
    assert tensorflow_files.slice_key("p", [(0, 167), None]) == b"\x00p\x00\x01\x01\x02\x80\xc0\xa7\x80\x7f"


def test_bytes_that_would_end_a_name_are_escaped():
    assert key_of_slice("a\0b\udcff", SimpleNamespace(extent=[])) == b"\0a\0\xffb\xff\0\0\1\0"


@pytest.mark.parametrize(
    ("number", "name"), [(1, "float32"), (101, "float32"), (14, "bfloat16"), (7, "string"), (20, None), (0, None)]
)
def test_dtypes(number, name):
    found = dtype_of(number)
    assert (found and found.name) == name
