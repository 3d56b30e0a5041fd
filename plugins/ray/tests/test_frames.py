"""Small messages as one frame, and what is no such frame."""

from __future__ import annotations

import numpy as np
import pytest
import zmq
from graphdock.errors import DataLossError
from graphdock_ray.peer import SMALL, join, split

HEAD = b"C" + bytes(8)


@pytest.mark.parametrize("frames", [[], [b""], [b"a", b"", b"bcd"], [np.arange(3, dtype=np.uint8).data, b"x" * 60_000]])
def test_a_small_message_is_one_frame_and_comes_apart_again(frames):
    head, found = split(memoryview(join(HEAD, frames)))
    assert head == HEAD
    assert [bytes(f) for f in found] == [bytes(f) for f in frames]


def test_a_large_message_stays_in_frames():
    assert join(HEAD, [bytes(SMALL), b"1"]) is None
    assert split(memoryview(HEAD), [zmq.Frame(b"1")]) == (HEAD, [b"1"])


@pytest.mark.parametrize("cut", range(20))
def test_a_cut_frame_is_refused(cut):
    whole = join(HEAD, [b"abc"])
    assert len(whole) == 20
    with pytest.raises(DataLossError, match="damaged"):
        split(memoryview(whole[:cut]))
