"""Sessions on targets: steps over several tasks of this process, and what they keep, refuse and raise."""

from __future__ import annotations

import re
import threading
import time

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import CancelledError

#: A host whose servers listen nowhere: no plugin reaches other processes.
HOST = tf.Host(block=["ray"])


@pytest.fixture
def servers():
    cluster = {"ps": ["test:1"], "worker": ["test:2", "test:3"]}
    made = [tf.train.Server(cluster, job, i, host=HOST) for job, i in (("ps", 0), ("worker", 0), ("worker", 1))]
    yield made
    for server in made:
        server.stop()


def _until(holds):
    """Wait until something is so, for half a minute at most. Other threads run meanwhile."""
    for _ in range(30_000):
        if holds():
            return
        time.sleep(0.001)
    raise AssertionError("it never came to be")


def training():
    """A model whose variables are a server's, and whose loss is of another task than the session's."""
    with tf.device("/job:ps/task:0"):
        w = tf.Variable(tf.ones([3, 2]), name="w")
        count = tf.Variable(0, name="count", trainable=False)
    x = tf.placeholder(tf.float32, [None, 3])
    with tf.device("/job:worker/task:1"):
        loss = tf.reduce_sum(tf.matmul(x, w) ** 2)
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=count)
    return x, w, loss, train, count


def losses(target, rows):
    with tf.Graph(host=HOST).as_default():
        x, w, loss, train, count = training()
        if not target:
            for op in tf.get_default_graph().get_operations():
                op._set_device("")
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            found = [session.run([train, loss, count], {x: row})[1:] for row in rows]
            return found, session.run(w)


def test_training_over_three_tasks_is_bitwise_training_on_one(servers):
    rows = np.random.default_rng(0).normal(size=(5, 4, 3)).astype(np.float32)
    (several, w), (one, v) = losses(servers[1].target, rows), losses("", rows)
    assert several == one
    np.testing.assert_array_equal(w, v)


def test_loops_below_the_scope_of_a_task_run_there(servers):
    def training(task):
        tf.set_random_seed(1)
        h = tf.sin(tf.reshape(tf.range(24.0), [2, 3, 4]))
        with tf.device(task):
            h, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4), h, tf.constant([3, 2]), dtype=tf.float32)
        loss = tf.reduce_sum(tf.cond(h[0, 0, 0] > 9.0, lambda: h, lambda: h * h))
        return loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    def losses(target, task):
        with tf.Graph(host=HOST).as_default():
            fetches = training(task)
            with tf.Session(target) as sess:
                sess.run(tf.global_variables_initializer())
                return [sess.run(fetches)[0] for _ in range(3)]

    assert losses(servers[1].target, "/job:ps/task:0/device:cpu:0") == losses("", None)


def test_variables_outlive_their_session_and_are_shared_until_they_are_reset(servers):
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0, name="shared")
        with tf.Session(servers[1].target) as first:
            first.run(v.initializer)
            first.run(v.assign_add(2.0))
        with tf.Session(servers[2].target) as second:
            assert second.run(v) == 3.0
        tf.Session.reset(servers[2].target, host=HOST)
        with tf.Session(servers[2].target) as third, pytest.raises(tf.errors.FailedPreconditionError):
            third.run(v)


def test_a_reset_ends_the_sessions_of_its_target(servers):
    """As TensorFlow does: also those whose containers are not named; sessions on other targets go on."""
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0"):
            with tf.container("named"):
                v = tf.Variable(1.0, name="v")
            w = tf.Variable(2.0, name="w")
            queue = tf.FIFOQueue(1, tf.float32, shapes=[])
            taken = queue.dequeue()
        with tf.device("/job:worker/task:1"):
            elsewhere = tf.constant(3.0) + 1.0
        with tf.Session(servers[1].target) as mine, tf.Session(servers[2].target) as other:
            mine.run([v.initializer, w.initializer])
            said = []

            def wait():
                try:
                    mine.run(taken)
                except tf.errors.AbortedError as error:
                    said.append(error.message)

            waiting = threading.Thread(target=wait)
            waiting.start()
            _until(lambda: servers[0]._task.running)
            tf.Session.reset(servers[1].target, ["named"], host=HOST)
            waiting.join()
            assert said == ["the session was ended: its target /job:worker/task:0 was reset"]
            for fetch in (
                w,
                w + 1.0,
                elsewhere,
                taken,
            ):  # known signatures, new ones, and a task that it had not touched
                with pytest.raises(tf.errors.AbortedError):
                    mine.run(fetch)
            assert other.run(w) == 2.0
            with pytest.raises(tf.errors.FailedPreconditionError):
                other.run(v)
        with tf.Session(servers[1].target) as anew:
            assert anew.run(w) == 2.0
            with pytest.raises(tf.errors.FailedPreconditionError):
                anew.run(v)


