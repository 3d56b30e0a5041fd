"""Arguments of a session and of one step: target and settings, options; and what a step reports."""

from __future__ import annotations

import reprlib
import time
from dataclasses import field
from itertools import accumulate
from typing import Any, ClassVar

from graphdock import ops
from graphdock.config.session_config import SessionConfig, Translatable
from graphdock.contracts.lazy_dataclass import defaults_of, lazy_dataclass
from graphdock.contracts.step import TraceEvent, TraceLevel
from graphdock.errors import ArgumentTypeError, GraphdockError, InvalidArgumentError, PluginError, did_you_mean
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.graph.site import capture, describe
from graphdock.planning.plan import Plan
from graphdock.plugin.host import Host

__all__ = [
    "SETTINGS",
    "RunMetadata",
    "RunOptions",
    "SessionType",
    "checked_options",
    "name_operation",
    "traced",
]


@lazy_dataclass(frozen=True)
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


@lazy_dataclass
class RunMetadata:
    """Filled in by ``Session.run(..., run_metadata=...)``, also when the step fails.

    Attributes:
      plan: the plan that ran (its ``source``, ``arena_bytes`` and ``kernel_nodes`` may be read).
      cached: whether the plan was there already.
      events: what the parts of the step reported, in order of arrival; empty unless the options ask for a trace. With FULL_TRACE
        the stages of the plan come first, where it was made for this step.
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
            error.op, error.node_def, error.site = operation, operation.node_def, error.site or operation.site


def traced(plan: Plan, step: Any, values: Any, level: TraceLevel, run_metadata: RunMetadata | None) -> Any:
    """Run a step that reports what it does."""
    clock = step.services.clock
    cold = step.state is None
    with plan.program.trace(step, level):
        start = clock()
        try:
            results = plan.run(step, values)
        finally:
            if run_metadata is not None:
                run_metadata.ran(start, clock())
                if level == TraceLevel.FULL_TRACE and not run_metadata.cached:
                    step.events[:0] = _planning(plan, start)
    if level >= TraceLevel.HARDWARE_TRACE:
        plan.learn(step.events, cold)
    return results


def _planning(plan: Plan, end: float) -> list[TraceEvent]:
    """The stages of a plan that was made for a step, before it, end to end; kernels compile in ``prepare``."""
    begins = accumulate((stage.ms / 1e3 for stage in plan.stages), initial=end - sum(s.ms for s in plan.stages) / 1e3)
    return [
        TraceEvent(s.name, "planning", at, s.ms / 1e3, "compile") for s, at in zip(plan.stages, begins, strict=False)
    ]


#: Names of all settings.
SETTINGS = tuple(defaults_of(SessionConfig))
#: Type of what is often passed in the place of the target -> the argument that was meant.
_MEANT: dict[type, str] = {SessionConfig: "config", Translatable: "config", Graph: "graph"}


class SessionType(type):
    """Lets ``Session("ray://head:6379")`` be whatever the plugin that owns the scheme opens."""

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        """Open a target; a class with an ``__init__`` of its own, outside of this package, takes what that takes."""
        if not cls.__init__.__module__.startswith("graphdock.session"):  # type: ignore[misc]
            return super().__call__(*args, **keywords)
        return cls._open(*args, **keywords)

    def _open(
        cls,
        target: str = "",
        graph: Graph | None = None,
        config: SessionConfig | Translatable | None = None,
        host: Host | None = None,
        **unknown: Any,
    ) -> Any:
        if unknown:
            raise _no_argument(cls.__name__, next(iter(unknown)))
        if not isinstance(target, str):
            meant = next((name for kind, name in _MEANT.items() if isinstance(target, kind)), None)
            raise ArgumentTypeError(
                f"{cls.__name__}: target is of the wrong type",
                expected="a string such as 'ray://head:6379', or ''",
                got=reprlib.repr(target),
                hint=None if meant is None else f"pass it as {meant}=...",
            )
        if not target:
            return super().__call__(target, graph, config, host)
        if isinstance(config, Translatable):
            config = config.to_session_config()
        owner = host if host is not None else (graph or get_default_graph()).host
        factory = owner.session_factory(target)
        session = factory.open(target, graph, config, owner)
        if session is None:
            _, plugin = owner.session_factories.entry(factory.scheme) or (None, factory.scheme)
            raise PluginError(
                f"plugin {plugin!r}: {type(factory).__name__}.open returned None for {target!r}",
                hint="return the session",
            )
        return session


def _no_argument(kind: str, name: str) -> InvalidArgumentError:
    """The error of a session that is given an argument it has not: a setting belongs into its config."""
    if name in SETTINGS:
        hint: str | None = f"write tf.{kind}(config=tf.SessionConfig({name}=...))"
    else:
        hint = did_you_mean(name, ["target", "graph", "config", "host", *SETTINGS])
    return InvalidArgumentError(f"{kind} has no argument {name!r}", site=describe(capture()), hint=hint)
