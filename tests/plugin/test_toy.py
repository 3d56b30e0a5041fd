"""The toy package as a third party's: its numbers agree with cpu's, its kernels really run, its memory is its own."""

import logging

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Device
from graphdock.errors import KernelNotFoundError, ResourceExhaustedError, UnknownBackendError
from graphdock.plugin.host import Host, default_host

RNG = np.random.default_rng(7)


@pytest.fixture
def launches(toy, process_host):
    """The toy installed, a fresh default host, and the counter of launches."""
    process_host(Host())
    from graphdock_toy.device import LAUNCHES

    LAUNCHES.clear()
    return LAUNCHES


def run(build, backends, feeds=None, **fields):
    """Build in a graph of its own and run one step; ``build`` returns (fetches, feed_dict)."""
    with tf.Graph().as_default() as graph:
        fetches, feed_dict = build()
        with tf.Session(graph=graph, config=tf.SessionConfig(backends=backends, **fields)) as session:
            if tf.global_variables():
                session.run(tf.global_variables_initializer())
            return session.run(fetches, feed_dict)


def dense():
    x = tf.placeholder(tf.float32, [3, 4])
    w = tf.constant(np.linspace(-1, 1, 8).reshape(4, 2).astype(np.float32))
    y = tf.nn.relu(tf.matmul(x, w) + tf.constant([0.5, -0.5]))
    return [y, tf.reduce_sum(tf.square(y))], {x: np.arange(12, dtype=np.float32).reshape(3, 4) / 7}


def trained():
    x = tf.placeholder(tf.float32, [4, 2])
    w = tf.Variable(np.ones((2, 2), np.float32))
    loss = tf.reduce_sum(tf.square(tf.matmul(x, w)))
    (slope,) = tf.gradients(loss, [w])
    with tf.control_dependencies([w.assign_sub(0.01 * slope)]):
        after = tf.identity(loss)
    return [after, slope], {x: np.arange(8, dtype=np.float32).reshape(4, 2) / 8}


def looped():
    i, x = tf.constant(0), tf.constant([1.0, 2.0])
    return tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2.0), [i, x]), None


def casting():
    x = tf.placeholder(tf.float64, [None])
    return [tf.cast(x, tf.float32), tf.add_n([x, x, x]), tf.zeros_like(x), tf.ones_like(x), tf.shape(x)], {
        x: [1.5, -2.5]
    }


@pytest.mark.parametrize("build", [dense, trained, looped, casting])
def test_toy_and_cpu_agree(launches, build):
    on_cpu = run(build, ["cpu"])
    assert not launches
    on_toy = run(build, ["toy", "cpu"])
    assert sum(launches.values()) > 0
    for a, b in zip(on_cpu, on_toy, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)
        assert np.asarray(a).dtype == np.asarray(b).dtype


def test_the_kernels_that_were_named_are_the_ones_that_ran(launches):
    run(dense, ["toy", "cpu"])
    assert launches["mat_mul"] == 1
    assert launches["relu"] == 1
    assert launches["sum"] == 1


def test_swapping_the_backend_needs_no_change_of_the_program(launches, monkeypatch):
    with tf.Graph().as_default():
        fetches, feeds = dense()
        with tf.Session() as session:
            first = session.run(fetches, feeds)
        assert not launches
        monkeypatch.setenv("GRAPHDOCK_BACKENDS", "toy,cpu")
        with tf.Session() as session:
            second = session.run(fetches, feeds)
    assert launches["mat_mul"] == 1
    np.testing.assert_allclose(first[0], second[0], rtol=1e-6)


def test_two_sessions_with_different_backends_on_one_graph(launches):
    with tf.Graph().as_default():
        fetches, feeds = dense()
        on_toy = tf.Session(config=tf.SessionConfig(backends=["toy", "cpu"]))
        on_cpu = tf.Session(config=tf.SessionConfig(backends=["cpu"]))
        a = [on_toy.run(fetches, feeds), on_cpu.run(fetches, feeds), on_toy.run(fetches, feeds)]
    assert launches["mat_mul"] == 2
    np.testing.assert_array_equal(a[0][0], a[2][0])
    np.testing.assert_allclose(a[0][0], a[1][0], rtol=1e-6)


def odd():
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    return tf.matmul(x, tf.ones_like(x), transpose_b=True, name="product"), {x: np.ones((2, 3), np.float32)}


def test_a_kernel_that_refuses_falls_back_with_a_warning_that_says_why(launches, caplog):
    with caplog.at_level(logging.WARNING, "graphdock"):
        assert run(odd, ["toy", "cpu"])[0, 0] == 3
    (record,) = [r for r in caplog.records if "back to another device" in r.getMessage()]
    assert "product" in record.getMessage()
    assert "toy.mat_mul: inner size 3 is odd" in record.getMessage()
    assert launches["mat_mul"] == 0


