"""Faults at random in synchronous training over processes: `python -m benchmarks.process_faults --faults 60`.

A server and two workers, of which the first is the chief and saves, each a process of this machine; every connection between them
goes over a link of this process. In every second training all that they send does, as between machines; else they know that they
are on one. At a random moment a task is killed, or frozen with SIGSTOP and then killed, and started anew; or the link from one task
to another is cut, or held so that nothing passes. Printed, for each kind of fault: after how many seconds it
is noticed, and how many steps are taken again; whether the losses of every step, however often it was taken, are bit by bit those
of an undisturbed run, and none from before the last complete save is lost; and what is left of processes and ports, and of segments
and semaphores in /dev/shm.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
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

from benchmarks.links import Link

__all__ = ["main", "take_part"]

STEPS, SAVED, WIDE = 40, 4, 300_000
DATA = np.random.default_rng(0).normal(size=(2, STEPS + 2, 5, 3)).astype(np.float32)
_PROGRAM = "import sys; from benchmarks.process_faults import take_part; take_part(*sys.argv[1:])"
TASKS = ("ps0", "worker0", "worker1")
#: From which task to which calls and tensors go.
LINKS = [(worker, "ps0") for worker in TASKS[1:]] + [("ps0", worker) for worker in TASKS[1:]]
#: What may happen to which task, or to which link.
FAULTS = [(how, what) for how in ("killed", "frozen") for what in TASKS]
FAULTS += [(how, f"{a} to {b}") for how in ("cut", "held") for a, b in LINKS]  # type: ignore[misc]


def _model(tf: Any, replica: int, step: Any) -> tuple[Any, list[Any], Any]:
    w = tf.get_variable("w", initializer=np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2))
    b = tf.get_variable("b", initializer=np.zeros(2, np.float32))
    wide = tf.get_variable("wide", initializer=np.linspace(-1, 1, WIDE, dtype=np.float32))  # travels in segments
    rows = tf.gather(tf.constant(DATA[replica]), step)
    loss = tf.reduce_mean((tf.matmul(rows, w) + b) ** 2) + tf.reduce_mean(wide**2)
    return loss, [w, b, wide], tf.train.MomentumOptimizer(0.1, 0.9)


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


def take_part(job: str, index: str, ps: str, workers: str, folder: str, apart: str) -> None:
    """Serve, or train; with ``apart``, as if each task were on a machine of its own.

    Prints ``gone TIME`` for each session whose process is lost; ``loss STEP VALUE`` for each step, and ``lost TIME`` for each error
    that tells of a lost task.
    """
    import graphdock as tf

    if apart:
        from graphdock_ray import listener, peer

        listener.machine = peer.machine = lambda: b""
    cluster = {"ps": ps.split(","), "worker": workers.split(",")}
    number, own = int(index), f"/job:worker/task:{index}"
    if job == "ps":
        _serve(cluster, number)
    server = tf.train.Server(cluster, job, number)
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


def _serve(cluster: Any, number: int) -> None:
    import graphdock as tf
    from graphdock_ray.listener import Listener

    look = Listener.look

    def noted(self: Any, lost: Any) -> None:
        gone = self._gone

        def told(session: str) -> None:
            print("gone", time.time(), flush=True)
            gone(session)

        self._gone = told
        try:
            look(self, lost)
        finally:
            self._gone = gone

    Listener.look = noted  # type: ignore[method-assign]
    tf.train.Server(cluster, "ps", number).join()


class Run:
    """One training, and the faults that it is given.

    Attributes:
      said: faults, in words. ``losses``: step -> hexadecimal digits. ``table``: of each fault its kind, after how many seconds it
        was noticed, or None where nobody had to, and by how many steps the chief went back.
      wrong: what went wrong besides. ``addresses``: of the tasks, at which nobody is to be once it is over.
    """

    def __init__(self, folder: str, seed: int, faults: int) -> None:
        self.random, self.folder, self.apart = random.Random(seed), folder, "apart" if seed % 2 else ""
        with contextlib.ExitStack() as held:  # else a link, which takes any free port, may take a task's
            sockets = {task: held.enter_context(socket.create_server(("localhost", 0))) for task in TASKS}
            self.addresses = {task: f"localhost:{s.getsockname()[1]}" for task, s in sockets.items()}
            self.links = {f"{a} to {b}": Link(self.addresses[b]) for a, b in LINKS}
        self.losses: dict[int, set[str]] = {}
        self.lost: list[tuple[float, str]] = []
        self.table: list[list[Any]] = []
        self.said: list[str] = []
        self.wrong: list[str] = []
        self.done: set[str] = set()
        self.steps, self.last, self.saved = 0, -1, 0
        self.changed = threading.Condition()
        self.tasks: dict[str, subprocess.Popen[str]] = {}
        try:
            for name in TASKS:
                self.start(name)
            for _ in range(faults):
                self.fault()
            self.wait(lambda: "worker0" in self.done, 60, "the chief ends")
        finally:
            for process in self.tasks.values():
                process.kill()
                process.wait()
            for link in self.links.values():
                link.close()

    def start(self, name: str) -> None:
        """Start a task, whose lines are read by a thread. It knows itself by its address, the others by links."""
        known = [
            self.links[f"{name} to {t}"].address if f"{name} to {t}" in self.links else a
            for t, a in self.addresses.items()
        ]
        command = [sys.executable, "-c", _PROGRAM, name[:-1], name[-1], known[0], ",".join(known[1:])]
        command += [self.folder, self.apart]
        with open(Path(self.folder, f"{name}.log"), "ab") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.tasks[name] = process
        threading.Thread(target=self.read, args=(name, process), daemon=True).start()

    def read(self, name: str, process: subprocess.Popen[str]) -> None:
        """Take note of what a task prints."""
        assert process.stdout is not None
        for line in process.stdout:
            word, *rest = line.split()
            with self.changed:
                if word == "loss" and name == "worker0":
                    self.took(int(rest[0]), rest[1])
                elif word in ("lost", "gone"):
                    self.lost.append((float(rest[0]), name))
                elif word == "done":
                    self.done.add(name)
                self.changed.notify_all()

    def took(self, step: int, loss: str) -> None:
        """Take note of a step of the chief's."""
        self.losses.setdefault(step, set()).add(loss)
        self.steps += 1
        if self.table and step <= self.last:
            self.table[-1][2] = max(self.table[-1][2], self.last + 1 - step)
        if step < self.saved:
            self.wrong.append(f"step {step} is taken again, though {self.saved} were saved")
        self.last = step

    def wait(self, holds: Any, seconds: float, what: str) -> None:
        """Wait for what the tasks print. Raises TimeoutError, with the end of what each task wrote, and how it ended if it did."""
        with self.changed:
            if not self.changed.wait_for(holds, seconds):
                logs = {t: Path(self.folder, f"{t}.log").read_text(errors="replace")[-2000:] for t in self.tasks}
                wrote = "\n".join(f"{t} ({p.poll()}): {logs[t]}" for t, p in self.tasks.items())
                raise TimeoutError(f"{what}: not within {seconds:g} s, after {self.said}\n{wrote}")

    def fault(self) -> None:
        """Do something to a task or a link some steps from now, and undo it."""
        until = self.steps + self.random.randrange(1, 8)
        self.wait(lambda: self.steps >= until or "worker0" in self.done, 60, "steps go on")
        if "worker0" in self.done:
            return
        how, what = self.random.choice(FAULTS)
        with self.changed:
            self.said.append(f"{what} {how} at {self.steps}")
            self.table.append(
                [f"{'chief' if what == 'worker0' else what.replace('0', '').replace('1', '')} {how}", None, 0]
            )
            before, self.saved = len(self.lost), _saved(self.folder)
        if what in self.links:
            self.fault_of_link(how, what, before)
            return
        process, began = self.tasks[what], time.time()
        process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
        watcher = "worker" if what == "ps0" else "ps"
        self.notice(lambda: [at for at, who in self.lost[before:] if who.startswith(watcher)], began)
        process.kill()
        process.wait()
        self.start(what)

    def fault_of_link(self, how: str, what: str, before: int) -> None:
        """Cut or hold a link. Who sends a tensor over it, or waits for one, is to notice, if there was any on its way."""
        link, began, at = self.links[what], time.time(), self.steps
        if how == "cut":
            link.cut()
        else:
            link.hold()
        self.notice(lambda: [at for at, _ in self.lost[before:]], began, lambda: self.steps > at + 3)
        link.release()

    def notice(self, times: Any, began: float, goes_on: Any = lambda: False) -> None:
        """Wait until somebody has noticed the last fault, or training goes on in spite of it."""
        done = lambda: times() or goes_on() or "worker0" in self.done  # noqa: E731
        self.wait(done, 30, f"{self.said[-1]} is noticed")
        with self.changed:
            if found := times():
                self.table[-1][1] = found[0] - began


