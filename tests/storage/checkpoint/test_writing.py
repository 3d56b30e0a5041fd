"""What is written is read again, by this package and by the safetensors library; and nothing is there by halves."""

from __future__ import annotations

import json
import os
import threading
import tracemalloc

import numpy as np
import pytest
from graphdock.errors import DTypeError, FailedPreconditionError, InvalidArgumentError, NotFoundError, ShapeError
from graphdock_storage.checkpoint import Slice, files_of, merge, open_checkpoint, remove, write
from graphdock_storage.checkpoint import writing as module
from graphdock_storage.checkpoint.files import held


def same(a, b):
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and (a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes())
    )


def test_every_dtype_comes_back_bitwise(tmp_path, items):
    prefix = str(tmp_path / "model")
    write(prefix, items)
    with open_checkpoint(prefix) as found:
        for item in items:
            assert found.tensors[item.name].dtype is item.dtype
            assert same(found.read(item.name, item.slice), item.array), item.name
        assert found.read("cut").tolist() == np.arange(10).reshape(5, 2).tolist()
        assert found.read("cut", Slice((2, 1), (2, 1))).tolist() == [[5], [7]]


def test_the_safetensors_library_reads_the_data_file(tmp_path, items):
    library = pytest.importorskip("safetensors.numpy")
    prefix = str(tmp_path / "model")
    write(prefix, items)
    (path,) = tmp_path.glob("*.safetensors")
    found = library.load_file(path)
    for item in items:
        key = f"cut@{item.slice.spelled(item.shape)}" if item.name == "cut" else item.name
        if item.dtype.name in ("string", "complex64", "complex128"):
            assert found[key].dtype == np.uint8, "bytes, of which the index says what they are"
        else:
            assert same(found[key], item.array), key
    head = json.loads(path.read_bytes()[8 : 8 + int.from_bytes(path.read_bytes()[:8], "little")])
    size = {"F32": 4, "F64": 8, "I64": 8, "U64": 8, "BF16": 2}
    assert all(
        entry["data_offsets"][0] % size.get(entry["dtype"], 1) == 0 for k, entry in head.items() if k != "__metadata__"
    )


def test_a_second_save_takes_the_place_of_the_first(tmp_path, item):
    prefix = str(tmp_path / "model")
    write(prefix, [item("w", np.zeros(3)), item("old", np.zeros(2))])
    with open_checkpoint(prefix) as before:
        write(prefix, [item("w", np.ones(4))])
        assert before.read("w").tolist() == [0, 0, 0], "whoever has it open reads on"
    assert len(os.listdir(tmp_path)) == 2 == len(files_of(prefix))
    with open_checkpoint(prefix) as after:
        assert after.read("w").tolist() == [1, 1, 1, 1] and list(after.tensors) == ["w"]


def test_the_folder_is_made_in_one_that_is_there(tmp_path, item):
    write(str(tmp_path / "new" / "model"), [item("w", np.zeros(3))])
    with pytest.raises(NotFoundError, match="a/b"):
        write(str(tmp_path / "a" / "b" / "model"), [item("w", np.zeros(3))])


@pytest.mark.parametrize(
    ("error", "parts"),
    [
        (InvalidArgumentError, [("w", np.zeros(2)), ("w", np.zeros(2))]),
        (InvalidArgumentError, [("w", np.zeros(2), (4,), "0,2"), ("w", np.zeros(2), (4,), "1,2")]),
        (InvalidArgumentError, [("w", np.zeros(2), (4,), "0,2"), ("w", np.zeros(2), (5,), "2,2")]),
        (InvalidArgumentError, [("w", np.zeros(2), (4,), "0,2"), ("w", np.zeros(2, np.int64), (4,), "2,2")]),
        (ShapeError, [("w", np.zeros(3), (4,), "0,2")]),
        (DTypeError, [("w", np.array(["text"], object))]),
    ],
)
def test_items_that_do_not_fit_are_refused_before_anything_is_written(tmp_path, item, error, parts):
    with pytest.raises(error, match="'w'"):
        write(str(tmp_path / "model"), [item(*part) for part in parts])
    assert os.listdir(tmp_path) == []


