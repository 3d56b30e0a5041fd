"""ClusterSession: a session on a target, whose steps run in parts on the tasks of a cluster.

The master is where the session is. A step is cut once per signature; each part is registered with its task and run by handle. A
part whose task is of this process runs on the thread that calls; the others run meanwhile.
"""

from __future__ import annotations

import itertools
import logging
import os
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock.config.session_config import SessionConfig, effective_config
from graphdock.contracts import SessionFactory, errors
from graphdock.contracts.cluster import TaskName
from graphdock.device_name import DeviceSpec
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.locks import new_lock
from graphdock.plugin.host import Host
from graphdock.session.fetches import Feed, FetchPlan, convert_feed, single_tensors
from graphdock.session.session import Session

from graphdock_cluster.partition.assign import Assignment
from graphdock_cluster.partition.cut import Partition, partition
from graphdock_cluster.registry import Registry, Remote
from graphdock_cluster.settings import carried
from graphdock_cluster.steps import RunningStep, noted
from graphdock_cluster.transports import RoutedTransport
from graphdock_cluster.versions import carrying, check_versions, declaring

__all__ = ["ClusterSession", "ServerSessions"]

_log = logging.getLogger("graphdock")
#: Seconds after which a session says again which task it waits for.
PATIENCE = 10.0


class _Step:
    """One signature: what it fetches and is fed, and its parts."""

    __slots__ = ("__weakref__", "cut", "feeds", "fetch", "mutation", "parts", "single")

    def __init__(self, fetch: FetchPlan, feeds: list[Feed], mutation: int, single: bool, cut: Partition) -> None:
        self.fetch, self.feeds, self.mutation, self.single, self.cut = fetch, feeds, mutation, single, cut
        self.parts: list[Remote] = []


