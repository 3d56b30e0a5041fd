"""Resolvers: where the tasks of a cluster are, and which of them this process is, as somebody says it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import Any

import graphdock as _tf
from graphdock.errors import ArgumentTypeError, InvalidArgumentError

from graphdock_tf1.cluster.cluster_spec import ClusterSpec
from graphdock_tf1.cluster.device_spec import DeviceSpec
from graphdock_tf1.cluster.tf_config import read_tf_config

__all__ = ["ClusterResolver", "SimpleClusterResolver", "TFConfigClusterResolver", "UnionClusterResolver"]


class ClusterResolver(ABC):
    """Base of what says which tasks there are.

    Attributes:
      task_type, task_id: job and number of this process; None where nobody says.
      rpc_layer: scheme of the targets, such as ``"grpc"``; None for none.
    """

    task_type: Any = None
    task_id: Any = None
    rpc_layer: Any = None

    @abstractmethod
    def cluster_spec(self) -> ClusterSpec:
        """The cluster as it is now."""

    @abstractmethod
    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The target of a session: of a task, or this process's."""

    @property
    def environment(self) -> str | None:
        """Empty."""
        return ""

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Device type -> how many a task has. This one asks a session on the task, with the configuration ``config_proto``.

        Raises:
          as a session on that target does.
        """
        with _tf.Graph().as_default(), _tf.Session(self.master(task_type, task_id), config=config_proto) as session:
            names = [DeviceSpec.from_string(name) for name in session.list_devices()]
        kinds = (
            name.device_type
            for name in names
            if task_type is None or task_id is None or (name.job, name.task) == (task_type, task_id)
        )
        return dict(Counter(kind for kind in kinds if kind is not None and kind != "CPU"))


class SimpleClusterResolver(ClusterResolver):
    """Says what it was given.

    Args:
      cluster_spec: a ClusterSpec. master: the target where no task is asked for.
      task_type, task_id, environment, rpc_layer: of this process. num_accelerators: device type -> how many.

    Raises:
      TypeError: ``cluster_spec`` is none, or ``master`` is no string.
    """

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: dict[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise ArgumentTypeError("cluster_spec must be a `tf.train.ClusterSpec`.", got=repr(cluster_spec))
        if not isinstance(master, str):
            raise ArgumentTypeError("master must be a string.", got=repr(master))
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer
        self._spec, self._master, self._environment, self._accelerators = (
            cluster_spec,
            master,
            environment,
            num_accelerators,
        )

    def cluster_spec(self) -> ClusterSpec:
        return self._spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        known = task_type is not None and task_id is not None
        address = self._spec.task_address(str(task_type), int(task_id or 0)) if known else self._master
        return _target(address, rpc_layer or self.rpc_layer)

    @property
    def environment(self) -> str | None:
        return self._environment

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """As given."""
        return {} if self._accelerators is None else self._accelerators


class TFConfigClusterResolver(ClusterResolver):
    """Says what the environment variable ``TF_CONFIG`` says, each time that it is asked.

    Args:
      task_type, task_id, rpc_layer, environment: in the place of what it says.
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._type, self._id, self._layer, self._environment = task_type, task_id, rpc_layer, environment

    @property  # type: ignore[override]
    def task_type(self) -> str | None:
        found = self._type if self._type is not None else _task().get("type")
        return None if found is None else str(found)

    @task_type.setter
    def task_type(self, task_type: str | None) -> None:
        self._type = task_type

    @property  # type: ignore[override]
    def task_id(self) -> int | None:
        found = self._id if self._id is not None else _task().get("index")
        return None if found is None else int(found)

    @task_id.setter
    def task_id(self, task_id: int | None) -> None:
        self._id = task_id

    @property  # type: ignore[override]
    def rpc_layer(self) -> str | None:
        return self._layer if self._layer is not None else read_tf_config().get("rpc_layer")

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str | None) -> None:
        self._layer = rpc_layer

    @property
    def environment(self) -> str | None:
        return self._environment

    def cluster_spec(self) -> ClusterSpec:
        """The cluster; an empty one where ``TF_CONFIG`` has none. Raises ConfigError: it is no table of JSON."""
        return ClusterSpec(read_tf_config().get("cluster", {}))

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The target: ``session_master`` of ``TF_CONFIG``; empty where there is at most one task; else the task's address.

        Raises:
          InvalidArgumentError: the cluster has no such task, or nobody says which one it is.
        """
        found = read_tf_config().get("session_master")
        if found is not None:
            return str(found)
        spec = self.cluster_spec()
        if not spec.jobs or len(spec.jobs) == 1 and len(spec.job_tasks(spec.jobs[0])) == 1:
            return ""
        job = self.task_type if task_type is None else task_type
        number = self.task_id if task_id is None else task_id
        if job is None or number is None:
            raise InvalidArgumentError(
                "nobody says which task this process is",
                expected="'task' in TF_CONFIG, with 'type' and 'index'",
                got=f"type {job!r}, index {number!r}",
            )
        return _target(spec.task_address(job, number), self.rpc_layer if rpc_layer is None else rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        job = self.task_type if task_type is None else task_type
        return super().num_accelerators(job, self.task_id if task_id is None else task_id, config_proto)


class UnionClusterResolver(ClusterResolver):
    """The tasks of several resolvers; what else there is to say is said by the first.

    Args:
      args: resolvers. rpc_layer, task_type, task_id: in the place of what the first says.

    Raises:
      TypeError: one of them is no resolver. ValueError: there is none, or another keyword.
    """

    def __init__(self, *args: ClusterResolver, **kwargs: Any) -> None:
        self._layer, self._type, self._id = (kwargs.pop(name, None) for name in ("rpc_layer", "task_type", "task_id"))
        if kwargs:
            raise InvalidArgumentError(f"Unexpected kwargs provided {kwargs!r}")
        if not args:
            raise InvalidArgumentError("At least one ClusterResolver is required.")
        for each in args:
            if not isinstance(each, ClusterResolver):
                raise ArgumentTypeError("All arguments must be a sub-class of `ClusterResolver.`", got=repr(each))
        self._resolvers = args

    @property  # type: ignore[override]
    def task_type(self) -> Any:
        return self._type or self._resolvers[0].task_type

    @task_type.setter
    def task_type(self, task_type: Any) -> None:
        self._type = task_type

    @property  # type: ignore[override]
    def task_id(self) -> Any:
        return self._id or self._resolvers[0].task_id

    @task_id.setter
    def task_id(self, task_id: Any) -> None:
        self._id = task_id

    @property  # type: ignore[override]
    def rpc_layer(self) -> Any:
        return self._layer or self._resolvers[0].rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: Any) -> None:
        self._layer = rpc_layer

    @property
    def environment(self) -> str | None:
        return self._resolvers[0].environment

    def cluster_spec(self) -> ClusterSpec:
        """All tasks: addresses of one job one after the other, or by their numbers where one resolver gives numbers.

        Raises:
          KeyError: two tasks of a job have one number.
        """
        found = [each.cluster_spec().as_dict() for each in self._resolvers]
        numbered = {job for spec in found for job, tasks in spec.items() if isinstance(tasks, dict)}
        made: dict[str, Any] = {}
        for spec in found:
            for job, tasks in spec.items():
                if job not in numbered:
                    made.setdefault(job, []).extend(tasks)
                    continue
                mine = tasks if isinstance(tasks, dict) else dict(enumerate(tasks))
                twice = made.setdefault(job, {}).keys() & mine.keys()
                if twice:
                    raise KeyError(f"Duplicate keys detected when merging two ClusterSpecs: {twice!r}")
                made[job].update(mine)
        return ClusterSpec(made)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        if task_type is not None and task_id is not None:
            return _target(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self._layer)
        return self._resolvers[0].master(rpc_layer=rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """As the first says."""
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)


def _task() -> dict[str, Any]:
    found: dict[str, Any] = read_tf_config().get("task", {})
    return found


def _target(address: str, layer: str | None) -> str:
    return f"{layer}://{address}" if layer else address
