"""Threads that share parts: each part runs once, none is at work afterwards, whatever is raised or pressed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from graphdock_cpu import team as teams
from graphdock_cpu.team import Team, Threads

from tests.laws.lab import interrupted


def squares(team, n=4, size=20_000):
    """The parts square pieces of an array; whether all are right."""
    x = np.arange(n * size, dtype=np.float64)
    y = np.zeros_like(x)
    team.run([partial(np.multiply, x[i::n], x[i::n], y[i::n]) for i in range(n)])
    return np.array_equal(y, x * x)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_every_part_runs_once(size):
    team, ran = Team(size), []
    for count in (0, 1, 2, 3, 20):
        ran.clear()
        team.run([partial(ran.append, i) for i in range(count)])
        assert sorted(ran) == list(range(count))


def test_another_thread_takes_part():
    team, names = Team(2), []
    both = threading.Barrier(2, timeout=60)  # neither part ends before the other has begun

    def part():
        both.wait()
        names.append(threading.current_thread().name)

    team.run([part, part])
    assert sorted(names)[1] == "graphdock-cpu-1" and len(set(names)) == 2


def test_threads_that_get_no_turn_are_not_waited_for(monkeypatch):
    monkeypatch.setattr(teams, "_serve", lambda jobs: None)
    assert squares(Team(4))


def test_many_callers_at_once():
    team, wrong = Team(3), []

    def call():
        for _ in range(40):
            if not squares(team, 5, 500):
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong


@pytest.mark.parametrize("bad", [[0], [1], [2], [0, 2], [0, 1, 2]])
def test_the_first_error_is_raised_when_nothing_is_at_work_any_more(bad):
    team, at_work = Team(3), []
    together = threading.Barrier(3, timeout=60)

    def part(number):
        at_work.append(number)
        together.wait()
        at_work.remove(number)
        if number in bad:
            raise ValueError(f"part {number}")

    with pytest.raises(ValueError, match=f"part {bad[0]}"):
        team.run([partial(part, i) for i in range(3)])
    assert not at_work
    assert squares(team)


def test_what_ends_another_thread_is_raised_too():
    team, both = Team(2), threading.Barrier(2, timeout=60)
    mine = threading.current_thread()

    def part():
        both.wait()
        if threading.current_thread() is not mine:
            raise SystemExit("of a part")

    for _ in range(2):  # the thread is there for the next one
        with pytest.raises(SystemExit, match="of a part"):
            team.run([part, part])


def test_teams_of_all_sizes_share_as_many_threads_as_the_largest_needs(monkeypatch):
    begun, begin = [], threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda self: (begun.append(self.name), begin(self))[1])
    threads = Threads()
    for size in (2, 5, 3, 4, 9):
        assert squares(Team(size, threads), 5)
    assert begun == [f"graphdock-cpu-{i}" for i in range(1, 5)]  # five parts need no more
    assert teams.team(3)._threads is teams.team(2)._threads and teams.team(3) is teams.team(3)


def test_a_system_without_more_threads_is_asked_again_for_those_that_are_missing(monkeypatch):
    def start(self):
        if self.name == "graphdock-cpu-2":
            raise RuntimeError("can't start new thread")
        return begin(self)

    team, begin = Team(3), threading.Thread.start
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start"):
            squares(team, 3)
    assert squares(team, 3) and team._threads.begun == 2


def test_infinite_results_are_quiet_on_every_thread():
    team, both = Team(2), threading.Barrier(2, timeout=60)
    y = np.empty(2)

    def part(i):
        both.wait()
        np.divide(np.ones(1), np.zeros(1), y[i : i + 1])

    with np.errstate(all="ignore"):
        team.run([partial(part, 0), partial(part, 1)])  # a warning fails the suite
    assert np.isinf(y).all()


def test_nothing_is_kept_of_a_job():
    import gc
    import weakref

    class Thing:
        def __call__(self):
            pass

    team, thing = Team(2), Thing()
    gone = weakref.ref(thing)
    team.run([thing, thing])
    del thing
    team.run([lambda: None, lambda: None])  # the other thread has come back for more, or never began
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals are the main thread's")
def test_ctrl_c_anywhere_leaves_nobody_at_work():
    team, at_work = Team(2), []
    x = np.linspace(0, 1, 20_000)
    assert squares(team)

    def part():
        at_work.append(1)
        np.sin(x)
        at_work.pop()

    mine = threading.current_thread()

    def part_of_another():
        if threading.current_thread() is not mine:
            part()

    at = 0
    while interrupted(lambda: team.run([part_of_another] * 6), at):
        assert not at_work, f"somebody is at work after an interrupt at point {at}"
        assert squares(team, 3, 10)
        at += 1
    assert at > 10


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals are the main thread's")
def test_ctrl_c_pressed_again_and_again_leaves_nobody_at_work():
    team, both, at_work = Team(2), threading.Barrier(2, timeout=60), []
    mine = threading.current_thread()

    def part():
        if threading.current_thread() is not mine:
            at_work.append(1)
            both.wait()
            for _ in range(3):
                pressed.clear()
                while not (
                    pressed.wait(0.01) or over.is_set()
                ):  # the main thread hears while it waits, but not when it is about to
                    signal.pthread_kill(mine.ident, signal.SIGINT)
            at_work.pop()
        else:
            both.wait()

    pressed, over = threading.Event(), threading.Event()

    def press(*args):
        pressed.set()
        if at_work:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, press)
    try:
        with pytest.raises(KeyboardInterrupt):
            team.run([part, part])
        assert not at_work
    finally:
        over.set()
        signal.signal(signal.SIGINT, before)
    assert squares(team)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_makes_threads_of_its_own():
    program = """
import os, sys, threading
import numpy as np
from graphdock_cpu.team import team
def squares():
    x = np.arange(1000.); y = np.zeros(1000)
    both = threading.Barrier(2, timeout=30)
    def part(i):
        both.wait()
        np.multiply(x[i::2], x[i::2], y[i::2])
    team(2).run([lambda: part(0), lambda: part(1)])
    return np.array_equal(y, x * x)
assert squares()
child = os.fork()
if child == 0:
    os._exit(0 if squares() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=120, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
