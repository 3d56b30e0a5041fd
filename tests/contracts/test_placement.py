"""Times of simulated steps: devices one task at a time, copies once per memory, peaks of what is alive."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from math import inf, nan
from pathlib import Path

import pytest
from graphdock.contracts import PlacementProblem, PlacementTask, PlacementTensor, Timeline, simulate
from graphdock.errors import InvalidArgumentError

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


def test_devices_of_one_engine_compute_in_turn():
    p = problem([((0,), (1,), (), (3, 4)), ((0,), (2,), (), (3, 4))], [0, 0, 0])
    one = replace(p, engines={"d:0": "step", "d:1": "step"})
    found = simulate(one, ["d:0", "d:1"])
    assert found.makespan == 3 + 4
    assert [(device, start) for device, start, _ in found.tasks] == [("d:0", 0), ("d:1", 3)]
    assert simulate(replace(p, engines={"d:1": "its own"}), ["d:0", "d:1"]).makespan == 1 + 4
    with pytest.raises(InvalidArgumentError, match="engines names 'd:7'"):
        replace(p, engines={"d:7": "step"})


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


def test_nothing_to_do_takes_no_time():
    assert simulate(problem([], [0]), []).makespan == 0.0


@pytest.mark.parametrize(
    "devices",
    [[], ["d:0"], ["d:0"] * 3, "d:", {0: "d:0", 1: "d:0"}, None, ["d:0", "d:7"], ["d:0", None], ["d:0", ["d:1"]]],
    ids=repr,
)
def test_devices_that_are_not_one_per_group_are_refused_by_name(devices):
    p = problem([((0,), (1,), (), (1, 1)), ((1,), (2,), (), (1, 1))], [0] * 3)
    with pytest.raises(InvalidArgumentError, match=r"^devices(\[1\])? (are|is) wrong"):
        simulate(p, devices)


CHAIN = problem([((0,), (1,), (), (1, 1)), ((1,), (2,), (0,), (1, 1))], [0] * 3)
WRONG = {
    "memory has no space of 'd:1'": {"memory": {"d:0": "m0"}},
    "links has no copy from 'm1' to 'm0'": {"links": {("m0", "m1"): (0.0, 0.0)}},
    r"groups[1] is ('d:9',); devices are d:0, d:1": {"groups": (DEVICES, ("d:9",))},
    "groups[0] is ()": {"groups": ((), DEVICES)},
    "rules are wrong": {"rules": ("d:0",)},
    "rules[1] is wrong": {"rules": ("d:0", "d:9")},
    "tasks[1] is of group 2; there are 2": {"tasks": (CHAIN.tasks[0], replace(CHAIN.tasks[1], group=2))},
    "tasks[1] reads tensor 2, which no task before makes": {
        "tasks": (CHAIN.tasks[0], replace(CHAIN.tasks[1], reads=(0, 2)))
    },
    "tasks[0] reads tensor 1": {"tasks": CHAIN.tasks[::-1]},
    "tasks[1] is after (1,), which is not before it": {"tasks": (CHAIN.tasks[0], replace(CHAIN.tasks[1], after=(1,)))},
    "tasks[1] has no seconds on 'd:1'": {"tasks": (CHAIN.tasks[0], replace(CHAIN.tasks[1], seconds={"d:0": 1.0}))},
    "a task makes tensor 8; there are 3": {"tasks": (CHAIN.tasks[0], replace(CHAIN.tasks[1], makes=(8,)))},
    "tasks[1] makes tensor 1, which is there before": {"tasks": (CHAIN.tasks[0], replace(CHAIN.tasks[1], makes=(1,)))},
    "tasks[0] makes tensor 0, which is there before": {"tasks": (replace(CHAIN.tasks[0], makes=(0,)),)},
    "tasks[0] takes {'d:0': nan, 'd:1': 1}": {"tasks": (replace(CHAIN.tasks[0], seconds={"d:0": nan, "d:1": 1}),)},
    "tasks[0] takes {'d:0': inf, 'd:1': 1}": {"tasks": (replace(CHAIN.tasks[0], seconds={"d:0": inf, "d:1": 1}),)},
    "tasks[0] takes {'d:0': -1, 'd:1': 1}": {"tasks": (replace(CHAIN.tasks[0], seconds={"d:0": -1, "d:1": 1}),)},
    "a tensor has -8 bytes": {"tensors": (*CHAIN.tensors[:2], PlacementTensor(-8))},
    "links takes (0.0, nan) from 'm1' to 'm0'": {"links": {**LINKS, ("m1", "m0"): (0.0, nan)}},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_problem_whose_parts_do_not_belong_together_is_none(what):
    with pytest.raises(InvalidArgumentError) as error:
        replace(CHAIN, **WRONG[what])
    assert what in error.value.message


@pytest.mark.parametrize("kind", [PlacementProblem, PlacementTask, PlacementTensor, Timeline], ids=lambda c: c.__name__)
def test_each_attribute_is_in_the_docstring_and_on_the_page(kind):
    names = [f.name for f in fields(kind)]
    assert re.findall(r"^ +(\w+): ", kind.__doc__.partition("Attributes:")[2].partition("Raises:")[0], re.M) == names
    page = (Path(__file__).parents[2] / "docs" / "write-a-placer.md").read_text("utf-8")
    table = page.partition(f"| of a `{kind.__name__}` | says |\n")[2].partition("\n\n")[0]
    assert re.findall(r"`(\w+)`", "\n".join(row.split("|")[1] for row in table.splitlines()[1:])) == names
