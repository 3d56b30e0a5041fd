"""TensorFlow's Switches and Merges become Cond nodes: several results, nested ones, and what is no cond."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

F, I, B = tf.float32, tf.int32, tf.bool


@pytest.fixture
def choice(made):
    """Placeholders ``p`` and ``x``, and ``x`` in either branch: ``x/switch:1`` and ``x/switch:0``."""
    made.node("p", "Placeholder", dtype=B, shape=tf.TensorShape([]))
    made.node("x", "Placeholder", dtype=F, shape=tf.TensorShape([]))
    made.node("pivot", "Switch", "p", "p", T=B)
    made.node("t", "Identity", "pivot:1", T=B)
    made.node("f", "Identity", "pivot", T=B)
    made.node("pred", "Identity", "p", T=B)
    made.node("x/switch", "Switch", "x", "pred", T=F)
    return made


def conds(read):
    return [n for n in read.data["nodes"] if n["op"] == "Cond"]


def test_several_results_are_one_cond(choice):
    choice.const("two", np.float32(2), "^t")
    choice.node("yes", "Mul", "x/switch:1", "two", T=F)
    choice.const("no", np.float32(-1), "^f")
    choice.node("a", "Merge", "no", "yes", T=F, N=2)
    choice.node("b", "Merge", "x/switch", "yes", T=F, N=2)
    choice.node("c", "Merge", "yes", "no", T=F, N=2)  # the other way round
    for name in "ac":
        choice.node(f"{name}/index", "Identity", f"{name}:1", T=I)
    fetches = ["a:0", "b:0", "c:0", "a/index:0", "c/index:0"]
    assert choice.run(fetches, {"p:0": True, "x:0": 3.0}) == [6, 6, 6, 1, 0]
    assert choice.run(fetches, {"p:0": False, "x:0": 3.0}) == [-1, 3, -1, 0, 1]
    assert len(conds(choice.read())) == 1


def test_a_cond_in_a_cond_and_one_behind_it(choice):
    choice.const("zero", np.float32(0), "^t")
    choice.node("inner", "Greater", "x/switch:1", "zero", T=F)
    choice.node("x/inner", "Switch", "x/switch:1", "inner", T=F)
    choice.node("pos", "Square", "x/inner:1", T=F)
    choice.node("neg", "Neg", "x/inner", T=F)
    choice.node("m", "Merge", "neg", "pos", T=F, N=2)
    choice.node("out", "Merge", "x/switch", "m", T=F, N=2)
    choice.node("again", "Switch", "out", "pred", T=F)
    choice.node("less", "Neg", "again:1", T=F)
    choice.node("last", "Merge", "again", "less", T=F, N=2)
    for p, x, expected in ((True, 3.0, -9.0), (True, -3.0, -3.0), (False, -3.0, -3.0)):
        assert choice.run("last:0", {"p:0": p, "x:0": x}) == expected
    read = choice.read()
    assert len(conds(read)) == 2 and read.report.complete


def test_updates_run_in_the_branch_that_is_taken(choice):
    choice.node("v", "VarHandleOp", dtype=F, shape=tf.TensorShape([]), shared_name="v")
    choice.node("init", "AssignVariableOp", "v", "one", dtype=F)
    choice.const("one", np.float32(1))
    choice.node("v/switch", "Switch", "v", "pred", T=tf.resource)
    choice.node("add", "AssignAddVariableOp", "v/switch:1", "x/switch:1", dtype=F)
    choice.node("yes", "Identity", "x/switch:1", "^add", T=F)
    choice.node("out", "Merge", "x/switch", "yes", T=F, N=2)
    choice.node("read", "ReadVariableOp", "v", "^out", dtype=F)
    assert choice.run("read:0", {"p:0": True, "x:0": 3.0}) == 4
    assert choice.run("read:0", {"p:0": False, "x:0": 3.0}) == 1


def test_what_would_run_twice_keeps_its_primitives_and_runs_once(choice):
    choice.const("shape", np.int32([]))
    choice.node("shape/s", "Switch", "shape", "pred", T=I)
    choice.node("draw", "RandomUniform", "shape/s:1", dtype=F, T=I, seed=1, seed2=2)
    choice.node("a", "Merge", "x/switch", "draw", T=F, N=2)
    choice.node("a/switch", "Switch", "a", "pred", T=F)
    choice.node("with", "Mul", "draw", "a/switch:1", T=F)  # as a gradient reads what the branch drew
    choice.node("b", "Merge", "a/switch", "with", T=F, N=2)
    read = choice.read()
    assert read.report.complete and not conds(read)
    assert choice.run("b:0", {"p:0": False, "x:0": 3.0}) == 3
    drawn = choice.run("b:0", {"p:0": True, "x:0": 3.0})
    assert 0 <= drawn < 1  # the square of one draw


def test_what_is_no_cond_keeps_its_primitives(choice):
    choice.node("y", "Merge", "x/switch", "x", T=F, N=2)
    read = choice.read()
    assert read.report.complete and not conds(read)
    assert choice.run("y:0", {"p:0": True, "x:0": 3.0}) == 3