def test_a_reset_that_nobody_answers_ends_with_its_limit():
    config = tf.ConfigProto(operation_timeout_in_ms=5)
    with pytest.raises(tf.errors.DeadlineExceededError, match="grpc://test:77 was not reset within 0.005 s"):
        tf.Session.reset("grpc://test:77", ["named"], config=config, host=HOST)
    with pytest.raises(tf.errors.UnavailableError):
        tf.Session.reset("grpc://test:77", host=HOST)
    with pytest.raises(tf.errors.NotFoundError):
        tf.Session.reset("nonexistent", ["named"], host=HOST)


def test_two_tasks_of_one_process_share_no_variables(servers):
    with tf.Graph(host=HOST).as_default():
        found, v = [], tf.get_variable("mine", initializer=1.0)
        for target in (servers[1].target, servers[2].target):
            with tf.Session(target) as session:
                session.run(v.initializer)
                found.append(session.run(v.assign_add(1.0)))
    assert found == [2.0, 2.0]


def test_an_isolated_session_has_containers_of_its_own(servers):
    isolated = tf.SessionConfig(isolate_session_state=True)
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0, name="v")
            with tf.container("named"):
                w = tf.Variable(2.0, name="w")
        both = tf.group(v.initializer, w.initializer)
        target = servers[1].target
        with tf.Session(target) as shared, tf.Session(target, config=isolated) as other:
            with tf.Session(target, config=isolated) as alone:
                alone.run(both)
                alone.run([v.assign_add(5.0), w.assign_add(5.0)])
                for each in (shared, other):
                    for variable in (v, w):
                        with pytest.raises(tf.errors.FailedPreconditionError):
                            each.run(variable)
                shared.run(both)
                tf.Session.reset(servers[2].target, host=HOST)
                assert alone.run([v, w]) == [6.0, 7.0]
                (own,) = [o.containers for o in servers[0]._task._sessions.all().values() if o.containers and o.parts][
                    :1
                ]
                stores = [own.store(name) for name in ("", "named")]
                assert [len(store._resources) for store in stores] == [1, 1]
            assert [len(store._resources) for store in stores] == [0, 0], "they end with their session"


@pytest.mark.parametrize(
    ("filters", "seen"),
    [
        ([], ["ps/task:0", "worker/task:0", "worker/task:1"]),
        (["/job:ps"], ["ps/task:0", "worker/task:0"]),
        (["/job:worker/task:1", "/job:other"], ["worker/task:0", "worker/task:1"]),
        (["/task:0"], ["ps/task:0", "worker/task:0"]),
    ],
)
def test_a_session_has_its_own_task_and_those_that_its_filters_name(servers, filters, seen):
    config = tf.SessionConfig(device_filters=filters)
    with tf.Graph(host=HOST).as_default():
        results = {}
        for task in ("ps/task:0", "worker/task:0", "worker/task:1"):
            with tf.device(f"/job:{task}"):
                results[task] = tf.Variable(3, name=task.replace(":", "")).initializer
        with tf.Session(servers[1].target, config=config) as session:
            assert session.list_devices() == [f"/job:{task}/device:cpu:0" for task in seen]
            for task, result in results.items():
                if task in seen:
                    session.run(result)
                else:
                    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{task}(.|\n)*device_filters"):
                        session.run(result)


def test_devices_bear_the_names_of_their_tasks(servers):
    with tf.Session(servers[1].target, host=HOST) as session:
        names = session.list_devices()
    assert names == [f"/job:{t}/device:cpu:0" for t in ("ps/task:0", "worker/task:0", "worker/task:1")]


def test_a_session_on_a_target_is_a_session_to_savers(servers, tmp_path):
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable([1.0, 2.0], name="v")
        saver = tf.train.Saver()
        with tf.Session(servers[1].target) as session:
            assert isinstance(session, tf.Session)
            session.run(v.initializer)
            path = saver.save(session, str(tmp_path / "model"))
            session.run(v.assign([0.0, 0.0]))
            saver.restore(session, path)
            assert session.run(v).tolist() == [1.0, 2.0]


def test_a_dequeue_on_one_task_waits_for_an_enqueue_on_another(servers):
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(10, [tf.int32], shapes=[[]], name="queue")
        with tf.device("/job:worker/task:1"):
            element = tf.random_uniform([], 8, 9, tf.int32)
        give = queue.enqueue(element)
        taken = queue.dequeue() * 2
        with tf.Session(servers[1].target) as session:
            found = []
            thread = threading.Thread(target=lambda: found.append(session.run(taken)))
            thread.start()
            session.run(give)
            thread.join(30)
            assert found == [16]


