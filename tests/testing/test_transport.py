"""The seeded transport: calls and posts arrive in an order that a seed draws, as packed messages, until a task is cut off."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock import errors
from graphdock_testing.transport import SeededTransport


def received(seed):
    """The order in which 20 posts arrive."""
    network, found = SeededTransport(seed), []
    network.serve("a:1", lambda method, arguments: found.append(arguments["n"]), lambda session: None)
    with network._ready:
        for n in range(20):
            network._count += 0  # all are queued before the first is delivered
            network.post("a:1", "note", {"n": n})
    network.call("a:1", "note", {"n": -1}).result(30)
    while len(found) < 21:
        pass
    return [n for n in found if n >= 0]


def test_the_order_is_the_seeds():
    assert received(1) == received(1) != received(2)
    assert sorted(received(1)) == list(range(20)) != received(1)


def test_a_call_answers_with_copies_or_raises_its_error():
    network = SeededTransport()
    sent = np.arange(3.0)

    def answer(method, arguments):
        if method == "fail":
            raise errors.ShapeError("no", op="x")
        arguments["x"] += 1
        return arguments["x"]

    network.serve("a:1", answer, lambda session: None)
    assert network.call("a:1", "add", {"x": sent}).result(30).tolist() == [1, 2, 3] and sent.tolist() == [0, 1, 2]
    with pytest.raises(errors.ShapeError) as caught:
        network.call("a:1", "fail", {}).result(30)
    assert caught.value.op == "x"


def test_a_task_that_is_cut_off_answers_nothing_and_who_waits_is_told():
    import threading

    network, go = SeededTransport(), threading.Event()
    network.serve("a:1", lambda method, arguments: go.wait(30), lambda session: None)
    waiting = network.call("a:1", "wait", {})
    network.kill("a:1")
    for call in (waiting, network.call("a:1", "wait", {}), network.call("b:1", "wait", {})):
        with pytest.raises(errors.UnavailableError):
            call.result(30)
    go.set()
