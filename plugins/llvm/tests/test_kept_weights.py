"""Weights that a plan only reads: packed when they were written, and kept from step to step."""

from __future__ import annotations

import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import KernelRefused
from graphdock.ops import apply_op
from graphdock_llvm import packing
from graphdock_llvm.compiler import VectorRegions

LLVM = {"backends": ("llvm", "cpu")}
ROWS, ALONG, COLUMNS = 40, 128, 96


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def packed(monkeypatch):
    """Matrices that were packed for more than a step."""
    fill, calls = packing._fill, []

    def counted(of, array, room):
        calls.append(np.array(array))
        fill(of, array, room)

    monkeypatch.setattr(packing, "_fill", counted)
    return calls


def numbers(*shape, seed=0):
    return (np.random.default_rng(seed).normal(size=shape) * 0.1).astype(np.float32)


class Layer:
    """relu(x w + 1) of a variable."""

    def __init__(self, rows=ROWS, **named):
        self.x, self.w = numbers(ROWS, ALONG), numbers(ALONG, COLUMNS, seed=1)
        self.fed = tf.placeholder(tf.float32, [rows, ALONG])
        self.weight = tf.get_variable("w", initializer=self.w, use_resource=True, **named)
        self.y = tf.nn.relu(tf.matmul(self.fed, self.weight) + 1.0)

    def agrees(self, session, times=1.0, rows=ROWS):
        made = session.run(self.y, {self.fed: self.x[:rows]})
        want = np.maximum(self.x[:rows] @ (self.w * np.float32(times)) + 1, 0)
        np.testing.assert_allclose(made, want, rtol=1e-4, atol=1e-5)


def test_it_is_packed_once_and_again_when_it_was_written(packed):
    layer = Layer()
    double = layer.weight.assign(layer.weight * 2.0)
    more = layer.weight.assign_add(numbers(ALONG, COLUMNS, seed=1))
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        session.run(layer.weight.initializer)
        for _ in range(3):
            layer.agrees(session)
        assert len(packed) == 1
        session.run(double)
        for _ in range(3):
            layer.agrees(session, 2.0)
        session.run(more.op)
        layer.agrees(session, 3.0)
        layer.weight.load(layer.w * 5, session)
        layer.agrees(session, 5.0)
        session.run(layer.weight.initializer)
        layer.agrees(session)
        assert len(packed) == 5


def test_training_and_restoring_are_seen_by_the_steps_that_infer(packed, tmp_path):
    layer, saver = Layer(), tf.train.Saver()
    train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_sum(tf.square(layer.y)))
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session, tf.Session() as plain:
        for one in (session, plain):
            one.run(layer.weight.initializer)
        path = saver.save(session, str(tmp_path / "m"))
        for _ in range(4):
            for one in (session, plain):
                one.run(train, {layer.fed: layer.x})
            found = [one.run(layer.y, {layer.fed: layer.x}) for one in (session, plain)]
            np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)
        assert len(packed) == 4
        saver.restore(session, path)
        layer.agrees(session)


def test_a_step_that_writes_it_too_keeps_nothing(packed):
    layer = Layer()
    with tf.control_dependencies([layer.y]):
        double = layer.weight.assign(layer.weight * 2.0)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        session.run(layer.weight.initializer)
        for turn in range(3):
            made, _ = session.run([layer.y, double], {layer.fed: layer.x})
            np.testing.assert_allclose(made, np.maximum(layer.x @ (layer.w * 2**turn) + 1, 0), rtol=1e-4, atol=1e-5)
    assert not packed


def test_plans_for_other_shapes_share_it(packed):
    layer = Layer(rows=None)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        session.run(layer.weight.initializer)
        for rows in range(20, ROWS):  # eight shapes, then a plan for any
            layer.agrees(session, rows=rows)
        assert len(packed) == 1
        layer.weight.load(layer.w * 2, session)
        for rows in range(20, ROWS):
            layer.agrees(session, 2.0, rows)
        assert len(packed) == 2


