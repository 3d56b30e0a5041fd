"""Files by TensorFlow's names: what they do, and which error each refusal is."""

from __future__ import annotations

import os

import graphdock as tf
import pytest

gfile = tf.gfile


def test_folders_are_made_listed_walked_and_removed(tmp_path) -> None:
    top = str(tmp_path / "logs")
    gfile.MakeDirs(top + "/a/b")
    gfile.MakeDirs(top + "/a/b")
    gfile.MkDir(top + "/c")
    for name in ("a/2.txt", "a/1.txt", "c/x.bin"):
        gfile.Open(f"{top}/{name}", "w").close()
        with gfile.GFile(f"{top}/{name}", "w") as file:
            file.write(name)
    assert (
        gfile.ListDirectory(top) == ["a", "c"] and gfile.IsDirectory(top + "/a") and not gfile.IsDirectory(top + "/z")
    )
    assert gfile.Glob(top + "/*/*.txt") == [f"{top}/a/1.txt", f"{top}/a/2.txt"]
    assert gfile.Glob([top + "/c/*", top + "/a/1*"]) == [f"{top}/a/1.txt", f"{top}/c/x.bin"]
    walked = [(os.path.relpath(path, top), folders, files) for path, folders, files in gfile.Walk(top)]
    assert walked == [(".", ["a", "c"], []), ("a", ["b"], ["1.txt", "2.txt"]), ("a/b", [], []), ("c", [], ["x.bin"])]
    gfile.Copy(top + "/c/x.bin", top + "/y")
    gfile.Rename(top + "/y", top + "/z")
    assert gfile.Stat(top + "/z").length == 7 and not gfile.Stat(top + "/z").is_directory
    gfile.Remove("file://" + top + "/z")
    os.symlink(top + "/a", top + "/link")
    gfile.DeleteRecursively(top + "/link")
    assert gfile.Exists(top + "/a/1.txt")
    gfile.DeleteRecursively(top)
    assert not gfile.Exists(top)


def test_a_file_is_text_or_bytes_as_its_mode_says(tmp_path) -> None:
    path = tmp_path / "text"
    with gfile.FastGFile(path, "wb") as file:
        file.write("größe\n")
        file.write(b"two\nthree")
        assert file.size() == 17
    file = gfile.GFile(path)
    assert file.read(8) == "größe\n" and file.readline() == "two\n" and file.readlines() == ["three"]
    file.seek(8)
    assert file.tell() == 8 and list(file) == ["two\n", "three"]
    file.close()
    assert next(file) == "größe\n"  # a closed one is opened again, as TensorFlow's is
    assert gfile.GFile(path, "rb").read() == "größe\ntwo\nthree".encode()
    with gfile.GFile(path, "a") as file:
        file.write("!")
    assert gfile.GFile(path).read().endswith("three!")


def test_refusals_are_graphdock_s_errors(tmp_path) -> None:
    there, folder, gone = str(tmp_path / "f"), str(tmp_path), str(tmp_path / "no" / "x")
    with gfile.GFile(there, "w") as file:
        file.write("x")
    errors = tf.errors
    for kind, call in [
        (errors.NotFoundError, lambda: gfile.GFile(gone).read()),
        (errors.NotFoundError, lambda: gfile.ListDirectory(gone)),
        (errors.NotFoundError, lambda: gfile.Remove(gone)),
        (errors.NotFoundError, lambda: gfile.DeleteRecursively(gone)),
        (errors.NotFoundError, lambda: gfile.MkDir(gone)),
        (errors.NotFoundError, lambda: gfile.Stat(gone)),
        (errors.NotFoundError, lambda: gfile.Copy(gone, there + "2")),
        (errors.AlreadyExistsError, lambda: gfile.MkDir(folder)),
        (errors.AlreadyExistsError, lambda: gfile.Copy(there, there)),
        (errors.AlreadyExistsError, lambda: gfile.Rename(there, folder)),
        (errors.FailedPreconditionError, lambda: gfile.Remove(folder)),
        (errors.FailedPreconditionError, lambda: gfile.MakeDirs(there)),
        (errors.UnimplementedError, lambda: gfile.Exists("nowhere://bucket/x")),
    ]:
        with pytest.raises(kind):
            call()
    assert gfile.GFile(there).read() == "x"
