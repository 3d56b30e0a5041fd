"""TensorFlow's format V2, written: read by the reader, and of the bytes that a writer made from the description gives."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from graphdock.errors import PermissionDeniedError
from graphdock_storage.checkpoint import Slice, open_checkpoint
from graphdock_tensorflow.checkpoints.bundle_writing import write_bundle
from graphdock_tensorflow.plugin import register_checkpoint_formats

open_checkpoint = functools.partial(open_checkpoint, others=register_checkpoint_formats)

pytest.importorskip("google.protobuf")


def test_every_dtype_comes_back_bitwise(tmp_path, tensors):
    given = {name: array for name, array in tensors.items() if not isinstance(array, tuple)}
    prefix = str(tmp_path / "new" / "m")
    write_bundle(prefix, given)
    with open_checkpoint(prefix) as found:
        assert found.format == "tensorflow v2" and set(found.tensors) == set(given)
        for name, array in given.items():
            read = found.read(name)
            assert read.dtype == array.dtype and read.shape == array.shape and read.tolist() == array.tolist(), name


def test_slices_and_many_names(tmp_path):
    whole = np.arange(12, dtype=np.float32).reshape(4, 3)
    parts = [(Slice((0, 0), (1, 3)), whole[:1]), (Slice((1, 0), (3, 3)), whole[1:])]
    many = {f"v{i:04d}": np.int64(i) for i in range(500)}
    write_bundle(str(tmp_path / "m"), {"whole": ((4, 3), parts), "words": np.array([b"a", b"bcd"], object), **many})
    with open_checkpoint(str(tmp_path / "m")) as found:
        assert found.read("whole").tolist() == whole.tolist() and found.read("words").tolist() == [b"a", b"bcd"]
        assert [int(found.read(n)) for n in many] == list(range(500))


def test_bytes_are_those_of_the_description(tmp_path, tensorflow_files):
    tensors = {"a": np.float32([1, 2]), "b": np.array([b"x", b"yz"], object)}
    write_bundle(str(tmp_path / "ours"), tensors)
    tensorflow_files.write_v2(str(tmp_path / "theirs"), tensors, 1, False)
    ours, theirs = ((tmp_path / f"{n}.data-00000-of-00001").read_bytes() for n in ("ours", "theirs"))
    assert ours == theirs


def test_a_file_that_may_not_be_written(tmp_path, monkeypatch):
    import os

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionDeniedError):
        write_bundle(str(tmp_path / "m"), {"a": np.float32([1])})
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
