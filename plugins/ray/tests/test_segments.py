"""Segments: what is lent, given back, filled anew, refused, and removed with its maker."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock_ray import segments
from graphdock_ray.segments import LEAST, Segments, opened

pytestmark = pytest.mark.skipif(not segments.machine(), reason="there are no segments")


@pytest.fixture
def made():
    found = Segments()
    yield found
    found.close()


def files():
    """Numbers of the segments that this process has open."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{fd}").removeprefix("/memfd:graphdock-").removesuffix(" (deleted)"))
    return found


def test_a_large_frame_is_read_in_place_and_its_segment_is_filled_anew_when_it_was_read(made):
    data = np.arange(LEAST, dtype=np.uint8)
    frames, lent = made.lend([b"small", data.data], b"reader")
    assert frames == [b"small", b""]
    small, view = opened(frames, lent)
    array = np.frombuffer(view, np.uint8)
    part = array[5:9]
    np.testing.assert_array_equal(array, data)
    assert array.flags.writeable and small == b"small"
    _, second = made.lend([data.data], b"reader")
    assert second[0][1] != lent[0][1], "the first is still read"
    del view, array
    _, third = made.lend([data.data], b"reader")
    assert third[0][1] not in (lent[0][1], second[0][1]), "a view of it is left"
    del part
    _, fourth = made.lend([data.data], b"reader")
    assert fourth[0][1] == lent[0][1]


def test_what_a_lost_reader_has_is_given_up_and_not_filled_anew(made):
    data = bytes(LEAST)
    _, lent = made.lend([data], b"lost")
    (view,) = opened([b""], lent)
    made.forget(b"lost")
    segments._mappings.clear()
    with pytest.raises(tf.errors.DataLossError, match="is no segment"):
        opened([b""], lent)
    assert made.lend([data], b"other")[1][0][1] != lent[0][1]
    view[0] = b"x"  # its memory is still there


@pytest.mark.parametrize(
    "name",
    [
        "0/0/0123456789abcdef",
        "{pid}/{fd}/0123456789abcdef",
        "{pid}/{fd}",
        "self/{fd}/0123456789abcdef",
        "../etc/passwd",
    ],
)
def test_no_other_file_is_opened(name, tmp_path):
    with open(tmp_path / "other", "w+b") as other:
        other.write(bytes(9000))
        with pytest.raises(tf.errors.DataLossError, match="is no segment"):
            opened([b""], [[0, name.format(pid=os.getpid(), fd=other.fileno()), 9]])


def test_a_size_that_the_segment_does_not_have_is_refused(made):
    _, ((number, name, size),) = made.lend([bytes(LEAST)], b"reader")
    for wrong in (-1, size + 1):
        with pytest.raises(tf.errors.DataLossError, match="has no"):
            opened([b""], [(number, name, wrong)])


def test_where_there_is_no_room_a_frame_stays(made, monkeypatch):
    def full(*unused):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(segments.os, "posix_fallocate", full)
    before = files()
    assert made.lend([bytes(LEAST)], b"reader") == ([bytes(LEAST)], [])
    assert files() == before


@pytest.mark.slow
def test_nothing_is_left_of_a_process_that_is_killed():
    text = (
        "import sys; from graphdock_ray.segments import *; s = Segments();"
        "print(s.lend([b'x' * LEAST], b'')[1][0][1], flush=True); sys.stdin.read()"
    )
    before = set(Path("/dev/shm").glob("graphdock-*"))
    maker = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    name = maker.stdout.readline().strip()
    (view,) = opened([b""], [(0, name, LEAST)])
    maker.kill()
    maker.communicate()
    assert bytes(view) == b"x" * LEAST, "who reads it still can"
    del view
    assert set(Path("/dev/shm").glob("graphdock-*")) <= before
    with pytest.raises(tf.errors.DataLossError):
        segments._mappings.clear()
        opened([b""], [(0, name, LEAST)])
