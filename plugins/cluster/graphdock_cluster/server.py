"""``tf.train.Server``: a task of a cluster in this process."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Mapping
from typing import Any

import graphdock as _tf
from graphdock.config.session_config import Translatable, effective_config
from graphdock.contracts import errors
from graphdock.contracts.cluster import TaskName
from graphdock.plugin.host import Host, default_host

from graphdock_cluster.answers import receive
from graphdock_cluster.task import TaskServer
from graphdock_cluster.transports import RoutedTransport

__all__ = ["Server"]

_numbers = itertools.count()


class Server:
    """A task of a cluster: ``tf.Session(server.target)`` runs steps from it, and other tasks' sessions have it run their parts.

    Several may stand in one process. Variables that sessions make here stay until ``Session.reset``, or until the server goes.

    Args:
      server_or_cluster_def: a ``ServerDef``, ``ClusterDef``, ``ClusterSpec``, or a dict of jobs to addresses.
      job_name, task_index: which task of the cluster this is; where the cluster has only one, they may be left out.
      protocol: ``grpc`` (the default), whose literal targets ``grpc://host:port`` name tasks, or the scheme of another transport,
        such as ``ray``, of which the cluster's addresses are then.
      config: of the steps that run here: a ``SessionConfig`` or ``ConfigProto``; where a ``ServerDef`` is given, default: its own.
      start: begin at once.
      host: whose plugins are used; default: the process's own.

    Raises:
      ValueError: the task is not in the cluster, or is not named, or its address has no port. UnknownError: it can't listen there:
        another server does, say.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
        host: Host | None = None,
    ) -> None:
        if config is None and hasattr(server_or_cluster_def, "default_session_config"):  # a ServerDef
            own = server_or_cluster_def.default_session_config
            config = own if own.ListFields() else None
        jobs, job_name, task_index = _cluster_of(server_or_cluster_def, job_name, task_index)
        self._jobs = jobs
        self._name = _task_of(jobs, job_name, task_index)
        self._config = config
        if isinstance(config, Translatable):
            config = config.to_session_config()
        self.host = host = default_host() if host is None else host
        self.protocol = protocol = protocol or "grpc"
        addresses = {TaskName(job, n): where for job, tasks in jobs.items() for n, where in tasks.items()}
        self._transport = transport = RoutedTransport(host, protocol)
        if protocol != "grpc" and not transport.reaches_others:
            raise errors.UnimplementedError("Server: the protocol is not known", expected="grpc", got=repr(protocol))
        local = protocol == "grpc" and _port(addresses[self._name]) == 0
        if local:
            addresses[self._name] = f"in-process:{next(_numbers)}"
        self._listens = not local and transport.reaches_others
        self._task = TaskServer(self._name, addresses, effective_config(config), host, transport)
        self._stopped = threading.Event()
        self._started = False
        if start:
            self.start()

    def start(self) -> None:
        """Begin; a second time does nothing. Raises UnknownError, as TensorFlow does: it can't listen at its address."""
        if self._started:
            return
        task = self._task
        try:
            self._transport.local.add(task.address, task)
        except errors.UnavailableError as error:
            raise self._unstarted(error) from None
        try:
            if self._listens:
                task.transport.serve(task.address, functools.partial(receive, task), task.lose_session)
        except BaseException as error:
            self._transport.local.remove(task.address)
            if isinstance(error, errors.UnavailableError):
                raise self._unstarted(error) from None
            raise
        self._started = True

    def _unstarted(self, error: errors.GraphdockError) -> errors.GraphdockError:
        return errors.UnknownError(f"Could not start {self._name}: {error.message}", hint=error.hint)

    def stop(self) -> None:
        """End the task: its steps end with UnavailableError, its variables are freed. ``join`` returns."""
        if self._started:
            if self._listens:
                self._task.transport.forget(self._task.address)
            self._transport.local.remove(self._task.address)
            self._task.stop(errors.UnavailableError(f"{self._name} was stopped"))
            self._started = False
        self._stopped.set()

    def join(self) -> None:
        """Wait until the server is stopped; for a process that only serves."""
        self._stopped.wait()

    @property
    def target(self) -> str:
        """The target that ``tf.Session`` takes to run steps from here."""
        return f"{self.protocol}://{self._task.address}"

    @property
    def server_def(self) -> Any:
        """A ``ServerDef`` of it, with its ``ConfigProto``, if it was given one."""
        made = _tf.train.ServerDef()
        for job, tasks in self._jobs.items():
            row = made.cluster.job.add(name=job)
            for number, address in tasks.items():
                row.tasks[number] = address
        made.job_name, made.task_index, made.protocol = self._name.job, self._name.index, self.protocol
        if isinstance(self._config, type(made.default_session_config)):
            made.default_session_config.CopyFrom(self._config)
        return made

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """A cluster of one task in this process."""
        return Server({"local": ["localhost:0"]}, protocol="grpc", config=config, start=start)


def _cluster_of(
    given: Any, job_name: str | None, task_index: int | None
) -> tuple[dict[str, dict[int, str]], str | None, int | None]:
    """Jobs with their tasks' addresses, and the task that is meant."""
    if hasattr(given, "cluster") and hasattr(given, "job_name"):  # a ServerDef
        job_name = job_name if job_name is not None else (given.job_name or None)
        task_index = task_index if task_index is not None else given.task_index
        given = given.cluster
    if hasattr(given, "job"):  # a ClusterDef
        given = {job.name: dict(job.tasks) for job in given.job}
    elif hasattr(given, "as_dict"):  # a ClusterSpec
        given = given.as_dict()
    if not isinstance(given, Mapping):
        raise errors.ArgumentTypeError(
            "Server: the cluster is of the wrong type",
            expected="a ClusterSpec, ClusterDef or ServerDef, or a dict of jobs to lists of addresses",
            got=repr(given),
        )
    jobs = {
        str(job): dict(tasks) if isinstance(tasks, Mapping) else dict(enumerate(tasks))
        for job, tasks in sorted(given.items())
    }
    return jobs, job_name, task_index


def _task_of(jobs: Mapping[str, Mapping[int, str]], job: str | None, index: int | None) -> TaskName:
    if job is None:
        if len(jobs) != 1:
            raise errors.InvalidArgumentError("Server: job_name is needed", expected="one of " + ", ".join(jobs))
        job = next(iter(jobs))
    if job not in jobs:
        raise errors.InvalidArgumentError(
            f"Server: the cluster has no job {job!r}", hint=errors.did_you_mean(job, jobs) if jobs else None
        )
    if index is None:
        if len(jobs[job]) != 1:
            raise errors.InvalidArgumentError(
                f"Server: task_index is needed: the job {job!r} has {len(jobs[job])} tasks"
            )
        index = next(iter(jobs[job]))
    if index not in jobs[job]:
        raise errors.InvalidArgumentError(
            f"Server: the job {job!r} has no task {index}", expected="one of " + ", ".join(map(str, jobs[job]))
        )
    return TaskName(job, index)


def _port(address: str) -> int:
    """The port of an address. Raises InvalidArgumentError: it has none."""
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16) or "/" in host:
        raise errors.InvalidArgumentError(
            f'Could not parse port for local server from "{address}".', expected="host:port, of a port below 65536"
        )
    return int(port)
