"""Clusters of processes: steps over ZeroMQ, lost and frozen tasks, wrong keys, forged messages."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future

import graphdock as tf
import numpy as np
import pytest
import zmq
from graphdock_ray.keys import VARIABLE
from graphdock_ray.zeromq import ZeroMQTransport

from benchmarks.links import Link

SERVER = """
import json, sys
import graphdock as tf
server = tf.train.Server(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
print("ready", flush=True)
server.join()
"""

FORKS = """
import json, os, sys
import graphdock as tf

first, second, third = json.loads(sys.argv[1])


def serve(address, value, who):
    server = tf.train.Server({"local": [address]})
    with tf.Graph().as_default(), tf.Session("grpc://" + address) as session:
        print(session.run(tf.constant(value) + 1.0), who, flush=True)
    return server


def child(address):
    pid = os.fork()
    if pid == 0:
        serve(address, 2.0, "child").stop()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


child(first)
with tf.Graph().as_default():
    server = tf.train.Server({"local": [second]})
    child(third)
    with tf.Session(server.target) as session:
        print(session.run(tf.constant(3.0) + 1.0), "parent", flush=True)
"""


def ports(count):
    """Free ports below those that connections are given, which might take one before its server does."""
    found = []
    while len(found) < count:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("localhost", port)):
            found.append(port)
    return found


def _until(holds):
    """Wait until something is so, for half a minute at most."""
    for _ in range(30_000):
        if holds():
            return
        time.sleep(0.001)
    raise AssertionError("it never came to be")


def _segments(pid):
    """The segments that a process has open."""
    folder = f"/proc/{pid}/fd"
    found = {os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder) if os.path.islink(f"{folder}/{fd}")}
    return {name for name in found if name.startswith("/memfd:graphdock-")}


class Cluster:
    """A server's process, and a worker of this one."""

    def __init__(self, **environment):
        ps, worker = ports(2)
        self.spec = {"ps": [f"localhost:{ps}"], "worker": [f"localhost:{worker}"]}
        self.command = [sys.executable, "-c", SERVER, json.dumps(self.spec), "ps", "0"]
        self.environment = {**os.environ, **environment}
        self.start()
        self.worker = tf.train.Server(self.spec, "worker", 0)

    def start(self):
        self.ps = subprocess.Popen(self.command, stdout=subprocess.PIPE, env=self.environment)
        assert self.ps.stdout.readline() == b"ready\n"

    def stop(self):
        self.ps.kill()
        self.ps.wait()
        self.worker.stop()


@pytest.fixture
def cluster():
    made = Cluster()
    yield made
    made.stop()


@pytest.mark.slow
def test_a_step_runs_over_two_processes_and_its_loss_is_that_of_one(cluster):
    found = []
    rows = np.random.default_rng(0).normal(size=(6, 4, 3)).astype(np.float32)
    for target in (cluster.worker.target, ""):
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0" if target else None):
                w = tf.Variable(tf.ones([3, 2]), name="w")
                count = tf.Variable(0, name="count", trainable=False)
            x = tf.placeholder(tf.float32, [None, 3])
            loss = tf.reduce_sum(tf.nn.dropout(tf.matmul(x, w), 0.5, seed=3) ** 2)
            words = tf.string_join([tf.as_string(count), "ü"])
            train = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=count)
            with tf.Session(target) as session:
                session.run(tf.global_variables_initializer())
                found.append([session.run([train, loss, count, words], {x: row})[1:] for row in rows])
    assert found[0] == found[1]


@pytest.mark.slow
def test_large_tensors_travel_both_ways_through_memory_that_is_reused(cluster):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(tf.ones([1 << 20]))
        with tf.device("/job:worker/task:0"):
            gradient = tf.identity(v) * 0.5
        train = v.assign_sub(gradient).op
        with tf.Session(cluster.worker.target) as session:
            session.run(v.initializer)
            kept = []
            for n in range(1, 6):
                session.run(train)
                kept.append(session.run(v))
                assert (kept[-1] == 0.5**n).all()
                del kept[:-2]
            np.testing.assert_array_equal(kept[0], 2 * kept[1])
            assert 2 <= len(_segments(os.getpid()) | _segments(cluster.ps.pid)) <= 6


