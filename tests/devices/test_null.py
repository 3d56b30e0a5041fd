"""The null device: every op is placed and explained; results are zeros; what runs is counted."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_testing import null

NAMES = "forward train_with_adam sparse_updates cond while_loop random_numbers".split()


@pytest.mark.parametrize("name", NAMES)
def test_programs_run_and_give_zeros(programs, results, name):
    for got in results(getattr(programs, name), backends=("null",), fallback="forbid"):
        assert not got.any()


def test_it_has_a_kernel_for_every_op_of_the_library(host: Host) -> None:
    lacking = [
        op
        for op in host.ops.names()
        if host.ops.get(op).verb.kernel and all(r.plugin != "null" for r in host.kernels.for_op(op))
    ]
    assert lacking == []


def test_launches_are_what_the_plan_says(host: Host) -> None:
    device = null.install(host)
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4, 3])
        y = tf.nn.softmax(tf.matmul(x, np.ones((3, 2), np.float32)) + 1.0)
        with tf.Session(graph=graph, config=tf.SessionConfig(backends=("null",)), host=host) as s:
            s.run(y, {x: np.ones((4, 3))})
            before = device.launches
            s.run(y, {x: np.ones((4, 3))})
            plan = s.plan(y)
            assert device.launches - before == len(plan.kernel_nodes) == 3
            assert {n.device.type for n in plan.kernel_nodes} == {"null"}
