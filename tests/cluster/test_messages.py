"""Messages of a step, as tables: what travels between which tasks, and how often. Rows of a table travel, never the table."""

from __future__ import annotations

import gc
import time

import graphdock as tf
import numpy as np
import pytest
from graphdock_cluster.task import TaskServer
from graphdock_testing.thread_cluster import ThreadCluster

HOST = tf.Host(block=["ray"])


@pytest.fixture(scope="module")
def target():
    cluster = {"ps": [f"messages:{n + 1}" for n in range(4)], "worker": ["messages:5"]}
    made = [tf.train.Server(cluster, job, n, host=HOST) for job, tasks in cluster.items() for n in range(len(tasks))]
    yield made[-1].target
    for server in made:
        server.stop()


def null_step():
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(0.0)
    with tf.device("/job:worker/task:0"):
        change = tf.identity(v) * 0.0 + 1.0
    return v.assign_add(change).op


def embedding():
    tables = []
    for n in range(4):
        with tf.device(f"/job:ps/task:{n}"):
            tables.append(tf.Variable(tf.zeros([1000, 8]), name=f"table{n}"))
    rows = tf.nn.embedding_lookup(tables, tf.constant(np.arange(32), tf.int64))
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(rows**2))


def lstm():
    h = tf.zeros([2, 3, 4])
    for n in range(3):
        with tf.device(f"/job:ps/task:{n}"), tf.variable_scope(f"layer{n}"):
            h, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4), h, dtype=tf.float32)
    return tf.reduce_sum(h)


def replica():
    """A replica's step: its gradient, the step it began with, and the token."""
    worker = "/job:worker/task:0"
    with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device=worker)):
        step = tf.train.get_or_create_global_step()
        loss = tf.get_variable("v", initializer=0.0) * 1.0
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1e-3), 1, 1)
        return tf.group(optimizer.minimize(loss, step), tf.no_op())


#: Per model: messages, and of those that bring a tensor or a receipt, how many of which kind go from which job to which.
GOLDEN = {
    null_step: (4, {"ps to worker, float32 4 B": 1, "worker to ps, float32 4 B": 1}),
    embedding: (
        20,
        {"worker to ps, int64 ? B": 4, "ps to worker, float32 ? B": 4, "worker to ps, float32 ? B": 4},
    ),
    replica: (5, {"worker to ps, int64 8 B": 1, "worker to ps, float32 4 B": 1, "ps to worker, int64 8 B": 1}),
    lstm: (9, {"ps to ps, float32 96 B": 2, "ps to worker, float32 96 B": 1}),
}


@pytest.mark.parametrize("model", GOLDEN, ids=lambda model: model.__name__)
def test_a_step_has_the_messages_of_the_table(target, model):
    with tf.Graph(host=HOST).as_default():
        fetch = model()
        with tf.Session(target) as session:
            facts = session.explain(fetch).facts()
    found: dict[str, int] = {}
    for edge in facts["edges"]:
        if edge["from"] != edge["to"]:
            size = "?" if edge["bytes"] is None else edge["bytes"]
            jobs = [edge[end].partition(":")[2].partition("/")[0] for end in ("from", "to")]
            row = f"{jobs[0]} to {jobs[1]}, {edge['dtype']} {size} B"
            found[row] = found.get(row, 0) + 1
    assert (facts["messages"], found) == GOLDEN[model]


def test_small_tensors_of_a_part_that_is_quick_go_to_a_task_as_one_message(target, monkeypatch):
    monkeypatch.setattr("graphdock_cluster.registered.QUICK", 1e9)
    came, arrive = [], TaskServer.arrive

    def noted(self, session, step, edge, value):
        came.append((str(self.name), edge if isinstance(edge, str) else len(edge)))
        arrive(self, session, step, edge, value)

    monkeypatch.setattr(TaskServer, "arrive", noted)
    with tf.Graph(host=HOST).as_default(), tf.Session(target) as session:
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.float32, [])
            some, large, other = [x + float(n) for n in range(3)], tf.fill([5000], x), tf.as_string(x)
        sums = []
        for n in (0, 1):
            with tf.device(f"/job:ps/task:{n}"):
                sums.append(tf.add_n(some) + tf.reduce_sum(large) + tf.string_to_number(other))
        for turn, at_once in enumerate((5, 2)):
            value = float(2 - turn)  # what was held is read when it was sent
            assert session.run(sums, {x: value}) == [5004 * value + 3.0] * 2
            for n in (0, 1):
                edges = [edge for task, edge in came if task == f"/job:ps/task:{n}"]
                assert sum(isinstance(edge, str) for edge in edges) == at_once
                assert [edge for edge in edges if not isinstance(edge, str)] == [3] * turn
            came.clear()


