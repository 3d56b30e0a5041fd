"""The race checker: planted races are found and named, ordered programs are silent, and both agree with reachability."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError
from graphdock_testing.driver import detector as detector_module
from graphdock_testing.driver import races
from graphdock_testing.driver.detector import Detector, Note, RaceError, Range


def at(start, stop, space="m"):
    return Range(space, start, stop)


class Point:
    pass


# -- the detector


@pytest.mark.parametrize(("first", "second", "found"), [("w", "w", 1), ("w", "r", 1), ("r", "w", 1), ("r", "r", 0)])
def test_two_accesses_of_two_queues_conflict_when_one_writes(first, second, found):
    detector = Detector()
    for queue, kind in (("q", first), ("r", second)):
        ranges = [at(0, 8)]
        detector.access(queue, kind, ranges if kind == "r" else (), ranges if kind == "w" else ())
    assert len(detector.report.races) == found


@pytest.mark.parametrize("other", [at(8, 16), at(0, 8, "elsewhere")])
def test_other_bytes_do_not_conflict(other):
    detector = Detector()
    detector.access("q", "a", (), [at(0, 8)])
    detector.access("r", "b", (), [other])
    assert not detector.report.races


def test_a_race_names_both_and_the_bytes_they_share():
    detector = Detector()
    detector.access("q", "layer/MatMul", (), [at(0, 8)])
    detector.access("r", "layer/Relu", [at(4, 12)], ())
    (race,) = detector.report.races
    assert (race.first.what, race.first.where, race.first.write) == ("layer/MatMul", "q", True)
    assert (race.second.what, race.second.where, race.second.write) == ("layer/Relu", "r", False)
    assert race.range == at(4, 8)
    assert race.first.site.startswith("test_races.py:")
    assert re.sub(r":\d+\)", ")", str(race)) == (
        "layer/Relu (test_races.py) on r reads, layer/MatMul (test_races.py) on q writes, and nothing orders them: "
        "bytes 0x4 to 0x8 of m"
    )


def test_the_site_is_the_line_of_the_program_that_called_the_queue(bench):
    x, y, slot = bench.buffer(), bench.buffer(), bench.slot()
    exec(compile("copy(x, y)", "<step 1>", "exec"), {"copy": bench.on(bench.q).copy, "x": x, "y": y})
    with races.watch(bench.device) as report:
        exec(compile("\ncopy(x, y)", "<step 1>", "exec"), {"copy": bench.on(bench.q).copy, "x": x, "y": y})
        bench.on(bench.r).to_host(y, slot)
    (race,) = report.races
    assert race.first.site == "<step 1>:2"
    assert race.second.site.startswith("test_races.py:")


def test_the_same_pair_is_reported_once_and_a_report_stays_small():
    detector = Detector()
    for _ in range(5):
        detector.access("q", "a", (), [at(0, 8)])
        detector.access("r", "b", (), [at(0, 8)])
    assert len(detector.report.races) == 2  # b after a, and a after b
    for number in range(500):
        detector.access("q", f"a{number}", (), [at(0, 8)])
        detector.access("r", f"b{number}", (), [at(0, 8)])
    assert len(detector.report.races) == 100
    with pytest.raises(RaceError, match="and 9.. more"):
        detector.report.verify()


def test_a_segment_is_checked_inside_and_against_what_is_around_it():
    def segment(*, joined):
        fork, join = Point(), Point()
        notes = [Note("record", "q", point=fork), Note("wait", "r", point=fork)]
        notes += [Note("access", "r", "branch", (), (at(0, 8),)), Note("record", "r", point=join)]
        if joined:
            notes.append(Note("wait", "q", point=join))
        return [*notes, Note("access", "q", "trunk", (at(0, 8),), ())]

    detector = Detector()
    detector.access("q", "before", (), [at(0, 8)])
    for _ in range(3):
        detector.replay("q", segment(joined=True))
    detector.access("q", "after", (), [at(0, 8)])
    assert not detector.report.races
    detector.access("r", "beside", (), [at(0, 8)])  # the queue r itself: the segment belongs to q
    assert {r.first.what for r in detector.report.races} == {"after"}
    torn = Detector()
    torn.replay("q", segment(joined=False))
    assert [(r.first.what, r.second.what) for r in torn.report.races] == [("branch", "trunk")]


def test_a_branch_of_a_segment_is_not_in_the_order_of_its_queue():
    fork, join = Point(), Point()
    notes = [
        Note("record", "q", point=fork),
        Note("wait", "r", point=fork),
        Note("access", "r", "branch", (), (at(0, 8),)),
    ]
    notes += [Note("record", "r", point=join), Note("wait", "q", point=join)]
    detector = Detector()
    detector.replay("q", notes)
    detector.access("r", "beside", (), [at(0, 8)])
    assert [(r.first.what, r.second.what) for r in detector.report.races] == [("branch", "beside")]


class Program:
    """Random calls of a detector, and the graph of what comes before what: every node knows the set of those before it."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.detector = Detector()
        self.before = []
        self.accesses = []
        self.last = {}
        self.host = None
        self.points = []

    def node(self, *edges):
        known = set()
        for edge in edges:
            if edge is not None:
                known |= self.before[edge] | {edge}
        self.before.append(known)
        return len(self.before) - 1

    def run(self, length, queues=3, size=24):
        for _ in range(length):
            queue = f"q{self.chance.randrange(queues)}"
            getattr(self, self.chance.choice(("access",) * 4 + ("on_host", "record", "wait", "fence", "reach")))(
                queue, size
            )
        return self

    def ranges(self, size):
        start = self.chance.randrange(size)
        return at(start, self.chance.randrange(start, min(start + 8, size) + 1)), self.chance.random() < 0.5

    def access(self, queue, size):
        self.host = self.node(self.host)
        self.last[queue] = self.node(self.host, self.last.get(queue))
        self._touch(queue, self.last[queue], size)

    def on_host(self, queue, size):
        self.host = self.node(self.host)
        self._touch(None, self.host, size)

    def _touch(self, queue, node, size):
        where, writing = self.ranges(size)
        self.accesses.append((node, where, writing))
        reads, writes = ((), [where]) if writing else ([where], ())
        if queue is None:
            self.detector.host(str(node), reads, writes)
        else:
            self.detector.access(queue, str(node), reads, writes)

    def record(self, queue, size):
        self.host = self.node(self.host)
        self.last[queue] = self.node(self.host, self.last.get(queue))
        point = Point()
        self.points.append((point, self.last[queue]))
        self.detector.record(queue, point)

    def wait(self, queue, size):
        if self.points:
            point, node = self.chance.choice(self.points)
            self.host = self.node(self.host)
            self.last[queue] = self.node(self.host, self.last.get(queue), node)
            self.detector.wait(queue, point)

    def fence(self, queue, size):
        self.host = self.node(self.host, self.last.get(queue))
        self.detector.fenced(queue)

    def reach(self, queue, size):
        if self.points:
            point, node = self.chance.choice(self.points)
            self.host = self.node(self.host, node)
            self.detector.reached(point)

    def racy(self):
        """(earlier, later) -> bytes, by reachability."""
        found = {}
        for n, (late, b, second) in enumerate(self.accesses):
            for early, a, first in self.accesses[:n]:
                shared = set(range(max(a.start, b.start), min(a.stop, b.stop)))
                if shared and (first or second) and early not in self.before[late]:
                    found[str(early), str(late)] = shared
        return found


