"""Training steps on the GPU's sources: recorded as CUDA graphs and replayed, with the cpu's losses."""

from __future__ import annotations

import gc
import importlib.util
import json
from collections import Counter
from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install

_HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("cuda_step_programs", _HERE / "programs.py")
assert _spec is not None and _spec.loader is not None
programs: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)
GOLDEN = _HERE / "steps.json"
STEPS = 6


def losses(
    host: Host, name: str, backends: tuple[str, ...], steps: int = STEPS, before_last: Any = None, **options: str
) -> np.ndarray:
    """The losses of a few training steps. ``options``: the plugin's."""
    random = np.random.default_rng(3)
    with tf.Graph(host=host).as_default():
        tf.set_random_seed(5)
        step = (programs.PROGRAMS | programs.LOOPS)[name]()
        config = tf.SessionConfig(
            backends=backends,
            fallback="forbid" if backends[0] == "cuda" else "warn",
            options={"cuda": options} if options else {},
        )
        with tf.Session(config=config, host=host) as session:
            session.run(tf.global_variables_initializer())
            found = []
            for number in range(steps):
                if number == steps - 1 and before_last is not None:
                    before_last(session, step)
                found.append(session.run([step.loss, step.train], step.feed(random))[0])
    return np.array(found)


@pytest.mark.plain
@pytest.mark.parametrize("name", [*sorted(programs.PROGRAMS), "digits_with_dropout by cuDNN"])
@pytest.mark.sampled(2)
def test_a_replayed_step_trains_as_the_cpu_does(name: str) -> None:
    program, _, cudnn = name.partition(" by ")
    options = {"cudnn": "always"} if cudnn else {}
    tools, host = toolkit(seed=2, cudnn=bool(cudnn), traced=name == "lstm"), Host()
    driver: Any = tools.driver
    install(host, tools)
    seen: dict[str, Any] = {}

    def look(session: Any, step: Any) -> None:
        seen["explain"] = session.explain([step.loss, step.train])
        driver.log.reset()

    on_gpu = losses(host, program, ("cuda", "cpu"), before_last=look, **options)
    table = driver.log.table()
    assert (driver.log.kernels["conv_fprop"], driver.log.kernels["conv_wgrad"]) == ((1, 1) if cudnn else (0, 0))
    np.testing.assert_allclose(on_gpu, losses(host, program, ("cpu",)), rtol=2e-5)
    driver.verify()
    # the step is one graph: nothing is launched beside it but what the host sends and fetches
    assert table["graph launches"] == 1 and table["allocations"] == 0 and table["waits"] <= 2
    golden = json.loads(GOLDEN.read_text())
    del table["calls"]
    assert table == golden[name], f"{name}: {json.dumps(table)}"


@pytest.mark.plain
def test_a_loop_over_rows_stays_on_the_gpu() -> None:
    """No kernel of the step and of its gradient is left to the cpu: ``fallback="forbid"``."""
    tools, host = toolkit(seed=3), Host()
    driver: Any = tools.driver
    install(host, tools)
    on_gpu = losses(host, "lstm_over_rows", ("cuda", "cpu"))
    np.testing.assert_allclose(on_gpu, losses(host, "lstm_over_rows", ("cpu",)), rtol=2e-5)
    driver.verify()


def test_steps_leave_nothing_behind() -> None:
    tools, host = toolkit(seed=4), Host()
    driver: Any = tools.driver
    install(host, tools)
    device: Any = host.open_device("/device:cuda:0")

    def left(sessions: int) -> Counter[str]:
        for _ in range(sessions):
            losses(host, "softmax_regression", ("cuda", "cpu"))
        gc.collect()
        device.pool.settle()  # what nobody holds is given back at the next call that takes memory
        driver.device_synchronize()  # in the order of its stream
        return driver.live

    assert left(1) == left(3)
