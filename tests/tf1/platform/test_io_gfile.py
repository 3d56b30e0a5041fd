"""tf.io.gfile is tf.gfile by later names."""

from __future__ import annotations

import inspect

import graphdock as tf
import pytest

io = tf.io.gfile


def test_files_and_folders(tmp_path):
    top = str(tmp_path / "a" / "b")
    io.makedirs(top)
    io.mkdir(path=top + "/c")
    with io.GFile(top + "/one", "w") as file:
        file.write("text")
    io.copy(src=top + "/one", dst=top + "/two")
    with pytest.raises(tf.errors.AlreadyExistsError):
        io.rename(top + "/one", top + "/two")
    io.rename(top + "/one", top + "/two", overwrite=True)
    assert io.listdir(top) == ["c", "two"] and io.glob(top + "/t*") == [top + "/two"]
    assert io.isdir(top) and not io.exists(top + "/one") and io.stat(top + "/two").length == 4
    assert list(io.walk(top=top, topdown=False)) == [(top + "/c", [], []), (top, ["c"], ["two"])]
    io.remove(top + "/two")
    io.rmtree(str(tmp_path / "a"))
    assert not io.exists(top)


def test_a_walk_tells_of_a_folder_that_is_not_there(tmp_path):
    told = []
    assert list(io.walk(str(tmp_path / "none"), onerror=told.append)) == []
    assert [type(error).__name__ for error in told] == ["NotFoundError"]


def test_names_of_arguments_are_tensorflow_2s():
    """As its API pages have them."""
    expected = {"copy": "src dst overwrite", "rename": "src dst overwrite", "walk": "top topdown onerror"}
    for name in "exists glob isdir listdir makedirs mkdir remove rmtree stat".split():
        expected[name] = "pattern" if name == "glob" else "path"
    for name, arguments in expected.items():
        assert list(inspect.signature(getattr(io, name)).parameters) == arguments.split(), name
