"""Nothing races: every program on devices with queues, under the race checker, gives what cpu gives.

The checker knows what queues, events and fences promise, and reports what relies on luck; the fake driver interleaves queues by a
seed, poisons memory that is free, and refuses what a driver refuses.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import logging
import sys
import threading
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock.passes.pipeline import simplifications
from graphdock.plugin.host import Host
from graphdock_testing import queued
from graphdock_testing.driver import races

TESTS = Path(__file__).parent.parent
OFF = dict.fromkeys(simplifications(), False)
ONE, TWO = "/device:queued:0", "/device:queued:1"
pytestmark = pytest.mark.modes  # every kind of program runs in debug mode, too
PLACES = [ONE, TWO, "/cpu:0", ONE]
#: Where the stages of a program run, and the settings of the session.
WAYS = {
    "one device": ([], {}),
    "two devices": ([ONE, TWO], {}),
    "devices and the host": ([ONE, "/cpu:0", TWO], {}),
    "as it is written": ([ONE, TWO], {"passes": OFF}),
    "debug mode": ([ONE, TWO], {"debug": True}),
    "checked numbers": ([ONE, TWO], {"check_numerics": True}),
    "generic plans": ([ONE, TWO], {"shape_policy": "generic"}),
}


def module(path):
    """A module of another folder of tests, loaded once."""
    name = "graphdock_" + path.replace("/", "_").removesuffix(".py")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, TESTS / path)
        made = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
    return sys.modules[name]


PROGRAMS = module("devices/programs.py").ALL
random_graph, random_updates, random_loops = (
    module(f"differential/random_{name}.py") for name in ("graph", "updates", "loops")
)


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.ERROR, "graphdock")


@pytest.fixture(params=["own memory", "one memory", pytest.param("peers", marks=pytest.mark.exhaustive)])
def shared(request):
    """Whether the devices have one memory; or ``peers``, where each copies from the other's."""
    return {"own memory": False, "one memory": True}.get(request.param, request.param)


def installed(seed, shared=False, **options):
    host = Host()
    # what is fetched of 8 bytes and more comes in memory of its own, where the seed is odd
    options = {"peers": shared == "peers", "fetch_bytes": 8 * (seed % 2), **options}
    return host, queued.install(host, seed=seed, shared=shared is True, **options)


def session(graph, host, *backends, **fields):
    config = tf.SessionConfig(
        backends=backends or ("queued", "cpu"), fallback="allow", device_count={"queued": 2}, **fields
    )
    return tf.Session(graph=graph, config=config, host=host)


def results(program, host, stages=(), *backends, **fields):
    def on(stage):
        return tf.device(stages[stage % len(stages)]) if stages else contextlib.nullcontext()

    with tf.Graph(host=host).as_default() as graph:
        tf.set_random_seed(11)
        step = program(on)
        with session(graph, host, *backends, **fields) as sess:
            return [np.asarray(a) for a in step(sess)]


@pytest.fixture(scope="module")
def wanted():
    """What cpu gives for a program with these settings."""
    return functools.cache(lambda program, **fields: results(program, Host(), (), "cpu", **fields))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "seed", [0, 1, pytest.param(2, marks=pytest.mark.exhaustive), pytest.param(3, marks=pytest.mark.exhaustive)]
)
@pytest.mark.sampled(24)
def test_programs(seed, way, shared, wanted):
    host, device = installed(seed, shared)
    stages, fields = WAYS[way]
    for program in PROGRAMS:
        with races.check(device):
            got = results(program, host, stages, **fields)
        # a kernel may sum in another order where it does not know the shape
        generic = {k: v for k, v in fields.items() if k == "shape_policy"}
        for a, b in zip(got, wanted(program, **generic), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=program.__name__)


def seeds(quick, all_of_them):
    return pytest.mark.parametrize(
        "seed", [*range(quick), *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(quick, all_of_them))]
    )


VARIANTS = [{}, {"debug": True, "passes": OFF}, {"shape_policy": "generic"}]


