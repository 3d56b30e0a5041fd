"""Writing with faults at every call of the system: what was there stays, and the error says why."""

from __future__ import annotations

import errno
import os
import types

import numpy as np
import pytest
from graphdock.errors import (
    DataLossError,
    FailedPreconditionError,
    GraphdockError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
)
from graphdock_storage.checkpoint import files as module
from graphdock_storage.checkpoint import merge, open_checkpoint, write, writing
from graphdock_storage.checkpoint.files import explained, held, make_folder, read_into, replaced

FAULTS = {
    errno.ENOSPC: ResourceExhaustedError,
    errno.EACCES: PermissionDeniedError,
    errno.EROFS: PermissionDeniedError,
    errno.ENOENT: NotFoundError,
    errno.ENOTDIR: FailedPreconditionError,
    errno.ENAMETOOLONG: InvalidArgumentError,
    errno.EIO: UnavailableError,
}


class Faulty:
    """The module ``os``, whose calls that change files fail from one call on, or only that one."""

    def __init__(self, at, code, only_once, short=None):
        self.calls, self._at, self._code, self._once, self._short = [], at, code, only_once, short

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in ("open", "pwrite", "fsync", "replace", "mkdir"):
            return real

        def call(*args, **kwargs):
            self.calls.append(name)
            number = len(self.calls) - 1
            if number == self._at or (number > self._at >= 0 and not self._once):
                raise OSError(self._code, os.strerror(self._code))
            if name == "pwrite" and self._short:
                return os.pwrite(args[0], args[1][: self._short], args[2])
            return real(*args, **kwargs)

        return call


def install(monkeypatch, *args, **kwargs):
    faulty = Faulty(*args, **kwargs)
    monkeypatch.setattr(module, "os", faulty)
    monkeypatch.setattr(writing, "os", faulty)
    return faulty


def values(prefix):
    with open_checkpoint(prefix) as found:
        return {name: found.read(name).tolist() for name in found.tensors}


def saves(item, prefix, number):
    """One save, or two that are made one."""
    if "merged" not in prefix:
        return write(prefix, [item("w", np.full(3, number)), item("s", np.array([b"a"] * number, object))])
    parts = [prefix + "_temp/a", prefix + "_temp/b"]
    write(parts[0], [item("w", np.full(3, number))])
    write(parts[1], [item("s", np.array([b"a"] * number, object))])
    return merge(parts, prefix)


