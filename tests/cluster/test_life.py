"""Training that outlives its tasks: sessions wait for those that they need, and go on from the last checkpoint."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import pack, unpack
from graphdock_cluster.opened import Opened
from graphdock_cluster.steps import RunningStep
from graphdock_cluster.task import TaskServer
from graphdock_testing.thread_cluster import ThreadCluster


@pytest.fixture(scope="module")
def shared():
    with ThreadCluster({"ps": 2, "worker": 1}) as made:
        yield made


@pytest.fixture
def cluster():
    with ThreadCluster({"ps": 1, "worker": 2}) as made:
        yield made


class _Say(logging.Handler):
    """Sets an event once something is logged."""

    def __init__(self, what):
        super().__init__(logging.INFO)
        self.what, self.seen = what, threading.Event()

    def emit(self, record):
        if self.what in record.getMessage():
            self.seen.set()


@pytest.fixture
def waits():
    said = _Say("Waiting for model")
    log = logging.getLogger("graphdock")
    before = log.level
    log.addHandler(said), log.setLevel(logging.INFO)
    yield said.seen
    log.removeHandler(said), log.setLevel(before)


def count_up(cluster, task, chief, folder, steps, hooks=()):
    """Add 1 to a server's variable in each of a task's steps, up to a global step."""
    server = cluster.server(task)
    with tf.Graph(server.host).as_default():
        with tf.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
            total = tf.get_variable("total", initializer=0.0)
        add = tf.group(total.assign_add(1.0), step.assign_add(1))
        config = tf.SessionConfig(device_filters=["/job:ps", f"/job:worker/task:{task[-1]}"])
        with tf.train.MonitoredTrainingSession(
            server.target, chief, str(folder) if chief else None, hooks=hooks, save_checkpoint_steps=2, config=config
        ) as session:
            while (found := session.run([step, total]))[0] < steps:
                session.run(add)
            return float(found[1])


class _At(tf.train.SessionRunHook):
    """Does something before a step, once."""

    def __init__(self, number, act):
        self.left, self.act = number, act

    def before_run(self, context):
        self.left -= 1
        if not self.left:
            self.act()


def test_a_chief_restores_a_server_that_came_back_empty_and_others_wait(cluster, tmp_path, waits):
    def die():
        cluster.kill("ps0")
        threading.Thread(target=come_back).start()

    def come_back():
        cluster.start("ps0")

    found = []
    other = threading.Thread(target=lambda: found.append(count_up(cluster, "worker1", False, tmp_path, 9)))
    other.start()
    assert waits.wait(30)
    assert count_up(cluster, "worker0", True, tmp_path, 9, [_At(5, die)]) >= 9
    other.join(30)
    assert found and found[0] >= 9
    latest = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(tmp_path)))
    assert latest.get_tensor("total") == latest.get_tensor("global_step")


def test_two_chiefs_of_one_folder_spoil_no_checkpoint(cluster, tmp_path):
    """Who saves while the other does waits for it: both train on, as TensorFlow's do, and the next goes on from a whole one."""
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(count_up, cluster, f"worker{n}", True, tmp_path, 12) for n in (0, 1)]
        assert all([each.result(60) > 0 for each in found])
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".lock") or "_temp" in name]
    saved = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(tmp_path)))
    step = int(saved.get_tensor("global_step"))
    assert saved.get_tensor("total").shape == () and step >= 0
    assert count_up(cluster, "worker0", True, tmp_path, step + 6) > 0
    latest = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(tmp_path)))
    assert latest.get_tensor("global_step") >= step + 6


def test_a_master_of_another_version_is_refused_with_both_versions(cluster, monkeypatch):
    server = cluster.server("worker0")
    with tf.Graph(server.host).as_default(), monkeypatch.context() as patch:
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", initializer=3.0)
        with tf.Session(server.target) as session:
            patch.setattr("graphdock_cluster.master._tf.__version__", "0.0.1")
            calls = TaskServer.open

            def opened(self, *arguments, **named):
                patch.setattr("graphdock_cluster.task._tf.__version__", "0.0.2")
                try:
                    return calls(self, *arguments, **named)
                finally:
                    patch.setattr("graphdock_cluster.task._tf.__version__", "0.0.1")

            patch.setattr(TaskServer, "open", opened)
            with pytest.raises(
                tf.errors.FailedPreconditionError, match="graphdock 0.0.1 .*different versions"
            ) as caught:
                session.run(v.initializer)
            assert caught.value.expected == "0.0.2" and caught.value.got == "0.0.1"


