"""Vector clocks: what an agent knows of another."""

from __future__ import annotations

from graphdock_testing.driver.clocks import HOST, Clocks


class Point:
    pass


def test_a_queue_knows_its_own_work_and_no_others():
    clocks = Clocks()
    q, r = clocks.agent("q"), clocks.agent("r")
    assert [clocks.queued(q)[q], clocks.queued(q)[q]] == [1, 2]
    assert clocks.queued(r)[q] == 0


def test_a_wait_hands_on_what_came_before_the_record_and_nothing_later():
    clocks = Clocks()
    q, r, s = clocks.agent("q"), clocks.agent("r"), clocks.agent("s")
    clocks.queued(q)
    point = Point()
    clocks.record(q, point)
    clocks.queued(q)
    clocks.wait(r, point)
    assert clocks.queued(r)[q] == 1
    later = Point()
    clocks.record(r, later)
    clocks.wait(s, later)
    assert clocks.queued(s)[q] == 1  # also through a third


def test_a_second_record_leaves_what_waits_for_the_first():
    clocks = Clocks()
    q, r = clocks.agent("q"), clocks.agent("r")
    first, second = Point(), Point()
    clocks.queued(q)
    clocks.record(q, first)
    clocks.queued(q)
    clocks.record(q, second)
    clocks.wait(r, first)
    assert clocks.queued(r)[q] == 1


def test_what_the_host_has_fenced_every_queue_knows():
    clocks = Clocks()
    q, r = clocks.agent("q"), clocks.agent("r")
    clocks.queued(q)
    clocks.fenced(q)
    clocks.queued(q)
    assert clocks.queued(r)[q] == 1


def test_a_reached_point_tells_the_host_no_more_than_the_point():
    clocks = Clocks()
    q, r = clocks.agent("q"), clocks.agent("r")
    clocks.queued(q)
    point = Point()
    clocks.record(q, point)
    clocks.queued(q)
    clocks.reached(point)
    assert clocks.queued(r)[q] == 1


def test_the_host_s_accesses_come_before_what_it_queues_later():
    clocks = Clocks()
    q = clocks.agent("q")
    assert clocks.on_host()[HOST] == 1
    assert clocks.queued(q)[HOST] == 1
    clocks.on_host()
    assert clocks.queued(q)[HOST] == 2


def test_a_point_that_was_never_seen_orders_nothing():
    clocks = Clocks()
    q, r = clocks.agent("q"), clocks.agent("r")
    clocks.queued(q)
    clocks.wait(r, Point())
    clocks.reached(Point())
    assert clocks.queued(r)[q] == 0


def test_points_are_forgotten_with_their_owner():
    clocks = Clocks()
    q = clocks.agent("q")
    for _ in range(100):
        clocks.record(q, Point())
    assert len(clocks._points) == 0