def test_one_writer_at_a_time(tmp_path, item):
    prefix = str(tmp_path / "model")
    inside, go = threading.Event(), threading.Event()

    def hold():
        with held(prefix):
            inside.set()
            go.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(30)
    try:
        with pytest.raises(FailedPreconditionError, match="another saver"):
            write(prefix, [item("w", np.zeros(3))])
    finally:
        go.set()
        thread.join()
    write(prefix, [item("w", np.zeros(3))])
    assert not os.path.exists(prefix + ".lock")


def test_parts_become_one(tmp_path, items):
    shards = [items[0::2], items[1::2]]
    prefixes = [str(tmp_path / "temp" / f"part-{i}") for i in range(2)]
    for prefix, shard in zip(prefixes, shards, strict=True):
        write(prefix, shard)
    merge(prefixes, str(tmp_path / "model"))
    assert sorted(n.split(".")[1] for n in os.listdir(tmp_path)) == [
        "data-00000-of-00002",
        "data-00001-of-00002",
        "index",
    ]
    with open_checkpoint(str(tmp_path / "model")) as found:
        for item in items:
            assert same(found.read(item.name, item.slice), item.array), item.name
    write(prefixes[0], items[:1])
    write(prefixes[1], items[:1])
    with pytest.raises(InvalidArgumentError, match="saved twice"):
        merge(prefixes, str(tmp_path / "model"))
    with open_checkpoint(str(tmp_path / "model")) as found:
        assert len(found.tensors) == len(items) - 1, "the one before stays"


def test_a_part_of_a_tensor_can_be_read_and_the_rest_is_said_to_be_missing(tmp_path, item):
    prefix = str(tmp_path / "model")
    write(prefix, [item("w", np.arange(3.0), (5,), "1,3")])
    with open_checkpoint(prefix) as found:
        assert found.read("w", Slice((2,), (2,))).tolist() == [1, 2]
        with pytest.raises(NotFoundError, match="only a part of the tensor 'w'"):
            found.read("w")


def test_removing_takes_what_is_the_checkpoints_and_nothing_else(tmp_path, item):
    prefix = str(tmp_path / "model-1")
    write(prefix, [item("w", np.zeros(3))])
    left = ["model-1.data-00000-of-00001.0123abcd.safetensors.89abcdef.tmp", "model-1.index.89abcdef.tmp"]
    others = ["model-10.index", "model-1.meta", "model-1.data", "xmodel-1.index"]
    for name in left + others:
        (tmp_path / name).touch()
    remove(prefix)
    assert sorted(os.listdir(tmp_path)) == sorted(others)


def test_a_save_needs_no_memory_of_the_size_of_its_variables(tmp_path, item):
    big = [item(f"w{i}", np.ones((1 << 20,), np.float32)) for i in range(8)]
    tracemalloc.start()
    write(str(tmp_path / "model"), big)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20, "32 MiB are saved"


def test_a_file_that_was_renamed_as_a_whole_is_the_same_checkpoint(tmp_path, item):
    write(str(tmp_path / "a"), [item("w", np.arange(4))])
    for path in files_of(str(tmp_path / "a")):
        os.rename(path, tmp_path / os.path.basename(path).replace("a", "b", 1))
    with open_checkpoint(str(tmp_path / "b")) as found:
        assert found.read("w").tolist() == [0, 1, 2, 3]


def test_pieces_are_summed_as_one(tmp_path, item, monkeypatch):
    monkeypatch.setattr(module, "_PIECE", 7)
    write(str(tmp_path / "model"), [item("w", np.arange(100))])
    with open_checkpoint(str(tmp_path / "model")) as found:
        assert found.read("w").tolist() == list(range(100))
