"""The in-process rendezvous, and a worker that runs its part of a step on another thread behind it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import threaded_worker
from graphdock.contracts import Builder, OpDef, RendezvousKey, StepContext, StepServices, dtypes
from graphdock.contracts.deadlines import DEADLINES, DeadlineClock
from graphdock.errors import AbortedError, AlreadyExistsError, DeadlineExceededError, GraphdockError
from graphdock_testing.rendezvous import LocalRendezvous

KEY = RendezvousKey("s", 1, "/device:a:0", 7, "/device:b:0", 8, "x:0")


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def collector() -> tuple[list[Any], Any]:
    got: list[Any] = []
    return got, lambda value, error: got.append((value, error))


def test_a_receive_before_its_send_parks_and_runs_on_the_senders_thread() -> None:
    rendezvous, threads = LocalRendezvous(), []
    rendezvous.receive(KEY, lambda value, error: threads.append((value, threading.get_ident())))
    assert rendezvous.waiting == 1 and not threads
    sender = threading.Thread(target=rendezvous.send, args=(KEY, 5))
    sender.start()
    sender.join()
    assert threads == [(5, sender.ident)]
    assert rendezvous.waiting == 0


def test_a_receive_after_its_send_runs_at_once() -> None:
    rendezvous = LocalRendezvous()
    rendezvous.send(KEY, "v")
    got, done = collector()
    rendezvous.receive(KEY, done)
    assert got == [("v", None)]


def test_frames_tell_iterations_apart() -> None:
    rendezvous = LocalRendezvous()
    for i in range(3):
        rendezvous.send(KEY._replace(frame=f"loop:{i}"), i)
    got, done = collector()
    for i in (2, 0, 1):
        rendezvous.receive(KEY._replace(frame=f"loop:{i}"), done)
    assert [v for v, _ in got] == [2, 0, 1]


@pytest.mark.parametrize("waited", [False, True])
def test_a_second_send_of_a_key_is_an_error(waited: bool) -> None:
    rendezvous = LocalRendezvous()
    if waited:
        rendezvous.receive(KEY, lambda value, error: None)
    rendezvous.send(KEY, 1)
    with pytest.raises(AlreadyExistsError, match=r"'x:0' \(frame ''\) twice"):
        rendezvous.send(KEY, 2)


def test_a_second_receive_of_a_key_is_an_error() -> None:
    rendezvous = LocalRendezvous()
    rendezvous.send(KEY, 1)
    got, done = collector()
    rendezvous.receive(KEY, done)
    rendezvous.receive(KEY, done)
    assert got[0] == (1, None)
    assert isinstance(got[1][1], AlreadyExistsError)


def test_abort_wakes_everything_and_the_first_error_stays() -> None:
    rendezvous = LocalRendezvous()
    got, done = collector()
    for i in range(3):
        rendezvous.receive(KEY._replace(edge=f"e{i}"), done)
    first = AbortedError("the other task died")
    rendezvous.abort(first)
    rendezvous.abort(AbortedError("later"))
    rendezvous.receive(KEY, done)
    assert [e for _, e in got] == [first] * 4
    with pytest.raises(AbortedError, match="the other task died"):
        rendezvous.send(KEY, 1)


def test_a_continuation_may_use_the_rendezvous_itself() -> None:
    rendezvous = LocalRendezvous()
    got, done = collector()
    other = KEY._replace(edge="y:0")
    rendezvous.receive(other, done)
    rendezvous.receive(KEY, lambda value, error: rendezvous.send(other, value + 1))
    rendezvous.send(KEY, 1)
    assert got == [(2, None)]


# -- the worker ----------------------------------------------------------------------------------------------------------

SEND, RECV = OpDef("Send"), OpDef("Recv")
BINARY = {op: OpDef(op) for op in ("Add", "Mul", "Neg")}


def crossing(name: str, back: bool = False) -> dict[str, Any]:
    send, recv = (("/job:worker", 2), ("/job:here", 1)) if back else (("/job:here", 1), ("/job:worker", 2))
    return {
        "tensor_name": name,
        "send_device": send[0],
        "send_incarnation": send[1],
        "recv_device": recv[0],
        "recv_incarnation": recv[1],
    }


def graphs() -> tuple[Any, Any]:
    """y = (x + x) there: here sends x + x, the worker squares it and sends that back, here negates it."""
    f32 = dtypes.float32
    here = Builder("here")
    x = here.input("x", f32, (2,))
    (double,) = here.node(BINARY["Add"], "double", [x, x], {}, [(f32, (2,))])
    here.node(SEND, "send", [double], crossing("double:0"), [])
    (square,) = here.node(RECV, "recv", [], crossing("square:0", True), [(f32, (2,))])
    (out,) = here.node(BINARY["Neg"], "neg", [square], {}, [(f32, (2,))])
    there = Builder("there")
    (arrived,) = there.node(RECV, "recv", [], crossing("double:0"), [(f32, (2,))])
    (squared,) = there.node(BINARY["Mul"], "square", [arrived, arrived], {}, [(f32, (2,))])
    there.node(SEND, "send", [squared], crossing("square:0", True), [])
    return here.finish([out]), there.finish([squared])


def new_step(deadlines: DeadlineClock = DEADLINES) -> StepContext:
    return StepContext(StepServices("session", LocalRendezvous, deadlines=deadlines))


@pytest.mark.parametrize("worker_first", [True, False])
def test_a_step_over_two_threads(worker_first: bool) -> None:
    executor = threaded_worker.InterpretingExecutor()
    here, there = (executor.compile(threaded_worker.placed(g)) for g in graphs())
    step = new_step()
    for _ in range(3):
        far, near = threaded_worker.Worker(there), threaded_worker.Worker(here)
        pairs = [(far, []), (near, [np.array([1, 2], np.float32)])]
        for worker, feeds in pairs if worker_first else pairs[::-1]:
            worker.start(step, feeds).join()  # the thread ends although the step may wait
        assert near.result()[0].tolist() == [-4.0, -16.0]
        assert far.result()[0].tolist() == [4.0, 16.0]
        step.reset()


def test_a_failing_worker_wakes_the_one_that_waits() -> None:
    here, there = (threaded_worker.InterpretedProgram(g) for g in graphs())
    step = new_step()
    near, far = threaded_worker.Worker(here), threaded_worker.Worker(there)
    near.start(step, [np.array(["no", "number"])]).join()
    far.start(step, []).join()
    for worker in (near, far):
        with pytest.raises(Exception, match="ufunc|add"):
            worker.result()


def test_a_worker_whose_peer_never_sends_meets_its_deadline() -> None:
    clock = Clock()
    _, there = graphs()
    far = threaded_worker.Worker(threaded_worker.InterpretedProgram(there))
    deadlines = DeadlineClock(clock, runs=False)
    step = new_step(deadlines)
    step.limit(5.0)
    far.start(step, []).join()
    clock.now = 105.0
    deadlines.look()
    with pytest.raises(DeadlineExceededError):
        far.result()


@pytest.mark.parametrize("end", ["source_incarnation", "destination_incarnation"])
def test_what_was_sent_to_or_by_a_process_that_died_is_not_taken_for_its_successors(end: str) -> None:
    """The receiver of a restarted process asks with its own incarnation and never sees the old value."""
    rendezvous = LocalRendezvous()
    rendezvous.send(KEY, "old")
    got, done = collector()
    rendezvous.receive(KEY._replace(**{end: 99}), done)
    assert got == [] and rendezvous.waiting == 1
    rendezvous.send(KEY._replace(**{end: 99}), "new")
    assert got == [("new", None)]


def test_an_executor_refuses_what_it_can_not_run() -> None:
    f32 = dtypes.float32
    builder = Builder("g")
    x = builder.input("x", f32, ())
    builder.node(OpDef("Tan"), "tan", [x], {}, [(f32, ())])
    with pytest.raises(GraphdockError, match="tan: this executor has no Tan"):
        threaded_worker.InterpretingExecutor().compile(threaded_worker.placed(builder.finish([])))
