"""Two GPUs: values pass between their memories by a copy of the reader's, or through the host where they don't reach each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install

Programs = Callable[[tuple[str, str]], tuple[Any, Any]]


def there_and_back(where: tuple[str, str]) -> tuple[Any, Any]:
    """A variable of the first GPU that a layer on the second reads, and whose gradient is made there."""
    x = tf.placeholder(tf.float32, [3, 4])
    with tf.device(where[0]):
        w = tf.Variable(np.full((4, 2), 0.5, np.float32))
        h = tf.tanh(x)
    with tf.device(where[1]):
        y = tf.matmul(h, w)
    with tf.device(where[0]):
        loss = tf.reduce_sum(y * y)
    return x, [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)]


def ping_pong(where: tuple[str, str]) -> tuple[Any, Any]:
    """A loop whose body works on both GPUs in turn."""
    x = tf.placeholder(tf.float32, [3, 4])

    def body(i: Any, v: Any) -> tuple[Any, Any]:
        with tf.device(where[0]):
            a = tf.tanh(v)
        with tf.device(where[1]):
            return i + 1, a * 1.5 + v

    return x, [tf.while_loop(lambda i, v: i < 4, body, [0, x])[1]]


def updated_from_afar(where: tuple[str, str]) -> tuple[Any, Any]:
    """A variable that a kernel of the other GPU updates: a copy of it goes there and comes back."""
    x = tf.placeholder(tf.float32, [3, 4])
    with tf.device(where[0]):
        v = tf.Variable(np.zeros((3, 4), np.float32))
    with tf.device(where[1]):
        return x, [v.assign_add(tf.square(x))]


def _results(host: Host, program: Programs, where: tuple[str, str], **config: Any) -> tuple[list[Any], Any]:
    rng = np.random.default_rng(0)
    with tf.Graph(host=host).as_default():
        x, fetches = program(where)
        with tf.Session(config=tf.SessionConfig(**config), host=host) as session:
            session.run(tf.global_variables_initializer())
            found = [session.run(fetches, {x: rng.standard_normal((3, 4))})[0] for _ in range(4)]
            if len(fetches) > 1:  # without the fetch several steps may be at work at once
                for _ in range(4):
                    session.run(fetches[1], {x: rng.standard_normal((3, 4))})
                found.append(session.run(fetches, {x: rng.standard_normal((3, 4))})[0])
            return found, session.explain(fetches, {x: np.zeros((3, 4))})


@pytest.mark.plain
@pytest.mark.parametrize("program", [there_and_back, ping_pong, updated_from_afar])
@pytest.mark.parametrize("peers", [True, False])
@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.sampled(4)
def test_values_pass_between_gpus(program: Programs, peers: bool, most: int) -> None:
    tools, host = toolkit(gpus=2, peers=peers, seed=most), Host()
    driver: Any = tools.driver
    install(host, tools)
    where = ("/device:cuda:0", "/device:cuda:1")
    config = {
        "backends": ("cuda", "cpu"),
        "fallback": "forbid",
        "device_count": {"cuda": 2},
        "steps_in_flight": most,
    }
    got, explained = _results(host, program, where, **config)
    driver.verify()
    want, _ = _results(Host(), program, ("/cpu:0", "/cpu:0"), backends=("cpu",))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    copies = driver.log.copies
    assert (copies["p2p"] > 0) == peers
    if peers and program is not ping_pong:  # what is fed, and what is fetched
        assert copies["d2h"] <= 10
    moves = {row.device for row in explained.rows if row.kernel == "transfer"}
    assert not any("cuda:0 -> cuda:1" in m or "cuda:1 -> cuda:0" in m for m in moves) or peers


def test_a_gpu_asks_once_whether_it_reaches_another() -> None:
    tools, host = toolkit(gpus=2, seed=1), Host()
    driver: Any = tools.driver
    first, second = install(host, tools), host.open_device("/device:cuda:1")
    assert first.reaches(second) and first.reaches(second) and second.reaches(first)
    assert driver.log.count("enable_peer") == 2 and driver.log.count("can_access_peer") == 2
    assert not first.reaches(install(Host(), toolkit(seed=1)))  # of another driver


def test_a_driver_that_fails_to_answer_says_what_for() -> None:
    tools, host = toolkit(gpus=2, seed=1), Host()
    driver: Any = tools.driver
    first, second = install(host, tools), host.open_device("/device:cuda:1")
    driver.faults.reset()
    driver.faults.at(1, 711, "enable_peer")
    with pytest.raises(tf.errors.GraphdockError, match="reach the memory of cuda:1"):
        first.reaches(second)
    assert first.reaches(second)
