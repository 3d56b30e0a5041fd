"""Options of one step and what a step reports."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

from graphdock import ops
from graphdock.contracts.step import TraceEvent, TraceLevel
from graphdock.errors import GraphdockError, InvalidArgumentError
from graphdock.graph.graph import Graph
from graphdock.planning.plan import Plan

__all__ = ["RunMetadata", "RunOptions", "checked_options", "name_operation", "traced"]


@dataclass(frozen=True)
class RunOptions:
    """Options of one ``Session.run``.

    Args:
      timeout_in_ms: milliseconds the step may take; 0 leaves the session's ``operation_timeout``.
      trace_level: what the step reports to ``run_metadata``: ``RunOptions.NO_TRACE``, ``SOFTWARE_TRACE`` (each call of the host, as
        it is), ``HARDWARE_TRACE`` or ``FULL_TRACE`` (the host waits for each call's work on a device with queues, and replays no
        recording). A traced step is slower; the others pay nothing.

    Raises:
      InvalidArgumentError: a timeout that is no whole number, or negative; a trace level that does not exist.
    """

    NO_TRACE: ClassVar[TraceLevel] = TraceLevel.NO_TRACE
    SOFTWARE_TRACE: ClassVar[TraceLevel] = TraceLevel.SOFTWARE_TRACE
    HARDWARE_TRACE: ClassVar[TraceLevel] = TraceLevel.HARDWARE_TRACE
    FULL_TRACE: ClassVar[TraceLevel] = TraceLevel.FULL_TRACE

    timeout_in_ms: int = 0
    trace_level: TraceLevel = TraceLevel.NO_TRACE

    def __post_init__(self) -> None:
        given = self.timeout_in_ms
        if not isinstance(given, int) or isinstance(given, bool) or given < 0:
            raise InvalidArgumentError(
                "RunOptions: timeout_in_ms is wrong", expected="milliseconds, 0 or more", got=repr(given)
            )
        if self.trace_level not in tuple(TraceLevel) or isinstance(self.trace_level, bool):
            raise InvalidArgumentError(
                "RunOptions: trace_level is wrong",
                expected="one of " + ", ".join(f"RunOptions.{level.name}" for level in TraceLevel),
                got=repr(self.trace_level),
            )
        object.__setattr__(self, "trace_level", TraceLevel(self.trace_level))

    def seconds(self, default: float | None) -> float | None:
        """Seconds the step may take; None for no limit."""
        return self.timeout_in_ms / 1e3 if self.timeout_in_ms else default


@dataclass
class RunMetadata:
    """Filled in by ``Session.run(..., run_metadata=...)``, also when the step fails.

    Attributes:
      plan: the plan that ran (its ``source``, ``arena_bytes`` and ``kernel_nodes`` may be read).
      cached: whether the plan was there already.
      events: what the parts of the step reported, in order of arrival; empty unless the options ask for a trace.
      start: when a traced step began, in the clock of the events. ``seconds``: how long it took, waiting for its turn included.
    """

    plan: Any = None
    cached: bool = False
    events: tuple[TraceEvent, ...] = ()
    start: float = 0.0
    seconds: float = 0.0
    _offset: float = field(default=0.0, repr=False)
    _stats: tuple[tuple[float, int], ops.StepStats] | None = field(default=None, repr=False, compare=False)

    @property
    def step_stats(self) -> ops.StepStats:
        """The events as TensorFlow's ``RunMetadata.step_stats`` has them, device by device; what is added to them stays.

        Raises:
          AttributeError: no installed plugin knows that form; says which one does.
        """
        step = self.start, id(self.events)
        if self._stats is None or self._stats[0] != step:
            self._stats = step, ops.StepStats.of(self.events, self._offset)
        return self._stats[1]

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """The step's times and memory as the bytes of TensorFlow's RunMetadata, which TensorBoard's graph page shows."""
        data: bytes = ops.run_metadata_proto(self.step_stats, self.plan).SerializeToString()
        return data

    def ran(self, start: float, end: float) -> None:
        """A session notes when the step began and ended, in the clock of its events, which reads ``end`` now."""
        self.start, self.seconds, self._offset = start, end - start, time.time() - end


def checked_options(options: Any) -> RunOptions:
    """The options of a call. Raises InvalidArgumentError for anything but RunOptions."""
    if not isinstance(options, RunOptions):
        raise InvalidArgumentError(
            "options are no RunOptions", expected="tf.RunOptions(timeout_in_ms=...)", got=repr(options)
        )
    return options


def name_operation(error: GraphdockError, graph: Graph) -> None:
    """Put the Operation itself, where the graph has it, in the place of its name, as TensorFlow's errors carry it."""
    if isinstance(error.op, str):
        operation = graph._by_name.get(error.op)
        if operation is not None:
            error.op, error.node_def = operation, operation.node_def


def traced(plan: Plan, step: Any, values: Any, level: TraceLevel, run_metadata: RunMetadata | None) -> Any:
    """Run a step that reports what it does."""
    clock = step.services.clock
    with plan.program.trace(step, level):
        start = clock()
        try:
            return plan.run(step, values)
        finally:
            if run_metadata is not None:
                run_metadata.ran(start, clock())
