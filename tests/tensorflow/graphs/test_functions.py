"""Functions of the library: calls become what they call, If and While get them as bodies."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, UnknownOpError

F, I, B = tf.float32, tf.int32, tf.bool


def test_calls_of_calls(made):
    nodes = made.function("twice", {"v": F}, {"r": (F, "add:z:0"), "same": (F, "v")})
    made.node("add", "AddV2", "v", "v", into=nodes, T=F)
    nodes = made.function("outer", {"v": F}, {"r": (F, "call:output:1"), "s": (F, "direct:r:0")})
    made.node("call", "PartitionedCall", "v", into=nodes, f=("twice",), Tin=[F], Tout=[F, F])
    made.node("direct", "twice", "call:output:0", into=nodes)
    made.node("x", "Placeholder", dtype=F, shape=tf.TensorShape([]))
    made.node("y", "StatefulPartitionedCall", "x", f=("outer",), Tin=[F], Tout=[F, F])
    assert made.run(["y:0", "y:1"], {"x:0": 3.0}) == [3.0, 12.0]


def test_if_and_while(made):
    nodes = made.function("yes", {"v": F, "w": F}, {"r": (F, "m:z:0")})
    made.node("m", "Mul", "v", "w", into=nodes, T=F)
    made.function("no", {"v": F, "w": F}, {"r": (F, "w")})
    nodes = made.function("test", {"i": I, "n": I, "v": F}, {"r": (B, "less:z:0")})
    made.node("less", "Less", "i", "n", into=nodes, T=I)
    nodes = made.function(
        "step", {"i": I, "n": I, "v": F}, {"r": (I, "next:z:0"), "s": (I, "n"), "t": (F, "grown:z:0")}
    )
    made.const("one", np.int32(1), into=nodes)
    made.node("next", "AddV2", "i", "one:output:0", into=nodes, T=I)
    made.node("grown", "Add", "v", "v", into=nodes, T=F)
    for name, op, dtype in (("p", "Placeholder", B), ("x", "Placeholder", F)):
        made.node(name, op, dtype=dtype, shape=tf.TensorShape([]))
    made.const("zero", np.int32(0))
    made.const("three", np.int32(3))
    made.node(
        "c", "StatelessIf", "p", "x", "x", Tcond=B, Tin=[F, F], Tout=[F], then_branch=("yes",), else_branch=("no",)
    )
    made.node("l", "StatelessWhile", "zero", "three", "c", T=[I, I, F], cond=("test",), body=("step",))
    found = made.run(["c:0", "l:0", "l:1", "l:2"], {"p:0": True, "x:0": 5.0})
    assert found == [25.0, 3, 3, 200.0]
    assert made.run("l:2", {"p:0": False, "x:0": 5.0}) == 40.0


def test_functions_without_end_are_refused(made):
    nodes = made.function("f", {"v": F}, {"r": (F, "c:output:0")})
    made.node("c", "PartitionedCall", "v", into=nodes, f=("f",), Tin=[F], Tout=[F])
    made.node("x", "Placeholder", dtype=F)
    made.node("y", "PartitionedCall", "x", f=("f",), Tin=[F], Tout=[F])
    with pytest.raises(InvalidArgumentError, match="call one another deeper than 32"):
        made.read()


def test_functions_that_grow_without_bound_are_refused(made):
    inner = None
    for depth in range(25):
        nodes = made.function(f"f{depth}", {"v": F}, {"r": (F, "b:output:0" if inner else "b:z:0")})
        for name, value in (("a", "v"), ("b", "v")):
            if inner is None:
                made.node(name, "AddV2", value, value, into=nodes, T=F)
            else:
                made.node(name, "PartitionedCall", value, into=nodes, f=(inner,), Tin=[F], Tout=[F])
        inner = f"f{depth}"
    made.node("x", "Placeholder", dtype=F)
    made.node("y", "PartitionedCall", "x", f=(inner,), Tin=[F], Tout=[F])
    with pytest.raises(InvalidArgumentError, match="bodies are too many for a file of its size"):
        made.read()


def test_what_a_function_lacks_is_said(made):
    made.node("x", "Placeholder", dtype=F)
    made.node("y", "PartitionedCall", "x", f=("gone",), Tin=[F], Tout=[F])
    with pytest.raises(UnknownOpError, match="the function 'gone', which is not there"):
        made.run("y:0")
    nodes = made.function("odd", {"v": F}, {"r": (F, "o:output:0")})
    made.node("o", "NoSuchOp", "v", into=nodes)
    made.node("p", "Placeholder", dtype=B)
    made.node("c", "If", "p", "x", Tin=[F], Tout=[F], then_branch=("odd",), else_branch=("odd",))
    with pytest.raises(UnknownOpError, match=r"If \(needs NoSuchOp\): c"):
        made.run("c:0")