def made(seed):
    return Program(seed).run(length=4 + seed % 40, queues=2 + seed % 3)


@pytest.mark.parametrize("seed", range(300))
def test_it_agrees_with_reachability(seed, monkeypatch):
    """Every report is a race; and where there is a race, at least one is reported on each of its bytes."""
    monkeypatch.setattr(detector_module, "_KEPT", 10_000)
    program = made(seed)
    want = program.racy()
    got = set()
    for race in program.detector.report.races:
        shared = want[race.first.what, race.second.what]
        assert set(range(race.range.start, race.range.stop)) <= shared
        got |= shared
    assert got == set().union(*want.values())


def test_both_kinds_of_programs_are_among_them():
    clean = sum(not made(seed).racy() for seed in range(300))
    assert 50 < clean < 250


@pytest.mark.slow
def test_a_hundred_thousand_accesses_need_no_more_pieces_than_boundaries():
    detector, chance = Detector(), random.Random(1)
    for number in range(100_000):
        queue = f"q{number % 4}"
        start = 256 * chance.randrange(200)
        detector.access(queue, "k", [at(start, start + 256)], [at(start + 256, start + 1024)])
        if number % 10 == 0:
            point = Point()
            detector.record(queue, point)
            detector.wait(f"q{(number + 1) % 4}", point)
    assert detector.report.accesses == 100_000
    assert len(detector._memory["m"]) <= 204
    assert len(detector._clocks._points) <= 1


# -- observing a device


def test_check_raises_at_the_end_and_watch_does_not(bench):
    x, y = bench.buffer(1), bench.buffer(0)
    with races.watch(bench.device) as report:
        bench.add(bench.q, x, y, what="first")
        bench.add(bench.r, y, x, what="second")
    assert {(r.first.what, r.second.what) for r in report.races} == {("first", "second")}
    assert str(report).startswith("second (conftest.py:")
    with pytest.raises(RaceError, match="2 races") as caught, races.check(bench.device):
        bench.add(bench.q, x, y, what="first")
        bench.add(bench.r, y, x, what="second")
    assert len(caught.value.races) == 2  # each reads what the other writes


