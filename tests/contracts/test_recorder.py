"""A cuda-like device, and another package's kernels for it, driven by hand and by sessions."""

from __future__ import annotations

import threading
from typing import Any

import borrowed_kernels
import graphdock as tf
import numpy as np
import pytest
import recorder
from graphdock.contracts import dtypes
from graphdock.errors import KernelNotFoundError, NotFoundError
from graphdock.plugin.host import Host


@pytest.fixture
def host() -> Any:
    host = Host()
    host.register("recorder", recorder)
    host.register("borrowed", borrowed_kernels)
    yield host
    host.close()


@pytest.fixture
def device(host: Host) -> recorder.RecorderDevice:
    device = host.open_device("/device:recorder:0")
    assert isinstance(device, recorder.RecorderDevice)
    return device


def session(host: Host, *backends: str, **config: Any) -> Any:
    given = backends or ("recorder", "borrowed")
    return tf.Session(config=tf.SessionConfig(backends=given, fallback="forbid", **config), host=host)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


# -- by hand


def test_recording_runs_nothing_and_a_replay_runs_it_all(device: recorder.RecorderDevice) -> None:
    f32 = dtypes.float32
    storage = device.allocate(64)
    a, b = device.view(storage, 0, f32, (4,)), device.view(storage, 16, f32, (4,))
    device.from_host(np.arange(4, dtype=np.float32), a)
    launch = device.service("launch", 1)
    replay = device.capture(lambda: launch("double", lambda x, y: np.add(x, x, y), [(a, f32, (4,)), (b, f32, (4,))]))
    out = np.zeros(4, np.float32)
    device.to_host(b, out)
    assert np.isnan(out).all()
    assert replay is not None
    replay()
    device.to_host(b, out)
    assert out.tolist() == [0, 2, 4, 6]
    device.from_host(np.full(4, 5, np.float32), a)
    replay()
    device.to_host(b, out)
    assert out.tolist() == [10] * 4


def test_work_of_other_threads_stays_out_of_a_recording(device: recorder.RecorderDevice) -> None:
    launch = device.service("launch", 1)
    ran: list[str] = []

    def body() -> None:
        launch("mine", lambda: ran.append("mine"), [])
        other = threading.Thread(target=launch, args=("other", lambda: ran.append("other"), []))
        other.start()
        other.join()
        assert ran == ["other"]

    replay = device.capture(body)
    assert replay is not None
    replay()
    assert ran == ["other", "mine"]


def test_services_are_versioned(device: recorder.RecorderDevice) -> None:
    with pytest.raises(NotFoundError, match="'recorder' offers no service 'launch', version 2"):
        device.service("launch", 2)


def test_the_kernels_package_owns_no_device(host: Host) -> None:
    backend = host.backend("borrowed")
    assert backend.device_types == ()
    assert backend.kernel_devices == ("recorder",)


# -- in sessions


def test_a_step_is_recorded_once_and_replayed(host: Host, device: recorder.RecorderDevice) -> None:
    x, y = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
    z = tf.square(x + y) * x
    with session(host) as s:
        for k in range(4):
            a, b = np.full(3, k, np.float32), np.array([1, 2, 3], np.float32)
            assert s.run(z, {x: a, y: b}).tolist() == ((a + b) ** 2 * a).tolist()
        assert (device.captures, device.replays) == (1, 4)
        step = ["host to device", "host to device", "graph of 3", "device to host"]
        assert device.stream.log[-4:] == step
        plan = s.plan(z)
        assert [n.decision.kernel for n in plan.kernel_nodes] == ["borrowed.add", "borrowed.square", "recorder.mul"]
        assert "    p0()\n" in plan.source


def test_buffers_of_captured_steps_keep_their_address(host: Host, device: recorder.RecorderDevice) -> None:
    x = tf.placeholder(tf.float32, [8])
    y = x
    for _ in range(6):
        y = tf.square(y) + x  # the feed's buffer lives to the end, the others are reused
    with session(host) as s:
        s.run(y, {x: np.ones(8)})
        allocations = device.allocations
        for value in (0.0, 0.5, 0.25):
            want = value
            for _ in range(6):
                want = want * want + value
            np.testing.assert_allclose(s.run(y, {x: np.full(8, value)}), np.full(8, want), rtol=1e-6)
        assert device.allocations == allocations


def test_variables_live_on_the_device_and_are_written_by_replays(host: Host, device: recorder.RecorderDevice) -> None:
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable(np.array([1, 1], np.float32))
    up = tf.assign_add(v, x * x)
    with session(host) as s:
        s.run(v.initializer)
        for _ in range(3):
            s.run(up.op, {x: [1.0, 2.0]})
        assert device.replays == 3  # the initializer has no kernel to record
        assert device.stream.log[-1] != "device to host"  # nothing was fetched
        assert s.run(v).tolist() == [4.0, 13.0]
        s.run(v.initializer)
        assert s.run(v).tolist() == [1.0, 1.0]


