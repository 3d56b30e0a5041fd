"""Clusters: tasks by name, and what carries calls and tensors from one to another.

A task is an object with devices, containers and parts of steps, in a process of its own or beside others in one. A session on a
target cuts each step into parts, one per task, and has the tasks run them. Messages are plain data and
arrays, never pickles.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from graphdock.contracts.waiting import wait_until_done
from graphdock.errors import InvalidArgumentError, UnimplementedError

__all__ = ["Place", "TaskInfo", "TaskName", "Transport"]

_TASK = re.compile(r"/job:([A-Za-z_][A-Za-z0-9_]*)(?:/replica:0)?/task:(\d+)")


@dataclass(frozen=True, order=True, slots=True)
class TaskName:
    """Name of a task: its job, and its number there. ``str`` writes ``/job:ps/task:0``."""

    job: str
    index: int

    @classmethod
    def parse(cls, text: str) -> TaskName:
        """Read ``/job:ps/task:0``. Raises InvalidArgumentError."""
        found = _TASK.fullmatch(text)
        if found is None:
            raise InvalidArgumentError(
                f"{text!r} is not the name of a task", expected="a form such as '/job:ps/task:0'"
            )
        return cls(found[1], int(found[2]))

    def __str__(self) -> str:
        return f"/job:{self.job}/task:{self.index}"


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """Description of a task, by itself. Data only.

    Attributes:
      name: of the task. ``address``: where it is reached, as its cluster's specification says.
      incarnation: a number that it drew when it started: what a task that died has sent, or was to receive, is never taken for its
        successor's.
      devices: whole names, in order of preference. ``version``: of graphdock there.
    """

    name: TaskName
    address: str
    incarnation: int
    devices: tuple[str, ...]
    version: str


class Place(ABC):
    """A process for one task of a cluster, on whatever machine, which runs a script.

    Attributes:
      address: ``host:port`` of that machine, free for the task's server.
    """

    address: str

    @abstractmethod
    def run(self, arguments: Sequence[str], environment: Mapping[str, str], say: Callable[[str], None]) -> int:
        """Run ``python -m graphdock run`` with these arguments, until it ends; its exit status, negative after a signal.

        Args:
          environment: variables besides those that are there. ``say``: is given each line that is printed.

        Raises:
          UnavailableError: the place is lost, with what ran there.
        """

    @abstractmethod
    def stop(self) -> None:
        """End what runs, by force where it does not end by itself, and give the place back. Any thread, any number of times."""


class Transport(ABC):
    """Calls and values between the tasks of a cluster. Any thread may call any method.

    Attributes:
      scheme: of the targets that it reaches, ``grpc`` of ``grpc://host:port``: what follows is an address, whose form is its own.
    """

    scheme: str = ""

    def serve(self, address: str, answer: Callable[[str, Mapping[str, Any]], Any], gone: Callable[[str], None]) -> str:
        """Let a task of this process be reached at an address; the address, with its port where that was 0.

        Args:
          answer: a method and its arguments -> what it returns or raises, or the Future of that. It does not wait, so that it may
            be called on the thread that messages come by.
          gone: is called with the name of a session when the process that opened it here is lost.

        Raises:
          UnavailableError: the address is taken, or is not of this machine.
        """
        raise UnimplementedError(f"{type(self).__name__} serves no addresses")

    def forget(self, address: str) -> None:
        """Let the task at an address be reached no more."""

    @abstractmethod
    def call(self, address: str, method: str, arguments: Mapping[str, Any]) -> Future[Any]:
        """Call a method of the task at an address, on a thread of its own there.

        Args:
          arguments: plain data (dicts, lists, strings, numbers, None) and arrays, which are read before this returns.

        Returns:
          The Future of what it returns, of the same kind; or of its error, a GraphdockError of the same class.
          UnavailableError where the task can't be reached, or is lost before it answers.
        """

    @abstractmethod
    def post(self, address: str, method: str, arguments: Mapping[str, Any]) -> None:
        """Call a method that answers nothing and never waits. What is posted may arrive in any order.

        A task that can't be reached gets nothing; who waits for it learns so by its calls. Who posts makes none: once the way to
        where a tensor (``arrive``) of a session was posted is lost, ``answer`` of the tasks that are served here is called with the
        method ``unreached`` and ``session``, ``address`` and ``step``: the last ``step`` of what was posted so, and may be lost.
        """

    def wait(self, future: Future[Any], seconds: float | None = None) -> None:
        """Return once a Future is done, well or not, or after so many seconds.

        Whoever waits holds no lock that an answer may want: a transport may bring messages on this thread meanwhile, so that what
        it waits for needs no other. Default: it sleeps.
        """
        wait_until_done(future, seconds)

    def sample_address(self) -> str | None:
        """A free address of this machine, another each time: there ``graphdock.testing`` serves tasks. None: nothing is checked."""
        return None

    def start(self, address: str, tasks: Sequence[TaskName]) -> None:
        """Start those tasks of the cluster at an address that do not run yet, and wait until all can be called. Optional.

        Raises:
          FailedPreconditionError: other tasks run there. UnimplementedError: it starts none, the default.
        """
        raise UnimplementedError(
            f"targets of the scheme {self.scheme}:// start no tasks", hint="start a tf.train.Server for each task"
        )

    def places(self, address: str, tasks: Sequence[TaskName]) -> dict[TaskName, Place]:
        """Places for a script that runs as these tasks, each free until it is stopped. Optional; default: refused.

        Raises:
          AlreadyExistsError: tasks run at the address. UnimplementedError: it has none.
        """
        raise UnimplementedError(f"targets of the scheme {self.scheme}:// have no places for scripts")

    def tasks(self, address: str, said: Mapping[str, Any]) -> dict[TaskName, str]:
        """Addresses of the tasks of a cluster by which they are reached from here.

        Args:
          address: of one of them. ``said``: what it answered to ``info``.
        """
        return {TaskName.parse(name): where for name, where in said["cluster"].items()}

    def close(self) -> None:
        """Let go of everything. Calls that wait end with UnavailableError."""
