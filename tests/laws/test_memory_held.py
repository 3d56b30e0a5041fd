"""What a session holds: bounded by its configuration, kept through errors, and free when it is given back."""

import gc
import weakref

import graphdock as tf
import lab
import numpy as np
import pytest
from graphdock.plugin.host import Host

MB = 1 << 20


@pytest.fixture
def meter():
    with lab.Meter() as meter:
        yield meter


@pytest.fixture
def no_collector():
    """Reference counts alone free memory: a step may not leave cycles behind."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def failing():
    """A step that fails in its middle, and one that does not, on 1 MB of buffers."""
    x = tf.placeholder(tf.float32, [MB // 8])
    index = tf.placeholder_with_default(np.int32(MB), [])
    return x, tf.gather(tf.tanh(x) * 2.0 + x, index), index


def test_an_instance_survives_its_steps_error():
    x, fetch, index = failing()
    value = np.zeros(MB // 8, np.float32)
    with tf.Session() as sess:

        def fail():
            with pytest.raises(tf.errors.InvalidArgumentError):
                sess.run(fetch, {x: value})

        fail()
        fail()
        assert lab.calls_of(("allocate", "view"), fail) == 0


def test_failing_steps_do_not_pile_up_memory(meter, no_collector):
    x, fetch, index = failing()
    value = np.zeros(MB // 8, np.float32)
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(fetch, {x: value})
        before = meter.held
        for _ in range(5):
            with pytest.raises(tf.errors.InvalidArgumentError):
                sess.run(fetch, {x: value})
        assert meter.held <= before + MB // 8


def test_the_budget_of_idle_instances_holds_without_the_collector(meter, no_collector, monkeypatch):
    from graphdock.planning import pool

    monkeypatch.setattr(pool, "BUDGET", 4 * MB)
    x = tf.placeholder(tf.float32, [None])
    y = tf.tanh(tf.tanh(x) * 2.0 + tf.sin(x))
    with tf.Session(config=tf.SessionConfig(shape_policy="exact")) as sess:
        for i in range(12):
            sess.run(y, {x: np.zeros(MB // 4 + i, np.float32)})
        assert meter.held <= 8 * MB


def test_exact_plans_are_as_many_as_the_plan_cache_holds():
    x = tf.placeholder(tf.float32, [None])
    y = tf.tanh(x) * 2.0
    plans = []
    with tf.Session(config=tf.SessionConfig(shape_policy="exact", plan_cache_size=4)) as sess:
        for n in range(20):
            metadata = tf.RunMetadata()
            sess.run(y, {x: np.zeros(n, np.float32)}, run_metadata=metadata)
            plans.append(weakref.ref(metadata.plan))
            del metadata
        gc.collect()
        assert sum(p() is not None for p in plans) <= 4


def test_the_plan_that_was_used_last_stays():
    x = tf.placeholder(tf.float32, [None])
    fetches = [tf.identity(x * float(i)) for i in range(6)]
    with tf.Session(config=tf.SessionConfig(plan_cache_size=3)) as sess:

        def cached(i):
            metadata = tf.RunMetadata()
            sess.run(fetches[i], {x: np.zeros(2, np.float32)}, run_metadata=metadata)
            return metadata.cached

        assert [cached(i) for i in (0, 1, 2, 0, 3)] == [False, False, False, True, False]
        assert cached(0)


def test_reset_frees_the_variables_of_a_container(meter):
    with tf.container("laws_reset"):
        v = tf.Variable(tf.zeros([4 * MB // 4]), name="big")
    gc.collect()
    before = meter.held
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert meter.held >= before + 4 * MB
    tf.Session.reset(containers=["laws_reset"])
    del sess
    gc.collect()
    assert meter.held < before + 4 * MB


def test_reset_frees_a_variable_from_its_device_while_its_session_is_open():
    from graphdock_testing import queued

    host = Host()
    device = queued.install(host, laziness=1.0)
    with tf.container("laws_on_device"), tf.device("queued"):
        v = tf.Variable(np.zeros(MB // 4, np.float32), name="big")
    with tf.Session(config=tf.SessionConfig(backends=("queued", "cpu")), host=host) as sess:
        sess.run(v.initializer)
        assert float(sess.run(v)[0]) == 0.0
        held = device.in_use
        tf.Session.reset(containers=["laws_on_device"], host=host)
        assert device.in_use <= held - MB
        with pytest.raises(tf.errors.UninitializedError):
            sess.run(v)


@pytest.mark.parametrize("change", ["shape", "dtype", "device"])
def test_a_variable_may_be_declared_anew_after_a_reset(change, process_host):
    def use(value, backends=("cpu",)):
        with tf.Graph().as_default() as graph:
            with tf.container(f"laws_anew_{change}"):
                v = tf.Variable(value, name="v")
            with tf.Session(graph=graph, config=tf.SessionConfig(backends=backends)) as sess:
                sess.run(v.initializer)
                return sess.run(v).tolist()

    other = {}
    if change == "device":
        from graphdock_testing import fake

        fake.install(process_host(Host()))
        other = {"backends": ("fake", "cpu")}
    assert use([1.0, 2.0]) == [1.0, 2.0]
    tf.Session.reset(containers=[f"laws_anew_{change}"])
    value = {"shape": [1.0, 2.0, 3.0], "dtype": [1, 2], "device": [3.0, 4.0]}[change]
    assert use(value, **other) == value
    tf.Session.reset(containers=[f"laws_anew_{change}"])


def test_close_frees_variables_and_buffers_at_once(meter, no_collector):
    v = tf.Variable(tf.zeros([MB // 4]))
    y = tf.tanh(v) * 2.0 + tf.sin(v)
    before = meter.held
    sess = tf.Session()
    sess.run(v.initializer)
    sess.run(y.op)
    assert meter.held >= before + 2 * MB
    sess.close()
    assert meter.held < before + MB


def long_step():
    """More statements than one function of a step holds."""
    x = tf.placeholder(tf.float32, [1000])
    y = x
    for _ in range(1100):
        y = tf.tanh(y)
    return x, y


@pytest.mark.parametrize("which", ["feed", "result"])
def test_a_long_step_keeps_neither_feeds_nor_results(which, no_collector):
    x, y = long_step()
    with tf.Session(config=tf.SessionConfig(passes={"fold": False})) as sess:
        sess.run(y, {x: np.zeros(1000, np.float32)})
        value = np.ones(1000, np.float32)
        result = sess.run(y, {x: value})
        kept = weakref.ref(value if which == "feed" else result)
        del value, result
        assert kept() is None


def test_reset_reaches_the_containers_of_a_host():
    host = Host()
    with tf.container("laws_host"):
        v = tf.Variable([1.0], name="v")
    with tf.Session(host=host) as sess:
        sess.run(v.initializer)
        tf.Session.reset(containers=["laws_host"], host=host)
        with pytest.raises(tf.errors.UninitializedError):
            sess.run(v)
