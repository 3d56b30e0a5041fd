"""The lock: requests served in order, released whatever happens, never awaited in vain."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import random
import sys
import threading
import time
import weakref
from threading import get_ident

import pytest
from graphdock.contracts.runtime import resource_lock as lock_module
from graphdock.contracts.runtime.resource_lock import LockRequest, LockSet, ResourceLock, Until, with_locks
from graphdock.errors import AbortedError, DeadlineExceededError, FailedPreconditionError

from tests.planning.interrupter import Interrupter
from tests.planning.own_thread import in_its_own_thread


class Thing:
    """Something that may be locked."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"variable {self.name!r}"


A, B, C = Thing("a"), Thing("b"), Thing("c")


def request(label, reads=(), writes=()):
    return LockRequest(LockSet(label, reads, writes))


class Actor:
    """A thread that takes locks when it is told to, and says when it is in."""

    def __init__(self, locks, holder, limit=None):
        self.locks, self.holder, self.limit = locks, holder, limit
        self.inside, self.go, self.error = threading.Event(), threading.Event(), None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            with_locks(self.locks, self.holder, self.limit, self._stay)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def _stay(self):
        self.inside.set()
        assert self.go.wait(30)

    def start(self):
        self.thread.start()
        return self

    def arrived(self):
        """Start, and return once it is inside or waits."""
        self.start()
        until(lambda: self.inside.is_set() or any(self.holder in g.waiting for g in self.locks))
        return self

    def leave(self):
        self.go.set()
        self.thread.join(30)
        assert not self.thread.is_alive()


def until(condition, limit=30):
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.0005)


# -- lock sets


@pytest.mark.parametrize(
    ("one", "other", "names"),
    [
        (LockSet("r", [A]), LockSet("r", [A]), set()),
        (LockSet("r", [A]), LockSet("w", (), [A]), {A}),
        (LockSet("w", (), [A]), LockSet("w", (), [A, B]), {A}),
        (LockSet("w", (), [A]), LockSet("w", (), [B]), set()),
        (LockSet("both", [A, B], [A]), LockSet("r", [A, B]), {A}),
        (LockSet("all", everything=True), LockSet("r", [A]), {A}),
        (LockSet("none"), LockSet("w", (), [A]), set()),
    ],
)
def test_two_claims_conflict_where_one_writes_what_the_other_touches(one, other, names):
    assert one.contested(other) == other.contested(one) == names
    assert one.conflicts(other) == other.conflicts(one) == (bool(names) or one.everything)


def test_a_verdict_is_found_once_and_its_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(lock_module, "VERDICTS", 8)
    mine, asked = LockSet("mine", (), [A]), []
    monkeypatch.setattr(LockSet, "contested", lambda self, other: asked.append(other) or self.writes & other.writes)
    others = [LockSet(str(i), (), [A if i % 2 else B]) for i in range(30)]
    for _ in range(3):
        assert mine.conflicts(others[0]) is False
        assert mine.conflicts(others[1]) is True
    assert asked == others[:2]
    assert [mine.conflicts(o) for o in others] == [bool(i % 2) for i in range(30)]
    assert len(mine._verdicts) <= 8


def test_a_claim_keeps_no_other_alive():
    mine, other = LockSet("mine", (), [A]), LockSet("other", (), [A])
    assert mine.conflicts(other)
    gone = weakref.ref(other)
    del other
    gc.collect()
    assert gone() is None


# -- order


def test_readers_share_and_a_writer_waits_for_all_of_them():
    lock = ResourceLock()
    readers = [Actor([lock], request(f"r{i}", [A])).arrived() for i in range(3)]
    writer = Actor([lock], request("w", (), [A])).arrived()
    assert all(r.inside.is_set() for r in readers) and not writer.inside.is_set()
    for reader in (readers[1], readers[2]):
        reader.leave()
        assert not writer.inside.wait(0.12), "a writer among readers"
    readers[0].leave()
    assert writer.inside.wait(30)
    writer.leave()
    assert not lock.requests and not lock.waiting


def test_locks_of_other_things_do_not_wait():
    lock = ResourceLock()
    writer = Actor([lock], request("w", (), [A])).arrived()
    for holder in (request("b", (), [B]), request("c", [C], [B])):
        other = Actor([lock], holder).arrived()
        assert other.inside.is_set()
        other.leave()
    writer.leave()


