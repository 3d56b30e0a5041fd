"""Launch: the tasks of a cluster as processes, each running one script, until its workers have ended."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue

from graphdock.contracts import errors
from graphdock.contracts.cluster import Place, TaskName
from graphdock.locks import new_lock

__all__ = ["LocalPlace", "addresses_of", "flags_of", "launch", "local_places", "tasks_of"]

#: Seconds that a task has to end by itself before it is killed.
GRACE = 5.0
#: Exit status of a task whose place is lost.
LOST = 70
_FLAGS = ("job_name", "task_index", "ps_hosts", "worker_hosts")


def tasks_of(ps: int, workers: int) -> list[TaskName]:
    """Names of so many tasks."""
    return [TaskName("ps", n) for n in range(ps)] + [TaskName("worker", n) for n in range(workers)]


def addresses_of(places: Mapping[TaskName, Place]) -> dict[str, list[str]]:
    """Addresses of tasks, by job."""
    cluster: dict[str, list[str]] = {}
    for task, place in places.items():
        cluster.setdefault(task.job, []).append(place.address)
    return cluster


def flags_of(script: Path, cluster: Mapping[str, Sequence[str]], task: TaskName) -> list[str]:
    """The usual flags of scripts for several tasks, those of them that this one names as strings."""
    text = script.read_text(encoding="utf-8", errors="replace")
    values = {
        "job_name": task.job,
        "task_index": str(task.index),
        **{f"{job}_hosts": ",".join(cluster.get(job, ())) for job in ("ps", "worker")},
    }
    return [f"--{name}={values[name]}" for name in _FLAGS if re.search(rf"[\"']{name}[\"']", text)]


def launch(
    script: Path,
    places: Mapping[TaskName, Place],
    arguments: Sequence[str],
    say: Callable[[str], None],
    restarts: int = 0,
) -> int:
    """Run a script once per task, with ``TF_CONFIG`` and the flags that it reads, until all workers have ended.

    Lines of its tasks are said with the task's name before them. Where one fails that was started anew often enough, the others are
    ended; so are those of the job ``ps`` when all workers have ended. The places are given back.

    Args:
      arguments: of every task. restarts: how often a task that fails is started anew.

    Returns:
      0, or the exit status of the first task that failed; 130 after an interrupt.
    """
    ended: SimpleQueue[tuple[TaskName, int, bool]] = SimpleQueue()
    cluster = addresses_of(places)
    left = dict.fromkeys(places, restarts)

    def start(task: TaskName) -> None:
        threading.Thread(target=run, args=(task,), name=f"graphdock {task}", daemon=True).start()

    def run(task: TaskName) -> None:
        config = {"cluster": cluster, "task": {"type": task.job, "index": task.index}}
        command = [str(script.resolve()), *flags_of(script, cluster, task), *arguments]
        try:
            status = places[task].run(command, {"TF_CONFIG": json.dumps(config)}, lambda line: say(f"[{task}] {line}"))
        except Exception as error:  # noqa: BLE001 - it is said, and ends the run
            say(f"[{task}] {errors.format_error(error)}")
            ended.put((task, LOST, False))
        else:
            ended.put((task, status if status >= 0 else 128 - status, True))

    waiting = {task for task in places if task.job != "ps"}
    try:
        for task in places:
            start(task)
        while waiting:
            task, status, again = ended.get()
            if status and again and left[task]:
                left[task] -= 1
                say(f"[{task}] ended with status {status}, and is started anew")
                start(task)
            elif status:
                say(f"[{task}] ended with status {status}")
                return status
            else:
                waiting.discard(task)
    except KeyboardInterrupt:
        return 130
    finally:
        stop(places)
    return 0


def stop(places: Mapping[TaskName, Place]) -> None:
    """Give places back, all at once, and wait until what ran there has ended."""
    threads = [threading.Thread(target=place.stop, name="graphdock stop") for place in places.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class LocalPlace(Place):
    """A process of this machine. ``address``: where its server listens."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._lock = new_lock()
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], say: Callable[[str], None]) -> int:
        with self._lock:
            if self._stopped:
                return -signal.SIGTERM
            process = self._process = subprocess.Popen(
                [sys.executable, "-m", "graphdock", "run", *arguments],
                env={**os.environ, **environment, "PYTHONUNBUFFERED": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
        assert process.stdout is not None
        for line in process.stdout:
            say(line.rstrip())
        return process.wait()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def local_places(tasks: Sequence[TaskName]) -> dict[TaskName, Place]:
    """A process of this machine for each task, at a free address."""
    held = [socket.create_server(("localhost", 0)) for _ in tasks]
    found = [f"localhost:{s.getsockname()[1]}" for s in held]
    for s in held:
        s.close()
    return {task: LocalPlace(address) for task, address in zip(tasks, found, strict=True)}
