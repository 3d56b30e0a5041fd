"""Checks around the row of a node: shapes that the plan could only assume, and results that have to be finite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import HOST_MEMORY, SCALAR, Device, PlacedGraph, PlanNode, errors
from graphdock.contracts.ir import arg_of
from graphdock.contracts.runtime.shape_checks import OutputCheck, RuleCheck, ShapeOf, host_shape
from graphdock.shape import concrete

from graphdock_dataflow.calls import Fire, Take
from graphdock_dataflow.level import Row
from graphdock_dataflow.transfers import to_host

__all__ = ["finite", "results_checked", "rule_checked", "with_refusals"]


def rule_checked(placed: PlacedGraph, row: Row, fire: Fire) -> Fire:
    """``fire``, before which the node's shape rule is run over what the plan does not know of its inputs."""
    node = row.node
    assert node is not None
    if node.guard is None or not node.guard.shape_rule:
        return fire
    check, slots = _rule_check(placed, row, node, node.guard.asked)

    def checked(values: list[Any]) -> Any:
        check(*[values[slot] for slot in slots])
        return fire(values)

    return checked


def with_refusals(placed: PlacedGraph, row: Row, fire: Fire) -> Fire:
    """``fire``, whose failure is what the node's shape rule says of shapes and elements with which its kernel failed."""
    node = row.node
    assert node is not None
    steering = [i for i, arg in enumerate(arg_of(node)) if arg.memory == "host" and node.constant(i) is None]
    if not steering and all(concrete(v.shape) is not None for v in node.inputs):
        return fire
    check, slots = _rule_check(placed, row, node, steering)

    def explained(values: list[Any]) -> Any:
        given = [values[slot] for slot in slots]
        try:
            return fire(values)
        except Exception as error:
            if isinstance(error, errors.GraphdockError) and type(error) is not errors.InvalidArgumentError:
                raise
            refused = check.refusal(given)
            if refused is None:
                raise
            raise refused from error

    return explained


def _rule_check(placed: PlacedGraph, row: Row, node: PlanNode, asked: Sequence[int]) -> tuple[RuleCheck, list[int]]:
    """The check, and the slots that it reads. ``asked``: inputs whose elements count."""
    reads: list[tuple[int, ShapeOf, bool]] = []
    slots: list[int] = []
    for i, (value, wanted, slot) in enumerate(zip(node.inputs, placed.needs(node), row.reads, strict=True)):
        space = wanted or placed.home.get(value)
        elements = i in asked and node.constant(i) is None and space in (None, HOST_MEMORY)
        if slot is not None and (elements or concrete(value.shape) is None):
            reads.append((i, _shape_of(placed, space), elements))
            slots.append(slot)
    return RuleCheck(node, reads, placed.infer), slots


def _shape_of(placed: PlacedGraph, space: str | None) -> ShapeOf:
    return host_shape if space in (None, HOST_MEMORY, SCALAR) else placed.spaces[space].shape_of


def results_checked(placed: PlacedGraph, row: Row, take: Take) -> Take:
    """``take``, and then what was promised of the results' shapes, and whether they are finite where that is asked for."""
    node = row.node
    assert node is not None
    checks: list[tuple[int, Callable[[Any], None]]] = []
    for i in () if node.guard is None else node.guard.promised:
        checks.append((row.makes[i], OutputCheck(node, i, _shape_of(placed, placed.home.get(node.outputs[i])))))
    if placed.check_numerics:
        for value, slot in zip(node.outputs, row.makes, strict=True):
            if value.dtype.is_floating and slot not in row.drops:  # a kernel need not write what nobody reads
                device = placed.spaces.get(placed.home.get(value, HOST_MEMORY))
                if device is not None:
                    checks.append((slot, finite(device, value.dtype, value.name)))
    if not checks:
        return take

    def checked(values: list[Any], result: Any) -> None:
        take(values, result)
        for slot, check in checks:
            check(values[slot])

    return checked


def finite(device: Device, dtype: Any, name: str) -> Callable[[Any], None]:
    """Raises InvalidArgumentError for a buffer that holds NaN or infinity."""

    def check(buffer: Any) -> None:
        if not np.isfinite(to_host(device, buffer, dtype)).all():
            raise errors.InvalidArgumentError(f"{name} holds NaN or infinity (check_numerics)")

    return check