def test_the_first_error_ends_the_step_everywhere_and_names_its_task_and_line(servers):
    with tf.Graph(host=HOST).as_default():
        x = tf.placeholder(tf.int32, [])
        with tf.device("/job:worker/task:1"):
            wrong = tf.gather(tf.range(3), x)
        with tf.device("/job:ps/task:0"):
            after = wrong + 1
        with tf.Session(servers[1].target) as session:
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run(after * 2, {x: 7})
            assert caught.value.op is wrong.op
            assert any("/job:worker/task:1" in note for note in caught.value.__notes__)
            assert session.run(after * 2, {x: 1}) == 4


def test_a_deadline_ends_a_step_that_waits_on_another_task(servers):
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0"):
            taken = tf.FIFOQueue(1, [tf.int32], name="empty").dequeue()
        with tf.Session(servers[1].target) as session, pytest.raises(tf.errors.DeadlineExceededError):
            session.run(taken + 1, options=tf.RunOptions(timeout_in_ms=50))


def test_closing_a_session_ends_its_steps(servers):
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0"):
            taken = tf.FIFOQueue(1, [tf.int32], name="empty").dequeue()
        more = taken + 1
        session, found = tf.Session(servers[1].target), []

        def wait():
            try:
                session.run(more)
            except tf.errors.OpError as error:
                found.append(type(error))

        thread = threading.Thread(target=wait)
        thread.start()
        _until(lambda: session._running or not thread.is_alive())
        session.close()
        thread.join(30)
        assert found == [tf.errors.CancelledError]
        with pytest.raises(RuntimeError, match="the session is closed"):
            session.run(taken)


def test_a_server_that_stops_ends_the_steps_that_need_it(servers):
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0, name="v")
        with tf.Session(servers[1].target) as session:
            session.run(v.initializer)
            servers[0].stop()
            with pytest.raises(tf.errors.UnavailableError):
                session.run(v)


def test_a_server_that_comes_back_is_empty_and_its_steps_are_aborted():
    cluster = {"ps": ["test:4"], "worker": ["test:5"]}
    ps, worker = tf.train.Server(cluster, "ps", 0, host=HOST), tf.train.Server(cluster, "worker", 0, host=HOST)
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0, name="v")
        with tf.Session(worker.target) as session:
            session.run(v.initializer)
            ps.stop()
            ps = tf.train.Server(cluster, "ps", 0, host=HOST)
            with pytest.raises(tf.errors.AbortedError, match="started anew"):
                session.run(v)
        with tf.Session(worker.target) as session, pytest.raises(tf.errors.FailedPreconditionError):
            session.run(v)
    ps.stop(), worker.stop()


def test_explain_counts_what_travels(servers):
    with tf.Graph(host=HOST).as_default():
        x, _, loss, train, _ = training()
        with tf.Session(servers[1].target) as session:
            said = session.explain([train, loss], {x: np.ones((2, 3))})
    assert {row["task"] for row in said.facts()["tasks"]} == {
        f"/job:{t}" for t in ("ps/task:0", "worker/task:0", "worker/task:1")
    }
    assert said.messages == 4 + len([e for e in said.facts()["edges"] if e["from"] != e["to"]]) == 10
    assert "w/Read/ReadVariableOp:0: /job:ps/task:0 to /job:worker/task:1, float32 24 B" in str(said)


@pytest.mark.plain  # in debug mode each read is a copy
def test_explain_tells_the_plans_of_the_parts_and_a_table_is_not_copied_for_rows_by_received_ids(servers):
    """The kernel that gathers locks the table for itself, as the one that updates it does: both calls bear the step's token."""
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0"):
            table = tf.Variable(np.arange(12.0, dtype=np.float32).reshape(6, 2), name="table")
        with tf.device("/job:worker/task:1"):
            ids = tf.placeholder(tf.int64, [3]) + 1
            rows = tf.nn.embedding_lookup(table, ids)
            loss = tf.reduce_sum(rows * rows)  # its gradient comes back
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
        feeds = {ids.op.inputs[0]: [0, 1, 3]}
        with tf.Session(servers[1].target) as session:
            session.run(table.initializer)
            said = session.explain([train, rows], feeds)
            assert session.run([train, rows], feeds)[1].tolist() == [[2, 3], [4, 5], [8, 9]]
            assert session.run(table).tolist() == [[0, 1], [0, 0], [0, 0], [6, 7], [0, 0], [10, 11]]
    plans = {plan["task"]: plan for plan in said.facts()["plans"]}
    assert {"cluster.recv": 2, "cpu.gather": 1}.items() <= plans["/job:ps/task:0"]["kernels"].items()
    assert plans["/job:ps/task:0"]["devices"]["cpu:0"] >= 4
    assert {"cluster.send": 1, "cpu.add": 1}.items() <= plans["/job:worker/task:1"]["kernels"].items()
    assert "; kernels: cluster.recv 2, " in str(said).partition("/job:ps/task:0 runs nodes on cpu:0 ")[2]
    source = plans["/job:ps/task:0"]["source"]
    assert len(re.findall(r"u\d\(token, k\d, w0, ", source)) == source.count("w0") == 2, source


