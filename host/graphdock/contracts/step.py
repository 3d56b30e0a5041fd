"""StepContext: all that belongs to one running step, whatever executor runs it.

A context serves one step after another, never two at once: it is pooled together with what its program keeps for a step
(``state``). Between two steps it is reset only where the last one used something of it. What is dear (an id, the list
of trace events) is made when first asked for, so that a step which uses none of it pays for none of it.

Threads: the step's own thread begins and resets it; everything else may be called from any thread while the step runs.
"""

from __future__ import annotations

import enum
import itertools
import time
from collections.abc import Callable
from contextvars import Context, ContextVar, Token, copy_context
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.errors import DeadlineExceededError
from graphdock.locks import new_lock

if TYPE_CHECKING:
    from graphdock.contracts.deadlines import DeadlineClock

__all__ = [
    "CancellationToken",
    "StepContext",
    "StepServices",
    "TraceEvent",
    "TraceLevel",
    "callers_errors",
    "in_callers_context",
]

_ids = itertools.count(1)


class TraceLevel(enum.IntEnum):
    """Amount of what a step reports about itself; TensorFlow's names and numbers.

    Attributes:
      SOFTWARE_TRACE: each call that the host makes, as it is: what is given to a queue goes on, a recorded part is one call.
      HARDWARE_TRACE, FULL_TRACE: the host waits for what it gave to a queue, so that a call takes as long as its work; nothing is
        replayed from a recording.
    """

    NO_TRACE = 0
    SOFTWARE_TRACE = 1
    HARDWARE_TRACE = 2
    FULL_TRACE = 3


class TraceEvent(NamedTuple):
    """Something that a part of a step did.

    Attributes:
      name: of the node that it was for, or of the part of the runtime.
      device: whose work it is, ``cpu:0``; ``host`` for the runtime's own.
      start: in seconds of the session's clock. ``seconds``: how long it took.
      kind: ``kernel``, ``copy``, ``host`` (a function that the runtime calls), ``allocate``, ``wait``, ``recording`` or
        ``compile`` (a stage of planning).
      op: type of the node; ``kernel``: full name of its kernel. Empty where there is none.
      nbytes: bytes that it read and wrote; of a copy, that it moved.
    """

    name: str
    device: str
    start: float
    seconds: float
    kind: str = "host"
    op: str = ""
    kernel: str = ""
    nbytes: int = 0

    @property
    def what(self) -> str:
        """The op whose work it is; of the runtime's own work the kind."""
        return self.op if self.op and self.kind in ("kernel", "host") else self.kind


class CancellationToken:
    """Reason why a step must stop, and the list of those who are told of it. One serves all steps of a context, one after another.

    Attributes:
      clock: seconds that never run backwards.
      deadline: reading of ``clock`` at which the step must have ended; None for no limit. The clock of deadlines cancels it then.
      limit: the seconds that it was given, for messages.
      error: why it was cancelled, or None.
    """

    __slots__ = ("__weakref__", "_closed", "_lock", "_watches", "clock", "deadline", "error", "limit")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.deadline: float | None = None
        self.limit: float | None = None
        self.error: BaseException | None = None
        self._closed = False
        self._lock = new_lock()
        self._watches: dict[object, tuple[Callable[[BaseException], Any], Callable[[], Any] | None]] = {}

    def check(self) -> None:
        """Return at once, unless the step must stop. Executors call it between two nodes. Raises the error of the step."""
        if self.error is not None:
            raise self.error

    def watch(
        self, callback: Callable[[BaseException], Any], renewed: Callable[[], Any] | None = None
    ) -> Callable[[], None]:
        """Have ``callback(error)`` called when the step is cancelled: once, on the thread that cancels; at once if it is already.

        Whatever waits on behalf of a step is woken so. The callback must neither wait nor raise: others are to be told too.

        Args:
          renewed: called when a context that was cancelled is made ready for another step. With it the watch stays from step to
            step; without it the watch ends with the step.

        Returns:
          a function that takes the watch back. A callback that runs on another thread meanwhile has ended when it returns.
        """
        key = object()
        with self._lock:
            self._watches[key] = callback, renewed
            if self.error is not None:
                callback(self.error)

        def forget() -> None:
            with self._lock:
                self._watches.pop(key, None)

        return forget

    def cancel(self, error: BaseException, deadline: float | None = None) -> bool:
        """Give the reason to stop and tell all who watch; the first reason stays. Whether this was the first.

        Args:
          deadline: of the step that is meant. Where another runs by now, nothing happens.
        """
        with self._lock:
            if self.error is not None or (deadline is not None and deadline != self.deadline):
                return False
            self.error = error
            for callback, _ in list(self._watches.values()):
                callback(error)
            return True

    def close(self, error: BaseException) -> None:
        """Cancel it for good: the reason stays for all steps to come, one that is about to begin among them."""
        with self._lock:
            self._closed = True
            self.cancel(error)

    def expire(self, now: float) -> bool:
        """Cancel it if its deadline has passed. Whether it is cancelled."""
        with self._lock:
            if self.error is None and self.deadline is not None and now >= self.deadline:
                self.cancel(
                    DeadlineExceededError(
                        f"the step did not end within its limit of {self.limit:g} s",
                        hint="raise RunOptions(timeout_in_ms=...) or operation_timeout",
                    )
                )
            return self.error is not None

    def reset(self) -> None:
        """Make it ready for another step: no deadline, of those who watch only who stays, and no reason unless it is closed."""
        with self._lock:
            cancelled = self.error is not None and not self._closed
            self.deadline = self.limit = None
            if cancelled:
                self.error = None
            for key, (_, renewed) in list(self._watches.items()):
                if renewed is None:
                    del self._watches[key]
                elif cancelled:
                    renewed()