@seeds(6, 40)
@pytest.mark.sampled(4)
def test_random_graphs(seed, shared):
    made = random_graph.Generator(5000 + seed)
    program = made.grow(24)
    rng = made.rng
    where = [str(rng.choice(PLACES)) if rng.random() < 0.7 else None for _ in program.steps]
    fetched = [int(i) for i in rng.integers(0, len(program.values), 6)]
    expected = program.evaluate(program.feeds)
    host, device = installed(seed, shared)
    with tf.Graph(host=host).as_default() as graph:
        tensors = program.build(lambda i: (None, "rank", "dims")[(seed + i) % 3], where.__getitem__)
        for fields in VARIANTS:
            with races.check(device), session(graph, host, **fields) as sess:
                for _ in range(3):  # as it is, recorded, replayed
                    given = {tensors[i]: a.copy() for i, a in program.feeds.items()}
                    got = sess.run([tensors[i] for i in fetched], given)
                    for array in given.values():
                        array.fill(99)  # the caller's again: nothing may still read it
                    for i, value in zip(fetched, got, strict=True):
                        random_graph.assert_close(value, expected[i], f"{fields}: v{i} of\n{program.listing()}")


@seeds(6, 40)
@pytest.mark.sampled(4)
def test_random_updates(seed, shared):
    program = random_updates.Updates(400 + seed)
    program.grow(14)
    rng = program.rng
    where = [str(rng.choice(PLACES)) for _ in program.nodes]
    steps = [[int(i) for i in rng.integers(0, program.fetchable, 4)] for _ in range(2)]
    host, device = installed(seed, shared)
    with tf.Graph(host=host).as_default() as graph:
        variables, tensors = program.build(where.__getitem__ if seed % 3 else None)
        for fields in VARIANTS[:2]:
            state = {i: a.copy() for i, a in enumerate(program.initial)}
            with races.check(device), session(graph, host, **fields) as sess:
                sess.run([v.initializer for v in variables])
                for fetched in [*steps, *steps, *steps]:
                    expected = program.step(state, fetched)
                    for a, b in zip(sess.run([tensors[i] for i in fetched]), expected, strict=True):
                        np.testing.assert_array_equal(a, b)
                    for variable, b in zip(variables, state.values(), strict=True):
                        np.testing.assert_array_equal(sess.run(variable), b)


@seeds(6, 40)
@pytest.mark.sampled(2)
def test_random_loops(seed, shared):
    program = random_loops.Loops(600 + seed)
    program.grow(5, 2)
    feeds = program.feeds()
    rng = np.random.default_rng(seed)
    host, device = installed(seed, shared)
    expected = program.interpret(feeds)
    with tf.Graph(host=host).as_default() as graph:
        fed, values = program.build(feeds, lambda: str(rng.choice(PLACES)) if rng.random() < 0.6 else None)
        fetched = [(k, i) for k in random_loops.KINDS for i in range(len(values[k]))]
        for fields in VARIANTS[:2]:
            with races.check(device), session(graph, host, **fields) as sess:
                feed_dict = {fed[k][i]: v for k, vs in feeds.items() for i, v in enumerate(vs)}
                for _ in range(3):
                    got = sess.run([values[k][i] for k, i in fetched], feed_dict)
                    for (k, i), value in zip(fetched, got, strict=True):
                        # NumPy's sine differs in the last bit between a strided and a contiguous array
                        np.testing.assert_allclose(value, expected[k][i], rtol=1e-8, atol=1e-8, err_msg=f"{k}{i}")


# -- what random programs rarely do


def test_a_step_that_calls_python_between_work_of_a_device(shared):
    """It has stream slots of its own, locks variables for single statements, and settles before each of those locks is released."""
    host, device = installed(3, shared)
    with tf.Graph(host=host).as_default() as graph:
        x = tf.placeholder(tf.float32, [4])
        with tf.device(ONE):
            v = tf.Variable(np.zeros(4, np.float32))
            a = tf.square(x) + v
        b = tf.reshape(tf.py_func(lambda t: t * 2.0, [a], tf.float32), [4])
        with tf.device(TWO):
            c = tf.sqrt(b + 1.0)
        with tf.device(ONE):
            up = tf.assign_add(v, c)
        with races.check(device), session(graph, host) as sess:
            sess.run(v.initializer)
            state = np.zeros(4, np.float32)
            for k in range(4):
                value = np.full(4, k, np.float32)
                state = state + np.sqrt((value**2 + state) * np.float32(2) + np.float32(1))
                np.testing.assert_array_equal(sess.run(up, {x: value}), state)
            np.testing.assert_array_equal(sess.run(v), state)


