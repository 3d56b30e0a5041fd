"""Tracing: in a traced step, what the generated source calls reports itself. A step that is not traced has nothing of it.

The source looks up what it calls by name when it runs, so a traced step runs the same text over a namespace in which these names
stand for functions that look at the clock.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from graphdock.contracts.device import Device
from graphdock.contracts.kernel import BuildContext
from graphdock.contracts.queue import QueuedDevice
from graphdock.contracts.step import StepContext, TraceEvent, TraceLevel
from graphdock.shape import concrete

from graphdock_executor.lower import Build
from graphdock_executor.step_program.names import Name, Operand
from graphdock_executor.step_program.statements import (
    Call,
    Copy,
    Decide,
    Launch,
    NativeRun,
    Segment,
    Statement,
    Synchronize,
    Wait,
)
from graphdock_executor.stream_slots import StreamSlots

__all__ = ["Tracer"]

#: A call, as it is noted while the step runs: what it was for, when it began and ended, and its bytes.
_Noted = tuple[Statement, float, float, int]


class Tracer:
    """Traces the steps of one program. May be used from many threads, for one context each.

    Args:
      filename: of the generated source. ``statements``: by its lines.
      builds: the kernels of the program.
    """

    def __init__(self, filename: str, statements: Sequence[Statement | None], builds: Sequence[Build]) -> None:
        self._filename = filename
        self._statements = statements
        self._contexts = {b.name: b.ctx for b in builds if b.ctx is not None}
        self._callees: dict[Name, list[Statement]] = {}
        seen: dict[Statement, None] = dict.fromkeys(s for s in statements if s is not None)
        for statement in seen:
            for callee in _callees(statement):
                if isinstance(callee, Name):
                    self._callees.setdefault(callee, []).append(statement)

    @contextmanager
    def tracing(
        self, step: StepContext, level: TraceLevel, namespace: dict[str, Any], stream_slots: StreamSlots | None
    ) -> Iterator[None]:
        """A block in which the functions of ``namespace`` report to ``step.events``."""
        noted: list[_Noted] = []
        waits = level >= TraceLevel.HARDWARE_TRACE
        plain = {name.text: namespace[name.text] for name in self._callees}
        traced: dict[str, Any] = {}
        for name, statements in self._callees.items():
            function = plain[name.text]
            if isinstance(statements[0], NativeRun) or waits and isinstance(statements[0], Segment):
                traced[name.text] = namespace[f"{name.text}_body"]
                continue
            settle = _settles(statements, stream_slots) if waits else {}
            traced[name.text] = self._timed(function, statements, self._nbytes(name), settle, step, noted)
        try:
            namespace.update(traced)
            yield
        finally:
            namespace.update(plain)
            step.events.extend([_event(*item) for item in noted])

    def _timed(
        self,
        function: Callable[..., Any],
        statements: Sequence[Statement],
        nbytes: int | None,
        settle: Mapping[Device | None, Callable[[], None]],
        step: StepContext,
        noted: list[_Noted],
    ) -> Callable[..., Any]:
        """``function``, which is called for one of the statements, noting each call."""
        clock = step.services.clock
        only = statements[0] if len(statements) == 1 else None

        def timed(*args: Any) -> Any:
            statement = self._calling() if only is None else only
            result: Any = None
            start = clock()
            try:
                result = function(*args)
                if settle and statement.device in settle:
                    settle[statement.device]()
                return result
            finally:
                end = clock()
                noted.append((statement, start, end, _measured(statement, args, result) if nbytes is None else nbytes))

        return timed

    def _calling(self) -> Statement:
        """The statement that the generated source is at."""
        frame = sys._getframe(2)
        while frame.f_code.co_filename != self._filename:
            assert frame.f_back is not None
            frame = frame.f_back
        statement = self._statements[frame.f_lineno]
        assert statement is not None
        return statement

    def _nbytes(self, name: Name) -> int | None:
        """Bytes that a kernel reads and writes; None where only a call tells, or it is no kernel."""
        ctx = self._contexts.get(name)
        return None if ctx is None else _planned(ctx)


def _callees(statement: Statement) -> tuple[Operand, ...]:
    """Operand that a statement calls and a trace shows."""
    if isinstance(statement, Launch):
        return (statement.kernel,)
    if isinstance(statement, (Copy, Decide, Synchronize)):
        return (statement.method,)
    if isinstance(statement, Call):
        return (statement.function,)
    if isinstance(statement, Wait):
        return (statement.wait,)
    if isinstance(statement, Segment):
        return (statement.replay,)
    return (statement.call,) if isinstance(statement, NativeRun) else ()


def _settles(
    statements: Sequence[Statement], stream_slots: StreamSlots | None
) -> dict[Device | None, Callable[[], None]]:
    """Of the queued devices that get work by these statements, what waits for it."""
    if stream_slots is None or not isinstance(statements[0], (Launch, Copy)):
        return {}
    devices = {s.device for s in statements if isinstance(s.device, QueuedDevice)}
    return {d: stream_slots.of[d].queue.synchronize for d in devices if d in stream_slots.of}


def _planned(ctx: BuildContext) -> int | None:
    total = 0
    for dtype, shape in [(i.dtype, i.shape) for i in ctx.inputs] + [(o.dtype, o.shape) for o in ctx.outputs]:
        dims = concrete(shape)
        if dims is None:
            return None
        total += dtype.size * math.prod(dims)
    if all(out.mode.kind == "view" for out in ctx.outputs) and ctx.outputs:
        return 0
    return total


def _measured(statement: Statement, args: Sequence[Any], result: Any) -> int:
    """Bytes of the host arrays that a call touched; of a copy, those of one side, which are as many as the other's."""
    if isinstance(statement, (Decide, Synchronize, Wait, Segment)):
        return 0
    if isinstance(statement, Copy):
        planned = [root.nbytes for root in (*statement.writes, *statement.reads) if root.shape]
        return max([*(getattr(a, "nbytes", 0) for a in args), *planned], default=0)
    results = result if isinstance(result, (tuple, list)) else (result,)
    seen = {id(a): getattr(a, "nbytes", 0) for a in (*args, *results)}
    return sum(n for n in seen.values() if isinstance(n, int))


_KINDS: Mapping[type[Statement], str] = {
    Launch: "kernel",
    Copy: "copy",
    Decide: "wait",
    Call: "host",
    Synchronize: "wait",
    Wait: "wait",
    Segment: "recording",
}


def _event(statement: Statement, start: float, end: float, nbytes: int) -> TraceEvent:
    node, device = statement.node, statement.device
    where = "host" if device is None else f"{device.info.device_type}:{device.info.index}"
    kernel = "" if node is None or node.decision is None else node.decision.kernel
    kind = _KINDS[type(statement)]
    if isinstance(statement, Call) and isinstance(statement.function, Name) and statement.function.meaning == "maker":
        kind = "allocate"
    name = kind if node is None else node.origin
    op = "" if node is None else node.op
    return TraceEvent(name, where, start, end - start, kind, op, kernel if kind == "kernel" else "", nbytes)
