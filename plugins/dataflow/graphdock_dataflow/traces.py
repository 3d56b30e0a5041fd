"""Tracing: in a traced step, each row reports what it did. A step that is not traced has nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphdock.contracts import PlanNode, StepContext, TraceEvent

from graphdock_dataflow.calls import Fire, Take
from graphdock_dataflow.level import Row

if TYPE_CHECKING:
    from graphdock_dataflow.instance import Instance, Runnable

__all__ = ["event", "nbytes_of", "timed", "traced", "waited"]


def traced(instance: Instance, level: Runnable, row: Row, kind: str, fire: Fire) -> Fire:
    """``fire``, reported to the events of its step where the instance is one that traces."""
    if not instance.traced:
        return fire
    slots = [s for s in (*row.reads, *row.makes) if s is not None]
    node = row.node
    assert node is not None

    def report(values: list[Any]) -> Any:
        step = values[0].run.step
        start = step.services.clock()
        before = {s: values[s] for s in slots}
        waits = fire(values)
        end = step.services.clock()
        step.events.append(
            event(node, kind, start, end, nbytes_of([*before.values(), *[values[s] for s in row.makes]]))
        )
        return waits

    return report


def timed(instance: Instance, node: PlanNode, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, whose calls on any thread are reported likewise."""
    if not instance.traced:
        return function
    step = instance.step

    def report(*args: Any) -> Any:
        start = step.services.clock()
        result = function(*args)
        end = step.services.clock()
        made = result if isinstance(result, (tuple, list)) else (result,)
        step.events.append(event(node, kind, start, end, nbytes_of([*args, *made])))
        return result

    return report


def waited(step: StepContext, node: PlanNode, take: Take) -> Take:
    """``take`` of what a node begins to wait for now: when it comes, the wait is reported."""
    start = step.services.clock()

    def report(values: list[Any], result: Any) -> None:
        step.events.append(event(node, "wait", start, step.services.clock()))
        take(values, result)

    return report


def event(node: PlanNode, kind: str, start: float, end: float, nbytes: int = 0) -> TraceEvent:
    """The report of a node."""
    device = "host" if node.device is None or kind == "host" else f"{node.device.type}:{node.device.index}"
    kernel = node.decision.kernel if kind == "kernel" and node.decision is not None else ""
    return TraceEvent(node.origin, device, start, end - start, kind, node.op, kernel, nbytes)


def nbytes_of(buffers: Sequence[Any]) -> int:
    """Bytes of host arrays, each counted once."""
    seen = {id(b): getattr(b, "nbytes", 0) for b in buffers}
    return sum(n for n in seen.values() if isinstance(n, int))
