"""Random programs of branches, loops and TensorArrays: every executor gives the values and gradients that TensorFlow 2.21 gave.

``random_control_flow.json`` has its answers, which running ``random_control_flow.py`` with TensorFlow writes.
"""

from __future__ import annotations

import json
import types
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import hookimpl
from graphdock.passes.pipeline import simplifications
from graphdock.plugin.host import Host
from graphdock_dataflow.executor import Dataflow

ANSWERS = json.loads(Path(__file__).with_name("random_control_flow.json").read_text())
OFF = dict.fromkeys(simplifications(), False)


class Other(Dataflow):
    """The dataflow executor with a name of its own, so that it may stand beside the installed one."""

    name = "other"


#: What runs a program: an executor of a seed, and fields of the session's configuration.
WAYS = {
    "straight-line": (None, {"executor": "straight_line"}),
    "without passes": (None, {"executor": "straight_line", "passes": OFF}),
    "debug": (None, {"executor": "straight_line", "debug": True}),
    "dataflow": (None, {"executor": "dataflow", "inter_op_threads": 1}),
    "each kernel on one of four threads": (lambda seed: Other(hand_off=0.0), {"inter_op_threads": 4}),
    "in random order": (lambda seed: Other(seed), {}),
}


@pytest.mark.sampled(320)
@pytest.mark.parametrize("seed", range(len(ANSWERS)))
def test_every_executor_gives_what_tensorflow_gives(random_control_flow, seed):
    for way, (executor, fields) in WAYS.items():
        host = Host()
        if executor is not None:
            made = executor(seed)
            hooks = types.SimpleNamespace(register_executors=hookimpl(lambda made=made: [made]), __name__="other")
            host.register("other", hooks)
            fields = {**fields, "executor": made.name}
        with tf.Graph(host=host).as_default() as graph:
            program = random_control_flow.Program(tf, seed)
            feeds, fetches = program.build()
            with tf.Session(graph=graph, config=tf.SessionConfig(**fields), host=host) as session:
                found = session.run(fetches, dict(zip(feeds, program.feeds(), strict=True)))
        for got, expected in zip(found, ANSWERS[seed], strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12, err_msg=way)


class Forward:
    """``tf`` without gradients: primitives have none, and what a loop keeps for them would stand in its body."""

    def gradients(self, *args):
        return [None]

    def __getattr__(self, name):
        return getattr(tf, name)


@pytest.mark.sampled(160)
@pytest.mark.parametrize("seed", range(len(ANSWERS)))
def test_lowered_to_primitives_it_gives_what_tensorflow_gives(random_control_flow, lowered, seed):
    with tf.Graph().as_default() as graph:
        program = random_control_flow.Program(Forward(), seed)
        feeds, (result, _) = program.build()
        given = program.feeds()
    for order in (None, seed):
        host = Host()
        hooks = types.SimpleNamespace(register_executors=hookimpl(lambda order=order: [Other(order)]), __name__="other")
        host.register("other", hooks)
        with tf.Graph(host=host).as_default() as primitives:
            *fed, fetched = lowered.lower(graph, [*feeds, result])
            assert not {"Cond", "While"} & {op.type for op in primitives.get_operations()}
            config = tf.SessionConfig(executor="other")
            with tf.Session(graph=primitives, config=config, host=host) as session:
                found = session.run(fetched, dict(zip(fed, given, strict=True)))
        np.testing.assert_allclose(found, ANSWERS[seed][0], rtol=1e-9, atol=1e-12, err_msg=f"order {order}")