def test_sessions_of_one_container_see_what_either_writes(packed):
    with tf.container("weights of test_kept_weights"):
        layer = Layer()
    with tf.Session(config=tf.SessionConfig(**LLVM)) as a, tf.Session(config=tf.SessionConfig(**LLVM)) as b:
        a.run(layer.weight.initializer)
        for turn in range(1, 4):
            layer.weight.load(layer.w * turn, (a, b)[turn % 2])
            layer.agrees(a, turn)
            layer.agrees(b, turn)
        assert len(packed) == 3


def test_a_value_that_was_lost_is_no_longer_read(packed):
    layer = Layer()
    destroyed = apply_op("DestroyResourceOp", resource=layer.weight.handle)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="w' is read before it was assigned"):
            layer.agrees(session)
        session.run(layer.weight.initializer)
        layer.agrees(session)
        session.run(destroyed)
        with pytest.raises(tf.errors.FailedPreconditionError, match="w' is read before it was assigned"):
            layer.agrees(session)
        layer.weight.load(layer.w * 3, session)
        layer.agrees(session, 3.0)


def test_readers_and_a_writer_at_once_see_one_value_or_the_other():
    layer = Layer()
    new = tf.placeholder(tf.float32, layer.w.shape)
    written, wants = layer.weight.assign(new), [np.maximum(layer.x @ (layer.w * n) + 1, 0) for n in range(5)]
    faults, done = [], threading.Event()

    def read(session):
        while not done.is_set():
            made = session.run(layer.y, {layer.fed: layer.x})
            if not any(np.allclose(made, want, rtol=1e-4, atol=1e-5) for want in wants):
                faults.append(made)

    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        session.run(layer.weight.initializer)
        readers = [threading.Thread(target=read, args=(session,)) for _ in range(3)]
        for reader in readers:
            reader.start()
        for turn in range(60):
            session.run(written.op, {new: layer.w * (turn % 5)})
        done.set()
        for reader in readers:
            reader.join()
        layer.agrees(session, 59 % 5)
    assert not faults


def test_a_step_that_waits_for_others_keeps_nothing(packed):
    layer = Layer()
    waits = tf.py_func(lambda y: y * 2, [layer.y], tf.float32)
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        session.run(layer.weight.initializer)
        for turn in range(1, 4):
            layer.weight.load(layer.w * turn, session)
            made = session.run(waits, {layer.fed: layer.x})
            np.testing.assert_allclose(made, 2 * np.maximum(layer.x @ (layer.w * turn) + 1, 0), rtol=1e-4, atol=1e-5)
    assert not packed


