"""TensorFlow's format V1, as a writer made from its description writes it; in one file and in several."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from graphdock.errors import DataLossError, NotFoundError, UnimplementedError
from graphdock_storage.checkpoint import exists, open_checkpoint
from graphdock_tensorflow.plugin import register_checkpoint_formats

open_checkpoint = functools.partial(open_checkpoint, others=register_checkpoint_formats)
exists = functools.partial(exists, others=register_checkpoint_formats)

pytest.importorskip("google.protobuf")


@pytest.mark.parametrize("content", [False, True])
def test_every_dtype_and_slices_come_back_bitwise(tmp_path, tensorflow_files, tensors, content):
    path = str(tmp_path / "m")
    tensorflow_files.write_v1(path, tensors, packed=not content, content=content)
    assert exists(path)
    with open_checkpoint(path) as found:
        assert found.format == "tensorflow v1" and set(found.tensors) == set(tensors)
        for name, value in tensors.items():
            if not isinstance(value, tuple):
                array = found.read(name)
                assert array.dtype == value.dtype and array.tolist() == value.tolist(), name
        for name in ("rows", "columns"):
            assert found.read(name).tolist() == np.arange(1000).reshape(500, 2).tolist()


def test_several_files(tmp_path, tensorflow_files, tensors):
    cut = {n: tensors[n] for n in ("rows", "columns")}
    for i in range(2):
        tensorflow_files.write_v1(str(tmp_path / f"m-{i:05d}-of-00002"), cut, only=[i])
    path = str(tmp_path / "m-?????-of-00002")
    assert exists(path) and not exists(str(tmp_path / "n-?????-of-00002"))
    with open_checkpoint(path) as found:
        assert found.read("rows").tolist() == np.arange(1000).reshape(500, 2).tolist()
    (tmp_path / "m-00000-of-00002").unlink()
    with pytest.raises(DataLossError, match="lacks a file"):
        open_checkpoint(path)
    (tmp_path / "m-00001-of-00002").unlink()
    with pytest.raises(NotFoundError):
        open_checkpoint(path)


def test_damage(tmp_path, tensorflow_files):
    files, path = tensorflow_files, tmp_path / "m"
    files.write_v1(str(path), {"a": np.arange(400.0), "b": np.arange(3)}, packed=False)
    data = path.read_bytes()
    at = data.index(np.float64(300).tobytes())
    path.write_bytes(data[:at] + b"\1" + data[at + 1 :])
    with pytest.raises(DataLossError, match=r"m' is damaged"), open_checkpoint(str(path)) as found:
        found.read("a")
    for text in (b"", b"x" * 47, b"x" * 500, data[:-10]):
        path.write_bytes(text)
        with pytest.raises(DataLossError, match="is damaged, or none"):
            open_checkpoint(str(path))


def meta(files, shape=(2,), kind=2, extents=(None,)):
    slices = files.text(4, files.slice_message(extents))
    return files.text(
        1,
        files.text(1, files.text(1, b"a") + files.text(2, files.shape_message(shape)) + files.number(3, kind) + slices),
    )


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({}, np.ones(3)),
        ({}, np.ones(2, np.float32)),
        ({}, None),
        ({"shape": (1 << 50,)}, np.ones(2)),
        ({"shape": (1 << 60,)}, np.ones(2)),
        ({"extents": [(1, 2)]}, np.ones(2)),
        ({"extents": []}, np.ones(2)),
        ({"kind": 8}, np.ones(2, np.float32)),
    ],
)
def test_a_file_that_lies_is_refused(tmp_path, tensorflow_files, fields, value):
    files, path = tensorflow_files, tmp_path / "m"
    entries = {b"": meta(files, **fields)}
    if value is not None:
        saved = files.text(1, b"a") + files.text(3, files.tensor_message(value, fields.get("kind") == 8))
        entries[files.slice_key("a", [None])] = files.text(2, saved)
    path.write_bytes(files.table(entries))
    with pytest.raises(DataLossError, match=r"'a'"), open_checkpoint(str(path)) as found:
        found.read("a")


def test_values_of_another_name_are_refused(tmp_path, tensorflow_files):
    files, path = tensorflow_files, tmp_path / "m"
    saved = files.text(1, b"b") + files.text(3, files.tensor_message(np.ones(2), False))
    path.write_bytes(files.table({b"": meta(files), files.slice_key("a", [None]): files.text(2, saved)}))
    with pytest.raises(DataLossError, match=r"'a' .* missing"), open_checkpoint(str(path)) as found:
        found.read("a")


def test_what_is_not_read_is_said(tmp_path, tensorflow_files):
    path = tmp_path / "m"
    path.write_bytes(tensorflow_files.table({b"": meta(tensorflow_files, kind=11)}))
    with open_checkpoint(str(path)) as found, pytest.raises(UnimplementedError, match="DataType 11"):
        found.read("a")
