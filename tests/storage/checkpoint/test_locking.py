"""One holder of a lock at a time, with either system's calls."""

from __future__ import annotations

import os

import graphdock as tf
import pytest
from graphdock_storage.checkpoint import files, locking


class Windows:
    """msvcrt: a byte range that is locked refuses with PermissionError."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self):
        self.held = set()

    def locking(self, fd, mode, nbytes):
        assert nbytes == 1
        key = os.fstat(fd).st_ino
        if mode == self.LK_UNLCK:
            self.held.remove(key)
        elif key in self.held:
            raise PermissionError(13, "Permission denied")
        else:
            self.held.add(key)


class FewCalls:
    """The module os of a system without ``pwrite``, ``preadv`` and folders that can be opened."""

    def __getattr__(self, name):
        if name in ("pwrite", "preadv", "O_DIRECTORY"):
            raise AttributeError(name)
        return getattr(os, name)


@pytest.mark.parametrize("system", ["posix", "windows"])
def test_two_holders(tmp_path, monkeypatch, system):
    if system == "windows":
        monkeypatch.setattr(locking, "_fcntl", None)
        monkeypatch.setattr(locking, "_msvcrt", Windows())
    fds = [os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2)]
    locking.lock(fds[0])
    with pytest.raises(BlockingIOError):
        locking.lock(fds[1])
    locking.unlock(fds[0])
    locking.lock(fds[1])
    locking.unlock(fds[1])
    for fd in fds:
        os.close(fd)


def test_a_system_without_locks_says_so(tmp_path, monkeypatch):
    for name in ("_fcntl", "_msvcrt"):
        monkeypatch.setattr(locking, name, None)
    with (
        pytest.raises(tf.errors.FailedPreconditionError, match="neither fcntl nor msvcrt"),
        files.held(str(tmp_path / "m")),
    ):
        pytest.fail("nobody holds it")


def test_a_checkpoint_on_a_system_with_fewer_calls(tmp_path, monkeypatch):
    """All that a Saver does to files, with what every system has."""
    monkeypatch.setattr(locking, "_fcntl", None)
    monkeypatch.setattr(locking, "_msvcrt", Windows())
    monkeypatch.setattr(files, "os", FewCalls())
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", initializer=[1.0, 2.0])
        w = tf.get_variable("w", initializer=tf.constant(["a", "bc"]))
        saver = tf.train.Saver()
        sess.run(tf.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "m"))
        sess.run([v.assign([0.0, 0.0]), w.assign(["", ""])])
        saver.restore(sess, path)
        assert sess.run(v).tolist() == [1.0, 2.0] and sess.run(w).tolist() == [b"a", b"bc"]
