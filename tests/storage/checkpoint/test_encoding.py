"""Strings as bytes and back; numbers as they lie."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.dtypes import float32, string
from graphdock.errors import DataLossError, DTypeError
from graphdock_storage.checkpoint import encoding as module
from graphdock_storage.checkpoint.encoding import as_strings, bytes_of, check_strings, chunks_of, size_of, strings_of
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.binary(max_size=20)))
def test_strings_come_back(words):
    array = np.empty(len(words), object)
    array[:] = words
    data = b"".join(chunks_of(array, string))
    assert len(data) == size_of(array, string)
    assert strings_of(memoryview(data), len(words), "w").tolist() == words


@given(st.binary(max_size=64), st.integers(0, 9))
def test_damaged_lengths_are_refused(data, count):
    try:
        found = strings_of(memoryview(data), count, "the tensor 'w'")
    except DataLossError as error:
        assert "the tensor 'w'" in str(error)
    else:
        assert sum(map(len, found)) + 8 * count == len(data)


def test_many_strings_are_joined_piece_by_piece(monkeypatch):
    monkeypatch.setattr(module, "_JOINED", 2)
    array = np.array([b"a", b"bc", b"", b"d", b"e"], object)
    pieces = [bytes(p) for p in chunks_of(array, string)]
    assert pieces[1:] == [b"abc", b"d", b"e"]
    assert as_strings(memoryview(b"abcde"), [1, 0, 4]).tolist() == [b"a", b"", b"bcde"]


def test_numbers_lie_as_they_do():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    (piece,) = chunks_of(array, float32)
    assert np.shares_memory(np.frombuffer(piece, np.uint8), array) and bytes(piece) == array.tobytes()
    (turned,) = chunks_of(array.T, float32)
    assert bytes(turned) == array.T.tobytes()
    assert bytes_of(np.array(1.0)).shape == (8,)


def test_only_bytes_are_strings():
    check_strings(np.array([b"a"], object), "w")
    with pytest.raises(DTypeError, match="'w'"):
        check_strings(np.array([b"a", None], object), "w")
