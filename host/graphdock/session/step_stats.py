"""What a step reports, under the names of TensorFlow's StepStats: for programs that read ``run_metadata.step_stats``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphdock.contracts.step import TraceEvent

__all__ = ["DeviceStepStats", "NodeExecStats", "StepStats"]


@dataclass(frozen=True, slots=True)
class NodeExecStats:
    """One call of a step.

    Attributes:
      node_name: of the node that it was for. ``timeline_label``: its op, and what kind of work it was.
      all_start_micros: when it began, in microseconds since 1970.
      op_start_rel_micros, op_end_rel_micros, all_end_rel_micros: microseconds since then.
      nbytes: bytes that it read and wrote (graphdock's own).
    """

    node_name: str
    timeline_label: str
    all_start_micros: int
    op_start_rel_micros: int
    op_end_rel_micros: int
    all_end_rel_micros: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class DeviceStepStats:
    """The calls on one device, in order."""

    device: str
    node_stats: Sequence[NodeExecStats]


@dataclass(frozen=True, slots=True)
class StepStats:
    """The calls of one step, by device."""

    dev_stats: Sequence[DeviceStepStats]

    @staticmethod
    def of(events: Sequence[TraceEvent], offset: float) -> StepStats:
        """The stats of some events, whose clock reads 0 at ``offset`` seconds since 1970."""
        by_device: dict[str, list[NodeExecStats]] = {}
        for event in events:
            micros = round(event.seconds * 1e6)
            label = f"{event.name} = {event.op or event.kind}"
            by_device.setdefault(_device_name(event.device), []).append(
                NodeExecStats(event.name, label, round((event.start + offset) * 1e6), 0, micros, micros, event.nbytes)
            )
        return StepStats([DeviceStepStats(device, stats) for device, stats in by_device.items()])


def _device_name(device: str) -> str:
    return f"/job:localhost/replica:0/task:0/device:{device.upper() if device.startswith(('cpu', 'gpu')) else device}"
