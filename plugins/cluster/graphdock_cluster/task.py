"""TaskServer: one task of a cluster, with its devices and containers, which runs the parts that sessions register with it."""

from __future__ import annotations

import itertools
import os
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import graphdock as _tf
from graphdock.config.session_config import SessionConfig
from graphdock.contracts import errors
from graphdock.contracts.cluster import TaskInfo, TaskName, Transport
from graphdock.contracts.failures import raised
from graphdock.contracts.interrupts import Interrupts
from graphdock.contracts.waiting import Answer
from graphdock.contracts.waiting_threads import WaitingThreads
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.plugin.host import Host
from graphdock.session.session import Session

from graphdock_cluster.exchange import Exchange
from graphdock_cluster.open_sessions import LOST, OpenSessions
from graphdock_cluster.opened import Containers, Opened, PartSession
from graphdock_cluster.partition.cut import Part
from graphdock_cluster.registered import Kept, Registered, held_back
from graphdock_cluster.running import NO_LIMIT, RunningPart
from graphdock_cluster.settings import of_server, received
from graphdock_cluster.started import StartedPart
from graphdock_cluster.versions import installed, planning

__all__ = ["TaskServer"]


class TaskServer:
    """A task. Sessions, on whatever task or process their masters are, open themselves here and register parts.

    The methods in :data:`METHODS` are what a transport calls; any thread may call any, several at once.

    Args:
      name: of the task. ``addresses``: of all tasks of the cluster, this one's included.
      config: of the sessions that run its parts. ``host``: whose plugins are used.
      transport: to the other tasks.
    """

    def __init__(
        self,
        name: TaskName,
        addresses: Mapping[TaskName, str],
        config: SessionConfig,
        host: Host,
        transport: Transport,
    ) -> None:
        self.name, self.addresses, self.host = name, dict(addresses), host
        self.config = config.replace(steps_in_flight=1)  # a part ends with its work, and its errors are its own
        self.incarnation = int.from_bytes(os.urandom(8), "little") >> 1 | 1
        self.transport = transport
        self.containers = Containers()
        self._sessions = OpenSessions(name)
        self._handles = itertools.count(1)
        self._described: tuple[list[str], list[str]] | None = None
        #: Run what may wait.
        self.threads = WaitingThreads("graphdock part")

    @property
    def address(self) -> str:
        """Address where the task is reached."""
        return self.addresses[self.name]

    # -- what a transport calls ---------------------------------------------------------------------------------------

    def info(self) -> dict[str, Any]:
        """Description of the task and of its cluster."""
        return {
            "name": str(self.name),
            "address": self.address,
            "incarnation": self.incarnation,
            "devices": self._describe()[0],
            "version": _tf.__version__,
            "settings": of_server(self.config),
            "cluster": {str(name): address for name, address in self.addresses.items()},
        }

    def _describe(self) -> tuple[list[str], list[str]]:
        """Whole names of its devices, and the plugins with which it plans."""
        if self._described is None:
            with Session(graph=_tf.Graph(self.host), config=self.config, host=self.host) as session:
                names = [d.partition("/device")[2] for d in session.list_devices()]
                self._described = [f"{self.name}/device{d}" for d in names], planning(session)
        return self._described

    def open(
        self,
        session: str,
        version: str,
        isolated: bool = False,
        master: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Open a session, or take note that it is open. One that is isolated has containers of its own, until it is closed. Says
        which plugins there are, and with which the task plans (:mod:`graphdock_cluster.versions`).

        Steps of sessions that were closed have ended before: a new one never reads what they write.

        Args:
          master: the task that is the session's target, which ends it when it is reset.
          settings: of the session's configuration that hold for its steps, in place of this task's own.

        Raises:
          InvalidArgumentError, ConfigError: of the settings, one that is this task's own, or wrong. FailedPreconditionError: its
            master runs another version of graphdock.
          AbortedError: it was ended by a reset.
        """
        if version != _tf.__version__:
            raise errors.FailedPreconditionError(
                f"the session's graphdock {version} and the one of {self.name} are of different versions",
                expected=_tf.__version__,
                got=version,
                hint="install one version for all tasks of a cluster",
            )
        config = received(settings, self.config, self.host)
        opened = self._sessions.open(
            session, master, lambda: Opened(Exchange(self._sender(session)), isolated, master, config)
        )
        said = {"exchange": opened.exchange.name, "incarnation": self.incarnation}
        return {**said, "plugins": installed(self.host), "plans": self._describe()[1]}

    def register(
        self,
        session: str,
        graph: str,
        constants: dict[str, Any],
        step: str,
        feeds: Sequence[str],
        fetches: Sequence[str],
        targets: Sequence[str],
        reads: Sequence[Sequence[str]],
        known: Sequence[str] = (),
        before: int = 0,
        home: str = "",
    ) -> dict[str, Any]:
        """Register a part of a session's steps: its ``handle``; or, where nothing was done, the digests that are ``missing`` here.
        Names are of the part's own graph.

        Args:
          graph: in graphdock's JSON. ``constants``: those that it names by their digests.
          known: digests of more of them, which were sent for other parts of the session.
          before: handle of the part that runs before this one, which then stands for both.
          home: the task of the session's master, which takes tensors with the answer; empty where the master has none.
        """
        opened = self._sessions.known(session)
        kept = opened.constants.find(known)
        if len(kept) < len(known):
            return {"missing": [digest for digest in known if digest not in kept]}
        made = _tf.Graph(self.host)
        with made.as_default():
            _tf.import_graph_def((graph, {**kept, **constants}), name="")
        opened.constants.share(made, {**kept, **constants})
        for handle, read in reads:
            made.let_read(made.get_operation_by_name(handle), made.get_operation_by_name(read).outputs[0])
        number = self._register(
            session,
            made,
            _tensor(made, step) if step else None,
            [_tensor(made, n) for n in feeds],
            [_tensor(made, n) for n in fetches],
            [made.get_operation_by_name(n) for n in targets],
            before,
            home,
        )
        return {"handle": number}

    def register_part(self, session: str, part: Part, before: int = 0) -> int:
        """Register a part of a master in this process; see :meth:`register`."""
        feeds, fetches = [t for _, t in part.feeds], [t for _, t in part.fetches]
        return self._register(session, part.graph, part.step, feeds, fetches, part.targets, before)

    def run(
        self,
        session: str,
        handle: int,
        step: int,
        seconds: float | None,
        feeds: Sequence[Any],
        begin: Callable[[Kept], None] | None = None,
        others: Collection[str] = (),
    ) -> list[Any]:
        """Run a part in a step: what it fetches.

        Args:
          begin: starts the other parts of the step; called once, however the part ends. It is given what goes with the messages
            that start those of the tasks ``others``: where the first phase is quick, the tensors that it sends to them.

        Raises:
          What the part raises. AbortedError: the task does not know the session or part: it came back after it had died; or the
            step has ended. AlreadyExistsError: it runs.
        """
        starts = [] if begin is None else [begin]
        opened = None
        began, results, running = time.monotonic(), list[Any](), RunningPart()
        try:
            opened = self._sessions.known(session)
            parts = self._parts(opened, handle)
            opened.begin(step, running)
            opened.exchange.check(step)
            with running:
                for part in parts:
                    if starts and (part.first or not part.quick):
                        starts.pop()({})
                    kept: Kept = {task: ([], []) for task in others} if starts else {}
                    own, feeds = list(feeds[: part.fed]), feeds[part.fed :]
                    self._meet(opened.exchange, step, part, seconds, began)
                    left = NO_LIMIT if seconds is None else max(0.001, seconds - (time.monotonic() - began))
                    results += part.run(opened.exchange, step, own, left, kept)
                    if starts:
                        starts.pop()(kept)
        finally:
            with Interrupts():
                if starts:
                    starts.pop()({})
                if opened is not None:
                    opened.end(step, running)
                    self._sessions.step_ended()
        return results

    def _meet(self, exchange: Exchange, step: int, part: Registered, seconds: float | None, began: float) -> None:
        """Wait for what a part takes before it does anything, or until the step is over, as the transport waits."""
        met = Answer()
        if part.first and not exchange.meet(step, part.first, lambda: met.set_result(None)):
            self.transport.wait(met, None if seconds is None else max(0.0, seconds - (time.monotonic() - began)))

    def start(
        self,
        session: str,
        handle: int,
        step: int,
        seconds: float | None,
        feeds: Sequence[Any],
        edges: Sequence[str] = (),
        values: Sequence[Any] = (),
    ) -> Future[Any]:
        """Run a part in a step, as :meth:`run` does, on threads that need not wait for it: the Future of its answer.

        Args:
          edges, values: tensors of the master's task that come with it.

        Raises:
          AbortedError: the task does not know the session or part, or the step has ended. AlreadyExistsError: it runs.
        """
        opened = self._sessions.known(session)
        parts = self._parts(opened, handle)
        started = StartedPart(opened, parts, step, seconds, feeds, self.threads.submit, parts[-1].home)
        started.future.add_done_callback(lambda done: self._sessions.step_ended())
        started.begin(edges, values)
        return started.future

    def explain(self, session: str, handle: int, shapes: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
        """Facts of the plans of a part, one per phase; see :meth:`Registered.explain`. Nothing runs.

        Args:
          shapes: of what the part is fed.

        Raises:
          AbortedError: the task does not know the session or part. What planning raises.
        """
        found = []
        for part in self._parts(self._sessions.known(session), handle):
            found.append(part.explain(shapes[: part.fed]))
            shapes = shapes[part.fed :]
        return found

    def watch(self, session: str) -> Future[dict[str, Any]]:
        """Answer once the session is closed here, or with the name of a task that is ``unreached`` by tensors of the session: steps
        up to ``step`` are to end. Who waits for it is told where this task or the way to it is lost.

        Raises:
          AbortedError: the task does not know the session.
        """
        return self._sessions.known(session).watch()

    def unreached(self, session: str, address: str, step: int) -> None:
        """Take note that the way to an address is lost, by which tensors of a session went: ``step`` was the last one's."""
        opened = self._sessions.find(session)
        if opened is not None:
            opened.tell(next((str(name) for name, at in self.addresses.items() if at == address), ""), step)

    def forget(self, session: str, handle: int) -> None:
        """Forget a part, which no new step runs. One that runs it now ends well."""
        opened = self._sessions.find(session)
        if opened is not None:
            opened.parts.pop(handle, None)

    def arrive(self, session: str, step: int, edge: str | list[str], value: Any) -> None:
        """Bring a tensor of another task; or several, as two lists."""
        opened = self._sessions.find(session)
        if opened is not None:
            for one, tensor in ((edge, value),) if isinstance(edge, str) else zip(edge, value, strict=True):
                opened.exchange.arrive(step, one, tensor)

    def abort(self, session: str, step: int, failure: Mapping[str, Any]) -> None:
        """Stop a step here: whatever runs and waits in it ends with the error."""
        opened = self._sessions.find(session)
        if opened is None:
            return
        error = raised(failure)
        opened.exchange.abort(step, error)
        running = opened.running.get(step)
        if running is not None:
            running.cancel(error)

    def close_session(self, session: str) -> None:
        """Forget a session. Its steps have ended, with CancelledError; what is in containers stays, but in those of its own."""
        self._sessions.end(
            session, errors.CancelledError("the step was cancelled by an explicit call to `Session::Close()`")
        )

    def lose_session(self, session: str) -> None:
        """Forget a session whose process is lost, or the way to it. A step of it that comes by another way meanwhile is told so."""
        self._sessions.end(session, errors.UnavailableError(LOST))

    def reset(
        self, containers: Sequence[str] | None, target: str = "", ended: Sequence[str] | None = None
    ) -> list[str]:
        """Free what is in containers: of these names, or of all. The names of the sessions that end.

        Args:
          target: the task that is reset, whose sessions end: their steps, those to come as well, with AbortedError.
          ended: the names that it said; nothing where this is the target.
        """
        ended = self._sessions.reset(target, ended)
        self.containers.clear(containers)
        return ended

    # -- inside of the process ----------------------------------------------------------------------------------------

    def stop(self, error: errors.GraphdockError) -> None:
        """End all sessions here, with an error for the steps that run."""
        opened = self._sessions.all()
        for each in opened.values():
            each.exchange.abort_all(error)
        for session in opened:
            self.close_session(session)
        self.reset(None)

    @property
    def sessions(self) -> list[str]:
        """Names of the sessions that are open here."""
        return list(self._sessions.all())

    @property
    def running(self) -> list[int]:
        """Numbers of the steps that run here, of all sessions."""
        return [step for opened in self._sessions.all().values() for step in list(opened.running)]

    def task_info(self) -> TaskInfo:
        """Description of it, as a value."""
        said = self.info()
        return TaskInfo(self.name, self.address, self.incarnation, tuple(said["devices"]), said["version"])

    def _parts(self, opened: Opened, handle: int) -> list[Registered]:
        parts = opened.parts.get(handle)
        if parts is None:
            raise errors.AbortedError(
                f"{self.name} does not know part {handle} of the session; it has started anew since"
            )
        return parts

    def _register(
        self,
        session: str,
        graph: Any,
        step: Tensor | None,
        feeds: Sequence[Tensor],
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        before: int,
        home: str = "",
    ) -> int:
        opened = self._sessions.known(session)
        handle = before or next(self._handles)
        made = Registered(PartSession(graph, self, opened), step, feeds, fetches, targets, home)
        opened.parts.setdefault(handle, []).append(made)
        return handle

    def _sender(self, session: str) -> Callable[[str, int, str, Any], None]:
        post, addresses = self.transport.post, self.addresses
        named = {str(name): address for name, address in addresses.items()}
        me = weakref.ref(self)

        def send(task: str, step: int, edge: str, value: Any) -> None:
            if me() is not None and not held_back(post_all, task, step, edge, value):
                post(named[task], "arrive", {"session": session, "step": step, "edge": edge, "value": value})

        def post_all(task: str, step: int, edges: list[str], values: list[Any]) -> None:
            post(named[task], "arrive", {"session": session, "step": step, "edge": edges, "value": values})

        return send


def _tensor(graph: Any, name: str) -> Tensor:
    """The tensor of that very name: of a variable's handle, the handle."""
    op, _, port = name.rpartition(":")
    tensor: Tensor = graph.get_operation_by_name(op).outputs[int(port)]
    return tensor
