"""Launch: the tasks of a cluster as processes of this machine, each running one script, until its workers have ended."""

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
from typing import IO

from graphdock.contracts.cluster import TaskName

__all__ = ["addresses_of", "flags_of", "launch"]

#: Seconds that a task has to end by itself before it is killed.
GRACE = 5.0
_FLAGS = ("job_name", "task_index", "ps_hosts", "worker_hosts")


def addresses_of(ps: int, workers: int) -> dict[str, list[str]]:
    """Free addresses of this machine for so many tasks, by job."""
    held = [socket.create_server(("localhost", 0)) for _ in range(ps + workers)]
    found = [f"localhost:{s.getsockname()[1]}" for s in held]
    for s in held:
        s.close()
    return {job: tasks for job, tasks in (("ps", found[:ps]), ("worker", found[ps:])) if tasks}


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
    cluster: Mapping[str, Sequence[str]],
    arguments: Sequence[str],
    say: Callable[[str], None],
) -> int:
    """Run a script once per task, with ``TF_CONFIG`` and the flags that it reads, until all workers have ended.

    Lines of its tasks are said with the task's name before them. Where one fails the others are ended; so are those of the job
    ``ps`` when all workers have ended.

    Args:
      arguments: of every task.

    Returns:
      0, or the exit status of the first task that failed; 130 after an interrupt.
    """
    ended: SimpleQueue[TaskName] = SimpleQueue()
    running: dict[TaskName, subprocess.Popen[str]] = {}
    try:
        for job, tasks in cluster.items():
            for index in range(len(tasks)):
                task = TaskName(job, index)
                running[task] = process = _start(script, cluster, task, arguments)
                assert process.stdout is not None
                threading.Thread(target=_pass_on, args=(task, process, process.stdout, say, ended), daemon=True).start()
        waiting = {task for task in running if task.job != "ps"}
        while waiting:
            task = ended.get()
            status = running[task].wait()
            if status:
                say(f"[{task}] ended with status {status}")
                return status if status > 0 else 128 - status
            waiting.discard(task)
    except KeyboardInterrupt:
        return 130
    finally:
        _end(list(running.values()))
    return 0


def _start(
    script: Path, cluster: Mapping[str, Sequence[str]], task: TaskName, arguments: Sequence[str]
) -> subprocess.Popen[str]:
    config = {"cluster": cluster, "task": {"type": task.job, "index": task.index}}
    return subprocess.Popen(
        [sys.executable, "-m", "graphdock", "run", str(script), *flags_of(script, cluster, task), *arguments],
        env={**os.environ, "TF_CONFIG": json.dumps(config), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


def _pass_on(
    task: TaskName,
    process: subprocess.Popen[str],
    lines: IO[str],
    say: Callable[[str], None],
    ended: SimpleQueue[TaskName],
) -> None:
    for line in lines:
        say(f"[{task}] {line.rstrip()}")
    process.wait()
    ended.put(task)


def _end(processes: Sequence[subprocess.Popen[str]]) -> None:
    """End what still runs, by force where it does not end by itself."""
    alive = [p for p in processes if p.poll() is None]
    for process in alive:
        process.send_signal(signal.SIGTERM)
    for process in alive:
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