def test_arrivals_are_served_in_order():
    """A reader that comes after a waiting writer waits for it, although readers are inside."""
    lock, served = ResourceLock(), []
    first = Actor([lock], request("r0", [A])).arrived()
    queue = []
    for i in range(8):
        actor = Actor([lock], request(f"{i}", *(((), [A]) if i % 3 == 0 else ([A], ()))))
        actor._stay = lambda i=i: served.append(i)
        queue.append(actor.start())
        until(lambda actor=actor: actor.holder in lock.waiting)
    assert served == []
    first.leave()
    for actor in queue:
        actor.thread.join(30)
    places = {n: p for p, n in enumerate(served)}
    writers = [i for i in range(8) if i % 3 == 0]
    assert len(served) == 8
    for w in writers:
        assert all((places[i] < places[w]) == (i < w) for i in range(8) if i != w), served


def test_a_writer_among_readers_progresses_in_bounded_arrivals():
    """Counted in arrivals: between a writer's arrival and its turn no reader that came later gets in."""
    lock, counting = ResourceLock(), threading.Lock()
    arrivals, entered_after = itertools.count(), []
    read, write = LockSet("r", [A]), LockSet("w", (), [A])
    stop = threading.Event()
    waiting_since: list[int] = []

    def reader():
        while not stop.is_set():
            with counting:
                mine = next(arrivals)
                holder = LockRequest(read)
                lock.requests[holder] = get_ident()
            with_locks((), holder, None, lambda holder=holder: lock.wait(holder))
            if waiting_since and mine > waiting_since[0]:
                entered_after.append(mine)
            lock.release(holder)

    readers = [threading.Thread(target=reader, daemon=True) for _ in range(4)]
    for thread in readers:
        thread.start()
    for _ in range(200):
        with counting:
            holder = LockRequest(write)
            lock.requests[holder] = get_ident()
            waiting_since[:] = [next(arrivals)]
        lock.wait(holder)
        assert not entered_after
        waiting_since.clear()
        lock.release(holder)
    stop.set()
    for thread in readers:
        thread.join(30)
    assert next(arrivals) > 200, "the readers ran as well"
    assert not lock.requests and not lock.waiting


def test_eight_threads_count_exactly_and_no_read_is_torn():
    lock, things = ResourceLock(), [Thing(f"t{i}") for i in range(4)]
    values = {t: [0, 0] for t in things}
    lock_sets = {}
    for size in (1, 2):
        for chosen in itertools.combinations(things, size):
            lock_sets[chosen, True] = LockSet(f"w{size}", (), chosen)
            lock_sets[chosen, False] = LockSet(f"r{size}", chosen)
    done, torn = [dict.fromkeys(things, 0) for _ in range(8)], []

    def write(chosen, mine):
        for t in chosen:
            values[t][0] += 1
        time.sleep(0)
        for t in chosen:
            values[t][1] += 1
            mine[t] += 1

    def read(chosen):
        before = [tuple(values[t]) for t in chosen]
        time.sleep(0)
        torn.extend(p for p in before if p[0] != p[1])
        torn.extend(t for t, p in zip(chosen, before, strict=True) if tuple(values[t]) != p)

    def work(number):
        rng = random.Random(number)
        keys = sorted(lock_sets, key=lambda k: (len(k[0]), [t.name for t in k[0]], k[1]))
        for _ in range(400):
            chosen, writes = rng.choice(keys)
            holder = LockRequest(lock_sets[chosen, writes])
            if writes:
                with_locks([lock], holder, None, write, chosen, done[number])
            else:
                with_locks([lock], holder, None, read, chosen)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    finally:
        sys.setswitchinterval(before)
    assert not any(t.is_alive() for t in threads)
    assert torn == []
    for t in things:
        assert values[t] == [sum(d[t] for d in done)] * 2
    assert not lock.requests and not lock.waiting


def test_several_locks_are_taken_in_one_order_and_do_not_deadlock():
    locks = [ResourceLock() for _ in range(3)]
    assert [g.number for g in locks] == sorted(g.number for g in locks)
    things = [Thing(str(i)) for i in range(3)]
    count = [0, 0, 0]

    def work(number):
        rng = random.Random(number)
        for _ in range(300):
            chosen = sorted(rng.sample(range(3), rng.randint(1, 3)))
            holder = request("w", (), [things[i] for i in chosen])

            def add(chosen=chosen):
                for i in chosen:
                    now = count[i]
                    time.sleep(0)
                    count[i] = now + 1

            with_locks([locks[i] for i in chosen], holder, None, add)
            for i in chosen:
                done[number][i] += 1

    done = [[0, 0, 0] for _ in range(6)]
    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(t.is_alive() for t in threads)
    assert count == [sum(d[i] for d in done) for i in range(3)]


# -- lost wake-ups, interrupts, forks


def test_a_lost_wake_up_costs_a_moment_and_no_hang():
    lock = ResourceLock()
    first, second = request("first", (), [A]), Actor([lock], request("second", (), [A]))
    lock.acquire(first)
    second.arrived()
    assert not second.inside.is_set()
    lock.requests.pop(first)  # an interrupt kept it from waking anybody
    assert second.inside.wait(30)
    second.leave()


