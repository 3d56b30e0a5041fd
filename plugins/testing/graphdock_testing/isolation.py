"""Conformance cases in a process of their own, one after another: a case that takes the process with it, or never ends, is a line.

    worker = Worker("mychip", timeout=300)
    outcome = worker.check(case)        # "failed", "the process died of SIGSEGV"
    worker.close()

A process serves many cases; after a crash the next case gets a new one.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Literal, NamedTuple

from graphdock.errors import GraphdockError

from graphdock_testing.case import Case, ConformanceError, Missing, Refused, Seen, Untested

__all__ = ["Outcome", "Worker", "outcome_of", "raised_at"]

#: Seconds that a process may take to import the backend, and to end.
_START, _END = 300.0, 10.0


class Outcome(NamedTuple):
    """Outcome of a case. ``broken``: the kit itself is at fault; the text is its traceback. ``seen``: what its steps reached."""

    kind: Literal["ok", "missing", "refused", "untested", "failed", "broken"]
    text: str = ""
    seen: Seen | None = None


def outcome_of(kit: Any, case: Case) -> Outcome:
    """Check a case here and now."""
    try:
        seen = kit.check(case)
    except Missing as error:
        kind: Literal["missing", "refused", "untested"] = "refused" if isinstance(error, Refused) else "missing"
        return Outcome("untested" if isinstance(error, Untested) else kind, str(error).partition("\n")[0])
    except ConformanceError as error:
        return Outcome("failed", f"{error}{raised_at(error)}")
    except Exception:  # noqa: BLE001 - told to whoever asked, with its traceback
        return Outcome("broken", traceback.format_exc())
    return Outcome("ok", "", seen)


def raised_at(error: BaseException) -> str:
    """Where a kernel raised what became ``error``; empty when nothing but graphdock's own errors is behind it."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    frames = traceback.extract_tb(cause.__traceback__)
    if isinstance(cause, (AssertionError, GraphdockError)) or not frames:
        return ""
    return f"\n  raised at {frames[-1].filename}:{frames[-1].lineno}, in {frames[-1].name}"


class Worker:
    """Where cases run. Used by one thread.

    Args:
      backend: an installed plugin; the process makes its own kit for it.
      kernels: as for ``Conformance.cases``.
      timeout: seconds that one case may take.
    """

    def __init__(self, backend: str, kernels: Sequence[str] = (), timeout: float = 300.0) -> None:
        self._backend, self._kernels, self._timeout = backend, tuple(kernels), timeout
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None

    def check(self, case: Case) -> Outcome:
        """Run the case in the process, which is started where there is none."""
        doing = "loaded the backend"
        try:
            if self._process is None and not self._start():
                return Outcome("failed", f"{case.id}: the process did not load the backend in {_START:g} s")
            doing = "ran this case"
            answer = self._ask((case.op, case.id), self._timeout)
        except (EOFError, OSError):
            return Outcome("failed", f"{case.id}: {self._ending()} while it {doing}")
        if answer is None:
            return Outcome("failed", f"{case.id}: it did not end in {self._timeout:g} s")
        return Outcome(*answer)

    def lines(self) -> list[str]:
        """What the process watched, for the end of a run; nothing where none runs."""
        if self._process is None:
            return []
        try:
            return list(self._ask(None, _END) or ())
        except (EOFError, OSError):
            return [self._ending()]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._ending()

    def _start(self) -> bool:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._backend, self._kernels), daemon=True)
        self._process.start()
        theirs.close()
        return self._receive(_START) is not None

    def _ask(self, question: Any, patience: float) -> Any:
        """Answer of the process; None when it does not in time, and is killed."""
        assert self._pipe is not None
        self._pipe.send(question)
        return self._receive(patience)

    def _receive(self, patience: float) -> Any:
        assert self._pipe is not None
        if self._pipe.poll(patience):
            return self._pipe.recv()
        self.close()
        return None

    def _ending(self) -> str:
        """End of the process; there is none any more."""
        assert self._process is not None and self._pipe is not None
        self._process.join(_END)
        status = self._process.exitcode
        self._pipe.close()
        self._process = self._pipe = None
        if status is None or status >= 0:
            return f"the process ended with status {status}"
        try:
            return f"the process died of {signal.Signals(-status).name}"
        except ValueError:
            return f"the process died of signal {-status}"


def _serve(pipe: Connection, backend: str, kernels: Sequence[str]) -> None:
    from graphdock_testing.conformance import Conformance

    kit = Conformance(backend)
    cases: dict[str, dict[str, Case]] = {}
    pipe.send("loaded")
    while True:
        try:
            asked = pipe.recv()
        except EOFError:
            return  # who asked is gone
        if asked is None:
            pipe.send(kit.watching.lines())
            continue
        op, name = asked
        if op not in cases:
            cases[op] = {case.id: case for case in kit.cases(op, kernels)}
        pipe.send(outcome_of(kit, cases[op][name]))
