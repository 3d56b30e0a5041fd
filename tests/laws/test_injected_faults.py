"""A fault at any call of a device fails the step that met it, and nothing else: later steps are exact, and nothing is lost.

Each program runs three steps: as it is, recorded, and replayed. A clean run counts the driver's calls of each step; then every one
of them goes wrong in turn, in every way, in a session of its own.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_executor import stream_slots
from graphdock_testing import queued

ONE, TWO = "/device:queued:0", "/device:queued:1"
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def _x(shape=(3, 4)):
    return tf.placeholder(tf.float32, list(shape), name="x")


def pointwise():
    return [tf.tanh(_x() * 2.0) + 1.0]


def reduced():
    x = _x()
    return [tf.reduce_sum(tf.square(x), 1), tf.reduce_max(x)]


def product():
    x = _x()
    return [tf.matmul(x, tf.transpose(x))]


def views():
    x = _x()
    a, b = tf.split(x, 2, 1)
    return [tf.concat([tf.reshape(a, [2, 3]), tf.transpose(b)[:, :3]], 0)]


def filtered():
    x = _x([None, None])
    return [tf.gather_nd(x, tf.where(x > 0.0))]


def chosen():
    x = _x()
    return [tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.exp(x), lambda: tf.reduce_sum(x) - x)]


def looped():
    return [tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.sin(a) + 0.5), [tf.constant(0), _x()])[1]]


def grown():
    shapes = [tf.TensorShape([]), tf.TensorShape([None, 4])]
    return [tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.concat([a, a[:1]], 0)), [0, _x()], shapes)[1]]


def looped_gradient():
    x = _x()
    y = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * x), [0, x])[1]
    return tf.gradients(y, [x])


def called():
    return [tf.py_func(lambda a: a + 1.0, [tf.square(_x())], tf.float32)]


def printed():
    x = tf.square(_x())
    return [tf.Print(x, [tf.shape(x)]) * 2.0]


def assigned():
    v = tf.Variable(np.ones((3, 4), np.float32))
    return [tf.assign(v, _x() * 3.0)]


def counted():
    v = tf.Variable(np.zeros((3, 4), np.float32))
    return [tf.assign_add(v, tf.exp(_x()))]


def read_and_written():
    v = tf.Variable(np.ones((3, 4), np.float32))
    before = v * 2.0
    with tf.control_dependencies([before]):
        return [before, tf.assign_sub(v, _x())]


def scattered():
    v = tf.Variable(np.zeros((4, 4), np.float32))
    return [tf.scatter_add(v, tf.constant([0, 2, 0]), _x())]


def reshaped():
    v = tf.Variable(np.zeros((1, 4), np.float32), validate_shape=False)
    return [tf.reduce_sum(tf.assign(v, _x([None, 4]), validate_shape=False))]


def trained():
    w = tf.Variable(np.ones((4, 2), np.float32))
    loss = tf.reduce_mean(tf.square(tf.matmul(_x(), w)))
    return [loss, tf.train.AdamOptimizer(0.1).minimize(loss)]


def dropped_out():
    w = tf.Variable(np.ones((4,), np.float32))
    return [tf.assign_add(w, tf.reduce_mean(_x(), 0))]


def two_devices():
    x = _x()
    with tf.device(ONE):
        a = tf.square(x)
    with tf.device(TWO):
        b = tf.tanh(a) + a
    with tf.device(ONE):
        return [a * b]


def variables_of_two():
    with tf.device(ONE):
        v = tf.Variable(np.ones((3, 4), np.float32))
    with tf.device(TWO):
        w = tf.Variable(np.ones((3, 4), np.float32))
        up = tf.assign_add(w, v * _x())
    with tf.device(ONE):
        return [tf.assign_add(v, up)]


PROGRAMS = (
    pointwise, reduced, product, views, filtered, chosen, looped, grown, looped_gradient, called, printed, assigned, counted,
    read_and_written, scattered, reshaped, trained, dropped_out, two_devices, variables_of_two,
)  # fmt: skip
STEPS = 3


@pytest.fixture(autouse=True)
def quiet(caplog, capsys):
    caplog.set_level(logging.ERROR, "graphdock")


class Bench:
    """One program on devices of its own."""

    def __init__(self, program, shared=True):
        self.host = Host()
        self.device = queued.install(self.host, seed=1, shared=shared)
        self.graph = tf.Graph(host=self.host)
        with self.graph.as_default():
            self.fetches = program()
            self.start = tf.global_variables_initializer()

    def session(self):
        config = tf.SessionConfig(backends=("queued", "cpu"), device_count={"queued": 2}, fallback="allow")
        return tf.Session(graph=self.graph, config=config, host=self.host)

    def step(self, sess):
        return [np.asarray(a) for a in sess.run(self.fetches, {"x:0": X}) if a is not None]

    def clean(self):
        """Results of each step, calls of the driver in each, and the level of memory in use before and after."""
        faults, results, calls = self.device.faults, [], []
        with self.session() as sess:
            sess.run(self.start)
            for _ in range(STEPS):
                faults.reset()
                results.append(self.step(sess))
                calls.append(faults.calls)
        return results, calls

    def in_use(self):
        gc.collect()
        return self.device.in_use


def elsewhere(function):
    """The result of a function on another thread, which a lock that is held for good would stop."""
    found = []

    def work():
        try:
            found.append((True, function()))
        except Exception as error:  # noqa: BLE001 - raised again on the test's own thread
            found.append((False, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert found, "a later step hangs"
    fine, value = found[0]
    if not fine:
        raise value
    return value


def all_text(error):
    parts = []
    while error is not None:
        parts += [str(error), *getattr(error, "__notes__", ())]
        error = error.__cause__
    return "\n".join(parts)


def stream_slots_are_free(bench):
    held = {slot for holder in stream_slots.SLOTS_LOCK.requests for slot in holder.lock_set.writes}
    assert held.isdisjoint(bench.device._slots)


def inject(bench, at, number, how, wanted):
    """Fail one call of step ``at``; what happened, or None where the step does not make that call."""
    faults = bench.device.faults
    with bench.session() as sess:
        sess.run(bench.start)
        for k in range(at):
            same(bench.step(sess), wanted[k])
        faults.reset()
        faults.at(number, how)
        error = None
        try:
            got = bench.step(sess)
        except tf.errors.GraphdockError as raised:
            error = raised
        happened = faults.happened
        faults.reset()
        if not happened:
            same(got, wanted[at])
            return None
        assert error is not None, f"{happened}: the step returned"
        assert "queued" in all_text(error), f"{happened}: the device is not named in {error}"
        if happened[0].kind == "launch":
            assert error.op is not None, f"{happened}: no node is named in {error}"
        error = None

        def later():
            stream_slots_are_free(bench)
            sess.run(bench.start)
            return [bench.step(sess) for _ in range(STEPS)]

        for got, want in zip(elsewhere(later), wanted, strict=True):
            same(got, want)
    return happened[0]


def same(got, want):
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def quick_and_slow(quick):
    return pytest.mark.parametrize(
        ("program", "stride"),
        [pytest.param(p, 1, id=p.__name__, marks=pytest.mark.exhaustive) for p in PROGRAMS]
        + [pytest.param(p, quick, id=f"some of {p.__name__}") for p in PROGRAMS],
    )


@pytest.mark.slow
@quick_and_slow(17)
@pytest.mark.sampled(4)
def test_a_fault_fails_its_step_and_nothing_else(program, stride):
    bench = Bench(program)
    wanted, calls = bench.clean()
    level, count = bench.in_use(), 0
    for at in range(STEPS):
        for number in range(1, calls[at] + 1):
            for how in ("refuse", "fail"):
                count += 1
                if count % stride == 0:
                    inject(bench, at, number, how, wanted)
    assert bench.in_use() <= level


@pytest.mark.slow
def test_there_are_a_thousand_of_them():
    assert sum(2 * sum(Bench(program).clean()[1]) for program in PROGRAMS) >= 1000


@pytest.mark.parametrize("program", [trained, counted, looped, two_devices], ids=lambda p: p.__name__)
@pytest.mark.sampled(2)
def test_a_lost_device_fails_all_that_is_in_flight_and_all_later_steps(program):
    _, calls = Bench(program).clean()
    for at, number in ((0, calls[0]), (1, 1), (2, calls[2])):
        bench = Bench(program)
        with bench.session() as sess:
            sess.run(bench.start)
            for _ in range(at):
                bench.step(sess)
            bench.device.faults.reset()
            bench.device.faults.at(number, "lose")
            for _ in range(2):
                with pytest.raises(tf.errors.DeviceLostError) as caught:
                    elsewhere(lambda b=bench, s=sess: b.step(s))
                assert caught.value.op is None  # nobody knows the culprit
                assert "queued:" in str(caught.value)
            elsewhere(lambda b=bench: stream_slots_are_free(b))


@pytest.mark.parametrize("program", [counted, trained, two_devices, called], ids=lambda p: p.__name__)
@pytest.mark.sampled(2)
def test_an_interrupt_at_a_call_leaves_nothing_held(program, monkeypatch):
    """Ctrl-C comes when a call of the driver returns; the step ends, and the next ones are exact."""
    import signal

    bench = Bench(program)
    wanted, calls = bench.clean()
    call = type(bench.device.faults).call
    for number in range(1, calls[1] + 1):
        with bench.session() as sess:
            sess.run(bench.start)
            same(bench.step(sess), wanted[0])

            def interrupted(faults, kind, what, number=number):
                how = call(faults, kind, what)
                if faults.calls == number:
                    signal.raise_signal(signal.SIGINT)
                return how

            bench.device.faults.reset()
            with monkeypatch.context() as patched:
                patched.setattr(type(bench.device.faults), "call", interrupted)
                with contextlib.suppress(KeyboardInterrupt):
                    bench.step(sess)

            def later(sess=sess):
                stream_slots_are_free(bench)
                sess.run(bench.start)
                return [bench.step(sess) for _ in range(STEPS)]

            steps = elsewhere(later)
            assert len(steps) == STEPS
            for got, want in zip(steps, wanted, strict=True):
                same(got, want)