@pytest.mark.parametrize(
    ("kind", "once"),
    [
        pytest.param("plain", True, id="plain once"),
        pytest.param("plain", False, id="plain from then on"),
        pytest.param("merged", False, id="merged from then on", marks=pytest.mark.slow),
        pytest.param("merged", True, id="merged once", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.sampled(2)
def test_a_fault_at_every_call_leaves_a_whole_checkpoint(tmp_path, item, monkeypatch, kind, once):
    prefix = str(tmp_path / kind)
    faulty = install(monkeypatch, -1, 0, once)
    saves(item, prefix, 1)
    first = values(prefix)
    saves(item, prefix, 2)
    count, codes = len(faulty.calls), list(FAULTS)
    assert {"open", "pwrite", "fsync", "replace"} <= set(faulty.calls) and count > 15
    current, second = values(prefix), values(prefix)
    raised = 0
    for at in range(count):
        code = codes[at % len(codes)]
        install(monkeypatch, at, code, once)
        number = at % 2 + 1
        try:
            saves(item, prefix, number)
        except GraphdockError as error:
            raised += 1
            assert isinstance(error, FAULTS[code]) and str(tmp_path) in error.message, at
        monkeypatch.undo()
        found = values(prefix)
        assert found in (current, first if number == 1 else second), "the one before, or the new one"
        current = found
        saves(item, prefix, 1)  # a retry works, and cleans up
        current = values(prefix)
        assert len([p for p in tmp_path.iterdir() if p.is_file()]) == (2 if kind == "plain" else 3), at
    assert raised >= count // 3


def test_bytes_are_on_the_disk_before_names_and_the_index_is_last(tmp_path, item, monkeypatch):
    """The order that survives a power cut: data, its name, the folder, the index, its name, the folder."""
    seen, paths = [], {}

    class Recorder(Faulty):
        def __getattr__(self, name):
            real = getattr(os, name)

            def call(*args, **kwargs):
                done = real(*args, **kwargs)
                if name == "open":
                    paths[done] = args[0]
                kind = {"pwrite": paths.get(args[0]), "fsync": paths.get(args[0]), "replace": args[-1]}.get(name)
                if kind is not None:
                    seen.append((name, "index" if ".index" in kind else "data" if ".data" in kind else "folder"))
                return done

            return call if name in ("open", "pwrite", "fsync", "replace") else real

    monkeypatch.setattr(module, "os", Recorder(-1, 0, True))
    write(str(tmp_path / "m"), [item("w", np.zeros(3))])
    assert list(dict.fromkeys(seen[:4])) == [("pwrite", "data"), ("fsync", "data"), ("replace", "data")]
    assert seen[4:] == [
        ("fsync", "folder"),
        ("pwrite", "index"),
        ("fsync", "index"),
        ("replace", "index"),
        ("fsync", "folder"),
    ]


def test_an_interrupt_behind_the_last_rename_loses_nothing(tmp_path, item, monkeypatch):
    prefix = str(tmp_path / "m")
    write(prefix, [item("w", np.zeros(3))])

    def replace(source, target):
        os.rename(source, target)
        if target.endswith(".index"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "os", types.SimpleNamespace(**{**vars(os), "replace": replace}))
        with pytest.raises(KeyboardInterrupt):
            write(prefix, [item("w", np.ones(3))])
    assert values(prefix) == {"w": [1, 1, 1]}


def test_short_writes_are_continued(tmp_path, item, monkeypatch):
    install(monkeypatch, -1, 0, True, short=5)
    write(str(tmp_path / "m"), [item("w", np.arange(50))])
    monkeypatch.undo()
    assert values(str(tmp_path / "m")) == {"w": list(range(50))}


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = str(tmp_path / "f")
    with replaced(path) as sink:
        sink.write(b"one", 0)
    with pytest.raises(ZeroDivisionError), replaced(path) as sink:
        sink.write(b"two", 0)
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["f"] and (tmp_path / "f").read_text() == "one"


def test_reading_behind_the_end_is_a_loss(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"12345")
    with open(path, "rb") as file:
        out = bytearray(3)
        read_into(file.fileno(), 1, out, str(path))
        assert out == b"234"
        with pytest.raises(DataLossError, match="cut off"):
            read_into(file.fileno(), 3, out, str(path))


def test_a_lock_whose_file_was_removed_is_taken_anew(tmp_path, monkeypatch):
    """Between opening and locking, the holder gives the lock back and removes its file."""
    prefix, tries = str(tmp_path / "m"), []
    real = module.lock

    def lock(fd):
        if not tries:
            tries.append(os.unlink(prefix + ".lock"))
        return real(fd)

    monkeypatch.setattr(module, "lock", lock)
    with held(prefix):
        assert os.path.exists(prefix + ".lock"), "it holds the file that has the name"


def test_folders(tmp_path):
    make_folder("")
    make_folder(str(tmp_path / "a"))
    make_folder(str(tmp_path / "a"))
    (tmp_path / "f").touch()
    with pytest.raises(FailedPreconditionError, match="f/b"):
        make_folder(str(tmp_path / "f" / "b"))


def test_what_has_no_class_of_its_own_is_unavailable():
    error = explained(OSError(errno.EIO, "Input/output error"), "cannot write", "/x", hint="h")
    assert (
        type(error) is UnavailableError
        and error.message == "cannot write '/x': Input/output error"
        and error.hint == "h"
    )
