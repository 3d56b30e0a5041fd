"""Texts about a placer's answer: what it said, and what each device would do when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdock.placement.problem import Simulation
from graphdock.units import in_bytes, in_seconds

__all__ = ["facts", "lines"]


def lines(simulation: Simulation) -> list[str]:
    """Lines for ``explain``: what the placer said, and per device what it would do when."""
    head = [f"placer {simulation.placer}: {note}" for note in simulation.problem.notes]
    whole = simulation.timeline.makespan
    head.append(
        f"placer {simulation.placer}: a step of {in_seconds(whole)} (by the rules {in_seconds(simulation.rules.makespan)})"
        + (f"; {simulation.unknown} nodes of unknown time count as none" if simulation.unknown else "")
    )
    for device in simulation.problem.devices:
        busy = [(start, end) for name, start, end in simulation.timeline.tasks if name == device]
        if busy and whole:
            share = sum(end - start for start, end in busy) / whole
            until = max(end for _, end in busy)
            head.append(
                f"  {device}: {len(busy)} nodes, busy {share:.0%}, until {in_seconds(until)} |{_bar(busy, whole)}|"
            )
    for space, excess in simulation.timeline.excess(simulation.problem.limits).items():
        most = in_bytes(simulation.timeline.peak[space])
        head.append(f"  {space}: up to {most} of tensors without reuse, {in_bytes(excess)} more than memory_limit")
    return head


def facts(simulation: Simulation) -> dict[str, Any]:
    """The timeline as plain data, in seconds."""
    problem, timeline = simulation.problem, simulation.timeline
    return {
        "placer": simulation.placer,
        "makespan": timeline.makespan,
        "rules": simulation.rules.makespan,
        "unknown": simulation.unknown,
        "tasks": [
            {"node": t.name, "device": device, "start": start, "end": end}
            for t, (device, start, end) in zip(problem.tasks, timeline.tasks, strict=True)
        ],
        "transfers": [
            {"bytes": problem.tensors[tensor].nbytes, "from": a, "to": b, "start": start, "end": end}
            for tensor, a, b, start, end in timeline.transfers
        ],
        "peak": dict(timeline.peak),
    }


def _bar(busy: Sequence[tuple[float, float]], whole: float, width: int = 40) -> str:
    """A line of ``width`` places, each marked where the device is busy for at least half of it."""
    held = [0.0] * width
    for start, end in busy:
        for i in range(int(start / whole * width), min(width, int(end / whole * width) + 1)):
            held[i] += max(0.0, min(end, (i + 1) * whole / width) - max(start, i * whole / width))
    return "".join("#" if h * width >= whole / 2 else "." for h in held)
