"""Stats of a step under the names of TensorFlow's StepStats, for programs that read ``run_metadata.step_stats`` or add to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from graphdock.contracts.step import TraceEvent

__all__ = ["DeviceStepStats", "NodeExecStats", "StepStats"]

_Record = TypeVar("_Record")


class _Repeated(list[_Record], Generic[_Record]):
    """A list of records of one kind, to which ``add`` appends another, as to a repeated field of a message."""

    def __init__(self, kind: Callable[..., _Record], records: Iterable[_Record] = ()) -> None:
        super().__init__(records)
        self._kind = kind

    def add(self, **fields: Any) -> _Record:
        """Append a record with these fields. Returns it."""
        self.append(self._kind(**fields))
        return self[-1]


@dataclass(slots=True)
class NodeExecStats:
    """One call of a step.

    Attributes:
      node_name: of the node that it was for. ``timeline_label``: its op, and what kind of work it was.
      all_start_micros: when it began, in microseconds since 1970.
      op_start_rel_micros, op_end_rel_micros, all_end_rel_micros: microseconds since then.
      nbytes: bytes that it read and wrote (graphdock's own).
      thread_id, scheduled_micros: 0. ``memory``, ``output``, ``referenced_tensor``: empty, as steps plan their memory beforehand.
    """

    node_name: str = ""
    timeline_label: str = ""
    all_start_micros: int = 0
    op_start_rel_micros: int = 0
    op_end_rel_micros: int = 0
    all_end_rel_micros: int = 0
    nbytes: int = 0
    thread_id: int = 0
    scheduled_micros: int = 0
    memory: list[Any] = field(default_factory=list)
    output: list[Any] = field(default_factory=list)
    referenced_tensor: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class DeviceStepStats:
    """The calls on one device, in order."""

    device: str = ""
    node_stats: _Repeated[NodeExecStats] = field(default_factory=lambda: _Repeated(NodeExecStats))


@dataclass(slots=True)
class StepStats:
    """The calls of one step, by device."""

    dev_stats: _Repeated[DeviceStepStats] = field(default_factory=lambda: _Repeated(DeviceStepStats))

    @staticmethod
    def of(events: Sequence[TraceEvent], offset: float) -> StepStats:
        """The stats of some events, whose clock reads 0 at ``offset`` seconds since 1970."""
        stats = StepStats()
        by_device: dict[str, DeviceStepStats] = {}
        for event in (e for e in events if e.kind != "compile"):  # which TensorFlow's has no place for
            micros = round(event.seconds * 1e6)
            label = f"{event.name} = {event.op or event.kind}"
            device = _device_name(event.device)
            if device not in by_device:
                by_device[device] = stats.dev_stats.add(device=device)
            by_device[device].node_stats.append(
                NodeExecStats(event.name, label, round((event.start + offset) * 1e6), 0, micros, micros, event.nbytes)
            )
        return stats


def _device_name(device: str) -> str:
    return f"/job:localhost/replica:0/task:0/device:{device.upper() if device.startswith(('cpu', 'gpu')) else device}"
