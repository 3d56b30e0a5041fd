"""SyncReplicasOptimizer in one process: towers with threads, sessions that share a container.

Values of synchronous steps are TensorFlow 2.21's for the same program.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import ArgumentTypeError, FailedPreconditionError, InvalidArgumentError
from graphdock_data.resources.dropped import DROPPED


class Towers:
    """A model, and N replicas of it in one graph, each with its optimizer."""

    def __init__(self, count, required=None, total=None, rows=True, **config):
        self.step = tf.train.get_or_create_global_step()
        self.w = tf.get_variable("w", initializer=[1.0, 2.0])
        self.e = tf.get_variable("e", initializer=np.arange(1.0, count + 2, dtype=np.float32)[:, None])
        self.x = [tf.placeholder(tf.float32, [2]) for _ in range(count)]
        self.average = tf.train.ExponentialMovingAverage(0.5)
        self.optimizers, self.train, self.losses = [], [], []
        for i, x in enumerate(self.x):
            loss = tf.reduce_sum(self.w * x)
            if rows:
                loss += tf.reduce_sum(tf.gather(self.e, [0, i + 1]) * self.w[0])
            inner = tf.train.MomentumOptimizer(0.25, 0.5)
            made = tf.train.SyncReplicasOptimizer(
                inner, required or count, total, variable_averages=self.average, variables_to_average=[self.w]
            )
            with tf.name_scope(f"tower{i}"):
                self.train.append(made.minimize(loss, global_step=self.step))
            self.optimizers.append(made)
            self.losses.append(loss)
        self.chief = self.optimizers[0]
        self.init = tf.global_variables_initializer()
        self.tokens = self.chief.get_init_tokens_op(max(0, (required or count) - (total or count)))
        self.session = tf.Session(config=tf.SessionConfig(**config))
        self.coord = tf.train.Coordinator()

    def __enter__(self):
        run = self.session.run
        assert run(self.chief.ready_for_local_init_op).size
        run(self.init)
        assert run(self.chief.ready_for_local_init_op).size == 0
        run([made.local_step_init_op for made in self.optimizers])
        run(self.chief.chief_init_op)
        run(self.tokens)
        self.threads = self.chief.get_chief_queue_runner().create_threads(self.session, self.coord, True, True)
        return self

    def __exit__(self, *_):
        self.coord.request_stop()
        self.coord.join(self.threads, stop_grace_period_secs=60)
        self.session.close()

    def together(self, steps, feed):
        """Losses of each replica, which take their steps at once."""

        def work(i):
            return [
                float(self.session.run([self.losses[i], self.train[i]], {self.x[i]: feed(i, k)})[0])
                for k in range(steps)
            ]

        with ThreadPoolExecutor(len(self.x)) as pool:
            return list(pool.map(work, range(len(self.x))))


def test_synchronous_steps_are_tensorflows():
    with Towers(3) as towers:
        losses = towers.together(3, lambda i, k: [i + 1.0, k + 1.0])
        assert losses == [[6.0, 1.75, -5.8125], [8.0, 0.75, -11.0625], [10.0, -0.25, -16.3125]]
        values = towers.session.run([towers.step, towers.w, towers.e, towers.average.average(towers.w)])
    step, w, e, shadow = values
    assert step == 3 and w.tolist() == [-5.0625, 0.0625] and shadow.tolist() == [-3.125, 0.78125]
    assert e.ravel().tolist() == [1.40625, 2.40625, 3.40625, 4.40625]
    assert towers.chief.variables() == towers.chief._opt.variables() and towers.chief.get_slot_names() == ["momentum"]
    assert towers.chief.get_slot(towers.w, "momentum") is towers.chief._opt.get_slot(towers.w, "momentum")


def test_rules_that_take_sums_of_rows_know_how_many_rows_a_variable_has():
    """Adam and the rows of an embedding, against Adam on the mean of the dense gradients by hand."""
    e = tf.get_variable("rows", initializer=[[1.0], [2.0], [3.0], [4.0]])
    made = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(0.125), 1)
    train = made.minimize(tf.reduce_sum(tf.gather(e, [0, 2, 2])), global_step=tf.train.get_or_create_global_step())
    tokens, coord = made.get_init_tokens_op(0), tf.train.Coordinator()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([made.local_step_init_op, made.chief_init_op, tokens])
        threads = made.get_chief_queue_runner().create_threads(session, coord, True, True)
        for _ in range(2):
            session.run(train)
        np.testing.assert_allclose(session.run(e).ravel(), [0.75, 2.0, 2.75, 4.0], rtol=1e-5)
        coord.request_stop()
    coord.join(threads, stop_grace_period_secs=60)


def test_a_backup_that_comes_late_is_dropped_and_counted(caplog):
    """Two of three count; the third one's gradient, of the step before, changes nothing."""
    before = DROPPED.count
    with Towers(3, required=2, total=3, rows=False) as towers:
        run = towers.session.run
        late = run(tf.gradients(towers.losses[2], towers.w)[0], {towers.x[2]: [64.0, 64.0]})
        assert late.tolist() == [64, 64]
        both = [(i, {towers.x[i]: [1.0, 1.0]}) for i in (0, 1)]
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(lambda each: run(towers.train[each[0]], each[1]), both)) == [1, 1]
        with caplog.at_level(logging.WARNING, "graphdock"):
            assert run(towers.train[2], {towers.x[2]: [64.0, 64.0]}) == 1  # the third token
        assert run([towers.step, towers.w])[1].tolist() == [0.75, 1.75]
        found = list(run([made.num_accumulated() for made in accumulators(towers)]))
        assert found == [0] * len(found)
    assert DROPPED.count == before + 1
    told = [record.getMessage() for record in caplog.records]
    if bin(DROPPED.count).count("1") == 1:  # each time that the number has doubled
        assert told[0].startswith(f"Gradients that came too late, and were dropped, so far: {DROPPED.count}.")
        assert "of step 0, for 'w:0/grad_accum', which was at 1" in told[0]


