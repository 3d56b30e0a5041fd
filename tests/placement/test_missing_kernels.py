"""All that a plan lacks is one error: by op, with the nodes, the candidates and what to do."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.contracts import OpDef, PlanNode
from graphdock.placement.missing_kernels import MissingKernel, not_found
from graphdock.plugin.host import Host


def lack(name, what, *candidates, hint="add a backend"):
    return MissingKernel(PlanNode("Op", name, OpDef("Op"), {}, []), what, candidates, hint)


def test_one_node_is_told_as_it_is():
    error = not_found([lack("a", "Log(T=float32) on any device of toy", "x.log (toy): too old")])
    assert error.message == "no kernel for Log(T=float32) on any device of toy; candidates:\n    x.log (toy): too old"
    assert (error.op, error.hint) == ("a", "add a backend")
    assert not_found([lack("a", "Log() on toy")]).message.endswith("; candidates: none")


def test_several_are_grouped_by_op_and_say_each_hint_once():
    rows = [lack(f"m{i}", "MatMul() on toy", "x.mm (toy): odd") for i in range(7)]
    rows.insert(1, lack("log", "Log() on toy", hint="loosen the scope"))
    error = not_found(rows)
    assert error.message.splitlines() == [
        "no kernel for 8 nodes:",
        "  MatMul() on toy: m0, m1, m2, m3, m4, and 2 more; candidates:",
        "    x.mm (toy): odd",
        "  Log() on toy: log; candidates: none",
    ]
    assert error.op == "m0" and error.hint == "add a backend; loosen the scope"


def test_a_session_names_every_node_that_it_lacks_a_kernel_for(toy, process_host):
    process_host(Host())
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 2])
        fetches = [tf.sin(x, name="one"), tf.cos(x, name="two"), tf.sin(x + 1.0, name="three")]
        with (
            tf.Session(graph=graph, config=tf.SessionConfig(backends=["toy"])) as sess,
            pytest.raises(tf.errors.KernelNotFoundError) as caught,
        ):
            sess.run(fetches, {x: [[1.0, 2.0], [3.0, 4.0]]})
    lines = caught.value.message.splitlines()
    assert lines[0] == "no kernel for 3 nodes:"
    assert any("Sin(T=float32) on any device of toy: one, three" in line for line in lines)
    assert any("Cos(T=float32) on any device of toy: two" in line for line in lines)
