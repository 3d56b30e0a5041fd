"""Files that are compressed as a whole, beside the standard library's own."""

from __future__ import annotations

import gzip
import io
import zlib

import pytest
from graphdock.errors import InvalidArgumentError
from graphdock_storage.compressed import Damaged, deflated, expanded, inflated

COMPRESS = {"ZLIB": zlib.compress, "GZIP": gzip.compress}


@pytest.mark.parametrize("kind", COMPRESS)
def test_it_reads_what_the_standard_library_writes_and_the_other_way(tmp_path, kind):
    data = bytes(range(256)) * 2000
    assert expanded(COMPRESS[kind](data), kind) == data
    path = tmp_path / "f"
    with deflated(path.open("wb"), kind, level=1, window_bits=12) as file:
        file.write(data)
    undo = {"ZLIB": zlib.decompress, "GZIP": gzip.decompress}[kind]
    assert undo(path.read_bytes()) == data


@pytest.mark.parametrize("kind", COMPRESS)
def test_what_is_cut_off_or_damaged_is_told(kind):
    whole = COMPRESS[kind](b"x" * 1000)
    for bad in (whole[:-1], whole[:12], whole + b"rest", b"none of it"):
        with pytest.raises(Damaged):
            expanded(bad, kind)


def test_small_reads_hold_little(tmp_path):
    """A file that grows a thousandfold is read in pieces."""
    file = inflated(io.BytesIO(zlib.compress(b"\0" * 10_000_000)), "ZLIB")
    assert file.read(10) == b"\0" * 10
    assert sum(len(part) for part in iter(lambda: file.read(1 << 16), b"")) == 10_000_000 - 10


def test_no_such_compression_closes_the_file():
    for make in (inflated, deflated):
        file = io.BytesIO()
        with pytest.raises(InvalidArgumentError, match="LZ4"):
            make(file, "LZ4")
        assert file.closed
    file = io.BytesIO()
    with pytest.raises(InvalidArgumentError, match="no such"):
        deflated(file, "ZLIB", level=77)
    assert file.closed
