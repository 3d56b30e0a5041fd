"""A worker process, seen from the parent."""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.environments import KEEP_BYTE_CODE, REPOSITORY, VARIABLES, interpreter_of
from benchmarks.program import AGAINST, framework_of

__all__ = ["WorkerFailure", "WorkerProcess", "Workers"]

_RAISED = re.compile(r"[\w.]+: ")


class WorkerFailure(Exception):
    """A worker ended, or did not answer in time. `detail` is the end of what it wrote to standard error."""

    def __init__(self, subject: str, reason: str, detail: str) -> None:
        super().__init__(f"{subject}: {reason}")
        self.subject, self.reason, self.detail = subject, reason, detail


class WorkerProcess:
    """One framework's process. One thread at a time may use it; close it, or use it as a context manager.

    Threads are left at each framework's defaults (OMP_NUM_THREADS and its kind are recorded, not set). What else a framework
    needs in its environment is `environments.VARIABLES`.
    """

    def __init__(self, subject: str, python: Path, paths: Sequence[Path] = ()) -> None:
        self.subject = subject
        variables = {"TF_CPP_MIN_LOG_LEVEL": "3", **KEEP_BYTE_CODE, **VARIABLES.get(framework_of(subject), {})}
        search = os.pathsep.join(str(path) for path in (*paths, REPOSITORY))
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            [str(python), "-m", "benchmarks.worker", subject],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": search, **variables},
        )
        self._pending = b""

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, do: str, deadline: float, **arguments: object) -> dict[str, Any]:
        """Send one command and wait at most `deadline` seconds for its answer; raises as `answer` does."""
        self.send(do, **arguments)
        return self.answer(deadline)

    def send(self, do: str, **arguments: object) -> None:
        """Send one command without waiting for its answer; a worker that has ended is reported by `answer`."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return

    def answer(self, deadline: float) -> dict[str, Any]:
        """The answer to the oldest command sent.

        Raises WorkerFailure where the worker has ended, or after `deadline` seconds, and then ends it.
        """
        assert self._process.stdout is not None
        until = time.monotonic() + deadline
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise self._failure(f"no answer within {deadline:g} s")
                data = os.read(self._process.stdout.fileno(), 1 << 16)
                if not data:
                    raise self._failure(None)
                self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return dict(json.loads(line))

    @property
    def alive(self) -> bool:
        """Return whether the process still runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process, politely first."""
        if self._process.poll() is None:
            self.send("stop")
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None and not stream.closed:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue

    def _failure(self, reason: str | None) -> WorkerFailure:
        if reason is not None:
            self._process.kill()
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        raised = [line for line in lines if _RAISED.match(line)]
        last = (raised or lines or ["no output"])[-1]  # a message may go on over several lines
        self.close()
        return WorkerFailure(self.subject, reason or f"ended with exit code {code}: {last}", "\n".join(lines[-40:]))


class Workers:
    """The worker processes of one benchmark, one per subject: started when first asked for, and again after a failure.

    `absent` holds the subjects that take no part, with the reason; a report must show it. `against`: the packages of the other
    checkout, which come first on the path of the subject of that name.
    """

    def __init__(
        self,
        subjects: Iterable[str],
        wanted: Callable[[str], bool] = lambda _: True,
        interpreter: Callable[[str], Path | None] = interpreter_of,
        paths: Sequence[Path] = (),
        against: Sequence[Path] = (),
    ) -> None:
        self.absent: dict[str, str] = {}
        self._pythons: dict[str, Path] = {}
        self._paths = paths
        self._against = against
        self._processes: dict[str, WorkerProcess] = {}
        for subject in subjects:
            framework = framework_of(subject)
            python = interpreter(framework)
            if not wanted(subject):
                self.absent[subject] = "not asked for (--peers)"
            elif python is None:
                self.absent[subject] = f"missing: not installed; python -m benchmarks.setup {framework}"
            else:
                self._pythons[subject] = python

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.restart()

    def restart(self) -> None:
        """End every process; `get` starts a new one."""
        for process in self._processes.values():
            process.close()
        self._processes.clear()

    def get(self, subject: str) -> WorkerProcess | None:
        """The running worker of `subject`; None where it is absent."""
        if subject not in self._pythons:
            return None
        process = self._processes.get(subject)
        if process is None or not process.alive:
            paths = (*self._against, *self._paths) if subject == AGAINST else self._paths
            process = self._processes[subject] = WorkerProcess(subject, self._pythons[subject], paths)
        return process
