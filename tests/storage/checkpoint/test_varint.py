"""Numbers of seven bits a byte."""

from __future__ import annotations

import pytest
from graphdock.errors import DataLossError
from graphdock_storage.checkpoint.varint import read_varint
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_what_is_written_is_read(tensorflow_files, number, behind):
    data = tensorflow_files.varint(number)
    assert read_varint(b"x" + data + behind, 1) == (number, 1 + len(data))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 10, b"\xff" * 9 + b"\x02"])
def test_what_is_none_is_refused(data):
    with pytest.raises(DataLossError):
        read_varint(data, 0)