def there_and_back():
    """Step that sends a worker's variable to a server, which adds it, and the sum back."""
    with tf.device("/job:worker/task:0"):
        own = tf.Variable(1.0, name="own")
    with tf.device("/job:ps/task:0"):
        total = tf.Variable(0.0, name="total").assign_add(own)
    with tf.device("/job:worker/task:0"):
        return own.assign(total)


def test_small_tensors_go_with_the_message_that_starts_a_part_and_with_its_answer(monkeypatch):
    monkeypatch.setattr("graphdock_cluster.registered.QUICK", 1e9)
    with ThreadCluster({"ps": 1, "worker": 1}) as cluster:
        server = cluster.server("worker0")
        with tf.Graph(host=server.host).as_default():
            step = there_and_back()
            with tf.Session(server.target) as session:
                session.run(tf.global_variables_initializer())
                found, counts = [], []
                for _ in range(5):
                    before = cluster.network.delivered
                    found.append(float(session.run(step)))
                    counts.append(cluster.network.delivered - before)
    assert found == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert counts[2:] == [2, 2, 2]


def test_a_tensor_that_its_own_part_waits_for_goes_at_once(monkeypatch):
    """A server's part sends a number, and then waits for an element that the worker puts in once it has the number."""
    monkeypatch.setattr("graphdock_cluster.registered.QUICK", 1e9)
    with ThreadCluster({"ps": 1, "worker": 1}) as cluster:
        server = cluster.server("worker0")
        with tf.Graph(host=server.host).as_default():
            with tf.device("/job:ps/task:0"):
                queue = tf.FIFOQueue(9, tf.float32, [[]])
                number = tf.Variable(3.0).read_value()
            with tf.device("/job:worker/task:0"):
                twice = number * 2.0
            put, taken = queue.enqueue(twice), queue.dequeue()
            with tf.Session(server.target) as session:
                session.run(tf.global_variables_initializer())
                options = tf.RunOptions(timeout_in_ms=30_000)
                for _ in range(4):
                    assert session.run([taken, put], options=options)[0] == 6.0


@pytest.mark.parametrize("quick", [0.0, 1e9])
def test_a_step_whose_own_part_fails_leaves_nothing_on_the_others(monkeypatch, quick):
    monkeypatch.setattr("graphdock_cluster.registered.QUICK", quick)
    with ThreadCluster({"ps": 1, "worker": 1}) as cluster:
        server = cluster.server("worker0")
        with tf.Graph(host=server.host).as_default():
            x = tf.placeholder(tf.int32, [])
            with tf.device("/job:worker/task:0"):
                own = tf.Variable([1.0, 2.0]).read_value()
                row = tf.gather(own, x)
            with tf.device("/job:ps/task:0"):
                added = tf.Variable(0.0, name="sum").assign_add(row)
            with tf.Session(server.target) as session:
                session.run(tf.global_variables_initializer())
                for number in range(3):
                    assert session.run(added, {x: 0}) == number + 1.0
                with pytest.raises(tf.errors.InvalidArgumentError):
                    session.run(added, {x: 5})
                assert session.run(added, {x: 0}) == 4.0
                task = cluster.server("ps0")._task
                opened = task._sessions.known(task.sessions[0])
                assert not task.running and not opened.exchange.steps


def test_a_large_constant_is_sent_once_to_a_task_for_as_long_as_a_part_there_has_it(monkeypatch):
    """It is sent anew once the parts that had it are forgotten, and to a session of its own."""
    came = []
    register = TaskServer.register

    def noted(self, **arguments):
        said = register(self, **arguments)
        came.append((len(arguments["constants"]), len(arguments["known"]), "handle" in said))
        return said

    monkeypatch.setattr(TaskServer, "register", noted)
    with ThreadCluster({"ps": 1, "worker": 1}) as cluster:
        server = cluster.server("worker0")
        with tf.Graph(server.host).as_default():
            with tf.device("/job:ps/task:0"):
                large = tf.constant(np.arange(1000.0))
                sums = [large + float(n) for n in range(4)]
            config = tf.SessionConfig(plan_cache_size=2, operation_timeout=60)
            for _ in range(2):
                with tf.Session(server.target, config=config) as session:
                    for total, n in zip(sums, range(3), strict=False):
                        assert session.run(total)[-1] == 999 + n
                    assert came == [(1, 0, True), (0, 1, True), (0, 1, True)]
                    came.clear()
                    session._steps.clear()
                    gc.collect()
                    session.run(tf.constant(1.0))
                    task = cluster.server("ps0")._task
                    parts = task._sessions.known(session._name).parts
                    until = time.monotonic() + 60
                    while parts:
                        assert time.monotonic() < until, f"{task.name} does not forget its parts {sorted(parts)}"
                        time.sleep(0.001)
                    for _ in range(3):  # finalizers of what the first collection frees hold on to more
                        gc.collect()
                    assert session.run(sums[3])[-1] == 1002
                    assert came == [(0, 1, False), (1, 0, True)]
                    came.clear()
