"""The thread of a transport's sockets, as it ends while others give it something to do."""

from __future__ import annotations

import os
from typing import Any

import pytest

pytest.importorskip("zmq")

from graphdock_ray import zeromq


def test_who_wakes_the_thread_as_it_ends_writes_to_nothing_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have done what it was given before it is woken."""
    transport = zeromq.ZeroMQTransport()
    loop, write = transport._running(), os.eventfd_write

    def late(fd: int, number: int) -> None:
        with loop._driving:  # let the thread have its turn
            loop._turn([])
        write(fd, number)

    monkeypatch.setattr(zeromq.os, "eventfd_write", late)
    transport.close()
    assert loop._stopped
    # what comes behind the last turn is done, or fails, on the asker's own thread
    monkeypatch.setattr(zeromq.os, "eventfd_write", write)
    assert loop.ask(lambda stopped: 1).result(timeout=60) == 1

    def fails(stopped: Any) -> None:
        raise ValueError("too late")

    with pytest.raises(ValueError, match="too late"):
        loop.ask(fails).result(timeout=60)
