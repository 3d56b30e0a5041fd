"""Images per second of data parallelism: Inception-v3 of `examples/`, beside TensorFlow's servers, on one machine.

    python -m benchmarks.data_parallel --workers 1,2,4 --modes synchronous,asynchronous,backup

A parameter server and each worker are a process of their own; the workers train on noise of 299 by 299, each on its own. ``backup``
is synchronous with one worker to spare: whose gradients come last in a step are dropped. An image counts once its gradient is
applied: the global step times the images of an update, over the seconds that the first worker looks at it, after its first steps.
graphdock and TensorFlow take turns, and the ratio is of the medians of their turns. ``narrow`` divides the widths of all layers.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.environments import REPOSITORY, VARIABLES, interpreter_of
from benchmarks.machine import load_average
from benchmarks.network_sessions import example

__all__ = ["MODES", "main", "take_part"]

MODES = ("synchronous", "asynchronous", "backup")
CLASSES, SIZE = 1000, 299
#: Steps of the first worker before it looks at the clock, and seconds after which a cluster that says nothing is given up.
WARM, PATIENCE = 3, 240.0
_PROGRAM = "import sys; from benchmarks.data_parallel import take_part; take_part(*sys.argv[1:])"


def take_part(framework: str, job: str, index: str, said: str) -> None:
    """One process of a cluster: a server, or a worker, which trains until it is killed; the first one prints its count."""
    options, number = json.loads(said), int(index)
    if framework == "tensorflow":
        from benchmarks.frameworks import tensorflow as module
    else:
        from benchmarks.frameworks import graphdock as module
    tf = module()
    server = tf.train.Server(tf.train.ClusterSpec(options["cluster"]), job_name=job, task_index=number)
    if job == "ps":
        server.join()
    session, train, step, feed = _replica(tf, server, options, number)
    done = 0
    while True:
        session.run(train, feed)
        done += 1
        if number == 0 and done == WARM:
            began, first = time.perf_counter(), int(session.run(step))
        elif number == 0 and done > WARM and time.perf_counter() - began >= options["seconds"]:
            updates, seconds = int(session.run(step)) - first, time.perf_counter() - began
            print(json.dumps({"updates": updates, "seconds": seconds}), flush=True)
            return


def _gathered(mode: str, workers: int) -> int:
    """Of how many workers' images an update is."""
    return {"synchronous": workers, "asynchronous": 1, "backup": max(1, workers - 1)}[mode]


def _replica(tf: Any, server: Any, options: dict[str, Any], number: int) -> tuple[Any, Any, Any, dict[Any, Any]]:
    """Session, step of training, global step and feed of one worker. The first begins; the others wait until it has."""
    own, mode, workers = f"/job:worker/task:{number}", options["mode"], len(options["cluster"]["worker"])
    random = np.random.RandomState(number)
    batch = options["batch"]
    images = random.standard_normal((batch, SIZE, SIZE, 3)).astype(np.float32)
    labels = random.randint(CLASSES, size=batch).astype(np.int32)
    network = example(tf, "inception_v3")
    setter = tf.train.replica_device_setter(cluster=tf.train.ClusterSpec(options["cluster"]), worker_device=own)
    with tf.device(setter):
        step = tf.train.get_or_create_global_step()
        x, y = tf.placeholder(tf.float32, images.shape), tf.placeholder(tf.int32, labels.shape)
        loss = example(tf, "convnet").loss_of(network.inference(x, CLASSES, options["narrow"]), y)
        optimizer = tf.train.MomentumOptimizer(0.0003, 0.9)
        if mode != "asynchronous":
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, _gathered(mode, workers), workers)
        train = optimizer.minimize(loss, step)
        variables = tf.global_variables_initializer()
    session = tf.Session(server.target)
    if number:
        missing = tf.report_uninitialized_variables(tf.global_variables())
        while len(session.run(missing)):
            time.sleep(0.1)
        if mode != "asynchronous":
            session.run([tf.local_variables_initializer(), optimizer.local_step_init_op])
    elif mode == "asynchronous":
        session.run(variables)
    else:
        own_ones, tokens = tf.local_variables_initializer(), optimizer.get_init_tokens_op()
        session.run(variables)
        session.run([own_ones, optimizer.chief_init_op])
        session.run(tokens)
        optimizer.get_chief_queue_runner().create_threads(session, daemon=True, start=True)
    return session, train, step, {x: images, y: labels}


