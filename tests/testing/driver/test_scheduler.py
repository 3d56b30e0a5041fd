"""The scheduler: late, in the order of each line, interleaved by a seed, and never stuck without a word."""

from __future__ import annotations

import pytest
from graphdock.errors import DeviceLostError, InternalError
from graphdock_testing.driver.scheduler import Health, Line, QueuePoint, Scheduler, Work


def lines(count=2):
    return [Line(f"q{i}", Health(f"chip:{i}")) for i in range(count)]


def filled(seed=0, laziness=None, each=20):
    scheduler, trace = Scheduler(seed, laziness), []
    made = lines()
    for number in range(each):
        for line in made:
            scheduler.add(line, Work("w", lambda line=line, number=number: trace.append((line.name, number))))
    return scheduler, made, trace


def test_nothing_runs_by_itself():
    scheduler, _, trace = filled()
    assert (scheduler.pending, trace) == (40, [])


def test_a_step_runs_one_piece():
    scheduler, _, trace = filled()
    assert scheduler.step()
    assert len(trace) == 1
    assert not Scheduler().step()


@pytest.mark.parametrize("seed", range(5))
def test_each_line_keeps_its_order(seed):
    scheduler, (q, r), trace = filled(seed)
    scheduler.drain(q)
    scheduler.drain(r)
    for name in ("q0", "q1"):
        assert [n for line, n in trace if line == name] == list(range(20))


def test_interleavings_follow_the_seed_and_differ():
    def order(seed):
        scheduler, (q, _), trace = filled(seed, 0.0)
        scheduler.drain(q)
        return tuple(trace)

    assert order(1) == order(1)
    assert len({order(seed) for seed in range(10)}) > 5


def test_laziness_says_whether_other_lines_run():
    for laziness, expected in ((1.0, 0), (0.0, 10)):
        scheduler, (q, r), _ = filled(3, laziness)
        scheduler.drain(q)
        assert (r.done >= expected) and (laziness == 0.0 or r.done == 0)
    assert {Scheduler(seed).laziness for seed in range(30)} == {0.0, 0.5, 1.0}


@pytest.mark.parametrize("laziness", [0.0, 1.0])
def test_a_wait_holds_its_line_until_the_ticket_is_reached(laziness):
    scheduler, trace, (q, r) = Scheduler(2, laziness), [], lines()
    scheduler.add(q, Work("a", lambda: trace.append("a")))
    point = q.point()
    scheduler.add(q, Work("later", lambda: trace.append("later")))
    scheduler.add(r, Work("wait", after=point))
    scheduler.add(r, Work("b", lambda: trace.append("b")))
    scheduler.drain(r)
    assert trace.index("a") < trace.index("b")
    assert point.reached


def test_chains_of_waits_are_followed():
    scheduler, trace, made = Scheduler(0, 1.0), [], lines(50)
    for line, before in zip(made, [None, *made], strict=False):
        if before is not None:
            scheduler.add(line, Work("wait", after=before.point()))
        scheduler.add(line, Work("w", lambda line=line: trace.append(line.name)))
    scheduler.drain(made[-1])
    assert trace == [line.name for line in made]


def test_reach_stops_at_the_ticket():
    scheduler, (q, _), trace = filled(0, 1.0)
    scheduler.reach(QueuePoint(q, 5))
    assert len(trace) == 5


def test_the_first_error_is_kept_and_the_rest_runs():
    scheduler, (q, _), _ = filled(each=0)
    ran = []
    for error in (ValueError("first"), ValueError("second")):

        def fail(error=error):
            raise error

        scheduler.add(q, Work("w", fail))
    scheduler.add(q, Work("w", lambda: ran.append(1)))
    scheduler.drain(q)
    assert (str(q.error), ran, q.done) == ("first", [1], 3)


def test_an_interrupt_passes_and_leaves_the_line_usable():
    scheduler, (q, _), _ = filled(each=0)

    def interrupt():
        raise KeyboardInterrupt

    ran = []
    scheduler.add(q, Work("w", interrupt))
    scheduler.add(q, Work("w", lambda: ran.append(1)))
    with pytest.raises(KeyboardInterrupt):
        scheduler.drain(q)
    scheduler.drain(q)
    assert (ran, q.error, q.done) == ([1], None, 2)


def test_a_lost_device_drops_its_work_and_no_other_s():
    scheduler, (q, r), trace = filled(0, 1.0)
    q.health.lose("gone")
    scheduler.drain(q)
    scheduler.drain(r)
    assert (q.done, len(trace), scheduler.pending) == (0, 20, 0)
    q.health.lose("again")
    with pytest.raises(DeviceLostError, match="chip:0 is lost: gone"):
        q.health.check()


def test_who_waits_for_a_lost_device_gets_its_error_and_goes_on():
    scheduler, ran, (q, r) = Scheduler(0, 1.0), [], lines()
    scheduler.add(q, Work("bad", loses="gone"))
    point = q.point()
    scheduler.add(r, Work("wait", after=point))
    scheduler.add(r, Work("w", lambda: ran.append(1)))
    scheduler.drain(r)
    assert isinstance(r.error, DeviceLostError) and r.error.device == "chip:0"
    assert ran == [1]
    assert not point.reached


def test_a_point_that_never_comes_is_an_error():
    scheduler, (q, r) = Scheduler(0, 1.0), lines()
    scheduler.add(q, Work("wait", after=QueuePoint(r, 3)))
    with pytest.raises(InternalError, match="q0 waits for a point of q1 that never comes"):
        scheduler.drain(q)


def test_a_circle_is_an_error():
    scheduler, (q, r) = Scheduler(0, 1.0), lines()
    scheduler.add(q, Work("wait", after=QueuePoint(r, 1)))
    scheduler.add(r, Work("wait", after=QueuePoint(q, 1)))
    with pytest.raises(InternalError, match="in a circle"):
        scheduler.drain(q)
