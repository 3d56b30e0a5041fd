"""StartedPart: a part that a message has started, through its phases, on whatever threads bring what these wait for.

No thread waits for tensors that a phase needs before it does anything: who brings the last of them has it run. A phase that was
quick the last time runs on the transport's own thread, any other on a thread of the task.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphdock.contracts.deadlines import DEADLINES
from graphdock.contracts.step import CancellationToken
from graphdock.contracts.waiting import Answer

from graphdock_cluster.running import NO_LIMIT, RunningPart

if TYPE_CHECKING:
    from graphdock_cluster.opened import Opened
    from graphdock_cluster.registered import Kept, Registered

__all__ = ["RECEIVING", "StartedPart", "answer_of", "fetched"]


class _Receiving(threading.local):
    here = False


#: Whether this thread is a transport's, which brings messages and must not be kept from the next for long.
RECEIVING = _Receiving()


class StartedPart:
    """One step of a part. ``future`` gets what it fetches, or its error; see :func:`answer_of`.

    Args:
      opened: its session. ``parts``: its phases. ``step``, ``seconds``, ``feeds``: as of ``TaskServer.run``.
      submit: runs a function on a thread of the task. ``home``: the task of its master, which takes tensors with the answer.

    Raises:
      AlreadyExistsError: the step runs already. AbortedError: it has ended.
    """

    def __init__(
        self,
        opened: Opened,
        parts: Sequence[Registered],
        step: int,
        seconds: float | None,
        feeds: Sequence[Any],
        submit: Callable[..., Any],
        home: str = "",
    ) -> None:
        self.future = Answer()
        self._opened, self._parts, self._step, self._feeds = opened, parts, step, list(feeds)
        self._submit = submit
        self._home = home
        self._kept: Kept = {home: ([], [])} if home else {}
        self._until = None if seconds is None else time.monotonic() + seconds
        self._token: CancellationToken | None = None
        self._at, self._met = 0, False
        self._results: list[Any] = []
        self._running = RunningPart()
        opened.begin(step, self._running)

    def begin(self, edges: Sequence[str], values: Sequence[Any]) -> None:
        """Run what can be run by now, with tensors that came with the message; see :meth:`go_on`."""
        try:
            for edge, value in zip(edges, values, strict=True):
                self._opened.exchange.arrive(self._step, edge, value)
        except BaseException as error:  # noqa: BLE001 - it is the caller's, who waits for the Future
            self._opened.end(self._step, self._running)
            self.future.set_exception(error)
        else:
            self.go_on()

    def go_on(self) -> None:
        """Run what can be run by now, here where this thread may, else on another."""
        here = RECEIVING.here
        try:
            while self._at < len(self._parts):
                part = self._parts[self._at]
                if part.first and not self._met:
                    self._met = True
                    self._limit_wait()
                    if not self._opened.exchange.meet(self._step, part.first, self.go_on):
                        return
                if here and not part.quick:
                    self._submit(self.go_on)
                    return
                if self._token is not None:
                    self._token.deadline = None
                self._run(part, self._kept if self._at == len(self._parts) - 1 else {})
                self._at, self._met = self._at + 1, False
        except BaseException as error:  # noqa: BLE001 - it is the caller's, who waits for the Future
            self._opened.end(self._step, self._running)
            self.future.set_exception(error)
        else:
            self._opened.end(self._step, self._running)
            self.future.set_result(answer_of(self._results, self._kept.get(self._home)))

    def _run(self, part: Registered, kept: Kept) -> None:
        before, RECEIVING.here = RECEIVING.here, False
        try:
            self._opened.exchange.check(self._step)
            own, self._feeds = self._feeds[: part.fed], self._feeds[part.fed :]
            left = NO_LIMIT if self._until is None else max(0.001, self._until - time.monotonic())
            with self._running:
                self._results += part.run(self._opened.exchange, self._step, own, left, kept)
        finally:
            RECEIVING.here = before

    def _limit_wait(self) -> None:
        """Have the clock of deadlines end the step here while nothing of it runs."""
        if self._until is None:
            return
        if self._token is None:
            self._token = CancellationToken(DEADLINES.now)
            self._token.limit = self._until - time.monotonic()
            self._token.watch(lambda error: self._opened.exchange.abort(self._step, error))
        self._token.deadline = self._until
        DEADLINES.schedule(self._token)


def answer_of(results: list[Any], kept: tuple[list[str], list[Any]] | None) -> Any:
    """Answer to the message that started a part: what it fetches, and with it tensors that it sends to its master's task."""
    if kept is None or not kept[0]:
        return results
    return {"fetched": results, "edges": kept[0], "values": kept[1]}


def fetched(answer: Any) -> list[Any]:
    """Values that a part fetches, of its answer."""
    found: list[Any] = answer["fetched"] if isinstance(answer, dict) else answer
    return found
