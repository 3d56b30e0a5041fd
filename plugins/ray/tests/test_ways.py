"""Ways: small messages between processes of one machine pass ZeroMQ by; strangers, damaged messages, and ends that do not read."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from concurrent.futures import Future

import graphdock as tf
import numpy as np
import pytest
import zmq
from graphdock.contracts import WaitingThreads
from graphdock_ray.peer import HELLO, join, split
from graphdock_ray.segments import machine
from graphdock_ray.way import Door, Way
from graphdock_ray.zeromq import ZeroMQTransport

from benchmarks.links import Link


class Task:
    """Served at an address: it answers with what it was asked, and notes what was posted."""

    def __init__(self):
        self.posted, self.gone, self.transport = [], [], ZeroMQTransport()
        self.address = self.transport.serve(self.transport.sample_address(), self.answer, self.gone.append)

    def answer(self, method, arguments):
        if method == "post":
            self.posted.append(arguments["n"])
        if method == "never":
            return Future()
        return {"method": method, **arguments}


@pytest.fixture
def task():
    made = Task()
    yield made
    made.transport.close()


@pytest.fixture
def caller():
    made = ZeroMQTransport()
    yield made
    made.close()


def invited(address):
    """A connection of ZeroMQ's, and the name and token that it was told by the listener at an address."""
    stranger = zmq.Context.instance().socket(zmq.DEALER)
    stranger.setsockopt(zmq.LINGER, 0)
    stranger.connect(f"tcp://{address}")
    stranger.send(join(HELLO + bytes(8), [machine()]))
    _, frames = split(memoryview(stranger.recv()))
    of, name, token = (bytes(f) for f in frames)
    assert of == machine()
    return stranger, name, token


def at_the_door(name):
    end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    end.settimeout(30)
    end.connect(b"\0" + name)
    return end


def has_ended(end):
    with contextlib.suppress(ConnectionResetError):
        return end.recv(1) == b""
    return True


def asked(transport, address, n):
    return transport.call(address, "ask", {"n": n}).result(30)


def test_small_messages_pass_a_connection_that_is_held(task, caller):
    link = Link(task.address)
    try:
        assert asked(caller, link.address, 1) == {"method": "ask", "n": 1}
        assert asked(caller, link.address, 2)["n"] == 2  # by now the way is known
        link.hold()
        for n in range(100):
            caller.post(link.address, "post", {"n": n})
        assert asked(caller, link.address, 3)["n"] == 3
        assert task.posted == list(range(100))
    finally:
        link.close()


def test_a_way_ends_with_its_connection_and_another_begins(task, caller):
    link = Link(task.address)
    try:
        for n in range(5):
            assert asked(caller, link.address, n)["n"] == n
            never = caller.call(link.address, "never", {})
            assert asked(caller, link.address, n)["n"] == n
            assert link.cut() == 1
            with pytest.raises(tf.errors.UnavailableError, match="its connection ended"):
                never.result(30)
    finally:
        link.close()
    for n in range(5):
        assert asked(caller, task.address, n)["n"] == n
    task.transport.forget(task.address)
    with pytest.raises(tf.errors.UnavailableError):
        while True:
            asked(caller, task.address, 6)


def test_nothing_is_lost_or_doubled_where_the_other_end_does_not_read(task, caller):
    """More than a way holds is posted while the task is busy: the rest goes by the connection, in whatever order."""
    assert asked(caller, task.address, 1)["n"] == 1
    held, go_on = threading.Event(), threading.Event()
    answer = task.answer

    def busy(method, arguments):
        if method == "hold":
            held.set()
            assert go_on.wait(30)
        return answer(method, arguments)

    for service in task.transport._loop._served.values():
        service.listener.answer = busy
    call = caller.call(task.address, "hold", {})
    assert held.wait(30)
    for n in range(2000):  # 8 MB, of which a way takes a fraction
        caller.post(task.address, "post", {"n": n, "more": np.full(500, n)})
    go_on.set()
    call.result(30)
    for n in range(1000):  # posts that went by the connection may be behind
        if len(task.posted) == 2000:
            break
        asked(caller, task.address, n)
    assert sorted(task.posted) == list(range(2000))


@pytest.mark.parametrize("shown", [b"", b"x", b"C" + bytes(12), bytes(32), b"x" * 200_000])
def test_a_door_lets_in_nobody_without_a_token(task, caller, shown):
    stranger, name, token = invited(task.address)
    uninvited = at_the_door(name)
    uninvited.send(shown)
    assert has_ended(uninvited)
    first, second = at_the_door(name), at_the_door(name)
    first.send(token)
    first.send(join(b"C" + bytes(8), [b'["ask",{"n":5}]']))
    assert b'"n":5' in first.recv(1000)
    second.send(token)
    assert has_ended(second), "it was shown before"
    stranger.close()
    assert has_ended(first), "its connection has ended"
    assert asked(caller, task.address, 1)["n"] == 1