def _saved(folder: str) -> int:
    """Steps up to the last complete save."""
    with contextlib.suppress(OSError):
        found = re.search(r'^model_checkpoint_path: ".*-(\d+)"', Path(folder, "checkpoint").read_text(), re.M)
        return int(found[1]) if found else 0
    return 0


def _left() -> tuple[set[str], set[str]]:
    shared = {p.name for p in Path("/dev/shm").iterdir()}
    mine = {
        p.name
        for p in Path("/proc").iterdir()
        if p.name.isdigit() and b"benchmarks.process_faults import" in _read(p / "cmdline")
    }
    return shared, mine


def _taken(addresses: Any) -> list[str]:
    found = []
    for address in addresses:
        try:
            socket.create_server(("localhost", int(address.rpartition(":")[2]))).close()
        except OSError:
            found.append(address)
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _report(rows: list[list[Any]]) -> None:
    print(f"{'fault':24} {'count':>5} {'noticed':>8} {'median s':>9} {'at most':>8} {'steps back, at most':>20}")
    for kind in sorted({row[0] for row in rows}):
        found = [row for row in rows if row[0] == kind]
        times = [row[1] for row in found if row[1] is not None]
        said = f"{statistics.median(times):9.3f} {max(times):8.3f}" if times else f"{'-':>9} {'-':>8}"
        print(f"{kind:24} {len(found):5} {len(times):8} {said} {max(row[2] for row in found):20}")


