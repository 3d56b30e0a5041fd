"""``tf.train.ClusterSpec``: which tasks there are, and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphdock.errors import ArgumentTypeError, InvalidArgumentError, did_you_mean
from graphdock.messages import make

__all__ = ["ClusterSpec"]


class ClusterSpec:
    """Jobs, each with the addresses of its tasks.

    Args:
      cluster: job -> addresses, in a list, or by the numbers of its tasks in a dict; a ``ClusterDef``; or another ClusterSpec.

    Raises:
      TypeError: it is of none of these forms. ValueError: a number of a task is none.
      Immutable, and so for any thread.
    """

    def __init__(self, cluster: Any) -> None:
        jobs: dict[str, dict[int, str]] = {}
        if isinstance(cluster, ClusterSpec):
            cluster = cluster.as_dict()
        if isinstance(cluster, Mapping):
            for job, tasks in cluster.items():
                if isinstance(tasks, (list, tuple)):
                    numbered = dict(enumerate(tasks))
                elif isinstance(tasks, Mapping):
                    numbered = {int(number): address for number, address in tasks.items()}
                else:
                    raise ArgumentTypeError(
                        f"The tasks for job {job!r} must be a list or a dictionary from integers to strings."
                    )
                jobs[_text(job, "Job name")] = {n: _text(a, "Task address") for n, a in sorted(numbered.items())}
        elif hasattr(cluster, "job"):
            for made in cluster.job:
                jobs[made.name] = {int(n): made.tasks[n] for n in sorted(made.tasks)}
        else:
            raise ArgumentTypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, or a `ClusterDef` "
                "protocol buffer"
            )
        self._jobs = dict(sorted(jobs.items()))

    @property
    def jobs(self) -> list[str]:
        """Names of the jobs."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """Return how many tasks a job has. Raises ValueError: there is no such job."""
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Numbers of a job's tasks, ascending. Raises ValueError."""
        return list(self._tasks(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Address of a task. Raises ValueError: there is no such job or task."""
        tasks = self._tasks(job_name)
        if task_index not in tasks:
            raise InvalidArgumentError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Addresses of a job's tasks by their numbers, None where there is none. Raises ValueError."""
        tasks = self._tasks(job_name)
        return [tasks.get(number) for number in range(max(tasks, default=-1) + 1)]

    def as_dict(self) -> dict[str, Any]:
        """Job -> its addresses in a list, or, where numbers are missing, by number in a dict."""
        return {
            job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> Any:
        """The same as a ``ClusterDef``."""
        made = make("ClusterDef")
        for job, tasks in self._jobs.items():
            row = made.job.add(name=job)
            for number, address in tasks.items():
                row.tasks[number] = address
        return made

    def _tasks(self, job: str) -> dict[int, str]:
        if job not in self._jobs:
            raise InvalidArgumentError(f"No such job in cluster: {job!r}", hint=did_you_mean(str(job), self._jobs))
        return self._jobs[job]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __hash__(self) -> int:
        return hash(tuple((job, tuple(tasks.items())) for job, tasks in self._jobs.items()))

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"


def _text(value: Any, what: str) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{what} {value!r} must be bytes or unicode")
    return value