@lazy_dataclass(frozen=True, slots=True)
class StepServices:
    """Services that the steps of one session share. Every function may be called from any thread.

    Attributes:
      session: the session's name; no other session has it.
      clock: seconds that never run backwards, of traces. ``deadlines``: cancels the steps that are late;
        None for the process's own, which keeps ``time.monotonic``.
      ordinal: name of a random op -> the number of the step that begins now among those that ran the op.
      container: name -> the store of its resources; ``""`` is the session's own.
      workers: the pool (``concurrent.futures``) for kernels that a step's own thread hands over, shared by all sessions of a host;
        None where there is none (``inter_op_threads``). A kernel that it begins has ended before its step does.
    """

    session: str
    clock: Callable[[], float] = time.monotonic
    deadlines: DeadlineClock | None = None
    ordinal: Callable[[str], int] = lambda name: 0
    container: Callable[[str], Any] = lambda name: None
    workers: Callable[[], Any] = lambda: None


class StepContext:
    """One running step.

    Attributes:
      services: what it shares with the other steps of its session.
      token: says when it must stop; executors call ``token.check()`` between nodes.
      state: what the program keeps here from one step to the next, such as buffers; None until it puts something there.
      used: something of this step must be reset before the next.
      on_submit: what takes over the work of a step that may end before it: a program that ``overlaps`` calls it, with what that
        work is on, when all is queued. None where the step ends with its work.
    """

    __slots__ = (
        "__weakref__",
        "_events",
        "_id",
        "_lock",
        "on_submit",
        "services",
        "state",
        "token",
        "used",
    )

    def __init__(self, services: StepServices) -> None:
        self.services = services
        self.token = CancellationToken(time.monotonic if services.deadlines is None else services.deadlines.now)
        self.state: Any = None
        self.used = False
        self.on_submit: Callable[[Any], None] | None = None
        self._id = 0
        self._events: list[TraceEvent] | None = None
        self._lock = new_lock()

    def limit(self, seconds: float) -> None:
        """Give the step that begins now so many seconds."""
        self.used = True
        token = self.token
        token.limit = seconds
        token.deadline = token.clock() + seconds
        if self.services.deadlines is not None:
            self.services.deadlines.schedule(token)
            return
        from graphdock.contracts.deadlines import DEADLINES

        DEADLINES.schedule(token)

    @property
    def deadline(self) -> float | None:
        """Time by which the step must have ended, in the time of the clock of deadlines; None for no limit."""
        return self.token.deadline

    @property
    def id(self) -> int:
        """The number of the step, which no other step of the process has."""
        if not self._id:
            with self._lock:
                if not self._id:
                    self.used = True
                    self._id = next(_ids)
        return self._id

    @property
    def events(self) -> list[TraceEvent]:
        """Reports of the parts of the step about themselves; append to it. ``RunMetadata.events`` hands it to the user."""
        if self._events is None:
            with self._lock:
                if self._events is None:
                    self.used = True
                    self._events = []
        return self._events

    def reported(self) -> tuple[TraceEvent, ...]:
        """The events so far; makes no list."""
        return tuple(self._events or ())

    def cancel(self, error: BaseException) -> None:
        """Stop the step that runs in this context; the first error stays.

        It ends with ``error`` before its next node, or inside the wait it is in. A kernel that runs is not interrupted. Where no
        step runs, nothing happens.
        """
        self.token.cancel(error)
        self.used = True  # not before: a reset in between would leave the error to the next step

    def close(self, error: BaseException) -> None:
        """Stop the step that runs in this context, as :meth:`cancel` does, and any that begins in it later."""
        self.token.close(error)

    def release_locks(self) -> None:
        """Release the step's locks: later steps find by themselves what they come after. For a program that ``overlaps``."""
        return

    def reset(self) -> None:
        """Forget the last step. Whoever leases a context calls it where ``used`` is set, before the next step."""
        with self._lock:
            self.used = False
            self._id = 0
            self._events = None
        self.token.reset()


_CALLERS: ContextVar[Context | None] = ContextVar("graphdock_callers", default=None)


def _quiet_settings() -> list[tuple[ContextVar[Any], Any]]:
    """The context variables by which NumPy reports no floating-point error, and their values: np.errstate sets them in 2 us."""
    context = Context()
    context.run(np.seterr, all="ignore")
    return list(context.items())


_QUIET = _quiet_settings()


def in_callers_context(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)`` in the caller's context, as a step that calls Python runs; NumPy reports no floating-point error."""
    tokens: list[Token[Any]] = [_CALLERS.set(_CALLERS.get() or copy_context())]
    for variable, value in _QUIET:
        tokens.append(variable.set(value))
    try:
        return function(*args)
    finally:
        for token in tokens:
            token.var.reset(token)


def callers_errors() -> np.errstate:
    """A block in which NumPy treats floating-point errors as whoever ran the step had told it to."""
    context = _CALLERS.get()
    return np.errstate() if context is None else np.errstate(**context.copy().run(np.geterr))