class ClusterSession(Session):
    """Runs steps of a graph on the tasks of a cluster. It is a ``tf.Session`` to all that takes one.

    Variables live in the containers of their tasks, and outlive the session; ``Session.reset(target)`` frees them. With
    ``isolate_session_state`` they are the session's own, and end with it. With ``device_filters`` it has its own task and those
    that one of them names. Steps may be run from many threads.

    Args:
      target: of the server whose task runs what asks for no other. ``graph``, ``host``: as of any session.
      config: what it says of :data:`graphdock_cluster.settings.CARRIED`, or else the target's server's, holds on each task;
        backends, threads, memory and options are those of each server.

    Raises:
      UnavailableError: the target can't be reached. ConfigError: a pass that there is not.
    """

    def __init__(
        self,
        target: str,
        graph: Graph | None = None,
        config: SessionConfig | None = None,
        host: Host | None = None,
    ) -> None:
        self.graph = get_default_graph() if graph is None else graph
        self._host = self.graph.host if host is None else host
        self.config = effective_config(config)
        self.target = target
        self._closed = False
        self._lock = new_lock()
        self._timeout = self.config.operation_timeout
        self._name = f"session-{os.urandom(8).hex()}"
        self._numbers = itertools.count(1)
        self._steps: dict[Any, _Step] = {}
        self._opened: dict[TaskName, dict[str, Any]] = {}
        self._running: dict[int, RunningStep] = {}
        self._assigned: tuple[Any, Assignment] | None = None
        self._has_lost = False
        address = _address(target)
        self._transport = RoutedTransport(self._host, target.partition("://")[0])
        if self.config.cluster:
            self._transport.start(
                address, [TaskName(job, n) for job, count in self.config.cluster.items() for n in range(count)]
            )
        said = self._ask(f"the target {target}", address, "info", {}, self._timeout)
        self._own = TaskName.parse(said["name"])
        self._addresses = self._transport.tasks(address, said)
        self._addresses[self._own] = address
        home = self._transport.local.find(address)
        own = carried(self.config, self._host, None if home is None else home.config)
        self._carried = {**said.get("settings", {}), **own}
        self._registry = Registry(self._name, self._transport, self._addresses, self._own)
        self._tasks = _seen(sorted(self._addresses), self._own, self.config.device_filters)

    # -- running ------------------------------------------------------------------------------------------------------

    def run(
        self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Run one step; see :meth:`graphdock.Session.run`.

        Raises:
          UnavailableError: a task that the step needs is lost. AbortedError: it has started anew, its variables are gone. What a
          part raises, with the task noted; what other parts had done by then stays done.
        """
        self._check_open()
        limit = self._timeout if options is None else options.seconds(self._timeout)
        if options is not None and options.trace_level:
            raise errors.UnimplementedError("steps on a target are not traced", hint="trace a session of one process")
        step = self._step(fetches, feed_dict, limit)
        given = single_tensors(feed_dict) if feed_dict else {}
        values = [convert_feed(feed, v) for feed, v in zip(step.feeds, given.values(), strict=True)]
        results = self._run(step, values, limit)
        return results[0] if step.single else step.fetch.pack(results)

    def _run(self, step: _Step, values: list[Any], limit: float | None) -> list[Any]:
        results: list[Any] = [None] * len(step.fetch.tensors)
        for number, fed in step.cut.fed.items():
            results[number] = values[fed]
        if len(step.parts) == 1 and step.parts[0].local is not None:
            only = step.parts[0]
            assert only.local is not None
            try:
                number = next(self._numbers)
                made = only.local.run(self._name, only.handle, number, limit, [values[n] for n in only.feeds])
            except errors.GraphdockError as error:
                raise self._named(error) from None
            for number, value in zip(only.fetches, made, strict=True):
                results[number] = value
            return results
        number = next(self._numbers)
        home = self._transport.local.find(self._addresses[self._own])
        running = RunningStep(self._name, number, self._transport, [p.address for p in step.parts], home)
        self._running[number] = running
        try:
            made_by = running.run(
                [(p.task, p.address, p.local, p.handle, [values[n] for n in p.feeds]) for p in step.parts], limit
            )
        except errors.GraphdockError as error:
            raise self._named(error) from None
        finally:
            self._running.pop(number, None)
        for part, made in zip(step.parts, made_by, strict=True):
            for index, value in zip(part.fetches, made, strict=True):
                results[index] = value[()] if isinstance(value, np.ndarray) and not value.ndim else value
        return results

    def _named(self, error: errors.GraphdockError) -> errors.GraphdockError:
        """The error with the graph's own operation in the place of its part's."""
        name = error.op if isinstance(error.op, (str, type(None))) else error.op.name
        self._has_lost = self._has_lost or isinstance(error, (errors.AbortedError, errors.UnavailableError))
        found = self.graph._by_name.get(name) if name is not None else None
        if found is not None:
            error.op, error.node_def, error.site = found, found.node_def, found.site
        return error

    def _step(self, fetches: Any, feed_dict: Mapping[Any, Any] | None, limit: float | None) -> _Step:
        try:
            kind = type(fetches)
            key: Any = (kind, *fetches) if kind is list or kind is tuple else fetches
            if feed_dict:
                key = (dict, key, *feed_dict)
            found = self._steps.get(key)
            if found is not None and found.mutation == self.graph._mutation:
                if len(self._steps) >= self.config.plan_cache_size:  # it may be the next one to go
                    with self._lock:
                        if self._steps.pop(key, None) is not None:
                            self._steps[key] = found
                return found
        except TypeError:
            key = None
        single = single_tensors(feed_dict) if feed_dict else {}
        fetch = FetchPlan(self.graph, fetches)
        feeds = [Feed(self.graph, k) for k in single]
        with self._lock:
            self._check_open()
            assignment = self._assignment()
        # without the lock: a task may have to be waited for, while other steps need it not
        cut = partition(
            self.graph,
            fetch.tensors,
            fetch.operations,
            [f.tensor for f in feeds],
            assignment,
            lambda task: str(self._open(task, limit)["exchange"]),
            self.config.bfloat16_sendrecv,
        )
        alone = not isinstance(fetches, (list, tuple, Mapping)) and len(fetch.tensors) == 1
        made = _Step(fetch, feeds, self.graph._mutation, alone, cut)
        needs = [(p, declaring(self._host, p.graph.get_operations())) for p in cut.parts]
        check_versions(
            [(str(p.task), needed, self._open(p.task, limit)) for p, needed in needs],
            carrying(self._host, self._transport.scheme),
        )
        made.parts = self._registry.register_all(cut.parts, limit, self._answer)
        made.parts.sort(key=lambda p: p.local is not None)  # those of this process run last, on the caller's thread
        handles = [(part.address, part.handle) for part in made.parts]
        weakref.finalize(made, self._registry.dropped.append, handles).atexit = False
        if key is not None:
            with self._lock:
                self._steps[key] = made
                while len(self._steps) > self.config.plan_cache_size:
                    del self._steps[next(iter(self._steps))]
        self._registry.forget_dropped()
        return made

    def _assignment(self) -> Assignment:
        """The tasks of the graph's operations, as it stands now."""
        state = self.graph.version, self.graph._mutation
        if self._assigned is None or self._assigned[0] != state:
            self._assigned = state, Assignment(self.graph.get_operations(), self._tasks, self._own)
        return self._assigned[1]

    # -- tasks --------------------------------------------------------------------------------------------------------

    def _ask(self, task: object, address: str, method: str, arguments: Mapping[str, Any], limit: float | None) -> Any:
        """The answer of a task that need not be there yet: it is called until it can be reached. Says for which it waits.

        A session that has lost a task waits for none any more: whoever runs it is to make a new one.
        """
        begun = time.monotonic()
        said, why = 0.0, ""
        while True:
            call = self._transport.call(address, method, arguments)
            try:
                return self._answer(call, None if limit is None else max(0.0, limit - (time.monotonic() - begun)))
            except errors.UnavailableError as error:
                if self._has_lost or self._closed:
                    raise
                why = error.message
            except errors.GraphdockError as error:
                noted(error, task)
                raise
            except TimeoutError:
                why = why or "it did not answer"
            waited = time.monotonic() - begun
            if limit is not None and waited >= limit:
                raise errors.DeadlineExceededError(
                    f"{task} at {address} was not there within {limit:g} s: {why}",
                    hint="is its server running? operation_timeout says how long is waited",
                )
            if waited - said > PATIENCE:
                said = waited
                _log.warning("session on %s: still waiting for %s at %s: %s", self.target, task, address, why)
            time.sleep(min(0.05 * (1 + waited), 1.0))

    def _answer(self, call: Future[Any], limit: float | None) -> Any:
        """Return the answer to a call. Raises TimeoutError, or its error."""
        self._transport.wait(call, limit)
        return call.result(0)

    def _open(self, task: TaskName, limit: float | None) -> dict[str, Any]:
        """Answer of a task about the session, which is opened there."""
        found = self._opened.get(task)
        if found is None:
            if task != self._own:
                self._open(self._own, limit)  # who resets it tells the others of its sessions
            arguments = {
                "session": self._name,
                "version": _tf.__version__,
                "isolated": self.config.isolate_session_state,
                "master": str(self._own),
                **({"settings": self._carried} if self._carried else {}),
            }
            self._opened[task] = found = self._ask(task, self._addresses[task], "open", arguments, limit)
            if self._closed:  # meanwhile
                self._transport.call(self._addresses[task], "close_session", {"session": self._name})
                self._check_open()
            self._watch(task)
        return found

    def _watch(self, task: TaskName) -> None:
        """End the steps that touch a task once it, or the way to it, is lost: what its parts sent before may be lost as well. Once
        the way between two tasks is lost, end those that touch both, up to the last of which something went that way."""
        address, me = self._addresses[task], weakref.ref(self)
        if self._transport.local.find(address) is not None:
            return

        def lost(done: Future[Any]) -> None:
            error, session = None if done.cancelled() else done.exception(), me()
            if session is None or done.cancelled():
                return
            both, last = [address], None
            if error is None and (said := done.result()):
                other, last = said["unreached"], said["step"]
                both += [session._addresses[TaskName.parse(other)]] if other else []
                error = errors.UnavailableError(
                    f"{task} does not reach {other or 'another task'}: their connection ended"
                )
                session._watch(task)
            if error is not None:
                for number, running in list(session._running.items()):
                    if last is None or number <= last:
                        running.lost(both, task, error)

        self._transport.call(address, "watch", {"session": self._name}).add_done_callback(lost)

    def list_devices(self) -> list[str]:
        """Whole names of the devices of all its tasks. Waits for each task."""
        return [
            d
            for task in self._tasks
            for d in self._ask(task, self._addresses[task], "info", {}, self._timeout)["devices"]
        ]

    # -- life ---------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the session on every task that it touched. What is in the tasks' containers stays. Closing twice does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            opened = list(self._opened)
            self._steps.clear()
        error = errors.CancelledError("the step was cancelled by an explicit call to `Session::Close()`")
        for running in list(self._running.values()):
            running.abort(error)
        calls = [
            self._transport.call(self._addresses[task], "close_session", {"session": self._name}) for task in opened
        ]
        wait(calls, timeout=1.0)

    def synchronize(self) -> None:
        """Return at once: steps on a target end with their work."""
        self._check_open()

    def partial_run_setup(self, fetches: Any, feeds: list[Any] | None = None) -> Any:
        raise errors.UnimplementedError("partial_run is for sessions of one process")

    def plan(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        raise errors.UnimplementedError("a step on a target has a plan per task", hint="use explain")

    def explain(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """A table of what each task runs of a step, by which kernels, and what they send one another. Nothing runs.

        Raises:
          What :meth:`run` raises before a step begins: its tasks plan their parts.
        """
        from graphdock_cluster.explain import PartitionExplanation

        self._check_open()
        step = self._step(fetches, feed_dict, self._timeout)
        given = single_tensors(feed_dict) if feed_dict else {}
        shapes = [list(np.shape(convert_feed(feed, v))) for feed, v in zip(step.feeds, given.values(), strict=True)]
        plans: list[dict[str, Any]] = []
        calls = []
        for part in step.parts:
            asked = {"session": self._name, "handle": part.handle, "shapes": [shapes[n] for n in part.feeds]}
            calls.append(self._transport.call(part.address, "explain", asked))
        for part, call in zip(step.parts, calls, strict=True):
            try:
                plans += [{"task": str(part.task), **plan} for plan in self._answer(call, self._timeout)]
            except TimeoutError:
                raise errors.DeadlineExceededError(
                    f"{part.task} did not answer within {self._timeout:g} s: it was to plan its part of the step"
                ) from None
            except errors.GraphdockError as error:
                raise self._named(error) from None
        return PartitionExplanation(step.cut, self._own, plans)

    def _repr_html_(self) -> str:
        return f"<p>Session on {self.target}, {'closed' if self._closed else 'open'}</p>"


def _address(target: str) -> str:
    """``localhost:2222`` of ``grpc://localhost:2222``."""
    return target.partition("://")[2]


def _seen(tasks: list[TaskName], own: TaskName, filters: Sequence[str]) -> list[TaskName]:
    """The tasks that one of the filters names, and the session's own; without filters, all."""
    named = [DeviceSpec.parse(name) for name in filters]
    fits = [(d.job, d.task) for d in named]
    return [
        t for t in tasks if t == own or not fits or any(j in (None, t.job) and n in (None, t.index) for j, n in fits)
    ]


class ServerSessions(SessionFactory):
    """Opens sessions on the targets of servers: ``grpc://host:port``, and those of all schemes that a transport reaches."""

    scheme = "grpc"

    def open(self, target: str, graph: Any, config: Any, host: Any = None) -> Any:
        return ClusterSession(target, graph, config, host)

    def reset(self, target: str, containers: Sequence[str] | None, config: Any, host: Any) -> None:
        address = _address(target)
        transport = RoutedTransport(host, target.partition("://")[0])
        limit = effective_config(config).operation_timeout
        try:
            said = transport.call(address, "info", {}).result(limit)
            named = {"containers": containers, "target": said["name"]}
            named["ended"] = transport.call(address, "reset", named).result(limit)
            others = [where for where in transport.tasks(address, said).values() if where != address]
            for call in [transport.call(where, "reset", named) for where in others]:
                call.result(limit)
        except (TimeoutError, errors.UnavailableError) as error:
            if limit is None:
                raise
            raise errors.DeadlineExceededError(
                f"{target} was not reset within {limit:g} s: {errors.format_error(error) or 'it did not answer'}"
            ) from None