def test_a_step_that_comes_before_its_task_has_noticed_the_lost_connection_is_unavailable(cluster):
    """Not cancelled, as by a ``close()`` that nobody called: MonitoredSession makes a new session."""
    server, gone = cluster.server("worker0"), cluster.network._served["ps0:1"][1]
    with tf.Graph(server.host).as_default():
        with tf.device("/job:ps/task:0"):
            taken = tf.FIFOQueue(1, tf.float32, shapes=[]).dequeue()
        with tf.Session(server.target) as session, ThreadPoolExecutor(1) as pool:
            waits = pool.submit(session.run, taken)
            _until(lambda: cluster.server("ps0")._task.running)
            gone(session._name)
            with pytest.raises(tf.errors.UnavailableError, match="connection to the session's process has ended"):
                waits.result(30)
            with pytest.raises(tf.errors.UnavailableError, match="connection to the session's process has ended"):
                cluster.server("ps0")._task._sessions.known(session._name)  # as a message finds it that was on its way


def test_waiting_for_a_session_outlasts_a_task_that_is_lost(cluster):
    server = cluster.server("worker0")
    with tf.Graph(server.host).as_default() as graph:
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", initializer=3.0)
        manager = tf.train.SessionManager(
            ready_op=tf.report_uninitialized_variables(), graph=graph, recovery_wait_secs=0.001
        )
        with tf.Session(server.target) as session:
            session.run(v.initializer)
            cluster.cut_off("ps0")
            with pytest.raises(tf.errors.UnavailableError):
                session.run(v)
            with pytest.raises(tf.errors.UnavailableError):  # a session that has lost a task waits for none
                session.run(v + 1)
        found = []
        waiting = threading.Thread(target=lambda: found.append(manager.wait_for_session(server.target)))
        waiting.start()
        cluster.heal("ps0")
        waiting.join(30)
        assert found[0].run(v) == 3.0
        found[0].close()
        cluster.cut_off("ps0")
        limit = tf.SessionConfig(operation_timeout=0.01)
        with pytest.raises(
            tf.errors.DeadlineExceededError, match=r"/job:ps/task:0 at ps0:1 was not there within 0\.01 s"
        ):
            manager.wait_for_session(server.target, config=limit)
        cluster.heal("ps0")


def test_a_session_waits_for_the_tasks_of_its_steps_alone_and_a_silent_one_ends_them_at_their_deadline(shared):
    server = shared.server("worker0")
    with tf.Graph(server.host).as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0, name="v")
        with tf.device("/job:ps/task:1"):
            w = tf.Variable(2.0, name="w")
        shared.silence("ps1")
        limit = tf.SessionConfig(operation_timeout=0.05)
        with tf.Session(server.target) as session, tf.Session(server.target, config=limit) as limited:
            session.run(v.initializer)
            assert session.run(v) == 1.0
            with pytest.raises(tf.errors.DeadlineExceededError, match="/job:ps/task:1 at ps1:1 was not there"):
                limited.run(w.initializer)
            shared.heal("ps1")
            session.run(w.initializer)
            shared.silence("ps1")
            with pytest.raises(tf.errors.DeadlineExceededError, match="/job:ps/task:1 did not answer within 0.05 s"):
                session.run(w, options=tf.RunOptions(timeout_in_ms=50))
            assert session.run(v) == 1.0
            shared.heal("ps1")


@pytest.mark.parametrize("fault", ["kill", "cut_off"])
def test_a_task_that_is_lost_ends_the_steps_whose_parts_have_ended_there(fault):
    """Values that a part has sent before may be lost with its task: the others wait for nothing of it."""
    with ThreadCluster({"ps": 2, "worker": 1}, 0) as cluster, tf.Graph(cluster.server("worker0").host).as_default():
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(1, tf.float32, shapes=())
            taken = queue.dequeue()
        with tf.device("/job:ps/task:1"):
            v = tf.Variable(1.0)
            added = v.assign_add(1.0)
        with tf.Session(cluster.server("worker0").target) as session, ThreadPoolExecutor(1) as pool:
            session.run(v.initializer)
            session.run([v, queue.size()])  # both tasks know the session
            before = _calls(cluster, "ps1:1")
            step = pool.submit(session.run, [added, taken])
            _until(lambda: session.run(v) == 2.0 and _calls(cluster, "ps1:1") == before)
            getattr(cluster, fault)("ps1")
            with pytest.raises(tf.errors.UnavailableError, match="ps1"):
                step.result(30)