def test_check_lets_the_block_s_own_error_pass(bench):
    x = bench.buffer(1)
    with pytest.raises(KeyError), races.check(bench.device):
        bench.add(bench.q, x, x)
        bench.add(bench.r, x, x)
        raise KeyError


def test_what_was_queued_before_the_check_began_is_taken_as_done(bench):
    x = bench.buffer(1)
    bench.add(bench.q, x, x)
    with races.check(bench.device):
        bench.add(bench.r, x, x)


def test_a_device_that_can_not_be_observed_is_refused():
    with pytest.raises(InvalidArgumentError, match="can't be observed"), races.check(object()):
        pass


def test_two_devices_of_one_driver_are_observed_once(make_bench):
    bench = make_bench()
    with races.watch(bench.device, bench.device) as report:
        bench.add(bench.q, bench.buffer(1), bench.buffer())
    assert report.accesses == 1
    assert bench.device.observers() == []


ORDERS = {
    "an event": lambda b: b.r.wait(b.q.record()),
    "a fence": lambda b: b.q.synchronize(),
    "a wait of the host": lambda b: b.device.wait_host(b.q.record()),
    "a fence of the device": lambda b: b.device.synchronize(),
    "polling": lambda b: _poll(b, b.q.record()),
    "an event recorded again": lambda b: _again(b),
}


def _poll(bench, event):
    while not bench.device.passed(event):
        pass


def _again(bench):
    event = bench.q.record()
    bench.q.record(event)
    bench.r.wait(event)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(5))
def test_whatever_orders_two_queues_makes_the_report_empty_and_the_numbers_right(make_bench, order, seed):
    bench = make_bench(seed, None)
    x, y, z = bench.buffer(1), bench.buffer(0), bench.buffer(0)
    with races.check(bench.device):
        bench.add(bench.q, x, y)
        ORDERS[order](bench)
        bench.add(bench.r, y, z)
        bench.r.synchronize()
    assert z.array.tolist() == [3.0] * 4


def test_an_event_recorded_too_early_orders_nothing(bench):
    x, y, z = bench.buffer(1), bench.buffer(0), bench.buffer(0)
    with races.watch(bench.device) as report:
        event = bench.q.record()
        bench.add(bench.q, x, y)
        bench.r.wait(event)
        bench.add(bench.r, y, z)
    assert report.races


def test_the_host_s_use_of_staging_memory_counts(bench):
    x, slot, other = bench.buffer(), bench.slot(), bench.slot()
    with races.watch(bench.device) as report:
        slot[...] = 1
        bench.on(bench.q).from_host(slot, x)
        other[...] = 2  # other bytes of the same block
        assert not report.races
        slot[1] = 3
    (race,) = report.races
    assert (race.first.what, race.second.where, race.second.write) == ("from_host", "the host", True)
    assert race.range.stop - race.range.start == 4


def test_a_result_read_before_the_fence_is_found_and_after_it_is_not(bench):
    x, slot, got = bench.buffer(7), bench.slot(), np.zeros(4, np.float32)
    with races.watch(bench.device) as report:
        bench.on(bench.q).to_host(x, slot)
        bench.q.synchronize()
        np.copyto(got, slot)
        assert not report.races
        bench.q.to_host(x, slot)
        np.copyto(got, slot)
    assert [(r.first.what, r.second.write) for r in report.races] == [("to_host", False)]


def test_freeing_what_another_queue_still_reads_is_found(bench):
    got = bench.slot()
    with races.watch(bench.device) as report:
        buffer = bench.on(bench.q).empty(bench_dtype(), (4,))
        event = bench.q.record()
        bench.r.wait(event)
        bench.on(bench.r).to_host(buffer, got)
        bench.q.free(buffer.storage)
    assert [(r.first.what, r.second.what) for r in report.races] == [("to_host", "free")]


def bench_dtype():
    from graphdock.contracts import dtypes

    return dtypes.float32


def test_dropping_memory_that_is_in_flight_is_found(bench):
    x = bench.buffer(1, keep=False)
    with races.watch(bench.device) as report:
        bench.add(bench.q, x, x, what="late")
        del x
        bench.q.synchronize()
    assert [(r.first.what, r.second.what) for r in report.races] == [("late", "free")]
    with races.check(bench.device):
        y = bench.buffer(1, keep=False)
        bench.add(bench.q, y, y)
        bench.q.synchronize()
        del y
        bench.q.synchronize()
