"""Segments: what is lent, given back, filled anew, refused, and removed with its maker."""

from __future__ import annotations

import subprocess
import sys

import graphdock as tf
import numpy as np
import pytest
from graphdock_ray import segments
from graphdock_ray.segments import LEAST, Segments, opened

pytestmark = pytest.mark.skipif(not segments.machine(), reason="there is no /dev/shm")


@pytest.fixture
def made():
    found = Segments()
    yield found
    found.close()


def files():
    return {path.name for path in segments.FOLDER.glob("graphdock-*")}


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
    assert lent[0][1] not in files()
    assert made.lend([data], b"other")[1][0][1] != lent[0][1]
    view[0] = b"x"  # its memory is still there


@pytest.mark.parametrize(
    "lent", [[0, "graphdock-0123456789abcdef", 9], [0, "../etc/passwd", 9], [0, "graphdock-0123", 9]]
)
def test_no_other_file_is_opened(lent):
    with pytest.raises(tf.errors.DataLossError):
        opened([b""], [lent])


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
def test_what_a_killed_process_left_is_removed_by_the_next_one():
    text = (
        "import os; from graphdock_ray.segments import *; s = Segments();"
        "print(s.lend([bytes(LEAST)], b'')[1][0][1], flush=True); os.kill(os.getpid(), 9)"
    )
    name = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, check=False).stdout.decode().strip()
    assert name in files()
    Segments().close()
    assert name not in files()