def _free(locks, holder):
    return with_locks(locks, holder, None, int)


def _contended(locks, holder):
    """Waits for somebody who never leaves, until the interrupt."""
    others = [LockRequest(LockSet("other", (), [A])) for _ in locks]
    for lock, other in zip(locks[-1:], others, strict=False):
        lock.requests[other] = get_ident() + 1
    try:
        return with_locks(locks, holder, Until(0.003), int)
    except DeadlineExceededError:
        return None
    finally:
        for lock, other in zip(locks[-1:], others, strict=False):
            lock.requests.pop(other, None)


@pytest.mark.parametrize("run", [_free, _contended])
@in_its_own_thread
@pytest.mark.slow
@pytest.mark.sampled(2)
def test_an_interrupt_at_any_bytecode_leaks_no_claim(run, monkeypatch):
    if sys.gettrace() is not None:
        pytest.skip("a tracer is at work")
    monkeypatch.setattr(lock_module, "PATIENCE", 0.001)
    locks = [ResourceLock(), ResourceLock()]
    lock_set = LockSet("mine", (), [A])
    points = 0
    while True:
        tracer = Interrupter(points, [lock_module])
        caught = False
        try:
            with tracer:
                run(locks, LockRequest(lock_set))
        except KeyboardInterrupt:
            caught = True
        assert caught == tracer.raised
        for lock in locks:
            assert not lock.requests and not lock.waiting, f"leaked at bytecode {points}"
        assert not lock_module._waits
        if not tracer.raised:
            break
        points += 1
    assert points > 50


