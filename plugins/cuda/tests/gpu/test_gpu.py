"""On a real GPU: conformance, the training steps, a stress of threads. Skipped where there is none. ``pytest -m gpu``."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import GraphdockError
from graphdock.plugin.host import Host
from graphdock.testing.conformance import Conformance
from graphdock.testing.covering import covering
from graphdock_cuda.plugin import kernels

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

_path = Path(__file__).parents[1] / "steps" / "programs.py"
_spec = importlib.util.spec_from_file_location("cuda_gpu_programs", _path)
assert _spec is not None and _spec.loader is not None
programs: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)


@pytest.fixture(scope="module")
def host() -> Host:
    found = Host()
    try:
        found.backend("cuda")
        found.open_device("/device:cuda:0")
    except GraphdockError as error:
        pytest.skip(str(error.message))
    return found


@pytest.fixture(scope="module")
def kit(host: Host) -> Conformance:
    made = Conformance("cuda", host=host, oracle="cpu")
    with made.watching.case():
        pass  # queues are watched from the first one on, whichever test makes it
    return made


@pytest.mark.parametrize("op", ["device cuda", *sorted({k.op for k in kernels()})])
def test_conformance(kit: Conformance, op: str) -> None:
    for case in covering(c for c in kit.cases(op) if c.kind != "gradient"):
        kit.check(case)


def _losses(host: Host, make: Callable[[], Any], backends: tuple[str, ...], steps: int = 20) -> np.ndarray:
    random = np.random.default_rng(3)
    with tf.Graph(host=host).as_default():
        tf.set_random_seed(5)
        step = make()
        with tf.Session(config=tf.SessionConfig(backends=backends), host=host) as session:
            session.run(tf.global_variables_initializer())
            return np.array([session.run([step.loss, step.train], step.feed(random))[0] for _ in range(steps)])


@pytest.mark.parametrize("name", sorted(programs.PROGRAMS))
def test_training_agrees_with_the_cpu(host: Host, name: str) -> None:
    make = programs.PROGRAMS[name]
    np.testing.assert_allclose(_losses(host, make, ("cuda", "cpu")), _losses(host, make, ("cpu",)), rtol=1e-3)


def test_steps_of_many_threads_count_right(host: Host) -> None:
    with tf.Graph(host=host).as_default() as graph:
        x = tf.placeholder(tf.float32, [1000])
        total = tf.Variable(tf.zeros([1000]))
        add = tf.assign_add(total, x)
        with tf.Session(graph=graph, config=tf.SessionConfig(backends=("cuda", "cpu")), host=host) as session:
            session.run(tf.global_variables_initializer())

            def work() -> None:
                for _ in range(200):
                    session.run(add.op, {x: np.ones(1000, np.float32)})

            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert (session.run(total) == 1600).all()