def test_a_branch_reads_the_variable_itself(packed):
    layer, taken = Layer(), tf.placeholder(tf.bool, [])
    y = tf.cond(taken, lambda: tf.nn.relu(tf.matmul(layer.fed, layer.weight) + 1.0), lambda: layer.fed[:, :COLUMNS])
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        session.run(layer.weight.initializer)
        for turn in range(1, 4):
            layer.weight.load(layer.w * turn, session)
            made = session.run(y, {layer.fed: layer.x, taken: True})
            np.testing.assert_allclose(made, np.maximum(layer.x @ (layer.w * turn) + 1, 0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", [{"memory_budget": {"cpu": 1 << 27}}, {"memory_limit": {"cpu": 1 << 27}}])
def test_a_session_that_saves_memory_keeps_nothing(packed, settings):
    layer = Layer()
    with tf.Session(config=tf.SessionConfig(**LLVM, **settings)) as session:
        session.run(layer.weight.initializer)
        layer.agrees(session)
    assert not packed


@pytest.mark.parametrize(
    "settings",
    [{"executor": "dataflow", "inter_op_threads": 2}, {"debug": True}],
)
def test_other_executors_and_modes_agree(settings):
    layer = Layer()
    with tf.Session(config=tf.SessionConfig(**LLVM, **settings)) as session:
        session.run(layer.weight.initializer)
        for turn in range(1, 4):
            layer.weight.load(layer.w * turn, session)
            for _ in range(2):
                layer.agrees(session, turn)


def test_a_reset_closes_what_was_kept(packed):
    with tf.container("a container of test_kept_weights"):
        layer = Layer()
    for _ in range(2):
        with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
            session.run(layer.weight.initializer)
            layer.agrees(session)
            tf.Session.reset("", ["a container of test_kept_weights"])
            with pytest.raises(tf.errors.OpError):
                layer.agrees(session)
            session.run(layer.weight.initializer)
            layer.agrees(session)
    assert len(packed) == 4


def test_where_its_region_refuses_the_variable_itself_is_read(monkeypatch, packed):
    prepare = VectorRegions.prepare

    def refused(self, region, ctx):
        if region.arranged:
            raise KernelRefused("not today")
        return prepare(self, region, ctx)

    monkeypatch.setattr(VectorRegions, "prepare", refused)
    layer = Layer()
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        session.run(layer.weight.initializer)
        for turn in range(1, 4):
            layer.weight.load(layer.w * turn, session)
            layer.agrees(session, turn)
        assert "not today" in str(session.explain(layer.y, feed_dict={layer.fed: layer.x}))


def test_explain_says_what_stays_from_step_to_step():
    layer = Layer()
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        told = str(session.explain(layer.y))
    assert "kept from step to step in the order of llvm.panels, until the variable is written" in told


def written(y, w):
    with tf.control_dependencies([y]):
        return [y, w.assign(w * 2.0)]


def both_ways(y, w):
    """Forward as it lies, and turned, beside a write."""
    return written(tf.nn.relu(tf.matmul(y, w, transpose_b=True) + 1.0), w)


def branched(y, w):
    """The last weight is read in a branch alone."""
    return tf.cond(tf.reduce_sum(y) > 0.0, lambda: tf.nn.relu(tf.matmul(y[:, :ALONG], w) + 1.0), lambda: y)


@pytest.mark.parametrize(
    ("rows", "build", "settings", "reason"),
    [
        (ROWS, written, {}, "the step writes it"),
        (ROWS, both_ways, {}, "the step writes it, and each of 2 regions reads it in an order of its own"),
        (ROWS, lambda y, w: y, {"memory_budget": {"cpu": 1 << 30}}, "the session is to save memory"),
        (ROWS, branched, {}, "a loop or a branch reads it"),
        (2000, lambda y, w: y, {}, "beside 2000 rows a copy is a small part of the work"),
        (4, lambda y, w: y, {}, "the product is small, and reads it where it lies"),
        (ROWS, lambda y, w: y + w[:1, :1], {}, ""),
    ],
)
def test_explain_says_why_a_weight_is_not_kept(rows, build, settings, reason):
    w = tf.get_variable("w", [128, 128] if rows > 4 else [8, 8], use_resource=True)
    x = tf.placeholder(tf.float32, [rows, w.shape[0]])
    fetches = build(x if build is branched else tf.nn.relu(tf.matmul(x, w) + 1.0), w)
    with tf.Session(config=tf.SessionConfig(**LLVM, **settings)) as session:
        told = [line for line in session.explain(fetches).notes() if "in no other order" in line]
    assert [line.partition("llvm.region ")[2] for line in told] == (
        [f"keeps w in no other order from step to step: {reason}"] if reason else []
    )


def test_one_line_says_it_of_many_weights():
    y = tf.placeholder(tf.float32, [ROWS, ALONG])
    for number in range(6):
        y = tf.nn.relu(tf.matmul(y, tf.get_variable(f"w{number}", [ALONG, ALONG])) + 1.0)
    train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_sum(y))
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        told = [line for line in session.explain(train).notes() if "in no other order" in line]
    why = "in no other order from step to step: the step writes it"
    assert [line.partition("keeps ")[2] for line in told] == [  # nothing asks for a gradient by the first layer's input
        f"w0 {why}",
        f"w1, w2, w3, w4 and 1 more {why}, and each of 2 regions reads it in an order of its own",
    ]


def test_a_function_of_a_dataset_reads_the_variable_as_it_is_now(packed):
    layer = Layer()
    data = tf.data.Dataset.from_tensors(layer.x).repeat()
    made = data.map(lambda x: tf.nn.relu(tf.matmul(x, layer.weight) + 1.0)).make_initializable_iterator()
    y = made.get_next()
    with tf.Session(config=tf.SessionConfig(**LLVM)) as session:
        session.run([layer.weight.initializer, made.initializer])
        for turn in range(1, 4):
            layer.weight.load(layer.w * turn, session)
            for _ in range(2):
                got = session.run(y)
            np.testing.assert_allclose(got, np.maximum(layer.x @ (layer.w * turn) + 1, 0), rtol=1e-4, atol=1e-5)
