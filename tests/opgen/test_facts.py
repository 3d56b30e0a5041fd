"""Algebraic facts against a function: each lie is told by its name, and a fact that holds says nothing."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.contracts import ArgDef, OpDef, TypeVarDef
from graphdock_opgen.facts import Setting, broken_facts, declared_facts, unlike

X, Y = ArgDef("x", "T", "[*S]"), ArgDef("y", "T", "[*S]")
OUT, T = ArgDef("z", "T", "[*S]"), TypeVarDef("T", ("float32", "float64"))


def found(function, *arrays, **facts):
    inputs = (X, Y)[: len(arrays)]
    opdef = OpDef("lab.Op", inputs=inputs, outputs=(OUT,), types=(T,), **facts)
    given = dict(zip("xy", arrays, strict=False))
    other = {n: a + a.dtype.type(1) for n, a in given.items()}
    setting = Setting(opdef, lambda a: [np.asarray(function(*a.values()))], given, other, {})
    return list(broken_facts(setting))


A = np.array([[-1.5, 0.25, 2.0], [3.0, -0.5, 7.0]], np.float32)
B = np.array([[2.0, 1.0, -3.0], [0.5, 4.0, 6.0]], np.float32)
EACH = frozenset({"elementwise"})


@pytest.mark.parametrize(
    ("name", "lie", "truth"),
    [
        ("neutral", (np.hypot, {"neutral": {"y": 0}}), (np.add, {"neutral": {"y": 0}})),
        ("scalar", (np.hypot, {"scalar": "x + y"}), (np.add, {"scalar": "x + y"})),
        (
            "commutative",
            (np.subtract, {"traits": frozenset({"commutative"})}),
            (np.add, {"traits": frozenset({"commutative"})}),
        ),
        ("elementwise", (lambda x, y: x + y.mean(), {"traits": EACH}), (np.add, {"traits": EACH})),
    ],
)
def test_of_two_inputs(name, lie, truth):
    assert [f.partition(":")[0] for f in found(lie[0], A, B, **lie[1])] == [name]
    assert found(truth[0], A, B, **truth[1]) == []


@pytest.mark.parametrize(
    ("name", "lie", "truth"),
    [
        ("identity", (np.abs, {"identity": "x"}), (np.copy, {"identity": "x"})),
        ("aliases", (lambda x: x + np.float32(0.5), {"aliases": {"z": "x"}}), (np.transpose, {"aliases": {"z": "x"}})),
        (
            "keeps_zero",
            (np.cos, {"traits": frozenset({"keeps_zero"})}),
            (np.sin, {"traits": frozenset({"keeps_zero"})}),
        ),
        ("view", (np.copy, {"traits": frozenset({"view"})}), (np.copy, {})),
    ],
)
def test_of_one_input(name, lie, truth):
    assert [f.partition(":")[0] for f in found(lie[0], A, **lie[1])] == [name]
    assert found(truth[0], A, **truth[1]) == []


def test_minus_zero_and_nan_are_told_apart():
    zero = np.zeros(2, np.float32)
    assert unlike(-zero, zero) and not unlike(-zero, zero, exact=False)
    nan = np.array([np.nan, 1.0], np.float32)
    assert unlike(nan, nan.copy()) is None
    assert "at [0] it is" in str(unlike(nan, np.ones(2, np.float32)))


def test_what_is_declared_has_a_name():
    assert declared_facts(OpDef("lab.Op", inputs=(X,), outputs=(OUT,), scalar="x", identity="x")) == [
        "scalar",
        "identity",
    ]
