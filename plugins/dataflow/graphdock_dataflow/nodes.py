"""Rows of nodes that have no kernel: what the host does for them, on values and on resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from graphdock.contracts.ir import arg_of
from graphdock.contracts.runtime.resources import Variable, unset

from graphdock_dataflow.bodies import branch, call
from graphdock_dataflow.calls import Fire, caller, taker
from graphdock_dataflow.checks import finite, results_checked, rule_checked
from graphdock_dataflow.kernels import kernel
from graphdock_dataflow.level import Row
from graphdock_dataflow.loops import loop
from graphdock_dataflow.primitives import enter, hand_on, leave, merge, switch, trigger
from graphdock_dataflow.traces import traced
from graphdock_dataflow.transfers import mover

if TYPE_CHECKING:
    from graphdock_dataflow.instance import Instance, Runnable

__all__ = ["VERBS", "fire_of"]


def fire_of(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    """The function of a node's row."""
    node = row.node
    assert node is not None
    return VERBS[node.verb](instance, level, row, number)


def _silent(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    source = row.reads[0] if row.reads and row.makes else None
    if source is not None:  # another name, in a graph with primitives
        return caller(lambda value: value, [source], row.makes)
    return lambda values: None


def _read(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    """A copy of the variable's value; its own buffer where nothing writes it while the step runs."""
    node, placed = row.node, instance.placed
    assert node is not None
    variable = instance.resource(node.inputs[0])
    (out,) = row.makes
    alone = placed.holds and placed.handles[node.inputs[0]] not in instance.written

    def value() -> Any:
        if not variable.initialized:
            raise unset(variable)
        return variable.buffer if alone else variable.snapshot()

    access, token = None if placed.holds else placed.access([variable], []), instance.token

    def read(values: list[Any]) -> None:
        values[out] = value() if access is None else access(token, value)

    return traced(instance, level, row, "copy", read)


def _assign(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    node, placed = row.node, instance.placed
    assert node is not None
    variable: Variable = instance.resource(node.inputs[0])
    source = row.reads[1]
    assert source is not None
    access, token = None if placed.holds else placed.access([], [variable]), instance.token
    check = finite(variable.device, variable.dtype, variable.name) if _looked_at(instance, variable) else None

    def assign(values: list[Any]) -> None:
        if access is None:
            variable.assign(values[source])
        else:
            access(token, variable.assign, values[source])
        if check is not None:
            check(values[source])

    return traced(instance, level, row, "copy", assign)


def _looked_at(instance: Instance, variable: Variable) -> bool:
    return instance.placed.check_numerics and variable.dtype.is_floating


def _move(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    node = row.node
    assert node is not None
    (read,) = row.reads
    assert read is not None
    move = mover(node.attrs["source"], node.attrs["target"], node.inputs[0].dtype, instance.placed.spaces)
    return traced(instance, level, row, "copy", caller(move, [read], row.makes))


def _host(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    """The host's own function, on host memory and on resources."""
    node, placed = row.node, instance.placed
    assert node is not None
    function = placed.functions(node)
    reads: list[Any] = []
    writes: list[Any] = []
    args: list[int] = []
    for value, arg, slot in zip(node.inputs, arg_of(node), row.reads, strict=True):
        if slot is None:
            resource = instance.resource(value)
            (writes if arg.mutates else reads).append(resource)
            args.append(level.keep(resource))
        else:
            args.append(slot)
    take = results_checked(placed, row, taker(row.makes))
    access, token = None, instance.token
    if not placed.holds and (reads or writes):
        access = placed.access(reads, writes)

    def run(values: list[Any]) -> None:
        given = [values[slot] for slot in args]
        take(values, function(*given) if access is None else access(token, function, *given))

    return traced(instance, level, row, "host", rule_checked(placed, row, run))


#: Verb -> what makes the function of a row.
VERBS: Mapping[str, Callable[[Instance, Runnable, Row, int], Fire]] = {
    "kernel": kernel,
    "alias": _silent,
    "none": _silent,
    "constant": _silent,
    "feed": _silent,
    "handle": _silent,
    "read": _read,
    "assign": _assign,
    "move": _move,
    "branch": branch,
    "loop": loop,
    "call": call,
    "host": _host,
    "switch": switch,
    "merge": merge,
    "enter": enter,
    "exit": leave,
    "next": hand_on,
    "trigger": trigger,
}