@pytest.mark.plain
def test_a_kernel_that_is_not_capture_safe_stands_outside_of_recordings(
    host: Host, device: recorder.RecorderDevice
) -> None:
    x = tf.placeholder(tf.float32, [2])
    y = tf.exp(x) * x
    with session(host) as s:
        for _ in range(2):
            np.testing.assert_allclose(s.run(y, {x: [0.0, 1.0]}), [0.0, np.e], rtol=1e-6)
        assert device.captures == 1
        assert device.stream.log[-4:] == ["host to device", "exp", "graph of 1", "device to host"]
        text = str(s.explain(y, {x: [0.0, 1.0]}))
    assert "recorded: 1 statements from mul" in text
    assert "not recorded: Exp: its kernel is not capture_safe" in text


def test_control_flow_keeps_the_step_uncaptured(host: Host, device: recorder.RecorderDevice) -> None:
    x, n = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * x), [tf.constant(0), x])[1]
    with tf.Session(config=tf.SessionConfig(backends=("recorder", "borrowed", "cpu")), host=host) as s:
        assert s.run(y, {x: [1.0, 2.0], n: 3}).tolist() == [1.0, 16.0]
        assert device.captures == 0


def test_a_step_that_mixes_devices_is_recorded_in_parts(host: Host, device: recorder.RecorderDevice) -> None:
    x = tf.placeholder(tf.float32, [2])
    y = tf.sin(tf.square(x)) * x
    with tf.Session(config=tf.SessionConfig(backends=("recorder", "borrowed", "cpu")), host=host) as s:
        np.testing.assert_allclose(s.run(y, {x: [0.5, 1.0]}), np.sin([0.25, 1.0]) * [0.5, 1.0], rtol=1e-6)
        assert device.captures == 2  # before the sine and after it


def test_each_shape_has_its_own_recording(host: Host, device: recorder.RecorderDevice) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = x * x
    with session(host) as s:
        for size in (1, 2, 3, 2, 1):
            assert s.run(y, {x: np.full(size, 3.0)}).tolist() == [9.0] * size
        assert device.captures == 3


def test_a_refusal_is_told_with_its_reason(host: Host) -> None:
    x = tf.placeholder(tf.float32, [None])
    refusal = r"recorder.mul \(recorder\): the shape of .* is not known"
    with session(host, shape_policy="generic") as s, pytest.raises(KernelNotFoundError, match=refusal):
        s.run(x * x, {x: [1.0]})


def test_the_device_alone_lacks_the_borrowed_kernels(host: Host) -> None:
    x = tf.placeholder(tf.float32, [2])
    refusal = r"borrowed.add \(recorder\): borrowed is not in backends"
    with session(host, "recorder") as s, pytest.raises(KernelNotFoundError, match=refusal):
        s.run(x + x, {x: [1.0, 2.0]})


def test_two_devices_of_the_type_exchange_through_the_host(host: Host, device: recorder.RecorderDevice) -> None:
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/device:recorder:0"):
        a = tf.square(x)
    with tf.device("/device:recorder:1"):
        b = a + x
    with session(host, device_count={"recorder": 2}) as s:
        assert s.run(b, {x: [2.0, 3.0]}).tolist() == [6.0, 12.0]
        assert device.captures == 1  # one of the two records


def test_many_threads_run_one_captured_step(host: Host, device: recorder.RecorderDevice) -> None:
    x = tf.placeholder(tf.float32, [4])
    v = tf.Variable(np.zeros(4, np.float32))
    y = tf.square(x) + x
    up = tf.assign_add(v, y)
    wrong: list[Any] = []
    with session(host) as s:
        s.run(v.initializer)

        def work(k: float) -> None:
            for _ in range(25):
                got, _ = s.run([y, up.op], {x: np.full(4, k, np.float32)})
                if got.tolist() != [k * k + k] * 4:
                    wrong.append(got)

        threads = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert s.run(v).tolist() == [25.0 * (0 + 2 + 6 + 12)] * 4
        assert device.replays == 100


def test_debug_mode_captures_too(host: Host, device: recorder.RecorderDevice) -> None:
    x = tf.placeholder(tf.float32, [3])
    y = tf.square(x + x) * x + x
    with session(host, debug=True) as s:
        for k in (1.0, 2.0):
            assert s.run(y, {x: [k] * 3}).tolist() == [4 * k**3 + k] * 3
        assert device.captures == 1


def test_a_rewrite_makes_no_op_that_the_device_has_no_kernel_for(host: Host) -> None:
    """It has one for Mul, and none for Square, which a product of a tensor with itself would be."""
    x = tf.placeholder(tf.float32, [3])
    y = tf.multiply(x, x)
    with session(host, "recorder") as sess:
        ops = {row.op for row in sess.explain(y, {x: [1.0, 2.0, 3.0]}).rows}
        assert "Mul" in ops and "Square" not in ops
        np.testing.assert_array_equal(sess.run(y, {x: [1.0, 2.0, 3.0]}), [1, 4, 9])
    with session(host) as sess:
        assert "Square" in [row.op for row in sess.explain(y, {x: [1.0, 2.0, 3.0]}).rows]
