"""Every wait is needed: with any one of them taken out of a plan, the race checker reports, or a result is wrong.

So the lowering makes no wait too many, and the checker sees what each one is for.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_executor.step_program import hazards
from graphdock_executor.step_program.statements import Synchronize, Wait, blocks_of
from graphdock_testing import queued
from graphdock_testing.driver import races
from graphdock_testing.driver.queue import DriverQueue

ONE, TWO = "/device:queued:0", "/device:queued:1"
STAGES = {"one device": [], "two devices": [ONE, TWO], "devices and the host": [ONE, "/cpu:0", TWO]}


def _programs():
    spec = importlib.util.spec_from_file_location(
        "graphdock_devices_programs", Path(__file__).parent.parent / "devices" / "programs.py"
    )
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made.ALL


PROGRAMS = _programs()
#: Its loop stands on the second of the stages, which is the host.
WITHOUT_WAITS = {("while_loop", "devices and the host")}
QUICK = ("forward", "counters", "cond", "while_loop", "sparse_updates")


class Dropper:
    """Takes the wait of number ``drop`` out of what is lowered; ``seen`` are all waits, in the order of lowering."""

    def __init__(self):
        self.drop, self.seen = None, []

    def order_queues(self, order):
        def ordered(block, *rest, **more):
            order(block, *rest, **more)
            stack = [block]
            while stack:
                inner = stack.pop()
                for statement in list(inner.statements):
                    stack.extend(blocks_of(statement))
                    if isinstance(statement, (Synchronize, Wait)):
                        if len(self.seen) == self.drop:
                            inner.statements.remove(statement)
                        self.seen.append(statement)

        return ordered


@pytest.fixture
def dropper(monkeypatch, caplog):
    caplog.set_level(logging.ERROR, "graphdock")
    made = Dropper()
    monkeypatch.setattr(hazards, "order_queues", made.order_queues(hazards.order_queues))

    def settle(queue):
        with queue._held("settle"):
            queue.driver.refuse_in_capture(f"waiting for {queue.name}", queue.recording)
            queue.driver.scheduler.drain(queue.line)
            queue.device.health.check()

    # a kernel that waits for its inputs on its own account promises nothing to the step
    monkeypatch.setattr(DriverQueue, "settle", settle)
    return made


def outcome(program, stages, shared, seed, most=None):
    """(results, races, calls of the driver) of a program on a device of its own. Call ``most`` is refused."""

    def on(stage):
        return tf.device(stages[stage % len(stages)]) if stages else contextlib.nullcontext()

    host = Host()
    device = queued.install(host, seed=seed, shared=shared is True, peers=shared == "peers")
    if most is not None:
        device.faults.at(most)
    with tf.Graph(host=host).as_default() as graph:
        tf.set_random_seed(11)
        step = program(on)
        config = tf.SessionConfig(backends=("queued", "cpu"), device_count={"queued": 2})
        with races.watch(device) as report, tf.Session(graph=graph, config=config, host=host) as sess:
            return [np.asarray(a) for a in step(sess)], report.races, device.faults.calls


def caught(program, stages, shared, wanted, most):
    """How the dropped wait shows: a race, a wrong result, an error, or a loop that does not end. None: it does not."""
    for seed in range(2):
        try:
            got, found, _ = outcome(program, stages, shared, seed, most)
        except Exception as error:  # noqa: BLE001 - poison met a kernel that minds
            return type(error).__name__
        if found:
            return "race"
        if not all(np.array_equal(a, b) for a, b in zip(got, wanted, strict=True)):
            return "wrong result"
    return None


@pytest.mark.parametrize(
    "shared",
    [False, True, pytest.param("peers", marks=pytest.mark.exhaustive)],
    ids=["own memory", "one memory", "peers"],
)
@pytest.mark.parametrize(
    ("program", "where"),
    [
        pytest.param(
            p,
            w,
            id=f"{p.__name__} on {w}",
            marks=() if p.__name__ in QUICK and w == "two devices" else pytest.mark.exhaustive,
        )
        for p in PROGRAMS
        for w in STAGES
    ],
)
@pytest.mark.plain
@pytest.mark.sampled(6)
def test_each_wait_that_is_removed_is_missed(dropper, program, where, shared):
    stages = STAGES[where]
    wanted, found, calls = outcome(program, stages, shared, 0)
    assert not found
    waits = len(dropper.seen)
    unseen = []
    for number in range(waits):
        dropper.drop, dropper.seen = number, []
        if caught(program, stages, shared, wanted, 20 * calls) is None:
            taken = dropper.seen[number]
            unseen.append(f"{type(taken).__name__} before {taken.node.origin if taken.node else 'the end'}")
    assert (waits == 0) == ((program.__name__, where) in WITHOUT_WAITS)
    assert not unseen, f"{len(unseen)} of {waits} waits order nothing: {unseen}"