def test_variables_that_change_their_shape(shared):
    host, device = installed(5, shared)
    with tf.Graph(host=host).as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 2])
        with tf.device(ONE):
            u = tf.Variable(np.zeros((1, 2), np.float32), validate_shape=False)
        with tf.device(TWO):
            read = tf.reduce_sum(u.read_value() * 3.0)
            with tf.control_dependencies([read]):
                doubled = x * 2.0
        with tf.device(ONE):
            step = tf.assign(u, doubled, validate_shape=False)
        with races.check(device), session(graph, host) as sess:
            sess.run(u.initializer)
            before = np.float32(0)
            for rows in (3, 3, 1, 5, 2, 2):
                fed = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
                total, _ = sess.run([read, step], {x: fed})
                assert total == before
                np.testing.assert_array_equal(sess.run(u), fed * 2)
                before = np.float32(fed.sum() * 6)


def test_loops_whose_variables_grow_across_devices(shared):
    """Every iteration makes new buffers on both devices and lets the last ones go."""
    host, device = installed(6, shared)
    with tf.Graph(host=host).as_default() as graph:
        x = tf.placeholder(tf.float32, [None])

        def body(i, a, b):
            with tf.device(ONE):
                longer = tf.concat([a, b[:1]], 0)
            with tf.device(TWO):
                other = tf.cond(tf.equal(i % 2, 0), lambda: longer * 2.0, lambda: tf.concat([b, a], 0))
            return i + 1, longer, other

        shapes = [tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([None])]
        _, a, b = tf.while_loop(lambda i, a, b: i < 5, body, [tf.constant(0), x, x + 1.0], shapes)
        outs = [tf.reduce_sum(a), b]

        def want(x):
            a, b = x, x + np.float32(1)
            for i in range(5):
                longer = np.concatenate([a, b[:1]])
                a, b = longer, longer * np.float32(2) if i % 2 == 0 else np.concatenate([b, a])
            return a, b

        for seed in range(3):
            device.driver.scheduler.random.seed(seed)
            with races.check(device), session(graph, host) as sess:
                for k in (1, 3, 2):
                    total, last = sess.run(outs, {x: np.arange(k, dtype=np.float32)})
                    wa, wb = want(np.arange(k, dtype=np.float32))
                    np.testing.assert_allclose(total, wa.sum(), rtol=1e-6)
                    np.testing.assert_array_equal(last, wb)


def test_random_numbers_of_loops_are_those_of_cpu_when_replayed():
    """What is drawn depends on the iteration, which no recording may freeze."""
    found = {}
    for backends in (("cpu",), ("queued", "cpu")):
        host, device = installed(1)
        with tf.Graph(host=host).as_default() as graph:
            tf.set_random_seed(7)
            drawn = tf.while_loop(
                lambda k, a: k < 4, lambda k, a: (k + 1, a * 2.0 + tf.random_uniform([3])), [0, tf.zeros([3])]
            )[1]
            with races.check(device), session(graph, host, *backends) as sess:
                found[backends[0]] = [sess.run(drawn) for _ in range(4)]
    np.testing.assert_array_equal(found["queued"], found["cpu"])


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.sampled(2)
def test_threads_that_share_variables(seed, shared):
    """Eight threads, three plans and two variables on two devices: sums are exact, and no step sees half of another."""
    host, device = installed(seed, shared)
    with tf.Graph(host=host).as_default() as graph:
        x = tf.placeholder(tf.float32, [3])
        with tf.device(ONE):
            v = tf.Variable(np.zeros(3, np.float32))
        with tf.device(TWO):
            w = tf.Variable(np.zeros(3, np.float32))
            doubled = x * 2.0
        both = tf.group(tf.assign_add(v, doubled), tf.assign_add(w, doubled))
        difference = v - w
        called = tf.assign_add(v, tf.reshape(tf.py_func(lambda t: t * 0.0, [doubled], tf.float32), [3]))
        wrong = []
        with races.check(device), session(graph, host) as sess:
            sess.run([v.initializer, w.initializer])

            def work(number):
                try:
                    for k in range(12):
                        sess.run(both, {x: np.ones(3, np.float32)})
                        if (number + k) % 3 == 0:
                            np.testing.assert_array_equal(sess.run(difference), np.zeros(3, np.float32))
                        if number == 0:
                            sess.run(called, {x: np.ones(3, np.float32)})
                except Exception as error:  # noqa: BLE001 - told to the test's own thread
                    wrong.append(error)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not wrong, wrong[0]
            for array in sess.run([v, w]):
                np.testing.assert_array_equal(array, np.full(3, 8 * 12 * 2, np.float32))