@pytest.mark.slow
def test_a_killed_process_ends_the_steps_that_wait_on_it_and_one_that_came_back_is_empty(cluster):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0, name="v")
            taken = tf.FIFOQueue(1, [tf.int32], name="queue").dequeue()
        with tf.Session(cluster.worker.target) as session:
            session.run(v.initializer)
            killer = threading.Thread(target=lambda: [_until(lambda: session._running), cluster.ps.kill()])
            killer.start()
            with pytest.raises(tf.errors.UnavailableError, match="lost") as caught:
                session.run(taken)
            assert "raised on /job:ps/task:0" in caught.value.__notes__
            killer.join()
            cluster.ps.wait()
            cluster.start()
            with pytest.raises((tf.errors.AbortedError, tf.errors.UnavailableError)):
                session.run(v)
        with tf.Session(cluster.worker.target) as session, pytest.raises(tf.errors.FailedPreconditionError):
            session.run(v)


@pytest.mark.slow
def test_a_frozen_process_is_noticed_by_its_silence(cluster):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0, name="v")
        with tf.Session(cluster.worker.target) as session:
            session.run(v.initializer)
            cluster.ps.send_signal(signal.SIGSTOP)
            with pytest.raises(tf.errors.UnavailableError):
                session.run(v)


@pytest.mark.slow
def test_a_task_forgets_the_sessions_of_a_process_that_died(cluster):
    client = (
        "import os, sys, graphdock as tf\n"
        "session = tf.Session(sys.argv[1])\n"
        "session.run(tf.constant(1) + 1)\n"
        "print('ran', flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", client, cluster.worker.target], stdout=subprocess.PIPE, check=False)
    _until(lambda: not cluster.worker._task.sessions)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["cut", "held"])