def test_two_thousand_interrupts_of_a_running_thread_leak_no_claim():
    """As Ctrl-C would: the interpreter raises wherever it looks for signals, inside the lock or around it."""
    lock, value, stop = ResourceLock(), [0, 0], threading.Event()
    lock_set = LockSet("count", (), [A])
    caught, inside = [0], [0]

    def add():
        value[0] += 1
        value[1] += 1

    def work():
        while not stop.is_set():
            try:
                while not stop.is_set():
                    with_locks([lock], LockRequest(lock_set), None, add)
            except KeyboardInterrupt as error:
                caught[0] += 1
                trace = error.__traceback__
                while trace.tb_next is not None:
                    trace = trace.tb_next
                inside[0] += trace.tb_frame.f_code.co_filename == lock_module.__file__

    def guarded():
        while not stop.is_set():
            try:
                work()
            except KeyboardInterrupt:  # it struck outside of the try
                caught[0] += 1

    worker = threading.Thread(target=guarded, daemon=True)
    rival = threading.Thread(
        target=lambda: [with_locks([lock], LockRequest(lock_set), None, add) for _ in iter(stop.is_set, True)],
        daemon=True,
    )
    worker.start()
    rival.start()
    set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
    for number in range(1, 2001):
        assert set_exception(ctypes.c_ulong(worker.ident), ctypes.py_object(KeyboardInterrupt)) == 1
        until(lambda number=number: caught[0] >= number)
    stop.set()
    for thread in (worker, rival):
        thread.join(30)
        assert not thread.is_alive()
    assert not lock.requests and not lock.waiting
    assert inside[0] > 200, "too few of them struck inside the lock"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_fork_clears_the_claims_of_threads_that_are_not_there():
    lock = ResourceLock()
    running = Actor([lock], request("running", (), [A])).arrived()
    waiting = Actor([lock], request("waiting", (), [A])).arrived()
    mine = request("mine", (), [B])
    lock.acquire(mine)
    child = os.fork()
    if child == 0:
        ok = list(lock.requests) == [mine] and not lock.waiting and not lock_module._waits
        lock.acquire(request("child", (), [A]), Until(5))
        os._exit(0 if ok else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(lock.requests) == 3
    lock.release(mine)
    running.leave()
    waiting.leave()


# -- waits that would never end


def test_a_wait_for_ones_own_thread_is_an_error_that_names_both_steps():
    lock = ResourceLock()

    def inner():
        with_locks([lock], request("the inner step", (), [A]), None, int)

    with pytest.raises(FailedPreconditionError, match="the inner step would wait for the outer step.*variable 'a'"):
        with_locks([lock], request("the outer step", [A]), None, inner)
    assert not lock.requests and not lock.waiting
    assert (
        with_locks([lock], request("outer", [A]), None, lambda: with_locks([lock], request("in", [A], [B]), None, int))
        == 0
    )


def test_a_step_within_a_step_passes_a_writer_that_waits_for_the_outer_one():
    """Else the writer would wait for the outer step, the outer for the inner, and the inner for the writer."""
    lock, actors = ResourceLock(), []

    def inner():
        actors.append(Actor([lock], request("writer", (), [A, B])).arrived())
        actors.append(Actor([lock], request("behind it", (), [B, C])).arrived())
        assert not any(a.inside.is_set() for a in actors)
        with_locks([lock], request("inner", [A, C]), Until(30), int)

    with_locks([lock], request("outer", [A]), None, inner)
    for actor in actors:
        assert actor.inside.wait(30)
        actor.leave()
    assert not lock.requests and not lock.waiting


def test_a_step_within_a_step_waits_for_a_writer_that_runs():
    lock = ResourceLock()
    writer = Actor([lock], request("writer", (), [B])).arrived()
    with pytest.raises(DeadlineExceededError, match="inner waited"):
        with_locks(
            [lock],
            request("outer", [A]),
            None,
            lambda: with_locks([lock], request("inner", [B]), Until(0.02), int),
        )
    writer.leave()


def test_threads_that_wait_for_each_other_are_told():
    lock, both_in = ResourceLock(), threading.Barrier(2)
    errors = []

    def work(mine, other):
        def inner():
            both_in.wait(30)
            with_locks([lock], request(f"inner of {mine.name}", (), [other]), None, int)

        try:
            with_locks([lock], request(f"outer of {mine.name}", (), [mine]), None, inner)
        except AbortedError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in ((A, B), (B, A))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(t.is_alive() for t in threads)
    assert len(errors) == 1, "one fails, the other goes on"
    assert "inner of a on thread" in errors[0] and "inner of b on thread" in errors[0]
    assert not lock.requests and not lock.waiting


def test_a_cycle_through_two_locks_is_found():
    one, two = ResourceLock(), ResourceLock()
    both_in, errors = threading.Barrier(2), []

    def work(first, then):
        def inner():
            both_in.wait(30)
            with_locks([then], request("inner", (), [A]), None, int)

        try:
            with_locks([first], request("outer", (), [A]), None, inner)
        except AbortedError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in ((one, two), (two, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(t.is_alive() for t in threads)
    assert len(errors) == 1


def test_a_queue_is_no_circle():
    """Eight threads that wait their turn for longer than anybody's patience."""
    lock, errors = ResourceLock(), []
    actors = [Actor([lock], request(str(i), (), [A])).arrived() for i in range(8)]
    time.sleep(3 * lock_module.PATIENCE)
    for actor in actors:
        assert actor.inside.wait(30)
        actor.leave()
        errors.append(actor.error)
    assert errors == [None] * 8


def test_a_deadline_names_the_variables_and_who_holds_them():
    lock = ResourceLock()
    runs = Actor([lock], request("step 3 (loss)", [A])).arrived()
    waits = Actor([lock], request("step 4 (train)", (), [A, B])).arrived()
    with pytest.raises(DeadlineExceededError) as caught:
        with_locks([lock], request("step 5 (save)", [B], [A]), Until(0.02), int)
    text = str(caught.value)
    assert "step 5 (save) waited 0.0" in text and "variable 'a', variable 'b'" in text
    assert f"step 3 (loss), which runs on thread {runs.thread.name!r}" in text
    assert f"step 4 (train), which waits for its turn on thread {waits.thread.name!r}" in text
    runs.leave()
    waits.leave()
    assert not lock.requests and not lock.waiting


def test_a_deadline_in_the_past_fails_only_where_there_is_somebody_to_wait_for():
    lock = ResourceLock()
    assert with_locks([lock], request("alone", (), [A]), Until(0.0), int) == 0
    other = Actor([lock], request("other", (), [A])).arrived()
    with pytest.raises(DeadlineExceededError):
        with_locks([lock], request("late", (), [A]), Until(0.0), int)
    other.leave()


def test_who_gives_up_waiting_keeps_nobody_waiting():
    lock = ResourceLock()
    holder = Actor([lock], request("holder", (), [A])).arrived()
    late = Actor([lock], request("late", (), [A]), Until(0.05)).arrived()
    behind = Actor([lock], request("behind", [A])).arrived()
    late.thread.join(30)
    assert isinstance(late.error, DeadlineExceededError)
    holder.leave()
    assert behind.inside.wait(30)
    behind.leave()
    assert not lock.requests and not lock.waiting


def test_a_lock_that_nobody_uses_goes():
    gone = weakref.ref(ResourceLock())
    gc.collect()
    assert gone() is None


def test_who_is_cancelled_while_waiting_stops_waiting():
    lock, limit = ResourceLock(), Until(60)
    holder = Actor([lock], request("holder", (), [A])).arrived()
    waiting = Actor([lock], request("waiting", (), [A]), limit).arrived()
    limit.error = AbortedError("the session was closed")
    waiting.thread.join(30)
    assert waiting.error is limit.error
    holder.leave()
    assert not lock.requests and not lock.waiting
