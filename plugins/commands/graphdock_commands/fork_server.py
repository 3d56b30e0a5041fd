"""Processes that examine plugins, one each: forks of one that has imported what all need, and is asked by a thread at a time."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

_COMMAND = (sys.executable, "-W", "ignore::DeprecationWarning", "-m", "graphdock_commands.probe")


class Child(Protocol):
    """A process that examines one plugin.

    Attributes:
      returncode: exit status, negative for a signal; known once it has ended.
    """

    returncode: int

    def ended(self, seconds: float) -> bool:
        """Wait so long for the process to end by itself."""

    def end(self) -> None:
        """End the process if it runs, and whatever it has started."""


def _environ() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # the second for a fork that does not yet lead a session
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


class Server:
    """A process that forks for each plugin; it is started when the first is asked for."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, plugin: str, file: Path, errors: Path) -> Child:
        """Examine a plugin in a process of its own. Of one server one plugin at a time."""
        if not hasattr(os, "fork"):
            return _Spawned(plugin, file, errors)
        if self._process is None:
            self._process = subprocess.Popen(
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env=_environ(),
                start_new_session=True,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([plugin, str(file), str(errors)]).encode() + b"\n")
        return _Forked(self._process)

    def close(self) -> None:
        """End the server; its forks have ended."""
        if self._process is not None:
            with self._process:  # closes its input, which ends it
                pass


class _Forked:
    def __init__(self, server: subprocess.Popen[bytes]) -> None:
        assert server.stdout is not None
        self._answers = server.stdout
        self._pid = int(self._answers.readline())
        self._running = True
        self.returncode = 0

    def ended(self, seconds: float) -> bool:
        if self._running and select.select([self._answers], [], [], seconds)[0]:
            self._status()
        return not self._running

    def _status(self) -> None:
        self.returncode, self._running = int(self._answers.readline()), False

    def end(self) -> None:
        if self._running:
            _kill(self._pid)
            self._status()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)


class _Spawned:
    """A child where processes can't fork."""

    def __init__(self, plugin: str, file: Path, errors: Path) -> None:
        with errors.open("wb") as stderr:
            nothing = subprocess.DEVNULL
            command = [*_COMMAND, plugin, str(file)]
            self._process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=stderr, env=_environ())
        self.returncode = 0

    def ended(self, seconds: float) -> bool:
        try:
            self.returncode = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        self._process.kill()
        self.returncode = self._process.wait()


@contextlib.contextmanager
def servers(n: int) -> Iterator[list[Server]]:
    """So many servers, which end with the block."""
    made = [Server() for _ in range(n)]
    try:
        yield made
    finally:
        for server in made:
            server.close()