class _Interrupted(Future):
    """Has something done just before its result is set: what another thread may do then."""

    act = staticmethod(lambda: None)

    def set_result(self, result):
        _Interrupted.act, act = staticmethod(lambda: None), _Interrupted.act
        act()
        super().set_result(result)


@pytest.mark.parametrize("first", ["tell", "end"])
def test_what_is_told_while_something_is_told_is_told_next(monkeypatch, first):
    monkeypatch.setattr("graphdock_cluster.opened.Future", _Interrupted)
    opened = Opened(None, False)
    watched = opened.watch()
    _Interrupted.act = staticmethod(lambda: [opened.tell("two", 2), opened.tell("two", 1)])
    opened.tell("one", 1) if first == "tell" else opened.close()
    assert watched.result(0) == ({"unreached": "one", "step": 1} if first == "tell" else {})
    assert opened.watch().result(0) == {"unreached": "two", "step": 2}
    last = opened.watch()
    assert last.done() == (first == "end")
    _Interrupted.act = staticmethod(opened.close)
    opened.tell("three", 3)
    assert last.result(0) == ({} if first == "end" else {"unreached": "three", "step": 3})


def test_a_late_report_of_an_earlier_step_ends_no_later_one():
    with ThreadCluster({"ps": 2, "worker": 1}, 0) as cluster, tf.Graph(cluster.server("worker0").host).as_default():
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(1, tf.float32, shapes=())
            taken, size = queue.dequeue(), queue.size()
        with tf.device("/job:ps/task:1"):
            both = taken + 1.0
        with tf.Session(cluster.server("worker0").target) as session, ThreadPoolExecutor(1) as pool:
            session.run(queue.enqueue(1.0))
            assert session.run(both) == 2.0
            task = cluster.server("ps0")._task
            opened = task._sessions.known(session._name)
            for ends in (False, True):
                step = pool.submit(session.run, both)
                _until(lambda: session.run(size) == 0 and session._running and task.running)
                number = max(session._running)
                watched = opened.watch()
                task.unreached(session._name, "ps1:1", number if ends else number - 1)
                _until(lambda watched=watched: session.run(size) == 0 and opened._watched not in (None, watched))
                if ends:
                    with pytest.raises(tf.errors.UnavailableError, match="does not reach /job:ps/task:1"):
                        step.result(30)
                else:
                    assert not step.done()
                    session.run(queue.enqueue(2.0))
                    assert step.result(30) == 3.0


