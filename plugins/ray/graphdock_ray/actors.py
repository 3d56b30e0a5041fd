"""Actors of Ray that stand for tasks: one that holds a task, one that runs a script as one, one that only says where a server is.

Each is named after its task, in the namespace of its cluster, and says where the task is called, and by which key. A name is free
again when the process that it stands for has ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from graphdock_ray.keys import VARIABLE, Keys

__all__ = ["HERE", "GRACE", "Presence", "Script", "Task"]

#: Seconds that a script has to end by itself before it is killed.
GRACE = 5.0
#: Exit status of what can't be run.
NOT_RUN = 127
#: Address of a task of this process -> where it is called, and its public key.
HERE: dict[str, tuple[str, bytes]] = {}
#: Address of the task that this process is the actor of.
own = ""
_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl


class Presence:
    """The name of a server that lives in the process which made this actor: both end together."""

    def __init__(self, endpoint: str, key: bytes) -> None:
        self._where = endpoint, key

    def where(self) -> tuple[str, bytes]:
        """``host:port`` of the task, and the public key that its callers must know."""
        return self._where


class Task:
    """A task in this actor. Where Ray restarts it, it comes back empty, elsewhere, with another key.

    Args:
      addresses: job -> addresses of its tasks, as of a cluster. ``job``, ``index``: which one this is.
    """

    def __init__(self, addresses: Mapping[str, Sequence[str]], job: str, index: int) -> None:
        global own
        import graphdock as tf

        self._address = own = addresses[job][index]
        self._server = tf.train.Server(addresses, job, index, protocol="ray")

    def where(self) -> tuple[str, bytes]:
        """As of :meth:`Presence.where`."""
        return HERE[self._address]


class Script:
    """A process that runs a script, on the machine of this actor, and dies with it. Its methods run on several threads.

    Args:
      secret: of the cluster.
    """

    def __init__(self, secret: str) -> None:
        import ray

        self._ended = threading.Condition()
        self._lines: deque[str] = deque()
        self._process: subprocess.Popen[str] | None = None
        self._status: int | None = None
        self._stopped = False
        self._key = Keys.of_secret(secret).public
        self._secret = secret
        host = ray.util.get_node_ip_address()
        with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as held:
            port = held.getsockname()[1]
        self._endpoint = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def where(self) -> tuple[str, bytes]:
        """As of :meth:`Presence.where`."""
        return self._endpoint, self._key

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
        """Begin to run ``python -m graphdock run`` in a folder; :meth:`lines` says what becomes of it."""
        with self._ended:
            self._status = -signal.SIGTERM if self._stopped else None
            if (
                not self._stopped
            ):  # a thread of its own, because the process does not outlive the thread that started it
                threading.Thread(target=self._run, args=(arguments, environment, folder), daemon=True).start()

    def _run(self, arguments: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
        try:
            process = self._process = subprocess.Popen(
                [sys.executable, "-m", "graphdock", "run", *arguments],
                env={**os.environ, **environment, VARIABLE: self._secret, "PYTHONUNBUFFERED": "1"},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                preexec_fn=_die_with_parent,
            )
        except (OSError, subprocess.SubprocessError) as error:
            self._say(f"it can't be run on this machine: {error}", NOT_RUN)
            return
        assert process.stdout is not None
        for line in process.stdout:
            self._say(line.rstrip())
        self._say(None, process.wait())

    def _say(self, line: str | None, status: int | None = None) -> None:
        with self._ended:
            if line is not None:
                self._lines.append(line)
            self._status = status
            self._ended.notify_all()

    def lines(self) -> tuple[list[str], int | None]:
        """The next lines, once there are any, and the exit status once it has ended."""
        with self._ended:
            self._ended.wait_for(lambda: self._lines or self._status is not None, 10.0)
            found, self._lines = list(self._lines), deque()
            return found, self._status

    def stop(self) -> None:
        """End the process, by force where it does not end by itself."""
        with self._ended:
            self._stopped = True
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _die_with_parent() -> None:
    _prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def options_of(**given: Any) -> dict[str, Any]:
    """Options of all these actors: they take no processor of Ray's own count, and no call of theirs is ever repeated."""
    return {"num_cpus": 0, "max_task_retries": 0, **given}