def test_a_step_ends_whose_tensor_is_lost_on_its_way_to_a_task(how):
    """The server's connection to the worker ends, while that of the worker's session to the server is well."""
    ps, worker = (f"localhost:{port}" for port in ports(2))
    link = Link(worker)
    known = json.dumps({"ps": [ps], "worker": [link.address]})
    process = subprocess.Popen([sys.executable, "-c", SERVER, known, "ps", "0"], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    server = tf.train.Server({"ps": [ps], "worker": [worker]}, "worker", 0)
    try:
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                v = tf.Variable(tf.fill([30_000], 3.0))  # too large to go with the answer, or by a way of this machine
            with tf.device("/job:worker/task:0"):
                taken = tf.reduce_max(v + 1.0)
            with tf.Session(server.target) as session:
                session.run(v.initializer)
                assert session.run(taken) == 4.0
                link.hold()
                if how == "cut":
                    peer = server._task.transport._far._loop.peers[ps]
                    ran = peer._next
                    # the part of the server has run, and has sent the tensor: it waits in the link
                    cut = [lambda: peer._next > ran and len(peer._calls) == 1, link.release]
                    threading.Thread(target=lambda: [_until(cut[0]), cut[1]()]).start()
                with pytest.raises(
                    tf.errors.UnavailableError, match="/job:ps/task:0 does not reach /job:worker/task:0"
                ):
                    session.run(taken, options=tf.RunOptions(timeout_in_ms=20_000))
                link.release()
                assert session.run(taken) == 4.0, "the session is not lost, nor the server's variable"
    finally:
        process.kill()
        process.communicate()
        server.stop()
        link.close()


@pytest.mark.slow
def test_a_key_is_needed_where_the_server_has_one(monkeypatch):
    monkeypatch.setenv(VARIABLE, "a secret")
    made = Cluster()
    try:
        address = made.spec["ps"][0]
        assert ZeroMQTransport().call(address, "info", {}).result(30)["name"] == "/job:ps/task:0"
        for other in ("another", ""):
            monkeypatch.setenv(VARIABLE, other)
            stranger = ZeroMQTransport()
            with pytest.raises(tf.errors.UnavailableError):
                stranger.call(address, "info", {}).result(30)
            stranger.close()
    finally:
        made.stop()


def test_nobody_listening_is_said():
    (port,) = ports(1)
    transport = ZeroMQTransport()
    with pytest.raises(tf.errors.UnavailableError, match=f"no task listens at localhost:{port}"):
        transport.call(f"localhost:{port}", "info", {}).result(30)
    transport.close()


def test_a_port_in_use_is_said():
    with socket.create_server(("127.0.0.1", 0)) as held:
        address = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(
            tf.errors.UnknownError, match="Could not start /job:worker/task:0: a server can't listen at"
        ):
            tf.train.Server({"worker": [address]})
    tf.train.Server({"worker": [address]}).stop()  # nothing of the first is left


@pytest.mark.slow
def test_a_process_that_is_forked_has_servers_of_its_own(tmp_path):
    """Before the first server of its parent, and after its parent had one and ran steps: the child's transport begins anew."""
    done = subprocess.run(
        [sys.executable, "-c", FORKS, json.dumps([f"localhost:{port}" for port in ports(3)])],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3.0", "child", "3.0", "child", "4.0", "parent"]


@pytest.mark.parametrize("seed", range(30))
def test_forged_messages_harm_nothing(served, seed):
    address, _ = served
    rng = np.random.default_rng(seed)
    context = zmq.Context()
    stranger = context.socket(zmq.DEALER)
    stranger.connect(f"tcp://{address}")
    for _ in range(20):
        frames = [rng.bytes(int(rng.integers(0, 20))) for _ in range(int(rng.integers(1, 5)))]
        if rng.random() < 0.5:
            frames[0] = b"CPRE"[int(rng.integers(4)) :][:1] + bytes(8)
        if rng.random() < 0.5 and len(frames) > 1:
            frames[1] = [b'["__init__",{}]', b'["info",{}]', b'["run",{"session":3}]', b'["open",[1]]', b"[]", b"{}"][
                int(rng.integers(6))
            ]
        stranger.send_multipart(frames)
    context.destroy(1000)
    transport = ZeroMQTransport()
    assert transport.call(address, "info", {}).result(30)["name"] == "/job:worker/task:0"
    transport.close()


@pytest.fixture(scope="module")
def served():
    (port,) = ports(1)
    server = tf.train.Server({"worker": [f"localhost:{port}"]})
    yield f"localhost:{port}", server
    server.stop()


def test_threads_that_wait_receive_for_one_another(served):
    """One of them receives in the place of the transport's own thread; each has its own answer, and a wait may end before it."""
    address, _ = served
    transport, wrong = ZeroMQTransport(), []

    def work():
        for _ in range(50):
            call = transport.call(address, "info", {})
            transport.wait(call, 30)
            if not call.done() or call.result()["name"] != "/job:worker/task:0":
                wrong.append(call)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)
    never = Future()
    transport.wait(never, 0.03)
    assert not never.done()
    transport.close()


def test_a_thread_that_waits_receives_itself(served):
    """The transport's own thread is kept from it, and the answer comes all the same."""
    address, _ = served
    transport = ZeroMQTransport()
    transport.call(address, "info", {}).result(30)
    taken, loop = [], transport._loop
    turn = loop._turn

    def noted(found):
        taken.append(threading.current_thread())
        turn(found)

    loop._turn = noted
    for _ in range(20):
        transport.wait(transport.call(address, "info", {}), 30)
    assert threading.current_thread() in taken
    transport.close()


def test_interrupts_at_any_moment_end_the_call_that_waits_and_no_other(served):
    address, _ = served
    transport, ended = ZeroMQTransport(), 0
    transport.call(address, "info", {}).result(30)
    ready, go, over = threading.Event(), threading.Event(), []

    def interrupt():
        while True:
            go.wait()
            go.clear()
            if over:
                return
            ready.set()
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    before = signal.getsignal(signal.SIGINT)
    for n in range(60):
        calls = [transport.call(address, "info", {}) for _ in range(n % 7)]
        never = Future()
        try:
            go.set()
            for call in [*calls, never]:
                transport.wait(call, 30)
        except KeyboardInterrupt:
            ended += not never.done()
        ready.wait(30)
        ready.clear()
        for call in calls:
            assert call.result(30)["name"] == "/job:worker/task:0"
        assert signal.getsignal(signal.SIGINT) is before
    over.append(True)
    go.set()
    thread.join(30)
    transport.close()
    assert ended == 60
