"""Directory: the tasks of clusters by name, as Ray knows them. A cluster is a namespace of Ray's, a task a named actor there.

Ray is imported when this is first asked. It is joined where it runs (``RAY_ADDRESS``, or one of this machine), and started here
where it does not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from graphdock.contracts import errors
from graphdock.contracts.cluster import TaskName
from graphdock.locks import new_lock

from graphdock_ray import actors
from graphdock_ray.actors import options_of

__all__ = ["DEFAULT", "Directory", "parse"]

#: Name of the cluster of the target ``ray://``.
DEFAULT = "graphdock"
#: Seconds within which an actor says where its task is, before it counts as not there; and within which tasks start.
PATIENCE, START = 30.0, 120.0
_ADDRESS = re.compile(r"([A-Za-z0-9_.-]*)(/job:.*)?")
_COLOURS = re.compile(r"\x1b\[\d+m")
_PREFIX = "graphdock:"


def parse(address: str) -> tuple[str, TaskName | None]:
    """``demo/job:ps/task:0``: a cluster, and a task or none. Raises InvalidArgumentError."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise errors.InvalidArgumentError(
            f"'ray://{address}' is no target",
            expected="ray://, ray://CLUSTER or ray://CLUSTER/job:worker/task:0",
            hint="which Ray is meant says RAY_ADDRESS=host:port in the environment" if ":" in address else None,
        )
    return found[1] or DEFAULT, None if found[2] is None else TaskName.parse(found[2])


