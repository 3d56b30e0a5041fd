"""The file ``checkpoint``: TensorFlow's text, written and read."""

from __future__ import annotations

import os

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import FailedPreconditionError, InvalidArgumentError
from graphdock_storage.checkpoint import write
from graphdock_tf1.train.checkpoint_state import CheckpointState
from hypothesis import given
from hypothesis import strategies as st

#: What protocol buffers print of a message, and what they print.
TEXT = """\
model_checkpoint_path: "/a/m-4"
all_model_checkpoint_paths: "/a/\\303\\274-3"
all_model_checkpoint_paths: "/a/m-4"
all_model_checkpoint_timestamps: 1.5
all_model_checkpoint_timestamps: 2.0
last_preserved_timestamp: 1.25
"""
STATE = CheckpointState("/a/m-4", ["/a/ü-3", "/a/m-4"], [1.5, 2.0], 1.25)


def test_the_text_is_that_of_protocol_buffers():
    assert str(STATE) == TEXT and CheckpointState.parse(TEXT) == STATE


@given(st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1), min_size=1))
def test_any_path_comes_back(paths):
    state = CheckpointState(paths[-1], paths)
    assert CheckpointState.parse(str(state)) == state


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("model_checkpoint_path: 'a'", "a"),
        ('# by hand\n  model_checkpoint_path:"a" ;', "a"),
        ("model_checkpoint_path: \"a\" \n 'b'", "ab"),
        (r'model_checkpoint_path: "a\x41\101\n\"\\"', 'aAA\n"\\'),
        ('model_checkpoint_path: "ü"', "ü"),
    ],
)
def test_spellings_of_protocol_buffers(text, path):
    assert CheckpointState.parse(text).model_checkpoint_path == path


@pytest.mark.parametrize(
    "text", ["x", "model_checkpoint_path: 3", 'path: "a"', 'model_checkpoint_path: "a', "last_preserved_timestamp: x"]
)
def test_other_text_is_refused(text, tmp_path, caplog):
    with pytest.raises(InvalidArgumentError, match="checkpoint state"):
        CheckpointState.parse(text)
    (tmp_path / "checkpoint").write_text(text)
    assert tf.train.get_checkpoint_state(str(tmp_path)) is None and "is no list of checkpoints" in caplog.text


def test_what_is_written_is_found(tmp_path, item_of, monkeypatch, caplog):
    folder = str(tmp_path)
    assert tf.train.get_checkpoint_state(folder) is None and tf.train.latest_checkpoint(folder) is None
    assert tf.train.latest_checkpoint(str(tmp_path / "none")) is None
    item_of(folder + "/m-2")
    tf.train.update_checkpoint_state(folder, folder + "/m-2", [folder + "/m-1"], None, [1.0, 2.0], 1.0)
    state = tf.train.get_checkpoint_state(folder)
    assert state.all_model_checkpoint_paths == [folder + "/m-1", folder + "/m-2"]
    assert state.all_model_checkpoint_timestamps == [1.0, 2.0] and state.last_preserved_timestamp == 1.0
    assert tf.train.latest_checkpoint(folder) == folder + "/m-2"
    os.unlink(folder + "/m-2.index")
    assert tf.train.latest_checkpoint(folder) is None and "is gone" in caplog.text
    (tmp_path / "checkpoint").write_text("all_model_checkpoint_paths: 'a'")
    with pytest.raises(ValueError, match="no last checkpoint"):
        tf.train.get_checkpoint_state(folder)


def test_a_path_may_be_bytes_that_are_no_text(tmp_path):
    (tmp_path / "checkpoint").write_bytes(b'model_checkpoint_path: "/a\xffb"')
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == os.fsdecode(b"/a\xffb")
    state.all_model_checkpoint_paths = [state.model_checkpoint_path]
    assert CheckpointState.parse(str(state)) == state


@pytest.fixture
def item_of(tmp_path):
    from graphdock.dtypes import float32
    from graphdock_storage.checkpoint import Item, Slice

    return lambda prefix: write(prefix, [Item("w", np.zeros(2, np.float32), float32, (2,), Slice((0,), (2,)))])


def test_relative_paths(tmp_path, item_of, monkeypatch):
    """As TensorFlow rewrites them: relative to a relative folder, so that both are read from where they are."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("d")
    item_of("d/m-1")
    made = tf.train.generate_checkpoint_state_proto("d", "d/m-1", ["d/m-0"])
    assert (made.model_checkpoint_path, made.all_model_checkpoint_paths) == ("m-1", ["m-0", "m-1"])
    tf.train.update_checkpoint_state("d", "d/m-1")
    assert tf.train.latest_checkpoint("d") == "d/m-1"
    here = tf.train.generate_checkpoint_state_proto("", "m-1")
    assert here.model_checkpoint_path == "m-1"
    absolute = tf.train.generate_checkpoint_state_proto("/d", "m-1")
    assert absolute.model_checkpoint_path == "m-1"


def test_what_cant_be_written(tmp_path):
    with pytest.raises(ValueError, match="timestamp"):
        tf.train.generate_checkpoint_state_proto("d", "m-1", ["m-0"], [1.0])
    path = str(tmp_path / "checkpoint")
    with pytest.raises(FailedPreconditionError, match="name of the file"):
        tf.train.update_checkpoint_state(str(tmp_path), path)
    assert os.listdir(tmp_path) == []