def images_per_second(framework: str, mode: str, workers: int, options: argparse.Namespace) -> float:
    """Images per second of one cluster, whose processes have ended when this returns.

    Raises:
      RuntimeError: the first worker ended without a figure, or said nothing for long.
    """
    python = interpreter_of(framework)
    assert python is not None
    held = [socket.create_server(("localhost", 0)) for _ in range(1 + workers)]
    ps, *others = [f"localhost:{s.getsockname()[1]}" for s in held]
    for each in held:
        each.close()
    said = {
        "cluster": {"ps": [ps], "worker": others},
        "mode": mode,
        "batch": options.batch,
        "narrow": options.narrow,
        "seconds": options.seconds,
    }
    variables = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(REPOSITORY), **VARIABLES.get(framework, {})}
    processes = []
    try:
        for job, number in [("ps", 0), *(("worker", n) for n in range(workers))]:
            command = [str(python), "-c", _PROGRAM, framework, job, str(number), json.dumps(said)]
            counts = (job, number) == ("worker", 0)
            processes.append(
                subprocess.Popen(
                    command,
                    cwd=REPOSITORY,
                    env={**os.environ, **variables},
                    stdout=subprocess.PIPE if counts else subprocess.DEVNULL,
                    stderr=subprocess.PIPE if counts else subprocess.DEVNULL,
                    text=True,
                )
            )
        try:
            printed, errors = processes[1].communicate(timeout=PATIENCE + options.seconds)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{framework}: the first worker has said nothing for {PATIENCE:g} s") from None
        if processes[1].returncode:
            raise RuntimeError(f"{framework}: the first worker has ended: {errors[-2000:]}")
        found = json.loads(printed.splitlines()[-1])
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
    return float(found["updates"] * options.batch * _gathered(mode, workers) / found["seconds"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row per mode and number of workers; status 1 where a cluster gave no figure."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.data_parallel",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--workers", default="1,2,4", help="numbers of workers, with commas")
    parser.add_argument("--modes", default=",".join(MODES), help=f"of {', '.join(MODES)}")
    parser.add_argument("--peers", default="tensorflow", help="beside graphdock; empty: none")
    parser.add_argument("--narrow", type=int, default=8, help="divides the widths of all layers")
    parser.add_argument("--batch", type=int, default=4, help="images of a worker's step")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=1, help="turns of each framework")
    options = parser.parse_args(arguments)
    modes = options.modes.split(",")
    if unknown := set(modes) - set(MODES):
        parser.error(f"no such mode: {', '.join(sorted(unknown))}")
    frameworks = ["graphdock", *(peer for peer in options.peers.split(",") if peer)]
    for peer in frameworks:
        if interpreter_of(peer) is None:
            print(f"{peer}: no environment (python -m benchmarks.setup {peer})")
    frameworks = [peer for peer in frameworks if interpreter_of(peer) is not None]
    print(f"Inception-v3, widths divided by {options.narrow}, {options.batch} images a worker and step; load average:")
    print(f"  {load_average()}")
    print(f"  {'mode':14}{'workers':>8}" + "".join([f"{peer + ', images/s':>24}" for peer in frameworks]) + "   ratio")
    failed = False
    for mode in modes:
        for workers in [int(n) for n in options.workers.split(",")]:
            if mode == "backup" and workers == 1:
                continue
            found: dict[str, list[float]] = {peer: [] for peer in frameworks}
            for _ in range(options.rounds):
                for peer in frameworks:
                    try:
                        found[peer].append(images_per_second(peer, mode, workers, options))
                    except RuntimeError as error:
                        print(f"  {mode}, {workers}: {error}")
                        failed = True
            middle = [statistics.median(found[peer]) if found[peer] else float("nan") for peer in frameworks]
            ratios = "".join([f"{middle[0] / other:8.2f}" for other in middle[1:]])
            print(f"  {mode:14}{workers:>8}" + "".join([f"{value:>24.2f}" for value in middle]) + ratios, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
