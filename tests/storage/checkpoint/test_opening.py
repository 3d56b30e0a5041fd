"""What a prefix names, and what is said when it names nothing."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.errors import DataLossError, InvalidArgumentError, NotFoundError
from graphdock_storage.checkpoint import exists, open_checkpoint, write
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
    (tmp_path / "old").touch()
    assert [exists(str(tmp_path / n)) for n in ("model", "old", "folder", "none", "a\0b")] == [
        True,
        True,
        False,
        False,
        False,
    ]


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
