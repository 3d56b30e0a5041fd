"""Failures of the driver at any call of a program: each is reported once, by the step that met it, and nothing is lost."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install

#: Out of memory, invalid value, not supported: a call is refused, and the context lives.
REFUSALS = (2, 1, 801)
STEPS = 3
#: What a GPU's queues keep for themselves: step arguments of the private one and of two stream slots.
KEPT = 3 * (1 << 16)


class Trial:
    """One small training program on a GPU of its own."""

    def __init__(self, seed: int = 1, rows: bool = False) -> None:
        self.tools, self.host = toolkit(seed=seed), Host()
        self.driver: Any = self.tools.driver
        self.device = install(self.host, self.tools)
        self.graph = tf.Graph(host=self.host)
        with self.graph.as_default():
            self.x = tf.placeholder(tf.float32, [4, 3])
            w = tf.Variable(np.full((3, 2), 0.5, np.float32))
            if rows:  # a loop that is written out
                cell = tf.nn.rnn_cell.BasicRNNCell(2)
                y, _ = tf.nn.dynamic_rnn(cell, tf.matmul(self.x, w)[None], dtype=tf.float32)
            else:
                y = tf.nn.dropout(tf.tanh(tf.matmul(self.x, w)), 0.5, seed=3)
            self.loss = tf.reduce_sum(tf.square(y))
            self.train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(self.loss)
            self.init = tf.global_variables_initializer()
        self.feeds = [np.random.default_rng(i).random((4, 3), np.float32) for i in range(STEPS)]
        self.config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")

    def session(self) -> Any:
        return tf.Session(graph=self.graph, config=self.config, host=self.host)

    def program(self, session: Any) -> Iterator[Any]:
        """Runs one after the other: an initialiser, some steps; yields what each gives."""
        yield session.run(self.init)
        for feed in self.feeds:
            yield session.run([self.loss, self.train], {self.x: feed})[0]


@pytest.fixture(scope="module")
def calls() -> int:
    """How many calls of the driver the program makes."""
    return _calls_of(Trial())


def _calls_of(trial: Trial) -> int:
    with trial.session() as session:
        trial.driver.faults.reset()
        list(trial.program(session))
        return int(trial.driver.faults.calls)


def check_fault_at(number: int, status: int, late: bool, seed: int = 1, rows: bool = False) -> None:
    """Let one call fail; see that it is reported once, and that a lost device is the only thing that stays."""
    trial = Trial(seed, rows)
    faults = trial.driver.faults
    errors = []
    with trial.session() as session:
        faults.reset()
        faults.at(number, status, late=late)
        for run in (_init(trial, session), *[_step(trial, session, feed) for feed in trial.feeds]):
            try:
                run()
            except tf.errors.GraphdockError as error:
                errors.append(error)
        happened = list(faults.happened)
        assert len(happened) == 1, f"call {number} was not made"
        lost = any(isinstance(e, tf.errors.DeviceLostError) for e in errors)
        if late:  # a call without work of its own reports the lost context itself
            assert lost, f"{happened[0]} lost the device, and nobody said so"
            return
        # a step whose variables an earlier failure left unmade says so; the fault itself is told by one
        told = [e for e in errors if not isinstance(e, tf.errors.FailedPreconditionError)]
        assert len(told) <= 1 and not lost, f"{happened[0]}: {errors}"
        # the session goes on: the same program gives what it gives without a fault
        session.run(trial.init)
        again = [session.run(trial.loss, {trial.x: feed}) for feed in trial.feeds]
        assert all(np.isfinite(again))
    trial.driver.verify()
    left = trial.device.pool
    errors.clear()
    del session, trial, told, run
    gc.collect()
    left.settle()
    assert left.in_use <= KEPT, f"{left.in_use} bytes are held for nobody"


def _init(trial: Trial, session: Any) -> Any:
    return lambda: session.run(trial.init)


def _step(trial: Trial, session: Any, feed: np.ndarray) -> Any:
    return lambda: session.run([trial.loss, trial.train], {trial.x: feed})


@pytest.mark.plain
@pytest.mark.parametrize("part", range(12))
@pytest.mark.sampled(4)
def test_a_refused_call_is_reported_once(calls: int, part: int) -> None:
    number = 1 + part * calls // 12
    check_fault_at(number, REFUSALS[part % len(REFUSALS)], late=False)


@pytest.mark.plain
@pytest.mark.parametrize("part", range(6))
def test_a_lost_device_is_told(calls: int, part: int) -> None:
    check_fault_at(2 + part * calls // 6, 719, late=True)


@pytest.mark.plain
@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_loop_that_is_written_out_has_no_faults_of_its_own(part: int) -> None:
    """One of a dozen calls, with each way to refuse it, and a lost device."""
    calls = _calls_of(Trial(rows=True))
    for number in range(3 + part, calls, calls // 4 if not part else 5):
        check_fault_at(number, REFUSALS[number % len(REFUSALS)], late=False, rows=True)
    check_fault_at(calls // 2, 719, late=True, rows=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("status", REFUSALS)
def test_every_refused_call(calls: int, status: int, seed: int) -> None:
    for number in range(1, calls + 1):
        check_fault_at(number, status, late=False, seed=seed)


@pytest.mark.exhaustive
def test_every_late_failure(calls: int) -> None:
    for number in range(1, calls + 1):
        check_fault_at(number, 719, late=True)
