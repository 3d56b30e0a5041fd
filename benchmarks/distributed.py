"""Steps on several tasks, beside TensorFlow's own runtime: a parameter server in a process of its own, a worker in the subject's.

Both runtimes run the same program on one machine, TensorFlow over gRPC, graphdock over ZeroMQ. Of several workers the first is
timed; the others are processes of their own. Workers of SyncReplicasOptimizer have a graph each; the 100 MB go to all in one step.
"""

from __future__ import annotations

import atexit
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.environments import REPOSITORY
from benchmarks.frameworks import graphdock, tensorflow
from benchmarks.program import Bar, Case, Program

#: Rows and columns of the embedding, and rows of a step.
TABLE, WIDTH, ROWS = 262_144, 256, 32
#: Elements of the dense parameter: 100 MB of float32.
DENSE = 26_214_400

_SERVER = """
import json, sys
{module}
from benchmarks import distributed
spec, job, index = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
server = tf.train.Server(tf.train.ClusterSpec(spec), job_name=job, task_index=index)
if {follows} and job == "worker":
    distributed.follow(tf, server, spec, index)
server.join()
"""
_MODULES = {
    "graphdock": "import graphdock as tf",
    "tensorflow": "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()",
}

Text = Callable[[ModuleType, Any, dict[str, list[str]]], Case]


def _cluster(tf: ModuleType, workers: int = 1, follows: bool = False) -> tuple[Any, dict[str, list[str]]]:
    """A worker's server of this process, and the cluster, whose parameter server and other workers are processes of their own.

    follows: the other workers take their steps of :func:`replicas`; else they only serve.
    """
    held = [socket.create_server(("localhost", 0)) for _ in range(1 + workers)]
    ps, *others = [f"localhost:{s.getsockname()[1]}" for s in held]
    for s in held:
        s.close()
    spec = {"ps": [ps], "worker": others}
    module = _MODULES["graphdock" if tf.__name__ == "graphdock" else "tensorflow"]
    program = _SERVER.format(module=module, follows=follows)
    for job, index in (("ps", 0), *(("worker", n) for n in range(1, workers))):
        command = [sys.executable, "-c", program, json.dumps(spec), job, str(index)]
        atexit.register(subprocess.Popen(command, cwd=REPOSITORY, stdout=sys.stderr).kill)
    return tf.train.Server(tf.train.ClusterSpec(spec), job_name="worker", task_index=0), spec


def _builders(text: Text, workers: int = 1, follows: bool = False) -> dict[str, Callable[[], Case]]:
    def builder(framework: Callable[[], ModuleType]) -> Callable[[], Case]:
        def build() -> Case:
            tf = framework()
            tf.reset_default_graph()  # it has the variables of another cluster
            return text(tf, *_cluster(tf, workers, follows))

        return build

    return {"graphdock": builder(graphdock), "tensorflow": builder(tensorflow)}


def _session(tf: ModuleType, server: Any) -> Any:
    session = tf.Session(server.target)
    session.run(tf.global_variables_initializer())
    return session


def own_task(tf: ModuleType, server: Any, spec: dict[str, list[str]]) -> Case:
    """A step that needs no other task."""
    x = tf.placeholder(tf.float32, [])
    y = x * 2.0 + 1.0
    session = _session(tf, server)
    return Case(lambda: session.run(y, {x: 3.0}), lambda: [session.run(y, {x: 3.0})])


def scalar(tf: ModuleType, server: Any, spec: dict[str, list[str]]) -> Case:
    """A server's scalar is fetched."""
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(4.0)
    session = _session(tf, server)
    return Case(lambda: session.run(v), lambda: [session.run(v)])


def asynchronous(tf: ModuleType, server: Any, spec: dict[str, list[str]]) -> Case:
    """A server's scalar is read by the worker, which sends back what to add."""
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(0.0)
    with tf.device("/job:worker/task:0"):
        change = tf.identity(v) * 0.0 + 1.0
    add = v.assign_add(change).op
    session = _session(tf, server)
    return Case(lambda: session.run(add), lambda: [session.run(v)])


