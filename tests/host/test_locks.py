"""Locks that a forked child may take, and pauses of the collector."""

from __future__ import annotations

import ast
import gc
import os
import threading
import weakref
from pathlib import Path

import pytest
from graphdock.locks import collector_paused, new_lock

ROOT = Path(__file__).parents[2]
#: Folders of the wheel whose locks a forked child may meet.
ROOMS = ("std", "tf1", "executor", "fusion", "storage", "tensorflow", "customop", "planner", "profiler")
FOLDERS = (ROOT / "host", *(ROOT / "plugins" / room for room in ROOMS))
#: Conditions over locks of here, of which the writer's is made anew in a child; a file's pointer, which is shared only where there
#: is no fork; a gate of one wait, which the waiting thread alone knows.
ELSEWHERE = {
    "graphdock/contracts/waiting.py",
    "graphdock_storage/checkpoint/files.py",
    "graphdock_storage/events/writer.py",
}

fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def in_child(function):
    """The exit code of a child that runs ``function``."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if function() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@fork
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_what_another_thread_held_is_free_in_the_child_and_stays_held_in_the_parent():
    lock, held, go = new_lock(), threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            go.wait(60)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    assert held.wait(60)
    assert in_child(lambda: lock.acquire(timeout=5)) == 0
    assert not lock.acquire(blocking=False)
    go.set()
    thread.join(60)
    assert lock.acquire(timeout=5)
    lock.release()


@fork
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_what_the_forking_thread_held_it_still_holds():
    lock = new_lock()

    def check():
        taken = []
        other = threading.Thread(target=lambda: taken.append(lock.acquire(blocking=False)))
        other.start()
        other.join()
        lock.release()
        return taken == [False]

    with lock:
        assert in_child(check) == 0


def test_a_lock_that_nobody_uses_goes():
    gone = weakref.ref(new_lock())
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("first_out", ["the first", "the second"])
def test_pauses_of_two_threads_leave_the_collector_as_it_was(first_out):
    begun, end = threading.Event(), threading.Event()

    def pause():
        with collector_paused():
            begun.set()
            end.wait(60)

    assert gc.isenabled()
    first = threading.Thread(target=pause)
    first.start()
    assert begun.wait(60)
    with collector_paused():
        if first_out == "the first":
            end.set()
            first.join(60)
        assert not gc.isenabled()
    if first_out == "the second":
        assert not gc.isenabled()
        end.set()
        first.join(60)
    assert gc.isenabled()


def test_a_pause_leaves_a_collector_off_that_was_off():
    gc.disable()
    try:
        with pytest.raises(KeyError), collector_paused():
            raise KeyError
        assert not gc.isenabled()
    finally:
        gc.enable()


@fork
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_child_ends_the_pauses_of_other_threads():
    begun, end = threading.Event(), threading.Event()

    def pause():
        with collector_paused():
            begun.set()
            end.wait(60)

    def paused_by_itself():
        with collector_paused():
            return not gc.isenabled()

    thread = threading.Thread(target=pause)
    thread.start()
    assert begun.wait(60)
    assert in_child(lambda: gc.isenabled() and paused_by_itself() and gc.isenabled()) == 0
    with collector_paused():
        assert in_child(lambda: not gc.isenabled()) == 0
    end.set()
    thread.join(60)
    assert gc.isenabled()


@pytest.mark.slow
def test_every_lock_of_the_host_is_made_here():
    found = set()
    for name, path in ((p.relative_to(f).as_posix(), p) for f in FOLDERS for p in f.rglob("*.py")):
        if name == "graphdock/locks.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            made = node.func if isinstance(node, ast.Call) else None
            if isinstance(made, ast.Attribute) and made.attr in ("Lock", "RLock", "Condition", "Semaphore"):
                found.add(name)
    assert found == ELSEWHERE