def accumulators(towers):
    with towers.session.graph.as_default():
        return [tf.ConditionalAccumulator(tf.float32, [2], shared_name="w:0/grad_accum")]


def test_replicas_that_are_too_few_compute_several_gradients():
    """One replica, two gradients in a step: tokens of the beginning let it go on."""
    with Towers(1, required=2, total=1, rows=False) as towers:
        feeds = [{towers.x[0]: [n, n]} for n in (1.0, 3.0, 5.0, 7.0)]
        assert [int(towers.session.run(towers.train[0], feed)) for feed in feeds] == [0, 1, 1, 2]
        assert towers.session.run(towers.step) == 2
        assert towers.session.run(towers.w).tolist() == [1 - 0.5 - 1.75, 2 - 0.5 - 1.75]  # means 2 and 6, momentum 0.5


def test_a_deterministic_session_adds_in_one_order():
    """Sums of float32 depend on their order: that of replicas, or of values where nobody says which it is."""
    values = np.array([1e8, 1.0, -1e8, 3.0], np.float32)
    found = set()
    for config in (tf.SessionConfig(deterministic=True), tf.SessionConfig()):
        acc = tf.ConditionalAccumulator(tf.float32, [], reduction_type="SUM")
        rows = tf.SparseConditionalAccumulator(tf.float32, reduction_type="SUM")
        applied = [(acc.apply_grad(v, replica=i), rows.apply_grad([2], [v], replica=i)) for i, v in enumerate(values)]
        other = tf.ConditionalAccumulator(tf.float32, [], reduction_type="SUM")
        unnamed = [other.apply_grad(v) for v in values]
        take, take_rows, take_unnamed = acc.take_grad(4), rows.take_grad(4), other.take_grad(4)
        in_turn = np.float32(0) + values[0] + values[1] + values[2] + values[3]
        for order in ((0, 1, 2, 3), (3, 1, 2, 0), (1, 3, 0, 2)):
            with tf.Session(config=config) as sess:
                for i in order:
                    sess.run(applied[i])
                got, (_, (row,), _) = sess.run([take, take_rows])
                assert got == row
                for i in order:
                    sess.run(unnamed[i])
                found.add((config.deterministic, float(got), float(sess.run(take_unnamed))))
        if config.deterministic:
            assert {got for _, got, _ in found} == {float(in_turn)} and len(found) == 1
    assert len(found) > 2


