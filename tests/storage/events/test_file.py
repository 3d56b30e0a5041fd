"""Event files: their names, and that they never end within a record, whatever the system refuses."""

from __future__ import annotations

import errno
import os
import re

import pytest
from graphdock.errors import FailedPreconditionError, NotFoundError, PermissionDeniedError, ResourceExhaustedError
from graphdock.messages import Event
from graphdock_storage.events import file as module
from graphdock_storage.events.file import EventFile
from graphdock_storage.records import framed, read_records


def contents(file):
    return list(read_records(file.path))


def test_the_first_event_says_what_file_it_is(tmp_path):
    file = EventFile(str(tmp_path / "a" / "b"), ".suffix")
    assert re.fullmatch(r"events\.out\.tfevents\.\d{10}\.[^/]+\.suffix", os.path.basename(file.path))
    (first,) = map(Event.FromString, contents(file))
    assert first.file_version == "brain.Event:2" and first.wall_time > 1.7e9
    file.close()
    file.close()


def test_no_two_files_have_one_name(tmp_path, monkeypatch):
    monkeypatch.setattr(module.time, "time", lambda: 5.25)
    files = [EventFile(str(tmp_path)) for _ in range(3)]
    assert len({f.path for f in files}) == 3
    for file in files:
        assert Event.FromString(contents(file)[0]).wall_time == 5.25
        file.close()


def test_what_the_system_refuses_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(FailedPreconditionError, match="folder"):
        EventFile(str(tmp_path / "file"))
    with pytest.raises(FailedPreconditionError):
        EventFile(str(tmp_path / "file" / "below"))


@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("truncates", [True, False])
def test_a_failing_write_leaves_whole_records(tmp_path, monkeypatch, after, truncates):
    """The disk is full after some bytes of a record; it may also fail to take them back at once."""
    file = EventFile(str(tmp_path))
    write, truncate = os.write, os.ftruncate
    left = [after * 5]

    def full(fd, data):
        if not left[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = min(left[0], len(data))
        left[0] -= count
        return write(fd, data[:count])

    def refuses(fd, size):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(module.os, "write", full)
    if not truncates:
        monkeypatch.setattr(module.os, "ftruncate", refuses)
    with pytest.raises(ResourceExhaustedError, match="No space left") as caught:
        file.append(framed(b"one") + framed(b"two"))
    assert file.path in str(caught.value)
    if truncates:
        assert len(contents(file)) == 1
    monkeypatch.setattr(module.os, "write", write)
    monkeypatch.setattr(module.os, "ftruncate", truncate)
    file.append(framed(b"three"))
    assert contents(file)[1:] == [b"three"]
    file.close()


def test_a_full_disk_at_the_beginning_leaves_no_file(tmp_path, monkeypatch):
    def full(fd, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module.os, "write", full)
    with pytest.raises(ResourceExhaustedError):
        EventFile(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_removed_is_missed(tmp_path):
    file = EventFile(str(tmp_path))
    os.unlink(file.path)
    with pytest.raises(NotFoundError, match="disappeared"):
        file.append(framed(b"x"))
    file.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionDeniedError):
        EventFile(str(tmp_path))
