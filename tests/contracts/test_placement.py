"""Times of simulated steps: devices one task at a time, copies once per memory, peaks of what is alive."""

from __future__ import annotations

import pytest
from graphdock.contracts import PlacementProblem, PlacementTask, PlacementTensor, simulate

DEVICES = ("d:0", "d:1")
MEMORY = {"d:0": "m0", "d:1": "m1"}
LINKS = {("m0", "m1"): (1.0, 0.1), ("m1", "m0"): (1.0, 0.1)}


def problem(tasks, nbytes, limits=()):
    """Tasks are (reads, makes, after, seconds on either device)."""
    made = [
        PlacementTask(f"t{i}", i, reads, makes, after, dict(zip(DEVICES, seconds, strict=True)))
        for i, (reads, makes, after, seconds) in enumerate(tasks)
    ]
    tensors = [PlacementTensor(nbytes[0], "m0"), *map(PlacementTensor, nbytes[1:])]
    groups = (DEVICES,) * len(made)
    rules = ("d:0",) * len(made)
    return PlacementProblem(DEVICES, MEMORY, groups, rules, tuple(made), tuple(tensors), LINKS, dict(limits))


def test_a_device_computes_one_after_another_and_two_side_by_side():
    p = problem([((0,), (1,), (), (3, 4)), ((0,), (2,), (), (3, 4))], [0, 0, 0])
    assert simulate(p, ["d:0", "d:0"]).makespan == 6
    assert simulate(p, ["d:0", "d:1"]).makespan == 1 + 4  # a copy of no bytes takes as long as it takes to begin


def test_a_tensor_is_copied_once_per_memory_and_copies_follow_each_other():
    p = problem(
        [((0,), (1,), (), (1, 1)), ((1,), (2,), (), (1, 1)), ((1,), (3,), (), (1, 1)), ((0, 1), (4,), (), (1, 1))],
        [5, 10, 0, 0, 0],
    )
    found = simulate(p, ["d:0", "d:1", "d:1", "d:1"])
    assert [(t, a, b) for t, a, b, _, _ in found.transfers] == [(1, "m0", "m1"), (0, "m0", "m1")]
    (_, _, _, first, second), (_, _, _, third, fourth) = found.transfers
    assert (first, second) == (1, 3) and (third, fourth) == (3, 4.5)
    assert found.makespan == 6


def test_who_follows_waits_without_reading():
    p = problem([((0,), (1,), (), (5, 5)), ((0,), (2,), (0,), (1, 1))], [0, 0, 0])
    assert [begin for _, begin, _ in simulate(p, ["d:0", "d:1"]).tasks] == [0, 5]


def test_a_free_device_takes_what_can_begin_and_does_not_wait_for_what_comes_first():
    tasks = [((0,), (1,), (), (5, 5)), ((1,), (2,), (), (1, 1)), ((0,), (3,), (), (1, 1))]
    found = simulate(problem(tasks, [0] * 4), ["d:0", "d:1", "d:1"])
    assert found.tasks[2][1] < found.tasks[1][1]


def test_the_peak_is_of_what_is_alive_at_once():
    chain = [((i,), (i + 1,), (), (1, 1)) for i in range(4)]
    found = simulate(problem(chain, [0, 10, 20, 30, 40]), ["d:0"] * 4)
    assert found.peak == {"m0": 70}
    apart = simulate(problem(chain, [0, 10, 20, 30, 40]), ["d:0", "d:0", "d:1", "d:1"])
    assert apart.peak == {"m0": 30, "m1": 70}
    assert apart.excess({"m1": 50, "m0": 50}) == {"m1": 20}


@pytest.mark.parametrize("devices", [["d:0", "d:0"], ["d:1", "d:0"]])
def test_nothing_to_do_takes_no_time(devices):
    assert simulate(problem([], [0]), devices).makespan == 0.0
