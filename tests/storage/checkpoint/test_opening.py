"""What a prefix names, and what is said when it names nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from graphdock.contracts import CheckpointFormat
from graphdock.dtypes import float32
from graphdock.errors import DataLossError, InvalidArgumentError, NotFoundError
from graphdock_storage.checkpoint import Checkpoint, Slice, Stored, exists, open_checkpoint, write
from graphdock_storage.checkpoint import opening as module
from graphdock_storage.checkpoint.opening import read_index


def test_nothing_there_names_what_is_near(tmp_path, item):
    write(str(tmp_path / "model-10"), [item("w", np.zeros(3))])
    for opened in (open_checkpoint, read_index):
        with pytest.raises(NotFoundError, match="model-11'") as caught:
            opened(str(tmp_path / "model-11"))
        assert "model-10" in caught.value.hint
    with pytest.raises(NotFoundError, match="nowhere"):
        open_checkpoint(str(tmp_path / "nowhere" / "model"))


def test_exists(tmp_path, item):
    write(str(tmp_path / "model"), [item("w", np.zeros(3))])
    (tmp_path / "folder").mkdir()
    names = ("model", "folder", "none", "a\0b")
    assert [exists(str(tmp_path / n)) for n in names] == [True, False, False, False]


class Lines(CheckpointFormat):
    """A checkpoint of text: a line for each tensor, with its name and its numbers."""

    name = "lines"

    def exists(self, prefix):
        return Path(prefix + ".txt").is_file()

    def open(self, prefix):
        return _OfLines(prefix)


class _OfLines(Checkpoint):
    format = "lines"

    def __init__(self, prefix):
        super().__init__(prefix, {})
        for line in Path(prefix + ".txt").read_text().splitlines():
            name, *numbers = line.split()
            values = np.array(numbers, np.float32)
            self.tensors[name] = Stored(float32, values.shape, (Values(Slice.whole(values.shape), values),))

    def part(self, name, stored, part):
        return part.values

    def close(self):
        pass


@dataclass(frozen=True)
class Values:
    slice: Slice
    values: object


def test_other_formats_are_asked_when_it_is_none_of_ours(tmp_path, item):
    """In the order in which they are given, and only then."""
    asked = []

    def others():
        asked.append(1)
        return [Lines()]

    prefix = str(tmp_path / "model")
    Path(prefix + ".txt").write_text("w 1 2 3\nb 4\n")
    assert not exists(prefix) and exists(prefix, others)
    with open_checkpoint(prefix, others) as found:
        assert found.format == "lines" and found.read("w").tolist() == [1, 2, 3] and sorted(found.tensors) == ["b", "w"]
        assert found.read("w", Slice.parse("1,2", (3,))).tolist() == [2, 3]
    assert len(asked) == 2
    write(prefix, [item("v", np.zeros(3))])
    with open_checkpoint(prefix, others) as found:
        assert found.format == "graphdock" and exists(prefix, others) and len(asked) == 2
    (tmp_path / "model.index").write_text("something else")
    with open_checkpoint(prefix, others) as found:
        assert found.format == "lines"
    with pytest.raises(DataLossError, match="no index of a checkpoint"):
        open_checkpoint(prefix)


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"format": 3}', b"\xff" * 100, b"x" * 200, b"[" * 100_000])
def test_another_kind_of_file_is_no_index(tmp_path, text):
    (tmp_path / "m.index").write_bytes(text)
    for opened in (open_checkpoint, read_index):
        with pytest.raises(DataLossError, match="no index of a checkpoint"):
            opened(str(tmp_path / "m"))


def test_a_path_with_a_zero_byte_is_an_argument_that_is_wrong():
    with pytest.raises(InvalidArgumentError, match="null byte"):
        open_checkpoint("a\0b")


def test_a_save_between_index_and_data_is_waited_for(tmp_path, item, monkeypatch):
    """The old index was read, and its data file is gone before it is opened: the new checkpoint is what is opened."""
    prefix = str(tmp_path / "m")
    write(prefix, [item("w", np.zeros(3))])
    made, saves = module.SafetensorsCheckpoint, iter([np.ones(3), np.full(3, 2.0)])

    def late(*args):
        array = next(saves, None)
        if array is not None:
            write(prefix, [item("w", array)])
        return made(*args)

    monkeypatch.setattr(module, "SafetensorsCheckpoint", late)
    with open_checkpoint(prefix) as found:
        assert found.read("w").tolist() == [2, 2, 2]
