"""Faults at random in synchronous training over processes: `python -m benchmarks.process_faults --faults 60`.

A server and two workers, of which the first is the chief and saves, each a process of this machine. One of them is killed, or
frozen with SIGSTOP and then killed, at a random moment, and started anew. Printed: after how many seconds the loss of a server is
noticed; whether the losses of every step, however often it was taken, are bit by bit those of an undisturbed run; and what is left
of processes, and of segments and semaphores in /dev/shm.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["main", "take_part"]

STEPS, SAVED = 40, 4
DATA = np.random.default_rng(0).normal(size=(2, STEPS + 2, 5, 3)).astype(np.float32)
_PROGRAM = "import sys; from benchmarks.process_faults import take_part; take_part(*sys.argv[1:])"


def _model(tf: Any, replica: int, step: Any) -> tuple[Any, list[Any], Any]:
    w = tf.get_variable("w", initializer=np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2))
    b = tf.get_variable("b", initializer=np.zeros(2, np.float32))
    rows = tf.gather(tf.constant(DATA[replica]), step)
    return tf.reduce_mean((tf.matmul(rows, w) + b) ** 2), [w, b], tf.train.MomentumOptimizer(0.1, 0.9)


def undisturbed() -> list[str]:
    """Losses of the first replica in one process, as hexadecimal digits."""
    import graphdock as tf

    with tf.Graph().as_default():
        step = tf.placeholder(tf.int64, [])
        loss, variables, optimizer = _model(tf, 0, step)
        with tf.variable_scope("", reuse=True):
            both = [optimizer.compute_gradients(each, variables) for each in (loss, _model(tf, 1, step)[0])]
        train = optimizer.apply_gradients([((a + b) / 2.0, v) for (a, v), (b, _) in zip(*both, strict=True)])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return [float(session.run([loss, train], {step: n})[0]).hex() for n in range(STEPS)]


def take_part(job: str, index: str, ps: str, workers: str, folder: str) -> None:
    """Serve, or train and print ``loss STEP VALUE`` for each step and ``lost TIME`` for each error that tells of a lost task."""
    import graphdock as tf

    cluster = {"ps": ps.split(","), "worker": workers.split(",")}
    number, own = int(index), f"/job:worker/task:{index}"
    server = tf.train.Server(cluster, job, number)
    if job == "ps":
        print("serves", flush=True)
        server.join()
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=own)):
        step = tf.train.get_or_create_global_step()
        at = tf.identity(step)
        loss, variables, optimizer = _model(tf, number, at)
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, 2)
        train = optimizer.minimize(loss, step, variables)

    class Notes(tf.train.SessionRunHook):
        def before_run(self, context: Any) -> Any:
            return tf.train.SessionRunArgs([at, loss])

        def after_run(self, context: Any, values: Any) -> None:
            done, value = values.results
            print("loss", int(done), float(value).hex(), flush=True)
            time.sleep(0.02)  # a step is to take long enough to be hit

    from graphdock_cluster.master import ClusterSession

    run = ClusterSession._run

    def noted(self: Any, *args: Any) -> Any:
        try:
            return run(self, *args)
        except (tf.errors.AbortedError, tf.errors.UnavailableError, tf.errors.DeadlineExceededError):
            print("lost", time.time(), flush=True)
            raise

    ClusterSession._run = noted  # type: ignore[method-assign]
    hooks = [
        optimizer.make_session_run_hook(not number, num_tokens=0),
        Notes(),
        tf.train.StopAtStepHook(last_step=STEPS),
    ]
    config = tf.SessionConfig(device_filters=["/job:ps", own])
    with tf.train.MonitoredTrainingSession(
        server.target,
        not number,
        None if number else folder,
        hooks=hooks,
        save_checkpoint_steps=SAVED,
        save_summaries_steps=None,
        config=config,
        stop_grace_period_secs=5,
    ) as session:
        while not session.should_stop():
            session.run(train)
    print("done", flush=True)


class Run:
    """One training, and the faults that it is given. ``noticed``: kind of fault -> seconds. ``losses``: step -> hexadecimal."""

    def __init__(self, folder: str, seed: int, faults: int) -> None:
        self.random, self.folder = random.Random(seed), folder
        held = [socket.create_server(("localhost", 0)) for _ in range(3)]
        self.ps, *self.workers = [f"localhost:{s.getsockname()[1]}" for s in held]
        for s in held:
            s.close()
        self.losses: dict[int, set[str]] = {}
        self.lost: list[float] = []
        self.noticed: dict[str, list[float]] = {"killed": [], "frozen": []}
        self.said: list[str] = []
        self.done: set[str] = set()
        self.steps = 0
        self.changed = threading.Condition()
        self.tasks = {name: self.start(name) for name in ("ps0", "worker0", "worker1")}
        try:
            for _ in range(faults):
                self.fault()
            self.wait(lambda: "worker0" in self.done, 60, "the chief ends")
        finally:
            for process in self.tasks.values():
                process.kill()
                process.wait()

    def start(self, name: str) -> subprocess.Popen[str]:
        """Start a task, whose lines are read by a thread."""
        command = [sys.executable, "-c", _PROGRAM, name[:-1], name[-1], self.ps, ",".join(self.workers), self.folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        threading.Thread(target=self.read, args=(name, process), daemon=True).start()
        return process

    def read(self, name: str, process: subprocess.Popen[str]) -> None:
        """Take note of what a task prints."""
        assert process.stdout is not None
        for line in process.stdout:
            word, *rest = line.split()
            with self.changed:
                if word == "loss" and name == "worker0":
                    self.losses.setdefault(int(rest[0]), set()).add(rest[1])
                    self.steps += 1
                elif word == "lost":
                    self.lost.append(float(rest[0]))
                elif word == "done":
                    self.done.add(name)
                self.changed.notify_all()

    def wait(self, holds: Any, seconds: float, what: str) -> None:
        """Wait for what the tasks print. Raises TimeoutError."""
        with self.changed:
            if not self.changed.wait_for(holds, seconds):
                raise TimeoutError(f"{what}: not within {seconds:g} s, after {self.said}")

    def fault(self) -> None:
        """Kill or freeze a task some steps from now, and start it anew."""
        until = self.steps + self.random.randrange(1, 8)
        self.wait(lambda: self.steps >= until or "worker0" in self.done, 60, "steps go on")
        if "worker0" in self.done:
            return
        name, how = self.random.choice(list(self.tasks)), self.random.choice(["killed", "frozen"])
        self.said.append(f"{name} {how} at {self.steps}")
        process, before, began = self.tasks[name], len(self.lost), time.time()
        process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
        if name == "ps0":  # of a lost worker its like learn nothing: they wait for its gradients
            self.wait(lambda: len(self.lost) > before, 30, f"{name} {how} is noticed")
            self.noticed[how].append(self.lost[before] - began)
        elif how == "frozen":
            time.sleep(2.5)
        process.kill()
        process.wait()
        self.tasks[name] = self.start(name)


def _left() -> tuple[set[str], set[str]]:
    segments = {p.name for p in Path("/dev/shm").iterdir()}
    mine = {
        p.name
        for p in Path("/proc").iterdir()
        if p.name.isdigit() and b"benchmarks.process_faults import" in _read(p / "cmdline")
    }
    return segments, mine


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def main() -> int:
    """Run trainings until the faults are used up; 1 where one goes wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.process_faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no other training after so many")
    options = parser.parse_args()
    wanted, before, began = undisturbed(), _left(), time.monotonic()
    given, seed, wrong = 0, 0, 0
    noticed: dict[str, list[float]] = {"killed": [], "frozen": []}
    while given < options.faults and time.monotonic() - began < options.seconds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                run = Run(folder, seed, min(4, options.faults - given))
            except TimeoutError as error:
                print(f"training {seed}: {error}", flush=True)
                wrong, seed, given = wrong + 1, seed + 1, given + 4
                continue
        right = all(run.losses.get(n) == {wanted[n]} for n in range(STEPS))
        wrong += not right
        given += len(run.said)
        for how, times in run.noticed.items():
            noticed[how] += times
        print(f"training {seed}: {'; '.join(run.said)}: {'right' if right else 'WRONG LOSSES'}", flush=True)
        seed += 1
    for how, times in noticed.items():
        if times:
            print(
                f"{how}: noticed {len(times)} times, median {statistics.median(times):.2f} s, at most {max(times):.2f} s"
            )
    segments, processes = (sorted(after - first) for after, first in zip(_left(), before, strict=True))
    print(f"{given} faults in {seed} trainings, {wrong} went wrong; left: segments {segments}, processes {processes}")
    return int(bool(wrong or segments or processes))


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parent.parent)
    sys.exit(main())