def test_what_is_wrong_is_named():
    x = tf.get_variable("x", initializer=1.0)
    step = tf.train.get_or_create_global_step()
    inner = tf.train.GradientDescentOptimizer(0.1)
    made = tf.train.SyncReplicasOptimizer(inner, 3, total_num_replicas=1)
    for call, text in (
        (made.get_chief_queue_runner, "Should be called after apply_gradients"),
        (made.get_init_tokens_op, "should be called after apply_gradients"),
        (lambda: made.apply_gradients([], step), "Must supply at least one variable"),
        (lambda: made.minimize(x * x), "Global step is required"),
        (lambda: made.apply_gradients([("no", x)], step), "Unknown grad type"),
        (lambda: tf.train.SyncReplicasOptimizer(inner, 0), "replicas_to_aggregate must be at least 1"),
        (lambda: made.make_session_run_hook(True).begin(), "apply_gradient should be called before using the hook"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    hook = made.make_session_run_hook(True, num_tokens=0)
    made.apply_gradients([(tf.constant(1.0), x), (None, step)], step)
    with pytest.raises(
        InvalidArgumentError, match=r"Too few tokens to finish the first step: 0 \(given\) vs 2 \(needed\)"
    ):
        hook.begin()
    assert made.get_init_tokens_op(2).type == "QueueEnqueueManyV2"
    for wrong in (
        lambda: tf.train.SyncReplicasOptimizer(3, 1),
        lambda: tf.train.SyncReplicasOptimizer(inner, 1, 1, "e"),
    ):
        with pytest.raises(ArgumentTypeError):
            wrong()
    hook = made.make_session_run_hook(False)
    hook.begin()
    with tf.Session() as sess, pytest.raises(FailedPreconditionError, match="local_init(.|\n)*x, global_step"):
        hook.after_create_session(sess, tf.train.Coordinator())


def test_accumulators_lie_with_their_variables_and_the_rest_on_the_worker():
    with tf.device(tf.train.replica_device_setter(2, worker_device="/job:worker/task:1")):
        step = tf.train.get_or_create_global_step()
        a, b = tf.get_variable("a", [2]), tf.get_variable("b", [3, 1])
        loss = tf.reduce_sum(a) + tf.reduce_sum(tf.gather(b, [0, 1]))
        made = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(), 2)
        train = made.minimize(loss, global_step=step)
    graph = tf.get_default_graph()
    placed = {op.type: set() for op in graph.get_operations()}
    for op in graph.get_operations():
        placed[op.type].add(op.device)
    assert step.op.device == "/job:ps/task:0" == b.op.device and a.op.device == "/job:ps/task:1"
    assert placed["ResourceConditionalAccumulator"] == {a.op.device} == placed["ResourceAccumulatorApplyGradient"]
    assert placed["SparseConditionalAccumulator"] == {b.op.device} == placed["SparseAccumulatorTakeGradient"]
    assert placed["FIFOQueueV2"] == placed["GraphdockQueueDequeueSince"] == {step.op.device}
    (local,) = tf.local_variables()
    assert local.op.device == "/job:worker/task:1" and local.op.get_attr("container") == ""
    replicas = {op.get_attr("replica") for op in graph.get_operations() if op.type.endswith("AccumulatorApplyGradient")}
    assert replicas == {1}, "the task of the worker"
    assert train.op.graph is graph and {v.op.device for v in made.variables() if "a/" in v.name} == {a.op.device}


# -- sessions that share a container -----------------------------------------------------------------------------------


#: Elements of an input that does not end before the others do.
MANY = 100_000


class Replica:
    """One of several programs: a graph and a session of its own, variables in the container ``"shared"``."""

    def __init__(self, number, of, required=None, ends_at=None, steps=None, hooks=(), **session):
        self.graph = tf.Graph()
        with self.graph.as_default():
            own = np.full([ends_at or MANY, 2], number + 1.0, np.float32)
            x = tf.data.Dataset.from_tensor_slices(own).make_one_shot_iterator().get_next()
            with tf.container("shared"):
                step = tf.train.get_or_create_global_step()
                self.w = tf.get_variable("w", initializer=[1.0, 2.0])
                made = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.25), required or of, of)
                self.train = made.minimize(tf.reduce_sum(self.w * x), global_step=step)
            hooks = [made.make_session_run_hook(number == 0), *hooks]
            if steps:
                hooks.append(tf.train.StopAtStepHook(last_step=steps))
            self.session = tf.train.MonitoredTrainingSession(is_chief=number == 0, hooks=hooks, **session)
        self.values = None

    def loop(self, times=None, until=lambda: False):
        """Train until the end, or for so many steps, or until something holds; returns how many steps it took part in."""
        count = 0
        with self.graph.as_default(), self.session as sess:
            while not sess.should_stop() and count != times and not until():
                sess.run(self.train)
                count += 1
            self.values = sess.run_step_fn(lambda step_context: step_context.session.run(self.w))
        return count