@pytest.mark.parametrize("seed", range(20))
def test_damaged_messages_on_a_way_harm_nothing(task, caller, seed):
    rng = np.random.default_rng(seed)
    stranger, name, token = invited(task.address)
    with at_the_door(name) as way:
        way.send(token)
        whole = join(b"C" + bytes(8), [b'["ask",{"n":5}]', b"abc"])
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(50):
                changed = bytearray(whole)
                changed[int(rng.integers(len(whole)))] = int(rng.integers(256))
                cut = bytes(changed[: int(rng.integers(1, len(whole) + 1))])
                way.send([cut, whole[:9] + rng.bytes(30), bytes(1), rng.bytes(150_000), whole + b"1"][rng.integers(5)])
            way.send(join(b"C" + b"12345678", [b'["ask",{"n":7}]']))
            while b'"n":7' not in way.recv(1 << 18):
                pass
    assert asked(caller, task.address, 1)["n"] == 1
    stranger.close()


def test_a_caller_survives_an_answer_that_is_none(caller):
    """A server that greets as one, and then answers on its way with noise, is lost; the next one is not."""
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    port = router.bind_to_random_port("tcp://127.0.0.1")
    door = Door()
    call = caller.call(f"127.0.0.1:{port}", "ask", {})
    sender, _ = router.recv_multipart()
    router.recv_multipart()  # the call, which went before the greeting was answered
    router.send_multipart([sender, join(HELLO + bytes(8), [machine(), *door.invite(sender, 1)])])
    way = None
    while way is None:
        way = door.admit()
    assert way.send(b"noise")
    with pytest.raises(tf.errors.UnavailableError, match="no answer"):
        call.result(30)
    for each in (way, door):
        each.close()
    context.destroy(0)


def test_a_way_takes_whole_messages_or_none():
    ours, others = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one, other = Way(ours), Way(others)
    sent = []
    while one.send(message := os.urandom(1 + len(sent) * 997 % 60_000)):
        sent.append(message)
    buffer, came = bytearray(1 << 17), []
    assert len(sent) > 1
    one.close()
    while size := other.receive(buffer):
        came.append(bytes(buffer[:size]))
    assert came == sent
    assert not other.send(b"1"), "nobody is there any more"
    other.close()


def test_many_threads_share_a_way(task, caller):
    asked(caller, task.address, 0)
    wrong = []

    def work(first):
        for n in range(first, first + 200):
            call = caller.call(task.address, "ask", {"n": n})
            caller.post(task.address, "post", {"n": n})
            caller.wait(call, 30)
            if not call.done() or call.result()["n"] != n:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(1000 * k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    asked(caller, task.address, 0)
    assert not wrong
    assert sorted(task.posted) == sorted(1000 * k + n for k in range(16) for n in range(200))


def test_who_received_a_call_that_waits_does_it_and_others_receive_meanwhile():
    """No other thread is woken for it; calls that wait for one another all end, however many they are."""
    threads, names = WaitingThreads("other"), []
    waiting = [threading.Event() for _ in range(12)]

    def wait(number):
        names.append(threading.current_thread().name)
        assert waiting[number].wait(60)
        if number:
            waiting[number - 1].set()
        return number

    server, caller = ZeroMQTransport(), ZeroMQTransport()
    try:
        address = server.serve(
            server.sample_address(),
            lambda method, arguments: threads.submit(wait, arguments["n"]),
            lambda session: None,
        )
        calls = [caller.call(address, "wait", {"n": n}) for n in range(len(waiting))]
        for call in calls[:-1]:
            assert not call.done()
        while len(names) < len(waiting):
            threading.Event().wait(0.001)
        assert "graphdock zeromq" in names and not any(call.done() for call in calls)
        waiting[-1].set()
        assert [call.result(60) for call in calls] == list(range(len(waiting)))
        names.clear()
        for _ in range(50):  # one after another: the thread that receives is the one that works
            waiting[0].set()
            assert caller.call(address, "wait", {"n": 0}).result(60) == 0
        assert names == ["graphdock zeromq"] * 50
        waiting[0].clear()
        last = caller.call(address, "wait", {"n": 0})
        while len(names) == 50:
            threading.Event().wait(0.001)
    finally:
        server.close()  # while a call waits
    with pytest.raises(tf.errors.UnavailableError):
        last.result(60)
    waiting[0].set()
    caller.close()
