"""The device in C as a program meets it; conformance checks its memory, queues and events."""

import ctypes
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock_slate.kernels import DEVICE

CONFIG = tf.SessionConfig(backends=("slate", "cpu"))


def test_a_program_agrees_with_numpy():
    a = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 4])
        y = tf.nn.relu(tf.matmul(x, tf.constant(a), transpose_b=True) + tf.constant([[1.0, 2.0, 3.0]]))
        with tf.Session(graph=graph, config=CONFIG) as s:
            for rows in (1, 3, 2):
                expected = np.maximum(a[:rows] @ a.T + np.array([[1, 2, 3]], np.float32), 0)
                np.testing.assert_allclose(s.run(y, {x: a[:rows]}), expected, rtol=1e-5, atol=1e-6)


def test_steps_of_several_threads():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [64])
        y = x * 2.0 + x
        found = []
        with tf.Session(graph=graph, config=CONFIG) as s:

            def work(n):
                found.append(all((s.run(y, {x: np.full(64, n)}) == 3 * n).all() for _ in range(50)))

            threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert found == [True] * 4


def test_work_that_fails_late_names_its_node():
    import graphdock_native.device as native

    with tf.Graph().as_default() as graph:
        y = tf.nn.relu(tf.placeholder(tf.float32, [2], name="x"), name="late")
        with tf.Session(graph=graph, config=CONFIG) as s:
            s.run(y, {"x:0": [1.0, 2.0]})
            device = tf.default_host().open_device("slate:0")
            queue = device.new_queue()
            previous = device.activate(queue)
            try:
                three = device.empty(tf.float32, (1, 1, 1))
                (node,) = [n for n in s.plan(y).graph.nodes if n.op == "Relu"]
                queue.launch(node, "mat_mul", [three, three, three, np.array(0), np.array(0)])
                queue.launch(node, "relu", [three, three])
                with pytest.raises(tf.errors.UnimplementedError, match="slate multiplies matrices") as caught:
                    queue.synchronize()
                assert caught.value.op_name == "late"
                queue.synchronize()
                with pytest.raises(tf.errors.NotFoundError, match="slate has no kernel tanh"):
                    queue.launch(node, "tanh", [three, three])
            finally:
                device.restore(previous)
    assert DEVICE.api.table.version == native.VERSION


def test_memory_that_is_used_up_says_so():
    device = tf.default_host().open_device("slate:0")
    with pytest.raises(tf.errors.ResourceExhaustedError, match="slate has no"):
        device.allocate(1 << 40)


def test_the_library_needs_no_python():
    exported = ctypes.CDLL(str(DEVICE._library.path))
    assert exported.graphdock_device is not None and not hasattr(exported, "PyInit_slate")
