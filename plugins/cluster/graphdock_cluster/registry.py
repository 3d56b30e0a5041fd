"""Registry: the parts of a session's steps that are registered with their tasks, and what each task has had for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from graphdock.contracts import errors
from graphdock.contracts.cluster import TaskName

from graphdock_cluster.partition.cut import Part
from graphdock_cluster.steps import noted
from graphdock_cluster.task import TaskServer
from graphdock_cluster.transports import RoutedTransport

__all__ = ["Registry", "Remote"]

_Answer = Callable[[Future[Any], "float | None"], Any]


class Remote:
    """A part that is registered with its task."""

    __slots__ = ("address", "feeds", "fetches", "handle", "local", "task")

    def __init__(self, part: Part, address: str, handle: int, local: TaskServer | None) -> None:
        self.task, self.address, self.handle, self.local = part.task, address, handle, local
        self.feeds = [number for number, _ in part.feeds]
        self.fetches = [number for number, _ in part.fetches]


class Registry:
    """Registers parts by the session's own tasks or by messages. Any thread may call any method.

    Args:
      session: its name. ``addresses``: of its tasks. ``own``: the task where its master is.

    Attributes:
      dropped: addresses and handles of parts that no step of any thread runs any more, to be forgotten by their tasks.
    """

    def __init__(
        self,
        session: str,
        transport: RoutedTransport,
        addresses: Mapping[TaskName, str],
        own: TaskName,
    ) -> None:
        self._session, self._transport, self._addresses, self._own = session, transport, addresses, own
        self.dropped: deque[list[tuple[str, int]]] = deque()
        #: Digests of large constants that each task has had, and has for as long as a part of the session there holds them.
        self._sent: dict[TaskName, set[str]] = {}

    def forget_dropped(self) -> None:
        """Have the tasks forget what was dropped."""
        while self.dropped:
            for address, handle in self.dropped.popleft():
                self._transport.post(address, "forget", {"session": self._session, "handle": handle})

    def register_all(self, parts: Sequence[Part], limit: float | None, answer: _Answer) -> list[Remote]:
        """Register the parts of a step with tasks where the session is open; those of one task run in turn, by one handle.

        Args:
          answer: waits for the answer to a call, within ``limit`` seconds. It raises TimeoutError, or the call's error.
        """
        made: dict[TaskName, Remote] = {}
        try:
            for part in parts:
                before = made.get(part.task)
                remote = self._register(part, 0 if before is None else before.handle, limit, answer)
                if before is not None:
                    remote.feeds = before.feeds + remote.feeds
                    remote.fetches = before.fetches + remote.fetches
                made[part.task] = remote
        except BaseException:
            self.dropped.append([(remote.address, remote.handle) for remote in made.values()])
            raise
        return list(made.values())

    def _register(self, part: Part, before: int, limit: float | None, answer: _Answer) -> Remote:
        address = self._addresses[part.task]
        local = self._transport.local.find(address)
        if local is not None:
            handle = local.register_part(self._session, part, before)
        else:
            try:
                text, constants = part.graph.as_graph_def(form="frames")
            except errors.InvalidArgumentError as error:
                error.add_note(f"{part.task} is of another process, which takes its part of the step as a GraphDef")
                raise
            sent = self._sent.setdefault(part.task, set())
            arguments = {
                "session": self._session,
                "graph": text,
                "step": "" if part.step is None else part.step.name,
                "feeds": [t.name for _, t in part.feeds],
                "fetches": [t.name for _, t in part.fetches],
                "targets": [op.name for op in part.targets],
                "reads": [[op.name, t.op.name] for op, t in part.graph._reads.items()],
                "before": before,
                "home": "" if self._transport.local.find(self._addresses[self._own]) is None else str(self._own),
            }
            while True:
                known = [digest for digest in constants if digest in sent]
                news = {digest: array for digest, array in constants.items() if digest not in sent}
                call = self._transport.call(address, "register", {**arguments, "constants": news, "known": known})
                try:
                    said = answer(call, limit)
                except BaseException as error:
                    call.add_done_callback(lambda done: self._drop_answered(done, address))  # it may come to be yet
                    if not isinstance(error, TimeoutError):
                        noted(error, part.task)
                        raise
                    raise errors.DeadlineExceededError(
                        f"{part.task} did not answer within {limit:g} s: it was to take its part of the step"
                    ) from None
                if "handle" in said:
                    break
                sent.difference_update(said["missing"])  # no part there has them any more
            handle = said["handle"]
            sent.update(constants)
        return Remote(part, address, handle, local)

    def _drop_answered(self, call: Future[Any], address: str) -> None:
        """Have a part forgotten that nobody waits for any more."""
        if not call.cancelled() and call.exception() is None and "handle" in call.result():
            self.dropped.append([(address, call.result()["handle"])])