def main() -> int:
    """Run trainings until the faults are used up; 1 where one goes wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.process_faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the first training")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no other training after so many")
    options = parser.parse_args()
    wanted, before, began = undisturbed(), _left(), time.monotonic()
    given, seed, wrong = 0, options.seed, 0
    rows: list[list[Any]] = []
    ports: list[str] = []
    while given < options.faults and time.monotonic() - began < options.seconds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                run = Run(folder, seed, min(4, options.faults - given))
            except TimeoutError as error:
                print(f"training {seed}: {error}", flush=True)
                wrong, seed, given = wrong + 1, seed + 1, given + 4
                continue
        ports += _taken(run.addresses.values())
        differ = [n for n in range(STEPS) if run.losses.get(n) != {wanted[n]}]
        run.wrong += [f"losses of the steps {differ} are others"] if differ else []
        wrong += bool(run.wrong)
        given += len(run.said)
        rows += run.table
        print(f"training {seed}: {'; '.join(run.said)}: {'; '.join(run.wrong) or 'right'}", flush=True)
        seed += 1
    _report(rows)
    shared, processes = (sorted(after - first) for after, first in zip(_left(), before, strict=True))
    print(f"{given} faults in {seed - options.seed} trainings, {wrong} went wrong")
    print(f"left: in /dev/shm {shared}, processes {processes}, ports {ports}")
    return int(bool(wrong or shared or processes or ports))


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parent.parent)
    sys.exit(main())