def sparse(tf: ModuleType, server: Any, spec: dict[str, list[str]]) -> Case:
    """Some rows of a server's table are gathered, and as many are updated."""
    import numpy as np

    with tf.device("/job:ps/task:0"):
        table = tf.Variable(tf.zeros([TABLE, WIDTH]))
    ids = tf.placeholder(tf.int64, [ROWS])
    with tf.device("/job:worker/task:0"):
        rows = tf.nn.embedding_lookup(table, ids)
        loss = tf.reduce_sum((rows - 1.0) ** 2)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session = _session(tf, server)
    random = np.random.RandomState(0)
    batches = [random.choice(TABLE, ROWS, replace=False) for _ in range(64)]
    count = iter(range(1 << 60))
    return Case(
        lambda: session.run(train, {ids: batches[next(count) % 64]}), lambda: [session.run(loss, {ids: batches[0]})]
    )


def dense(tf: ModuleType, server: Any, spec: dict[str, list[str]]) -> Case:
    """A server's 100 MB are read by every worker, each of which sends as many back to be subtracted."""
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(tf.ones([DENSE]))
        total = tf.reduce_sum(v)
    changes = []
    for index in range(len(spec["worker"])):
        with tf.device(f"/job:worker/task:{index}"):
            gradient = tf.identity(v) * 0.5
        changes.append(v.assign_sub(gradient).op)
    train = tf.group(*changes)
    session = _session(tf, server)
    return Case(lambda: session.run(train), lambda: [float(session.run(total) < DENSE)])


def replicas(tf: ModuleType, server: Any, spec: dict[str, list[str]], index: int = 0) -> tuple[Any, Any]:
    """Session and step of one of the workers that add up their gradients of a scalar: the null step of SyncReplicasOptimizer.

    The first worker begins; the others wait until it has.
    """
    count = len(spec["worker"])
    setter = tf.train.replica_device_setter(
        cluster=tf.train.ClusterSpec(spec), worker_device=f"/job:worker/task:{index}"
    )
    with tf.device(setter):
        step = tf.train.get_or_create_global_step()
        loss = tf.get_variable("v", initializer=0.0) * 1.0
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1e-3), count, count)
        train = optimizer.minimize(loss, global_step=step)
        variables, own = tf.global_variables_initializer(), tf.local_variables_initializer()
    session = tf.Session(server.target)
    if index == 0:
        tokens, runner = optimizer.get_init_tokens_op(), optimizer.get_chief_queue_runner()
        session.run(variables)
        session.run([own, optimizer.chief_init_op])
        session.run(tokens)
        runner.create_threads(session, daemon=True, start=True)
    else:
        missing = tf.report_uninitialized_variables(tf.global_variables())
        while len(session.run(missing)):
            time.sleep(0.1)
        session.run([own, optimizer.local_step_init_op])
    return session, train


def follow(tf: ModuleType, server: Any, spec: dict[str, list[str]], index: int) -> None:
    """Take the steps of one of the other workers, for as long as the process lives."""
    session, train = replicas(tf, server, spec, index)
    while True:
        session.run(train)


def synchronous(tf: ModuleType, server: Any, spec: dict[str, list[str]]) -> Case:
    """A step of workers that wait for one another."""
    session, train = replicas(tf, server, spec)
    return Case(lambda: session.run(train), lambda: [1.0])


def _bar(ratio: float) -> Bar:
    return Bar("P10", ("tensorflow",), ratio)


def _program(name: str, summary: str, text: Text, bar: float, workers: int = 1, follows: bool = False) -> Program:
    return Program(name, summary, _builders(text, workers, follows), (_bar(bar),), reference="tensorflow")


_ROWS = f"{ROWS} rows of a table of {TABLE:,} x {WIDTH}, gathered and updated"
_NULL = "the null step of SyncReplicasOptimizer"

PROGRAMS = (
    _program("own_task", "a step on the session's own task", own_task, 0.2),
    _program("scalar", "a server's scalar is fetched", scalar, 0.3),
    _program("asynchronous", "a null step: a scalar to the worker, and one back to be added", asynchronous, 0.5),
    _program("synchronous", f"{_NULL}, 1 worker", synchronous, 0.5, 1, True),
    _program("synchronous_2", f"{_NULL}, 2 workers", synchronous, 0.5, 2, True),
    _program("synchronous_4", f"{_NULL}, 4 workers", synchronous, 0.7, 4, True),
    _program("sparse", _ROWS, sparse, 0.5),
    _program("dense", "100 MB to the worker, and 100 MB back to be subtracted", dense, 0.8),
    _program("dense_4", "100 MB to each of 4 workers, and as many back of each", dense, 0.8, 4),
)

if __name__ == "__main__":
    sys.exit(benchmark_main("distributed", PROGRAMS, rounds=7))
