"""The straight-line program: source, kernels and the places of buffers; immutable, run by any number of contexts at once."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from graphdock.contracts.device import Device
from graphdock.contracts.executor import PlacedGraph, Program, StageReport
from graphdock.contracts.kernel_error import kernel_error
from graphdock.contracts.queue import QueuedDevice
from graphdock.contracts.step import StepContext
from graphdock.errors import DeviceLostError, GraphdockError
from graphdock.runtime.device_error import device_error
from graphdock.runtime.lower import Lowered
from graphdock.runtime.program.names import Name
from graphdock.runtime.program.printer import Source
from graphdock.runtime.program.segments import described
from graphdock.runtime.program.statements import Activate, Copy, Fence, Statement
from graphdock.runtime.storage import Root
from graphdock.runtime.straight_line.instance import Instance
from graphdock.runtime.straight_line.make import Maker

__all__ = ["StraightLineProgram"]

_numbers = itertools.count(1)
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
        roots: Mapping[str, Sequence[Root]],
        holds: bool,
        stages: Sequence[StageReport],
    ) -> None:
        text = source.text
        self.source = text
        self.memory = memory
        self.holds = holds
        self.stages = stages
        self.notes = described(lowered.segments, lowered.boundaries)
        self.checked = tuple(lowered.checked.items())
        self.filename = f"<graphdock step {next(_numbers)}>"
        self._statements = source.statements
        self._methods = lowered.methods
        self._debug = placed.debug
        linecache.cache[self.filename] = (len(text), None, text.splitlines(True), self.filename)
        weakref.finalize(self, linecache.cache.pop, self.filename, None)
        self._maker = Maker(placed, lowered, memory, roots, compile(text, self.filename, "exec"), holds)
        self.takes_turns = bool(self._maker.queued)

    def turn(self, step: StepContext) -> AbstractContextManager[None]:
        """Wait for the instance's lanes, and hold them."""
        instance = step.state
        if instance is None:
            instance = step.state = self._maker.make(step)
        held: AbstractContextManager[None] = instance.lanes.held(step.token)
        return held

    def run(self, step: StepContext, feeds: Sequence[Any]) -> Any:
        instance: Instance | None = step.state
        if instance is None:
            instance = step.state = self._maker.make(step)
        try:
            if instance.streams:
                instance.begin(step)
            return instance.call(*feeds)
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises is raised again with its node
            if error is not step.token.error or isinstance(error, GraphdockError):
                self._explain(error)
            raise

    def free(self, step: StepContext) -> None:
        instance, step.state, step.interrupt = step.state, None, None
        if instance is not None:
            instance.free()

    def _statement_at(self, error: BaseException) -> Statement | None:
        """The statement that raised, from the traceback's line in the generated source."""
        trace, found = error.__traceback__, None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.filename:
                found = self._statements[trace.tb_lineno]
            trace = trace.tb_next
        return found

    def _explain(self, error: Exception) -> None:
        """Raise what a step's error means to the user, ``from`` it; return where it says that itself, with its node filled in.

        The locals of the generated source are let go: whoever keeps the error need not keep the step's values.
        """
        statement = self._statement_at(error)
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.filename and not self._debug:
                trace.tb_frame.clear()
            trace = trace.tb_next
        if isinstance(error, DeviceLostError):
            error.add_note(self._unfinished(error.device))
            return
        if statement is None or statement.node is None or isinstance(statement, Fence):
            return
        asked = self._asked(statement)
        if asked is None:
            explained = kernel_error(error, statement.node)
            if isinstance(statement.device, QueuedDevice) and (name := _name(statement.device)) not in str(explained):
                explained.add_note(f"device {name}")
        else:
            explained = device_error(error, *asked, statement.node)
        if explained is not error:
            try:
                raise explained from error
            finally:
                del explained  # a frame that held it would make a cycle of it and its traceback

    def _unfinished(self, device: str) -> str:
        """What a step had given a device that is lost; how far that came is not known."""
        given = [s for s in self._statements if s is not None and s.device is not None and _name(s.device) == device]
        names = list(dict.fromkeys([s.node.origin for s in given if s.node is not None]))
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"work of this step on {device} that may not be done: {', '.join(names[:_SHOWN])}{more}"

    def _asked(self, statement: Statement) -> tuple[Device, str] | None:
        """The device, and what it is asked for, where a statement asks no kernel."""
        if isinstance(statement, (Copy, Activate)) and isinstance(statement.method, Name):
            return self._methods[statement.method]
        return None


def _name(device: Device) -> str:
    return f"{device.info.device_type}:{device.info.index}"