def test_random_ops_give_the_numbers_of_one_task(servers):
    def draws(target):
        with tf.Graph(host=HOST).as_default():
            with tf.device("/job:worker/task:1" if target else None):
                a = tf.random_normal([3], seed=4)
            b = tf.nn.dropout(a, 0.5, seed=2)
            with tf.Session(target) as session:
                return [session.run(t).tolist() for t in (a, b, a, b)]

    assert draws(servers[1].target) == draws("")


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda s, t: s.partial_run_setup([t]), "partial_run"),
        (lambda s, t: s.run(t, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)), "not traced"),
    ],
)
def test_what_targets_do_not_do_is_refused(servers, call, what):
    with tf.Graph(host=HOST).as_default():
        t = tf.constant(1.0) * 2
        with tf.Session(servers[1].target) as session, pytest.raises(tf.errors.UnimplementedError, match=what):
            call(session, t)


def test_a_stopped_step_takes_nothing_later(servers):
    """A dequeue of a step that was stopped is cancelled on its task: the next element is the next step's."""
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(4, [tf.int32], shapes=[[]], name="queue")
            taken = queue.dequeue()
        more, give = taken + 1, queue.enqueue(5)
        with tf.Session(servers[1].target) as session:

            def stop():
                _until(lambda: servers[0]._task.running)
                next(iter(session._running.values())).abort(CancelledError("stopped"))

            for _ in range(3):
                _until(lambda: not servers[0]._task.running)
                threading.Thread(target=stop).start()
                with pytest.raises(CancelledError):
                    session.run(more)
            session.run(give)
            assert session.run(more, options=tf.RunOptions(timeout_in_ms=30_000)) == 6


def test_a_part_that_waits_for_something_else_ends_with_the_step(servers):
    """An error on one task ends a dequeue on another, which waits for no tensor."""
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0"):
            taken = tf.FIFOQueue(1, [tf.int32], shapes=[[]], name="empty").dequeue()
        x = tf.placeholder(tf.int32, [])
        with tf.device("/job:worker/task:1"):
            wrong = tf.gather(tf.range(3), x)
        with tf.Session(servers[1].target) as session:
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run([taken, wrong], {x: 7})
            assert caught.value.op is wrong.op
            _until(lambda: not servers[0]._task.running)


def test_signatures_are_kept_up_to_the_plan_cache_and_tasks_forget_the_others(servers):
    config = tf.SessionConfig(plan_cache_size=3)
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0"):
            made = [tf.identity(tf.constant(float(n))) for n in range(6)]
        with tf.Session(servers[1].target, config=config) as session:
            assert [session.run(t) for t in made] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
            (opened,) = servers[0]._task._sessions.all().values()
            assert len(session._steps) == len(opened.parts) == 3
            assert session.run(made[3]) == 3.0, "the oldest one is now the youngest"
            session.run(made[0])
            assert {made[3], made[5], made[0]} == set(session._steps)
            assert session.run(made) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_settings_of_a_session_hold_on_its_tasks(servers, capfd):
    """Soft placement, passes and checks are the session's; backends and threads stay each server's."""
    with tf.Graph(host=HOST).as_default():
        with tf.device("/job:ps/task:0/device:GPU:0"):
            x = tf.placeholder_with_default(2.0, [])
            y = tf.log(x - 2.0, name="y")
        soft = tf.SessionConfig(fallback="allow", log_device_placement=True)
        for config in (None, tf.SessionConfig(inter_op_threads=1)):
            with (
                tf.Session(servers[1].target, config=config) as session,
                pytest.raises(tf.errors.InvalidArgumentError, match="asks for the device"),
            ):
                session.run(y)
        with tf.Session(servers[1].target, config=soft) as session:
            assert session.run(y) == -np.inf
        assert "y" in capfd.readouterr().err
        checked = tf.SessionConfig(fallback="allow", check_numerics=True)
        with (
            tf.Session(servers[1].target, config=checked) as session,
            pytest.raises(tf.errors.InvalidArgumentError, match="y"),
        ):
            session.run(y)