@pytest.fixture
def replicas():
    made = []

    def make(of, **arguments):
        for number in range(of):
            own = {key: value[number] if isinstance(value, tuple) else value for key, value in arguments.items()}
            made.append(Replica(number, of, **own))
        return made

    yield make
    tf.Session.reset(containers=["shared"])


def loops(made, times=(None, None, None)):
    with ThreadPoolExecutor(len(made)) as pool:
        return [each.result(60) for each in [pool.submit(m.loop, t) for m, t in zip(made, times, strict=False)]]


def test_sessions_over_one_container_train_together(replicas):
    made = replicas(3, steps=4)
    counts = loops(made)
    assert sum(counts) <= 3 * 5 and max(counts) >= 4
    # each step's mean of three gradients, whoever gave them in which order
    # others may have read their values before the first mean was taken: of those that came too late none counts
    value = max(zip(counts, made, strict=True), key=lambda pair: pair[0])[1].values[1]
    assert value <= 1.0, "four means of three gradients, all of which may be the first replica's"


def test_an_input_that_ends_ends_all(replicas):
    """The first replica has two elements: in place of waiting for its third gradient, the others end too."""
    made = replicas(3, ends_at=(2, None, None))
    counts = loops(made)
    assert counts[0] <= 2 and max(counts) < MANY


def test_a_worker_whose_input_ends_ends_the_chief(replicas):
    made = replicas(2, ends_at=(None, 2))
    assert max(loops(made)) < MANY


def test_one_that_leaves_gives_its_token_back(replicas):
    """Replicas that run a number of steps of their own need not wait for those that have left."""
    chief, *others = replicas(3)
    more = iter(range(2))  # steps that the chief takes alone
    with ThreadPoolExecutor(3) as pool:
        left = [pool.submit(each.loop, times) for each, times in zip(others, (2, 3), strict=True)]
        taken = pool.submit(chief.loop, None, lambda: all(each.done() for each in left) and next(more, None) is None)
        assert [each.result(60) for each in left] == [2, 3]
        assert taken.result(60) >= 2


def test_the_chief_goes_on_after_a_failure_that_may_pass(tmp_path, replicas):
    """It restores an older step; the workers' gradients of later steps count for nothing, and all go on."""
    failures = [None, None, tf.errors.AbortedError(None, None, "boom")]

    class Fails(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            error = failures.pop(0) if failures else None
            if error is not None:
                raise error

    made = replicas(
        2,
        steps=8,
        hooks=((Fails(),), ()),
        checkpoint_dir=(str(tmp_path), None),
        save_checkpoint_steps=(2, None),
    )
    counts = loops(made)
    assert not failures and min(counts) >= 1
    assert tf.train.load_variable(str(tmp_path), "global_step") >= 8


def test_a_thread_that_begins_to_wait_late_is_ended(monkeypatch):
    """The chief's thread was about to wait for gradients when its Coordinator stopped."""
    with Towers(1, required=2, total=2, rows=False) as towers:
        runner = towers.chief.get_chief_queue_runner()
        towers.coord.request_stop()
        for thread in towers.threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in towers.threads)
        reached, go_on, coord = threading.Event(), threading.Event(), tf.train.Coordinator()
        enqueue = towers.session.make_callable(runner.enqueue_ops[0])

        class Late:
            graph = towers.session.graph

            def run(self, op):
                reached.wait(60)
                go_on.set()
                return towers.session.run(op)

            def make_callable(self, op):
                def call():
                    reached.set()
                    assert go_on.wait(60)
                    return enqueue()

                return call

        threads = runner.create_threads(Late(), coord, True, True)
        assert reached.wait(60)
        coord.is_followed = True  # the queue stays open: the reset alone ends the wait
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=60)