class Directory:
    """Names of tasks, and the actors behind them. Any thread may call any method."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._process = 0
        self._ray: Any = None
        self._presences: dict[str, Any] = {}
        #: Actors of tasks that this process has started: Ray ends one that nobody holds.
        self._started: dict[str, Any] = {}

    @property
    def ray(self) -> Any:
        """Ray, joined or started.

        Raises:
          FailedPreconditionError: it is not installed, or can't be joined, or this process was forked from one that has joined it.
        """
        if self._ray is None:
            with self._lock:
                if self._ray is None:
                    self._ray = _joined()
                    self._process = os.getpid()
        if self._process != os.getpid():
            raise errors.FailedPreconditionError(
                "Ray can't be used in a process that was forked from one that has joined it",
                hint="start it anew: multiprocessing.get_context('spawn')",
            )
        if not self._ray.is_initialized():
            with self._lock:
                if not self._ray.is_initialized():
                    _joined()
        return self._ray

    # -- who is there -------------------------------------------------------------------------------------------------

    def tasks(self, cluster: str) -> list[TaskName]:
        """The tasks of a cluster that have a name."""
        found = self.ray.util.list_named_actors(all_namespaces=True)
        return sorted(TaskName.parse(a["name"]) for a in found if a["namespace"] == _PREFIX + cluster)

    def task_of(self, address: str) -> tuple[str, TaskName]:
        """Cluster and task of an address; of a cluster alone its first worker, or its first task. Raises UnavailableError."""
        cluster, task = parse(address)
        if task is not None:
            return cluster, task
        tasks = self.tasks(cluster)
        if not tasks:
            raise errors.UnavailableError(
                f"the cluster {cluster!r} has no tasks on Ray",
                hint="tf.SessionConfig(cluster={'ps': 1, 'worker': 2}) starts some, and so does graphdock cluster run --on ray",
            )
        return cluster, next((t for t in tasks if t.job == "worker"), tasks[0])

    def where(self, address: str, patience: float = PATIENCE) -> tuple[str, bytes]:
        """``host:port`` and public key of a task. Raises UnavailableError: it is not there, or starts just now."""
        ray = self.ray
        cluster, task = self.task_of(address)
        name = f"{task} of the cluster {cluster!r}"
        try:
            actor = ray.get_actor(str(task), namespace=_PREFIX + cluster)
        except (ValueError, AssertionError):  # the second: its process is gone, and Ray has forgotten its class first
            raise errors.UnavailableError(f"{name} is not known to Ray") from None
        try:
            endpoint, key = ray.get(actor.where.remote(), timeout=patience)
        except ray.exceptions.GetTimeoutError:
            raise errors.UnavailableError(f"{name} does not answer: it may be starting") from None
        except ray.exceptions.RayError as error:
            raise errors.UnavailableError(f"{name} is lost: {_reason(error)}") from None
        return str(endpoint), bytes(key)

    # -- what is started ----------------------------------------------------------------------------------------------

    def announce(self, address: str, endpoint: str, key: bytes) -> None:
        """Name a task of this process, until :meth:`withdraw` or its end. Raises AlreadyExistsError: it is there already."""
        ray = self.ray
        cluster, task = self.task_of(address)
        actors.HERE[address] = endpoint, key
        if address == actors.own:
            return
        options = options_of(name=str(task), namespace=_PREFIX + cluster)
        try:
            self._presences[address] = ray.remote(actors.Presence).options(**options).remote(endpoint, key)
        except ValueError:
            actors.HERE.pop(address, None)
            raise errors.AlreadyExistsError(f"{task} is a task of the cluster {cluster!r} on Ray already") from None

    def withdraw(self, address: str) -> None:
        """Take back the name of a task of this process."""
        actors.HERE.pop(address, None)
        presence = self._presences.pop(address, None)
        if presence is not None and self._ray.is_initialized():
            self._ray.kill(presence)

    def start(self, cluster: str, tasks: Sequence[TaskName]) -> None:
        """Start the tasks of a cluster that are not there, each an actor that Ray restarts. They end with this process.

        Raises:
          FailedPreconditionError: the cluster has other tasks. UnavailableError: one does not start.
        """
        there = self.tasks(cluster)
        others = sorted(set(there) - set(tasks))
        if others:
            raise errors.FailedPreconditionError(
                f"the cluster {cluster!r} has other tasks on Ray: {', '.join(map(str, others))}",
                hint="ask for the tasks that run, or name another cluster: ray://NAME",
            )
        addresses = _addresses(cluster, tasks)
        for task in sorted(set(tasks) - set(there)):
            options = self.placed(task, _PREFIX + cluster, max_restarts=-1, get_if_exists=True)
            made = self.ray.remote(actors.Task).options(**options).remote(addresses, task.job, task.index)
            self._started[f"{cluster}{task}"] = made
        for task in tasks:
            self.where(f"{cluster}{task}", START)

    def script(self, cluster: str, task: TaskName, secret: str) -> Any:
        """Actor that runs a script as a task. Raises AlreadyExistsError: the task is there already."""
        options = self.placed(task, _PREFIX + cluster, max_concurrency=4)
        try:
            return self.ray.remote(actors.Script).options(**options).remote(secret)
        except ValueError:
            raise errors.AlreadyExistsError(
                f"{task} is a task of the cluster {cluster!r} on Ray already",
                hint="name another cluster: --cluster NAME",
            ) from None

    def placed(self, task: TaskName, namespace: str, **given: Any) -> dict[str, Any]:
        """Options of a task's actor: on a machine with a resource of the task's or its job's name, else spread over all."""
        known = self.ray.cluster_resources()
        names = [name for name in (str(task), f"/job:{task.job}") if known.get(name)]
        where = {"resources": {names[0]: 0.001}} if names else {"scheduling_strategy": "SPREAD"}
        return options_of(name=str(task), namespace=namespace, **where, **given)


def _addresses(cluster: str, tasks: Sequence[TaskName]) -> Mapping[str, list[str]]:
    jobs: dict[str, list[str]] = {}
    for task in sorted(tasks):
        jobs.setdefault(task.job, []).append(f"{cluster}{task}")
    return jobs


def _joined() -> Any:
    try:
        import ray
    except ImportError as error:
        raise errors.FailedPreconditionError(
            f"targets ray:// need Ray, which can't be imported: {error}", hint="pip install 'graphdock-ray[ray]'"
        ) from None
    if ray.is_initialized():
        return ray
    quiet = {"log_to_driver": False, "logging_level": "warning"}
    try:
        try:
            ray.init(address="auto", **quiet)
        except ConnectionError:
            if os.environ.get("RAY_ADDRESS"):
                raise
            os.environ.setdefault("RAY_worker_niceness", "0")  # what tasks compute is not second to its caller
            ray.init(address="local", include_dashboard=False, **quiet)
    except Exception as error:
        raise errors.FailedPreconditionError(f"Ray can't be joined: {_reason(error)}") from error
    return ray


def _reason(error: Exception) -> str:
    """First line of an error; of one in an actor's beginning, the last, which is what was raised there."""
    text = _COLOURS.sub("", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("  see: ")]
    lines = lines or [type(error).__name__]
    return lines[-1] if "raised in its creation task" in text else lines[0]