def test_forbidden_fallback_names_every_candidate(launches):
    with pytest.raises(KernelNotFoundError) as caught:
        run(odd, ["toy", "cpu"], fallback="forbid")
    assert "toy.mat_mul (toy): inner size 3 is odd" in str(caught.value)
    assert "product" in str(caught.value)


def test_an_op_of_its_own_needs_no_entry_in_backends(launches):
    import graphdock_toy

    def build():
        x = tf.placeholder(tf.float32, [3])
        y = graphdock_toy.scale(x, factor=2.5)
        return [y, tf.gradients(tf.reduce_sum(y * y), [x])[0]], {x: [1.0, 2.0, 3.0]}

    y, slope = run(build, ["cpu"])
    np.testing.assert_allclose(y, [2.5, 5.0, 7.5])
    np.testing.assert_allclose(slope, [12.5, 25.0, 37.5])
    assert not launches
    y, slope = run(build, ["toy", "cpu"])
    np.testing.assert_allclose(slope, [12.5, 25.0, 37.5])
    assert launches["scale"] == 2


def test_a_backend_that_is_not_installed(launches):
    with pytest.raises(UnknownBackendError, match="pip install graphdock-tpu"):
        tf.Session(config=tf.SessionConfig(backends=["tpu"]))


def test_with_std_and_cpu_blocked_the_toy_builds_loops_and_updates_a_variable(launches, process_host):
    import graphdock_toy

    host = process_host(Host(block=["std", "cpu"]))
    with tf.Graph().as_default():
        total = tf.Variable(np.zeros(2, np.float32), name="total")
        x = tf.placeholder(tf.float32, [2])
        scaled = tf.while_loop(
            lambda x: tf.constant(True), lambda x: [graphdock_toy.scale(x, factor=2.0)], [x], maximum_iterations=3
        )
        update = total.assign_add(scaled)
        with tf.Session(config=tf.SessionConfig(backends=["toy"])) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(2):
                session.run(update, {x: [1.0, 10.0]})
            np.testing.assert_array_equal(session.run(total), [16.0, 160.0])
    assert launches["scale"] == 6
    assert launches["assign_add_variable_op"] == 2
    stages = {e.plugin: e.stage for e in host.ledger}
    assert {name: stages[name] for name in ("std", "cpu", "toy")} == {
        "std": "blocked",
        "cpu": "blocked",
        "toy": "registered",
    }


def test_its_memory_is_its_own_and_limited(launches):
    host = default_host()
    device = host.open_device("toy:0", {"memory": 2048})
    assert isinstance(device, Device)
    assert device.memory_space == "toy:0"
    buffer = device.empty(tf.float32, (2, 2))
    assert not isinstance(buffer, np.ndarray)
    with pytest.raises(TypeError):
        np.add(buffer, buffer)
    with pytest.raises(ResourceExhaustedError, match="holds 2048 bytes"):
        device.allocate(4096)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.int64, tf.bool])
def test_what_goes_to_the_device_comes_back(launches, dtype):
    device = default_host().open_device("toy:0")
    sent = (RNG.random((3, 5)) * 9).astype(dtype.np)
    first, second = device.empty(dtype, sent.shape), device.empty(dtype, sent.shape)
    device.from_host(sent, first)
    device.copy(first, second)
    back = np.empty_like(sent)
    device.to_host(second, back)
    assert sent.tobytes() == back.tobytes()


def test_its_manifest_is_what_its_code_registers(launches):
    host = default_host()
    host.backend("toy")
    entry = next(e for e in host.ledger if e.plugin == "toy")
    assert (entry.stage, entry.cause) == ("registered", None)
    assert entry.added.ops == 4
    assert entry.added.kernels > 20


def test_scales_in_a_row_are_one_launch_of_its_region_compiler(launches):
    import graphdock_toy

    def build():
        x = tf.placeholder(tf.float32, [3])
        y = x
        for factor in (2.0, 3.0, 0.5):
            y = graphdock_toy.scale(y, factor=factor)
        return y, {x: [1.0, 2.0, 3.0]}

    for fusion, expected in ((True, {"scales": 1}), (False, {"scale": 3})):
        launches.clear()
        np.testing.assert_allclose(run(build, ["toy", "cpu"], fusion=fusion), [3.0, 6.0, 9.0])
        assert {k: n for k, n in launches.items() if k.startswith("scale")} == expected
