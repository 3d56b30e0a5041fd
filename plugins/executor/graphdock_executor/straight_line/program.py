"""The straight-line program: source, kernels and the places of buffers; immutable, run by any number of contexts at once."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import CodeType
from typing import TYPE_CHECKING, Any

from graphdock.contracts.device import Device
from graphdock.contracts.executor import PlacedGraph, Program, StageReport
from graphdock.contracts.queue import QueuedDevice
from graphdock.contracts.runtime.resource_lock import with_locks
from graphdock.contracts.step import StepContext, TraceLevel
from graphdock.errors import DeviceLostError, GraphdockError, InvalidArgumentError, ShapeError

from graphdock_executor.device_error import device_error
from graphdock_executor.lower import Lowered
from graphdock_executor.step_program.names import Name
from graphdock_executor.step_program.printer import Source
from graphdock_executor.step_program.statements import Activate, Copy, Launch, Statement, Synchronize
from graphdock_executor.storage import Root
from graphdock_executor.straight_line.instance import Instance
from graphdock_executor.straight_line.instance_builder import InstanceBuilder
from graphdock_executor.stream_slots import SLOTS_LOCK, StreamSlots

if TYPE_CHECKING:
    from graphdock.contracts.in_flight import InFlightStep, InFlightSteps

    from graphdock_executor.step_program.code import StepCode
    from graphdock_executor.straight_line.tracer import Tracer

__all__ = ["StraightLineProgram"]

_numbers = itertools.count(1)
_LOCKS = (SLOTS_LOCK,)
#: Nodes whose work a message lists; the others are counted.
_SHOWN = 5


class StraightLineProgram(Program):
    """See :class:`graphdock.contracts.Program`.

    Attributes:
      filename: under which tracebacks and debuggers find the source.
    """

    def __init__(
        self,
        placed: PlacedGraph,
        lowered: Lowered,
        source: Source,
        memory: Mapping[str, int],
        blocks: Mapping[str, int],
        roots: Mapping[str, Sequence[Root]],
        stages: Sequence[StageReport],
    ) -> None:
        text = source.text
        self.source = text
        self.memory = memory
        self.holds = placed.holds
        self.stages = stages
        self.notes = [*_segment_notes(lowered), *_in_flight_notes(placed, lowered)]
        self.checked = tuple(lowered.checked.items())
        self.filename = f"<graphdock step {next(_numbers)}>"
        self._statements = source.statements
        self._methods = lowered.methods
        self._shapes = lowered.shapes
        self._debug = placed.debug
        linecache.cache[self.filename] = (len(text), None, text.splitlines(True), self.filename)
        weakref.finalize(self, linecache.cache.pop, self.filename, None)
        self._builder = InstanceBuilder(placed, lowered, blocks, roots, _code(source, self.filename))
        self.takes_turns = bool(self._builder.queued)
        self.overlaps = lowered.overlaps
        self._ahead = lowered.ahead
        self._tracer: Tracer | None = None

    def turn(self, step: StepContext, function: Callable[..., Any], *args: Any) -> Any:
        """Wait for the instance's stream slots, and hold them meanwhile."""
        instance = step.state
        if instance is None:
            instance = step.state = self._builder.make(step)
        return with_locks(
            _LOCKS, instance.stream_slots.holder, step.token, instance.stream_slots.take, step, function, *args
        )

    def follow(self, step: StepContext, touched: Sequence[tuple[Any, bool]]) -> None:
        if self.takes_turns:
            stream_slots: StreamSlots = step.state.stream_slots
            (stream_slots.follow_later if self._ahead else stream_slots.follow)()
        else:
            super().follow(step, touched)

    def run(self, step: StepContext, feeds: Sequence[Any]) -> Any:
        instance: Instance | None = step.state
        if instance is None:
            instance = step.state = self._builder.make(step)
        try:
            if instance.streams:
                instance.begin(step)
            return instance.call(*feeds)
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises is raised again with its node
            if error is not step.token.error or isinstance(error, GraphdockError):
                self._explain(error)
            raise

    def trace(self, step: StepContext, level: TraceLevel) -> AbstractContextManager[None]:
        """A block in which the context's steps report each call to ``step.events``."""
        instance: Instance | None = step.state
        if instance is None:
            instance = step.state = self._builder.make(step)
        if self._tracer is None:
            from graphdock_executor.straight_line.tracer import Tracer

            self._tracer = Tracer(self.filename, self._statements, self._builder.builds)
        return self._tracer.tracing(step, level, instance.namespace, getattr(instance, "stream_slots", None))

    def free(self, step: StepContext) -> None:
        instance, step.state = step.state, None
        if instance is not None:
            instance.forget()
            instance.free()

    def _statement_at(self, error: BaseException) -> Statement | None:
        """The statement that raised, from the traceback's line in the generated source; of a run of launches, the launch."""
        from graphdock_executor.straight_line.native_runs import call_alone

        trace, found = error.__traceback__, None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.filename:
                found = self._statements[trace.tb_lineno]
            elif trace.tb_frame.f_code is call_alone.__code__:
                found = trace.tb_frame.f_locals["launch"]
            trace = trace.tb_next
        return found

    def _explain(self, error: Exception) -> None:
        """Raise what a step's error means to the user, ``from`` it; return where it says that itself, with its node filled in.

        The locals of the generated source are let go: whoever keeps the error need not keep the step's values.
        """
        statement = self._statement_at(error)
        refused = None if statement is None else self._refusal(error, statement)
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.filename and not self._debug:
                trace.tb_frame.clear()
            trace = trace.tb_next
        if isinstance(error, DeviceLostError):
            error.add_note(self.unfinished(error.device))
            return
        if statement is None or statement.node is None or isinstance(statement, Synchronize):
            return
        asked = self._asked(statement)
        if asked is None:
            from graphdock.contracts.kernel_errors import kernel_error

            explained = kernel_error(error if refused is None else refused, statement.node)
            if isinstance(statement.device, QueuedDevice) and (name := _name(statement.device)) not in str(explained):
                explained.add_note(f"device {name}")
        else:
            explained = device_error(error, *asked, statement.node)
        del refused
        if explained is not error:
            try:
                raise explained from error
            finally:
                del explained  # a frame that held it would make a cycle of it and its traceback

    def in_flight(
        self,
        steps: InFlightSteps,
        step: StepContext,
        name: Callable[[], str],
        give_back: Callable[[list[Any]], None],
    ) -> InFlightStep:
        from graphdock_executor.in_flight import QueuedStep

        queued = QueuedStep(steps, step, name, give_back, self.unfinished)
        step.on_submit = queued.submit
        return queued

    def unfinished(self, device: str) -> str:
        """Work that a step had given a device that is lost; how far that came is not known."""
        given = [s for s in self._statements if s is not None and s.device is not None and _name(s.device) == device]
        names = list(dict.fromkeys([s.node.origin for s in given if s.node is not None]))
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"work of this step on {device} that may not be done: {', '.join(names[:_SHOWN])}{more}"

    def _refusal(self, error: Exception, statement: Statement) -> ShapeError | None:
        """Refusal of the node's shape rule of shapes and elements with which its kernel failed, where it refuses them."""
        if not isinstance(statement, Launch) or (
            isinstance(error, GraphdockError) and type(error) is not InvalidArgumentError
        ):
            return None
        if statement.node is None or statement.node not in self._shapes:
            return None
        check, operands = self._shapes[statement.node]
        trace, names = error.__traceback__, dict[str, Any]()
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.filename:
                held = names.get("held", trace.tb_frame.f_globals)
                names = {"held": held, **held, **trace.tb_frame.f_locals}
            trace = trace.tb_next
        try:
            buffers = [operand.value(names) for operand in operands]
        except (KeyError, TypeError):
            return None
        return None if any(b is None for b in buffers) else check.refusal(buffers)

    def _asked(self, statement: Statement) -> tuple[Device, str] | None:
        """The device, and what it is asked for, where a statement asks no kernel."""
        if isinstance(statement, (Copy, Activate)) and isinstance(statement.method, Name):
            return self._methods[statement.method]
        return None


def _code(source: Source, filename: str) -> CodeType | StepCode:
    """The code of a step's source."""
    if not source.parts:
        return compile(source.text, filename, "exec")
    from graphdock_executor.step_program.code import compile_step

    return compile_step(source, filename)


def _segment_notes(lowered: Lowered) -> list[str]:
    """Recorded parts of the step, and what parts them; nothing where no device records."""
    if not (lowered.segments or lowered.boundaries):
        return []
    from graphdock_executor.step_program.segments import described

    return described(lowered.segments, lowered.boundaries)


def _in_flight_notes(placed: PlacedGraph, lowered: Lowered) -> list[str]:
    """Lines for ``explain``, where steps may be in flight: whether this one may, and why not."""
    if placed.steps_in_flight == 1:
        return []
    if not lowered.overlaps:
        return [f"not in flight: {lowered.waits}"]
    ends = "it returns once its work is queued" if not placed.graph.outputs else "it returns what it fetches"
    return [f"in flight: {ends}; others may follow before that is done"]


def _name(device: Device) -> str:
    return f"{device.info.device_type}:{device.info.index}"
