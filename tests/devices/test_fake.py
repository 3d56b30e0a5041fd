"""The fake device itself: work runs late and in order, arguments are read at launch, errors name their node."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import dtypes
from graphdock.errors import InvalidArgumentError
from graphdock.plugin.host import Host
from graphdock.session.run_options import RunMetadata
from graphdock_testing import fake


@pytest.fixture
def device(host: Host) -> fake.FakeDevice:
    device = fake.install(host)
    device.synchronize()
    return device


@pytest.fixture
def session(host: Host) -> Any:
    with tf.Graph().as_default() as graph:
        config = tf.SessionConfig(backends=("fake",), fallback="forbid")
        yield lambda **more: tf.Session(graph=graph, config=config.replace(**more), host=host)


@pytest.mark.plain
def test_a_step_without_fetches_leaves_its_work_in_the_queue(session: Any, device: fake.FakeDevice) -> None:
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable(np.zeros(2, np.float32))
    up = tf.assign_add(v, x * 2.0)
    with session() as s:
        s.run(tf.global_variables_initializer())
        assert device.pending
        batch = np.array([1, 2], np.float32)
        s.run(up.op, {x: batch})
        batch[:] = 99  # the caller may reuse what it fed
        s.run(up.op, {x: batch * 0})
        assert device.pending
        assert s.run(v).tolist() == [2.0, 4.0]
        assert not device.pending


def test_an_error_in_the_queue_names_its_node_and_leaves_the_device_usable(
    session: Any, device: fake.FakeDevice
) -> None:
    x = tf.placeholder(tf.float32, [2])
    y = tf.check_numerics(x * 2.0, "the product", name="guard") + 1.0
    with session() as s:
        with pytest.raises(InvalidArgumentError, match="the product: tensor had infinity") as caught:
            s.run(y, {x: [1.0, np.inf]})
        assert caught.value.op_name == "guard"
        assert not device.pending
        assert s.run(y, {x: [1.0, 2.0]}).tolist() == [3.0, 5.0]


@pytest.mark.plain
def test_loop_variables_stay_in_the_devices_memory(session: Any, device: fake.FakeDevice) -> None:
    x = tf.placeholder(tf.float32, [3])
    out = tf.while_loop(lambda i, a: i < 50, lambda i, a: (i + 1, a * 1.5 - x), [0, x])[1]
    with session() as s:
        metadata = RunMetadata()
        s.run(out, {x: [1, 2, 3]}, run_metadata=metadata)
        waits = device.waits
        s.run(out, {x: [1, 2, 3]})
        assert device.waits - waits == 1  # for the fetch; none of the 50 iterations waits
        (loop,) = [n for n in metadata.plan.graph.nodes if n.op == "While"]
        assert not [n for body in loop.bodies for n in body.nodes if n.op == "Transfer"]


@pytest.mark.plain
def test_a_condition_on_the_device_waits_once_per_iteration(session: Any, device: fake.FakeDevice) -> None:
    x = tf.placeholder(tf.float32, [])
    out = tf.while_loop(lambda a: a < 100.0, lambda a: [a * 2.0], [x])
    with session() as s:
        s.run(out, {x: 1.0})
        waits = device.waits
        assert s.run(out, {x: 1.0}) == 128.0
        assert device.waits - waits <= 9  # eight conditions and the fetch


def test_random_streams_are_read_at_launch(session: Any) -> None:
    u = tf.random_uniform([3], seed=1)
    v = tf.Variable(np.zeros(3, np.float32))
    keep = tf.assign(v, u)
    with session() as s:
        draws = []
        for _ in range(2):
            s.run(keep.op)
            s.run(u.op)  # moves the stream on before anybody waits for the first draw
            draws.append(s.run(v))
    with tf.Graph().as_default() as graph:
        u = tf.random_uniform([3], seed=1)
        with tf.Session(graph=graph) as s:
            want = [s.run(u) for _ in range(4)]
    assert [d.tolist() for d in draws] == [want[0].tolist(), want[2].tolist()]


def test_host_code_that_reads_a_buffer_fails_at_once(device: fake.FakeDevice) -> None:
    with pytest.raises(TypeError, match="as if it were a NumPy array"):
        np.asarray(device.empty(dtypes.float32, (2,)))


def test_two_threads_share_the_queue(session: Any) -> None:
    import threading

    x = tf.placeholder(tf.float32, [8])
    v = tf.Variable(np.zeros(8, np.float32))
    y = x * 2.0 + 1.0
    up = tf.assign_add(v, y)
    wrong: list[Any] = []
    with session() as s:
        s.run(tf.global_variables_initializer())

        def work(value: float) -> None:
            for _ in range(50):
                got, _ = s.run([y, up.op], {x: np.full(8, value, np.float32)})
                if not (got == value * 2 + 1).all():
                    wrong.append(got)

        threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong
        assert s.run(v).tolist() == [50.0 * (1 + 3 + 5 + 7)] * 8
