"""A generated row and what follows from its name, package and file make a whole OpDef, when its op is first asked for."""

from __future__ import annotations

import pytest
from graphdock.contracts.op_table import (
    FLOATS,
    INDEX,
    arg,
    args,
    attr,
    attrs,
    names_of,
    op_table,
    snake,
    spelled_out,
    type_var,
    types,
)
from graphdock.contracts.opdef import REQUIRED, ArgDef, AttrDef, OpDef, TypeVarDef


def made(**facts):
    rows = {"lab.MatMul": lambda op: op(args(x="T[*S]", y="T"), args(z="T[]"), **facts)}
    return op_table("graphdock_lab._gen", {"specs/lab.yaml": ("graphdock_lab.oracles", rows)})["lab.MatMul"]()


def test_what_a_row_leaves_out():
    assert made() == OpDef(
        "lab.MatMul",
        inputs=(ArgDef("x", "T", "[*S]"), ArgDef("y", "T")),
        outputs=(ArgDef("z", "T", "[]"),),
        traits=frozenset({"pure", "no_gradient"}),
        gradient_kinds={"x": "none", "y": "none"},
        reference="graphdock_lab.oracles:mat_mul",
        package="graphdock_lab",
        source="specs/lab.yaml",
    )


@pytest.mark.parametrize(
    ("said", "kinds"),
    [("formula", {"x": "formula", "y": "formula"}), ({"y": "fn"}, {"x": "none", "y": "fn"})],
)
def test_a_gradient_has_a_function_of_the_ops_name(said, kinds):
    opdef = made(gradient=said, traits=("stateful",), decomposed=True, reference=None, version=2)
    assert opdef.gradient_kinds == kinds and opdef.gradient == "graphdock_lab._gen.gradients:mat_mul"
    assert opdef.decomposition == "graphdock_lab._gen.decompositions:mat_mul"
    assert (opdef.traits, opdef.reference, opdef.version) == ({"stateful"}, None, 2)


def test_nothing_is_built_before_it_is_asked_for():
    def row(op):
        raise AssertionError(op.name)

    table = op_table("lab._gen", {"specs/a.yaml": ("", {"A": row}), "specs/b.yaml": ("", {"B": lambda op: op()})})
    assert list(table) == ["A", "B"] and table["B"]().source == "specs/b.yaml"
    with pytest.raises(AssertionError, match="A"):
        table["A"]()


def test_arguments_attributes_and_types():
    assert args(n=arg("int32[_]", memory="host", arity="many", count="N"), s="string") == (
        ArgDef("n", "int32", "[_]", "many", "N", "host"),
        ArgDef("s", "string"),
    )
    assert attrs(k="int", p=attr("string", "A", allowed=("A",)), n=attr("int", minimum=1)) == (
        AttrDef("k", "int", REQUIRED),
        AttrDef("p", "string", "A", allowed=("A",)),
        AttrDef("n", "int", REQUIRED, minimum=1),
    )
    assert types(T=FLOATS, I=type_var(INDEX, "int32"), L=type_var(is_list=True), U=()) == (
        TypeVarDef("T", FLOATS),
        TypeVarDef("I", INDEX, "int32"),
        TypeVarDef("L", is_list=True),
        TypeVarDef("U"),
    )


def test_names_of_functions():
    assert [snake(n) for n in ("MatMul", "LRN", "Conv2DGrad", "While")] == ["mat_mul", "lrn", "conv2d_grad", "while_"]


def test_a_row_stays_and_namespaces_are_spelled_out() -> None:
    table = {"unit": "p.more:unit", "p.other": {"tf tf.math": "half twice=doubled", "tf.a.b": "half"}}
    assert spelled_out(table) == {
        "unit": "p.more:unit",
        **{name: "p.other:half" for name in ("half", "math.half", "a.b.half")},
        **{name: "p.other:doubled" for name in ("twice", "math.twice")},
    }


def test_no_names_are_no_rows() -> None:
    assert spelled_out({}) == spelled_out({"p.m": {}}) == {}
    assert list(names_of("p.m", "tf", "")) == []


def test_rows_of_a_file_without_oracles_have_no_reference():
    rows = {"lab.Wait": lambda op: op(args(x="T[*S]"))}
    assert op_table("graphdock_lab._gen", {"specs/lab.yaml": ("", rows)})["lab.Wait"]().reference is None
