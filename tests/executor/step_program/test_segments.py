"""Recordings of a step by a device: the longest runs of its own work over buffers that keep their address, with reasons between."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from graphdock.contracts import Device, DeviceInfo
from graphdock_executor.step_program.names import Name, Names
from graphdock_executor.step_program.segments import find_segments
from graphdock_executor.step_program.statements import (
    Activate,
    Block,
    Branch,
    Call,
    Copy,
    Flag,
    Launch,
    Require,
    Segment,
    Statement,
)


class Chip(Device):
    """A device with nothing but its name."""

    allocate = view = copy = from_host = to_host = None  # type: ignore[assignment]


Chip.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
CHIP, OTHER = Chip(DeviceInfo("chip")), Chip(DeviceInfo("chip", 1))
_numbers = itertools.count()


def buffer() -> Name:
    return Name("buffer", f"b{next(_numbers)}")


def launch(device: Device = CHIP, **facts: Any) -> Launch:
    return Launch(Name("kernel", f"k{next(_numbers)}"), (buffer(), buffer()), device=device, **facts)


def shapes(block: Block) -> list[str]:
    return [
        f"segment of {len(s.body.statements)}" if isinstance(s, Segment) else type(s).__name__.lower()
        for s in block.statements
    ]


def split(*statements: Statement) -> tuple[list[str], list[str]]:
    block, _, boundaries = find_segments(Block(statements), CHIP, Names())
    return shapes(block), [b.reason for b in boundaries]


def test_a_run_of_the_devices_work_is_one_segment() -> None:
    copy = Copy(Name("method", "d0"), buffer(), buffer(), device=CHIP)
    assert split(launch(), copy, launch()) == (["segment of 3"], [])


@pytest.mark.parametrize(
    ("between", "reason"),
    [
        (Call(Name("kernel", "k"), (), hold="the host runs it"), "the host runs it"),
        (launch(OTHER), "<Chip chip:1> runs it"),
        (launch(hold="its kernel is not capture_safe"), "its kernel is not capture_safe"),
        (Require(Name("resource", "x0"), hold="checked in the step"), "checked in the step"),
        (Launch(Name("kernel", "k"), (Name("value", "v0"),), device=CHIP), "a buffer of it is made in the step"),
        (
            Launch(Name("kernel", "k"), (), access=Name("access", "u0"), device=CHIP),
            "it locks a variable for itself",
        ),
        (Call(Name("maker", "z0"), (), (Name("escape", "e0"),)), "the host runs it"),
    ],
)
def test_what_can_not_be_recorded_parts_the_run(between: Statement, reason: str) -> None:
    kind = type(between).__name__.lower()
    assert split(launch(), launch(), between, launch()) == (["segment of 2", kind, "segment of 1"], [reason])


def test_notes_and_activations_stand_around_a_segment() -> None:
    flag, current = Flag(Name("resource", "x0")), Activate(Name("method", "d0"))
    assert split(current, launch(), flag, launch()) == (["activate", "segment of 2", "flag"], [])


def test_what_becomes_current_after_a_segment_does_not_before() -> None:
    other = Activate(Name("method", "d1"))
    block, _, _ = find_segments(Block([launch(), other, launch(OTHER)]), CHIP, Names())
    assert shapes(block) == ["segment of 1", "activate", "launch"]


def test_copies_alone_are_not_recorded() -> None:
    copy = Copy(Name("method", "d0"), buffer(), buffer(), device=CHIP)
    assert split(copy, copy)[0] == ["copy", "copy"]


def test_segments_are_found_inside_of_branches() -> None:
    then, otherwise = Block([launch(), launch()]), Block([launch(OTHER)])
    block, segments, boundaries = find_segments(Block([Branch(buffer(), then, otherwise, hold="host")]), CHIP, Names())
    assert shapes(block) == ["branch"]
    assert (shapes(then), shapes(otherwise)) == (["segment of 2"], ["launch"])
    assert [b.reason for b in boundaries] == ["host", "<Chip chip:1> runs it"]
    assert len(segments) == 1
