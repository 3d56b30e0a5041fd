"""Rows of branches and calls: a body runs as an activation of its own, for which the row waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphdock_dataflow.calls import Fire
from graphdock_dataflow.level import Row
from graphdock_dataflow.scheduler import Activation

if TYPE_CHECKING:
    from graphdock_dataflow.instance import Instance, Runnable

__all__ = ["branch", "call"]


def branch(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    """Runs the first body where the predicate holds, else the second."""
    node = row.node
    assert node is not None
    predicate, *reads = row.reads
    assert predicate is not None
    first, second = (instance.levels[b] for b in node.bodies)
    then = _body(first, reads[: len(first.inputs)], row.makes, number)
    otherwise = _body(second, reads[len(first.inputs) :], row.makes, number)

    def choose(values: list[Any]) -> Any:
        return then(values) if values[predicate] else otherwise(values)

    return choose


def call(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    """Runs the body."""
    assert row.node is not None
    return _body(instance.levels[row.node.bodies[0]], row.reads, row.makes, number)


def _body(body: Runnable, reads: Sequence[int | None], makes: Sequence[int], number: int) -> Fire:
    given = [(slot, read) for slot, read in zip(body.inputs, reads, strict=True) if read is not None]
    returned = list(zip(makes, body.outputs, strict=True))

    def ended(activation: Activation) -> None:
        outer = activation.parent
        assert outer is not None
        target, source = outer.values, activation.values
        for slot, output in returned:
            target[slot] = source[output]
        outer.resume(number)

    def enter(values: list[Any]) -> Any:
        outer: Activation = values[0]
        inner = body.values.copy()
        for slot, read in given:
            inner[slot] = values[read]
        if len(body.rows) == 1:  # nothing runs in it
            for slot, output in returned:
                values[slot] = inner[output]
            return False
        Activation(outer.run, body, inner, outer.iterations, ended, outer, number)
        return True

    return enter
