"""Steps on several tasks, beside TensorFlow's own runtime: a parameter server in a process of its own, a worker in the subject's.

Both runtimes run the same program on one machine, TensorFlow over gRPC, graphdock over ZeroMQ.
"""

from __future__ import annotations

import atexit
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.frameworks import graphdock, tensorflow
from benchmarks.program import Bar, Case, Program

#: Rows and columns of the embedding, and rows of a step.
TABLE, WIDTH, ROWS = 262_144, 256, 32
#: Elements of the dense parameter: 100 MB of float32.
DENSE = 26_214_400

_SERVER = """
import json, sys
{module}
tf.train.Server(tf.train.ClusterSpec(json.loads(sys.argv[1])), job_name="ps", task_index=0).join()
"""
_MODULES = {
    "graphdock": "import graphdock as tf",
    "tensorflow": "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()",
}

Text = Callable[[ModuleType, Any], Case]


def _cluster(tf: ModuleType) -> Any:
    """A worker's server of this process, and the process of a parameter server."""
    held = [socket.create_server(("localhost", 0)) for _ in range(2)]
    ps, worker = [f"localhost:{s.getsockname()[1]}" for s in held]
    for s in held:
        s.close()
    spec = {"ps": [ps], "worker": [worker]}
    module = _MODULES["graphdock" if tf.__name__ == "graphdock" else "tensorflow"]
    process = subprocess.Popen([sys.executable, "-c", _SERVER.format(module=module), json.dumps(spec)])
    atexit.register(process.kill)
    return tf.train.Server(tf.train.ClusterSpec(spec), job_name="worker", task_index=0)


def _builders(text: Text) -> dict[str, Callable[[], Case]]:
    def builder(framework: Callable[[], ModuleType]) -> Callable[[], Case]:
        def build() -> Case:
            tf = framework()
            return text(tf, _cluster(tf))

        return build

    return {"graphdock": builder(graphdock), "tensorflow": builder(tensorflow)}


def _session(tf: ModuleType, server: Any) -> Any:
    session = tf.Session(server.target)
    session.run(tf.global_variables_initializer())
    return session


def own_task(tf: ModuleType, server: Any) -> Case:
    """A step that needs no other task."""
    x = tf.placeholder(tf.float32, [])
    y = x * 2.0 + 1.0
    session = _session(tf, server)
    return Case(lambda: session.run(y, {x: 3.0}), lambda: [session.run(y, {x: 3.0})])


def scalar(tf: ModuleType, server: Any) -> Case:
    """A server's scalar is fetched."""
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(4.0)
    session = _session(tf, server)
    return Case(lambda: session.run(v), lambda: [session.run(v)])


def asynchronous(tf: ModuleType, server: Any) -> Case:
    """A server's scalar is read by the worker, which sends back what to add."""
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(0.0)
    with tf.device("/job:worker/task:0"):
        change = tf.identity(v) * 0.0 + 1.0
    add = v.assign_add(change).op
    session = _session(tf, server)
    return Case(lambda: session.run(add), lambda: [session.run(v)])


def sparse(tf: ModuleType, server: Any) -> Case:
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


def dense(tf: ModuleType, server: Any) -> Case:
    """A server's 100 MB are read by the worker, which sends as many back to be subtracted."""
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(tf.ones([DENSE]))
        total = tf.reduce_sum(v)
    with tf.device("/job:worker/task:0"):
        gradient = tf.identity(v) * 0.5
    train = v.assign_sub(gradient).op
    session = _session(tf, server)
    return Case(lambda: session.run(train), lambda: [session.run(total)])


def _bar(ratio: float) -> Bar:
    return Bar("P10", ("tensorflow",), ratio)


PROGRAMS = (
    Program("own_task", "a step on the session's own task", _builders(own_task), (_bar(0.2),), reference="tensorflow"),
    Program("scalar", "a server's scalar is fetched", _builders(scalar), (_bar(0.3),), reference="tensorflow"),
    Program(
        "asynchronous",
        "a null step: a scalar to the worker, and one back to be added",
        _builders(asynchronous),
        (_bar(0.5),),
        reference="tensorflow",
    ),
    Program(
        "sparse",
        f"{ROWS} rows of a table of {TABLE:,} x {WIDTH}, gathered and updated",
        _builders(sparse),
        (_bar(0.5),),
        reference="tensorflow",
    ),
    Program(
        "dense",
        "100 MB to the worker, and 100 MB back to be subtracted",
        _builders(dense),
        (_bar(0.8),),
        reference="tensorflow",
    ),
)

if __name__ == "__main__":
    sys.exit(benchmark_main("distributed", PROGRAMS))