def test_a_second_interrupt_leaves_no_part_of_the_step_running(shared, monkeypatch):
    server, task = shared.server("worker0"), shared.server("ps0")._task
    abort = RunningStep.abort

    def interrupted(self, *args):
        signal.raise_signal(signal.SIGINT)
        abort(self, *args)

    monkeypatch.setattr(RunningStep, "_wait", lambda self, *args: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(RunningStep, "abort", interrupted)
    with tf.Graph(server.host).as_default(), tf.Session(server.target) as session:
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(1, tf.float32, shapes=())
            taken, put, size = queue.dequeue(), queue.enqueue(1.0), queue.size()
        with pytest.raises(KeyboardInterrupt):
            session.run(taken)
        monkeypatch.undo()
        _until(lambda: not task.running)
        session.run(put)
        assert session.run(size) == 1


def test_what_is_registered_of_a_step_that_was_interrupted_before_it_began_is_forgotten(shared, monkeypatch):
    server = shared.server("worker0")
    with tf.Graph(server.host).as_default(), tf.Session(server.target) as session:
        ones = []
        for task in (0, 1):
            with tf.device(f"/job:ps/task:{task}"):
                ones.append(tf.identity(tf.constant(1.0)))
        assert session.run(ones) == [1.0, 1.0]
        parts = [shared.server(f"ps{n}")._task._sessions.known(session._name).parts for n in (0, 1)]
        before, asked, answer = [set(p) for p in parts], [], session._answer

        def interrupted(call, limit):
            said = answer(call, limit)
            if "handle" in said:
                asked.append(call)
            if len(asked) < 2:
                return said
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(session, "_answer", interrupted)
            with pytest.raises(KeyboardInterrupt):
                session.run(ones[0] + ones[1])
        assert [len(p) for p in parts] == [2, 2]
        one = session.run(ones[0])  # tells the tasks; its own part is one of the first's
        _until(lambda: session.run(ones[0]) == one and before[1] == set(parts[1]) and len(parts[0]) == 2)


def _calls(cluster, address):
    """Number of calls to a task that wait for their answers."""
    return sum(whom == address for _, whom in list(cluster.network._waiting.values()))


def _until(holds):
    """Wait until something is so, for half a minute at most."""
    for _ in range(30_000):
        if holds():
            return
        time.sleep(0.001)
    raise AssertionError("it never came to be")


@pytest.mark.parametrize("seed", range(8))
def test_a_message_that_comes_again_counts_once(seed, monkeypatch):
    """Each tensor comes a second time at once, and whatever starts a part while it runs, after it has ended, and much later."""
    with ThreadCluster({"ps": 1, "worker": 1}, seed) as cluster:
        server, network, sent, repeats = cluster.server("worker0"), cluster.network, [], []
        call, post = network.call_from, network.post_from

        def called(caller, address, method, arguments):
            if method == "run":
                frames = pack(dict(arguments))  # as it is now
                sent.append(lambda: repeats.append(call(caller, address, method, unpack(frames))))
            return call(caller, address, method, arguments)

        def posted(caller, address, method, arguments):
            for _ in range(1 + (method == "arrive")):
                post(caller, address, method, arguments)

        monkeypatch.setattr(network, "call_from", called)
        monkeypatch.setattr(network, "post_from", posted)
        with tf.Graph(server.host).as_default(), tf.Session(server.target) as session:
            with tf.device("/job:ps/task:0"):
                v, w = tf.Variable(0.0), tf.Variable(0.0)
                queue = tf.FIFOQueue(9, tf.float32, shapes=())
                waits, put = w.assign_add(queue.dequeue()), queue.enqueue(1.0)
            with tf.device("/job:worker/task:0"):
                change = tf.identity(v) * 0.0 + 1.0
            add = tf.group(v.assign_add(change), w.assign_add(1.0))
            session.run([v.initializer, w.initializer])
            sent.clear()
            for n in range(10):
                session.run(add)
                if n % 2:
                    sent[-1]()
            with ThreadPoolExecutor() as pool:
                step = pool.submit(session.run, waits)
                _until(lambda: cluster.server("ps0")._task.running)
                sent[-1]()
                twice = repeats[-1]
                _until(twice.done)
                session.run(put)
                assert step.result(30) == 11.0
            assert isinstance(twice.exception(), tf.errors.AlreadyExistsError)
            for send in sent:
                send()
            for repeat in repeats:
                _until(repeat.done)
                assert isinstance(repeat.exception(), tf.errors.AlreadyExistsError | tf.errors.AbortedError)
            assert session.run([v, w, queue.size()]) == [10.0, 11.0, 0]


@pytest.mark.parametrize(
    "made",
    [
        lambda: tf.py_func(lambda: np.float32(3), [], tf.float32),
        lambda: tf.data.Dataset.range(3).make_one_shot_iterator().get_next(),
        lambda: tf.data.Dataset.range(3).make_initializable_iterator().initializer,
    ],
    ids=["py_func", "one_shot", "initializer"],
)
def test_what_holds_a_python_function_is_refused_on_another_process_by_its_task_and_runs_here(made):
    with ThreadCluster({"ps": 1, "worker": 1}) as cluster, tf.Graph(host=cluster.server("worker0").host).as_default():
        with tf.device("/job:ps/task:0"):
            there = made()
        with tf.device("/job:worker/task:0"):
            here = made()
        with tf.Session(cluster.server("worker0").target) as session:
            with pytest.raises(tf.errors.InvalidArgumentError, match="holds a Python function") as caught:
                session.run(there)
            assert any(note.startswith("/job:ps/task:0 is of another process") for note in caught.value.__notes__)
            session.run(here)
