"""The environment variable ``TF_CONFIG``: the cluster, and the task that this process is."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from graphdock.errors import ConfigError

from graphdock_tf1.cluster.cluster_spec import ClusterSpec

__all__ = ["RunFacts", "read_tf_config", "run_facts"]


def read_tf_config() -> dict[str, Any]:
    """The table that ``TF_CONFIG`` holds; an empty one where it is not set.

    Raises:
      ConfigError: it is no JSON, or no table, or ``task`` is none.
    """
    text = os.environ.get("TF_CONFIG") or "{}"
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"TF_CONFIG is no JSON: {error}", got=text[:200]) from error
    if not isinstance(found, dict) or not isinstance(found.get("task", {}), dict):
        raise ConfigError("TF_CONFIG is wrong", expected="a table, with a table 'task'", got=text[:200])
    return found


@dataclass(frozen=True)
class RunFacts:
    """Facts of a run that ``tf.estimator.RunConfig`` has of ``TF_CONFIG``; these are of one machine."""

    cluster_spec: Any = None
    task_type: str = "worker"
    task_id: int = 0
    is_chief: bool = True
    master: str = ""
    evaluation_master: str = ""
    num_ps_replicas: int = 0
    num_worker_replicas: int = 1
    global_id_in_cluster: int | None = 0
    service: Any = None
    #: What a session of this task sees of the cluster; None: all.
    device_filters: tuple[str, ...] | None = None


def run_facts() -> RunFacts:
    """Facts of this process that ``TF_CONFIG`` says.

    Raises:
      ValueError: there is not one chief, or no such task. TypeError: ``service`` is no table.
      ConfigError: as :func:`read_tf_config`.
    """
    given = read_tf_config()
    service = given.get("service")
    if service is not None and not isinstance(service, dict):
        raise TypeError(f'If "service" is set in TF_CONFIG, it must be a dict. Given {type(service)}')
    spec, task = ClusterSpec(given.get("cluster", {})), given.get("task", {})
    if not spec:
        return _alone(given, task, spec, service)
    chief = "master" if "master" in spec.jobs else "chief"
    if chief == "master" and "chief" in spec.jobs:
        raise ValueError("If `master` node exists in `cluster`, job `chief` is not supported.")
    job, number = _task_of(spec, task, chief)
    if job == "evaluator":
        if chief == "master":
            raise ValueError("If `master` node exists in `cluster`, task_type `evaluator` is not supported.")
        evaluated = given.get("eval_session_master", "")
        return RunFacts(ClusterSpec({}), job, number, False, "", evaluated, 0, 0, None, service)
    counts = {each: len(spec.job_tasks(each)) for each in spec.jobs}
    order = [chief, *(each for each in spec.jobs if each not in (chief, "ps")), "ps"]
    master = given.get("session_master")
    if master is None:
        master = "" if sum(counts.values()) == 1 else f"grpc://{spec.job_tasks(job)[number]}"
    return RunFacts(
        spec,
        job,
        number,
        job == chief,
        master,
        "",
        counts.get("ps", 0),
        counts.get("worker", 0) + counts[chief],
        sum(counts[each] for each in order[: order.index(job)]) + number,
        service,
        _filters(job, number),
    )


def _alone(given: dict[str, Any], task: dict[str, Any], spec: ClusterSpec, service: Any) -> RunFacts:
    if task.get("type", "worker") != "worker":
        raise ValueError('If "cluster" is not set in TF_CONFIG, task type must be WORKER.')
    if int(task.get("index", 0)) != 0:
        raise ValueError('If "cluster" is not set in TF_CONFIG, task index must be 0.')
    masters = given.get("session_master", ""), given.get("eval_session_master", "")
    return RunFacts(spec, master=masters[0], evaluation_master=masters[1], service=service)


def _task_of(spec: ClusterSpec, task: dict[str, Any], chief: str) -> tuple[str, int]:
    """Job and number of this process."""
    if chief not in spec.jobs:
        raise ValueError(f'If "cluster" is set in TF_CONFIG, it must have one "{chief}" node.')
    if len(spec.job_tasks(chief)) > 1:
        raise ValueError(f'The "cluster" in TF_CONFIG must have only one "{chief}" node.')
    job, number = task.get("type"), task.get("index")
    if not job:
        raise ValueError('If "cluster" is set in TF_CONFIG, task type must be set.')
    if number is None:
        raise ValueError('If "cluster" is set in TF_CONFIG, task index must be set.')
    number = int(number)
    if number < 0:
        raise ValueError("Task index must be non-negative number.")
    if job == "evaluator":
        return job, number
    note = "Note that these values may be coming from the TF_CONFIG environment variable."
    if job not in spec.jobs:
        raise ValueError(f"{job} is not a valid task_type in the cluster_spec:\n{spec}\n\n{note}")
    if number >= len(spec.job_tasks(job)):
        raise ValueError(f"{number} is not a valid task_id for task_type {job} in the cluster_spec:\n{spec}\n\n{note}")
    return job, number


def _filters(job: str, number: int) -> tuple[str, ...] | None:
    """Workers see the servers and themselves; servers see all but other jobs."""
    return {
        "master": ("/job:ps", "/job:master"),
        "chief": ("/job:ps", "/job:chief"),
        "worker": ("/job:ps", f"/job:worker/task:{number}"),
        "ps": ("/job:ps", "/job:worker", "/job:chief", "/job:master"),
    }.get(job)
