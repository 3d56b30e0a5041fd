"""A host with the doubles of graphdock_testing in it, and how the programs are run on a choice of devices."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_testing import fake, null


@pytest.fixture(scope="session")
def programs() -> Any:
    """The module ``programs.py`` beside this one."""
    spec = importlib.util.spec_from_file_location("device_programs", Path(__file__).with_name("programs.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def host() -> Any:
    host = Host()
    fake.install(host)
    null.install(host)
    yield host
    host.close()


@pytest.fixture
def results(host: Host) -> Callable[..., list[np.ndarray]]:
    """Run a program: ``stages`` are device names, taken in turn; without them nothing is said about devices."""

    def run(program: Any, stages: Sequence[str] = (), **config: Any) -> list[np.ndarray]:
        def on(stage: int) -> Any:
            return tf.device(stages[stage % len(stages)]) if stages else contextlib.nullcontext()

        with tf.Graph().as_default() as graph:
            tf.set_random_seed(11)
            step = program(on)
            with tf.Session(graph=graph, config=tf.SessionConfig(**config), host=host) as session:
                return [np.asarray(a) for a in step(session)]

    return run
