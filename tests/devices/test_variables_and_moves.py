"""A variable and all that touches it share a device; a tensor moves once; host arguments of a kernel arrive as arrays."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.contracts import KernelDef
from graphdock.errors import InvalidArgumentError
from graphdock.plugin.host import Host


@pytest.fixture
def session(host: Host) -> Any:
    with tf.Graph().as_default() as graph:
        yield lambda **config: tf.Session(graph=graph, config=tf.SessionConfig(**config), host=host)


@pytest.mark.parametrize(
    ("config", "home", "away"),
    [
        ({"backends": ("fake", "cpu")}, "fake:0", "cpu:0"),
        ({"backends": ("cpu",), "device_count": {"cpu": 2}}, "cpu:0", "cpu:1"),
    ],
)
def test_an_update_on_another_device_than_its_variable_is_refused(
    session: Any, config: dict[str, Any], home: str, away: str
) -> None:
    with tf.device(home):
        w = tf.Variable(np.zeros(2, np.float32), name="w")
    with tf.device(away):
        update = ops.apply_op("AssignAddVariableOp", resource=w.handle, value=tf.ones([2]))
    with session(**config) as s, pytest.raises(InvalidArgumentError, match=f"share a device.*{home} and {away}"):
        s.run(update)


def test_an_update_that_asks_for_nothing_follows_its_variable(session: Any) -> None:
    with tf.device("cpu:0"):
        w = tf.Variable(np.zeros(2, np.float32))
    update = ops.apply_op("AssignAddVariableOp", resource=w.handle, value=tf.ones([2]))
    with session(backends=("fake", "cpu")) as s:
        s.run(tf.global_variables_initializer())
        assert {r.device for r in s.explain(update).rows if r.op == "AssignAddVariableOp"} == {"cpu:0"}
        s.run(update)
        assert s.run(w).tolist() == [1, 1]


def test_a_tensor_with_many_readers_on_a_device_is_moved_once(session: Any) -> None:
    x = tf.placeholder(tf.float32, [2])
    with tf.device("fake:0"):
        y = tf.exp(x) + tf.sqrt(x) * tf.square(x)
    with session(backends=("fake", "cpu")) as s:
        moves = [r.device for r in s.explain(y).rows if r.kernel == "transfer"]
        assert len(moves) == 2 and moves[0].startswith("host -> fake") and moves[1].endswith("-> host")
        np.testing.assert_allclose(
            s.run(y, {x: [1.0, 4.0]}), np.exp([1, 4]) + np.sqrt([1, 4]) * np.square([1, 4]), 1e-6
        )


def test_what_a_kernel_wants_in_host_memory_arrives_there(session: Any, host: Host) -> None:
    seen = []

    def build(ctx: Any) -> Any:
        return lambda x, *rest: seen.append(type(x)) or np.asarray(x) * 0 + 9

    host.kernels.add(
        KernelDef("Rint", "fake", build, name="host_rint", host=("x", "y"), modes=("fresh",)), "fake", "graphdock_fake"
    )
    x = tf.placeholder(tf.float32, [2])
    with tf.device("fake:0"):
        y = tf.rint(x * 2.0)
    pins = {"Rint@fake": "fake.host_rint"}
    with session(backends=("fake", "cpu"), kernels=pins) as s:
        assert s.run(y, {x: [1.0, 4.0]}).tolist() == [9, 9]
    assert seen == [np.ndarray]
