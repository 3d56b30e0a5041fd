"""TensorFlow's format V2, as a writer made from its description writes it."""

from __future__ import annotations

import functools
import os
import re

import numpy as np
import pytest
from graphdock.errors import DataLossError, NotFoundError, UnavailableError, UnimplementedError
from graphdock_storage.checkpoint import Slice, exists, open_checkpoint, remove
from graphdock_tensorflow.plugin import register_checkpoint_formats

open_checkpoint = functools.partial(open_checkpoint, others=register_checkpoint_formats)

pytest.importorskip("google.protobuf")


def whole(value):
    if not isinstance(value, tuple):
        return value
    shape, parts = value
    out = np.empty(shape, parts[0][1].dtype)
    for extents, array in parts:
        out[tuple(slice(None) if e is None else slice(e[0], sum(e)) for e in extents)] = array
    return out


def same(a, b):
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and (a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes())
    )


@pytest.mark.parametrize(("shards", "packed"), [(1, False), (3, True)])
def test_every_dtype_and_slices_come_back_bitwise(tmp_path, tensorflow_files, tensors, shards, packed):
    prefix = str(tmp_path / "m")
    tensorflow_files.write_v2(prefix, tensors, shards, packed)
    assert exists(prefix)
    with open_checkpoint(prefix) as found:
        assert found.format == "tensorflow v2" and set(found.tensors) == set(tensors)
        for name, value in tensors.items():
            assert same(found.read(name), whole(value)), name
        assert found.read("rows", Slice((69, 1), (2, 1))).tolist() == [[139], [141]]
        with pytest.raises(NotFoundError, match="'layer/float33'"):
            found.read("layer/float33")
    remove(prefix)
    assert os.listdir(tmp_path) == []


def test_a_byte_that_changed_is_noticed(tmp_path, tensorflow_files):
    prefix = str(tmp_path / "m")
    tensorflow_files.write_v2(prefix, {"a": np.arange(3), "s": np.array([b"ab", b"c"], object), "b": np.ones(2)})
    path, index = tmp_path / "m.data-00000-of-00001", tmp_path / "m.index"
    data, text = path.read_bytes(), index.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 8]) + data[at + 1 :])
        name = "a" if at < 24 else "s" if at < len(data) - 16 else "b"
        with (
            open_checkpoint(prefix) as found,
            pytest.raises(DataLossError, match=f"the tensor '{name}' of .* is damaged"),
        ):
            for each in ("b", "a", "s") if name == "b" else ("a", "s"):
                found.read(each)
    path.write_bytes(data[:-1])
    with open_checkpoint(prefix) as found, pytest.raises(DataLossError, match="cut off"):
        found.read("b")
    path.unlink()
    with pytest.raises(DataLossError, match="lacks a data file"):
        open_checkpoint(prefix)
    path.write_bytes(data)
    for at in range(0, 80, 3):  # of the block that has the entries
        index.write_bytes(text[:at] + bytes([text[at] ^ 8]) + text[at + 1 :])
        with pytest.raises(DataLossError, match=re.escape(prefix)):
            open_checkpoint(prefix)


def entry(files, shape=(2,), dtype=2, **fields):
    values = {"shard": 0, "offset": 0, "size": 16} | fields
    parts = [files.number(n, values[k]) for n, k in ((3, "shard"), (4, "offset"), (5, "size"))]
    return (
        files.number(1, dtype) + files.text(2, files.shape_message(shape)) + b"".join(parts) + values.get("more", b"")
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"size": 17},
        {"shape": (1 << 40, 1 << 40)},
        {"shape": (-1,)},
        {"shape": (1 << 50,), "size": 1 << 53},
        {"offset": 1 << 62},
        {"offset": -8},
        {"size": -16},
        {"more": b"\x3a\x00"},
        {"more": b"\x3a\x02\x0a\x00"},
        {"more": b"\x3a\xff"},
        {"dtype": 7, "size": 1 << 50},
    ],
)
def test_an_index_that_lies_is_refused(tmp_path, tensorflow_files, fields):
    files = tensorflow_files
    prefix = str(tmp_path / "m")
    files.write_v2(prefix, {"a": np.ones(2)})
    (tmp_path / "m.index").write_bytes(files.table({b"": files.number(1, 1), b"a": entry(files, **fields)}))
    with pytest.raises(DataLossError, match=r"m'"), open_checkpoint(prefix) as found:
        found.read("a")


def test_what_is_not_read_is_said(tmp_path, tensorflow_files, monkeypatch):
    files = tensorflow_files
    prefix = str(tmp_path / "m")
    files.write_v2(prefix, {"a": np.ones(2)})
    index = tmp_path / "m.index"
    index.write_bytes(files.table({b"": files.number(1, 1), b"a": entry(files), b"v": entry(files, dtype=21)}))
    with open_checkpoint(prefix) as found:
        assert list(found.tensors) == ["a"]
        with pytest.raises(UnimplementedError, match="'v'"):
            found.read("v")
    index.write_bytes(files.table({b"": files.number(1, 1) + files.number(2, 1)}))
    with pytest.raises(UnimplementedError, match="big-endian"):
        open_checkpoint(prefix)


def test_without_the_library_it_says_what_to_install(tmp_path, tensorflow_files, monkeypatch):
    import sys

    from graphdock import messages

    tensorflow_files.write_v2(str(tmp_path / "m"), {"a": np.ones(2)})
    monkeypatch.setattr(messages, "_made", messages._made.__wrapped__)  # the classes of others stay
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(UnavailableError, match="pip install protobuf"):
        open_checkpoint(str(tmp_path / "m"))
