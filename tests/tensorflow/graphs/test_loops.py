"""TensorFlow's frames become While nodes: nested ones, ones with captures, and ones of which a part is missing."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import UnknownOpError

F, I, B = tf.float32, tf.int32, tf.bool


def loop(made, name, start, limit, step, dtype=I):
    """``i = start; while i < limit: i = step(i)``, as ``tf.while_loop`` of TensorFlow 1 writes it; returns its Exit.

    ``step`` is given the tensor of the variable in the body, makes nodes, and returns the next one.
    """
    for tensor, constant in ((start, False), (limit, True)):
        label = "limit" if constant else "enter"
        made.node(
            f"{name}/{label}", "Enter", tensor, T=dtype, frame_name=name, is_constant=constant, parallel_iterations=4
        )
    made.node(f"{name}/merge", "Merge", f"{name}/enter", f"{name}/again", T=dtype, N=2)
    made.node(f"{name}/less", "Less", f"{name}/merge", f"{name}/limit", T=dtype)
    made.node(f"{name}/test", "LoopCond", f"{name}/less")
    made.node(f"{name}/switch", "Switch", f"{name}/merge", f"{name}/test", T=dtype)
    made.node(f"{name}/in", "Identity", f"{name}/switch:1", T=dtype)
    made.node(f"{name}/again", "NextIteration", step(f"{name}/in"), T=dtype)
    made.node(f"{name}/exit", "Exit", f"{name}/switch", T=dtype)
    return f"{name}/exit"


def add(made, name, value):
    made.const(f"{name}/by", np.int32(1))
    made.node(f"{name}/add", "AddV2", value, f"{name}/by", T=I)
    return f"{name}/add"


@pytest.fixture
def limits(made):
    made.const("zero", np.int32(0))
    made.node("n", "Placeholder", dtype=I, shape=tf.TensorShape([]))
    return made


def test_a_loop_and_its_gradientless_use(limits):
    out = loop(limits, "while", "zero", "n", lambda i: add(limits, "while", i))
    limits.node("y", "Mul", out, out, T=I)
    assert limits.run(["y:0", f"{out}:0"], {"n:0": 5}) == [25, 5]
    read = limits.read()
    (made,) = [n for n in read.data["nodes"] if n["op"] == "While"]
    assert made["attrs"]["parallel_iterations"] == {"int": 4} and read.report.complete


def test_a_loop_in_a_loop(limits):
    limits.const("two", np.int32(2))

    def step(value):
        limits.node("o/two", "Enter", "two", T=I, frame_name="o", is_constant=True)
        limits.node("o/more", "AddV2", value, "o/two", T=I)
        return loop(limits, "i", value, "o/more", lambda i: add(limits, "i", i))

    out = loop(limits, "o", "zero", "n", step)
    assert limits.run(f"{out}:0", {"n:0": 5}) == 6


def test_a_variable_that_needs_what_is_missing_goes_alone(limits):
    out = loop(limits, "while", "zero", "n", lambda i: add(limits, "while", i))
    limits.node("f/enter", "Enter", "zero", T=I, frame_name="while", is_constant=False)
    limits.node("f/merge", "Merge", "f/enter", "f/again", T=I, N=2)
    limits.node("f/switch", "Switch", "f/merge", "while/test", T=I)
    limits.node("stack", "StackV2")
    limits.node("f/stack", "Enter", "stack", T=tf.resource, frame_name="while", is_constant=True)
    limits.node("f/push", "StackPushV2", "f/stack", "f/switch:1", T=I)
    limits.node("f/again", "NextIteration", "f/switch:1", "^f/push", T=I)
    limits.node("f/exit", "Exit", "f/switch", T=I)
    limits.node("lost", "Mul", "f/exit", "f/exit", T=I)
    with pytest.raises(UnknownOpError, match="StackPushV2"):
        limits.run(f"{out}:0")
    assert limits.run(f"{out}:0", {"n:0": 5}, allow_missing=True) == 5
    assert "lost" in limits.read().report.left_out


@pytest.mark.parametrize("broken", ["while/again", "while/test", "while/enter", "while/switch"])
def test_what_is_no_loop_says_so(limits, broken):
    out = loop(limits, "while", "zero", "n", lambda i: add(limits, "while", i))
    node = next(n for n in limits.message.node if n.name == broken)
    node.op = "Identity"
    del node.input[1:]
    read = limits.read()
    if broken == "while/enter":
        assert not read.report.complete and out in read.report.left_out
        return
    # it keeps its primitives, of which no While is made
    assert read.report.complete
    kinds = {node["op"] for node in read.data["nodes"]}
    assert "While" not in kinds and {"Enter", "Exit"} <= kinds
