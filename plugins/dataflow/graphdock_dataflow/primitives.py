"""Rows of dataflow's primitives. They run though they are dead, for each of them says itself what becomes of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from graphdock.contracts.runtime.shape_checks import predicate_check

from graphdock_dataflow.calls import Fire, taker
from graphdock_dataflow.checks import results_checked
from graphdock_dataflow.level import EMPTY, Row
from graphdock_dataflow.tagged import DEAD, Tagged

if TYPE_CHECKING:
    from graphdock_dataflow.instance import Instance, Runnable

__all__ = ["enter", "hand_on", "leave", "merge", "switch", "trigger"]


def switch(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    """Hands on what it got at the output that the predicate says; the other one is dead."""
    data, predicate = row.reads
    data = EMPTY if data is None else data
    assert predicate is not None
    outs = row.makes

    def run(values: list[Any]) -> bool:
        activation: Tagged = values[0]
        dead = number in activation.dead
        if dead:
            values[outs[0]] = values[outs[1]] = DEAD
        else:
            which = values[predicate]
            if which.shape:
                predicate_check(which)
            taken = bool(which)
            values[outs[taken]], values[outs[not taken]] = values[data], DEAD
        activation.finish(number, dead)
        return True

    return run


def merge(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    """Hands on what came first, and says which that was."""
    assert level.table.frame is not None
    slots, makes = level.table.frame.joins[number].slots, row.makes
    take = results_checked(instance.placed, row, taker(makes))

    def run(values: list[Any]) -> bool:
        activation: Tagged = values[0]
        dead = number in activation.dead
        if dead:
            values[makes[0]] = values[makes[1]] = DEAD
        else:
            which = activation.came[number]
            take(values, (values[slots[which]], np.array(which, np.int32)))
        activation.finish(number, dead)
        return True

    return run


def _arrival(level: Runnable, number: int) -> Fire | None:
    """Action of a row at which something has arrived from another level; None for a row that sends it."""
    assert level.table.frame is not None
    if number not in level.table.frame.arrivals:
        return None

    def run(values: list[Any]) -> bool:
        activation: Tagged = values[0]
        activation.finish(number, number in activation.dead)
        return True

    return run


def enter(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    """Hands on what it got, dead or not, to the frame."""
    arrival = _arrival(level, number)
    if arrival is not None:
        return arrival
    assert level.table.frame is not None
    entry, read = level.table.frame.entries[number], row.reads[0]
    read = EMPTY if read is None else read
    inner = instance.levels[entry.graph]

    def run(values: list[Any]) -> bool:
        activation: Tagged = values[0]
        dead = number in activation.dead
        activation.enter(entry, inner, DEAD if dead else values[read])
        activation.finish(number, dead)
        return True

    return run


def leave(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    """Hands on what it got to the level around the frame, where it is not dead."""
    arrival = _arrival(level, number)
    if arrival is not None:
        return arrival
    assert level.table.frame is not None
    (to, slot), read = level.table.frame.exits[number], row.reads[0]
    read = EMPTY if read is None else read

    def run(values: list[Any]) -> bool:
        activation: Tagged = values[0]
        dead = number in activation.dead
        if not dead:
            assert activation.execution is not None
            activation.execution.leave(to, slot, values[read])
        activation.finish(number, dead)
        return True

    return run


def hand_on(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    """Hands on what it got to the next iteration, where it is not dead."""
    assert level.table.frame is not None
    takers, read = level.table.frame.nexts[number], row.reads[0]
    read = EMPTY if read is None else read

    def run(values: list[Any]) -> bool:
        activation: Tagged = values[0]
        dead = number in activation.dead
        if not dead and takers:
            assert activation.execution is not None
            activation.execution.hand_on(activation, takers, values[read])
        activation.finish(number, dead)
        return True

    return run


def trigger(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    """Lets run what follows it, dead or not."""

    def run(values: list[Any]) -> bool:
        activation: Tagged = values[0]
        activation.finish(number, dead=False)
        return True

    return run
