"""Handles of a plan: which op made them, through aliases and bodies, and that ops get the kinds they take."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.contracts import ArgDef, Builder, OpDef
from graphdock.contracts.handles import check_handles, handle_of, resource_name
from graphdock.contracts.opdef import BodyDef
from graphdock.dtypes import ALL, bool_, float32
from graphdock.errors import InvalidArgumentError

RESOURCE = ALL["resource"]
HANDLE = (ArgDef("h", "resource", "[]"),)
MAKE = {kind: OpDef(f"lab.{kind}", outputs=HANDLE, executes="handle", resource=kind) for kind in ("variable", "Box")}
ALIAS = OpDef("lab.Alias", inputs=HANDLE, outputs=(ArgDef("again", "resource", "[]"),), executes="alias")
READ = OpDef(
    "lab.Read", inputs=(ArgDef("h", "resource", "[]", access="reads"),), outputs=(ArgDef("y", "float32", "[]"),)
)
OPEN = OpDef("lab.Open", inputs=(ArgDef("h", "resource", "[]", access="writes", resource="Box"),))
BRANCH = OpDef(
    "Cond",
    inputs=(ArgDef("pred", "bool", "[]"), ArgDef("inputs", "resource", arity="many")),
    executes="branch",
    bodies=(BodyDef("then_branch", "inputs"), BodyDef("else_branch", "inputs")),
)


def make(builder, kind, name, **attrs):
    (handle,) = builder.node(MAKE[kind], name, [], attrs, [(RESOURCE, ())])
    return handle


def test_a_resource_has_its_shared_name_or_that_of_the_operation():
    builder = Builder("step")
    nodes = [
        make(builder, "Box", "a").node,
        make(builder, "Box", "b", container="box", shared_name="").node,
        make(builder, "Box", "c", container="", shared_name="shared").node,
    ]
    assert [resource_name(n) for n in nodes] == [("", "a"), ("box", "b"), ("", "shared")]


def test_handles_of_one_resource_are_one_and_kinds_keep_apart():
    builder = Builder("step")
    first = make(builder, "Box", "a", container="", shared_name="t")
    again = make(builder, "Box", "b", container="", shared_name="t")
    other = make(builder, "Box", "c", container="elsewhere", shared_name="t")
    variable = make(builder, "variable", "d", container="", shared_name="t")
    assert handle_of(builder.graph) == {first: first, again: first, other: other, variable: variable}


def test_a_handle_is_followed_through_aliases_and_bodies():
    builder = Builder("step")
    handle = make(builder, "Box", "a")
    (alias,) = builder.node(ALIAS, "alias", [handle], {}, [(RESOURCE, ())])
    pred = builder.input("pred", bool_, ())
    bodies = []
    for name in ("then", "else"):
        inner = Builder(name)
        parameter = inner.input(f"{name}_h", RESOURCE, ())
        inner.node(OPEN, f"open_{name}", [parameter], {}, [])
        bodies.append(inner.graph)
    builder.node(BRANCH, "cond", [pred, alias], {}, [], bodies=bodies)
    found = handle_of(builder.graph)
    assert found[alias] is handle
    assert [found[b.inputs[0]] for b in bodies] == [handle, handle]
    check_handles(builder.graph)


def test_a_handle_of_another_kind_is_refused_wherever_it_stands():
    builder = Builder("step")
    box = make(builder, "Box", "a_box")
    pred = builder.input("pred", bool_, ())
    inner = Builder("then")
    inner.node(READ, "read", [inner.input("h", RESOURCE, ())], {}, [(float32, ())])
    otherwise = Builder("else")
    otherwise.input("h2", RESOURCE, ())
    builder.node(BRANCH, "cond", [pred, box], {}, [], bodies=[inner.graph, otherwise.graph])
    with pytest.raises(InvalidArgumentError, match="lab.Read takes a handle to a variable") as caught:
        check_handles(builder.graph)
    assert (caught.value.op_name, caught.value.got) == ("read", "a_box, a handle to a Box")


def test_a_handle_that_nobody_made_is_refused():
    builder = Builder("step")
    fed = builder.input("fed", RESOURCE, ())
    builder.node(OPEN, "open", [fed], {}, [])
    with pytest.raises(InvalidArgumentError, match="takes a handle to a Box, and fed is fed") as caught:
        check_handles(builder.graph)
    assert caught.value.op_name == "open"
    assert "only ops that execute as handle" in caught.value.hint


def test_tensors_are_none_of_its_business():
    builder = Builder("step")
    x = builder.input("x", float32, (2,))
    double = OpDef("lab.Double", inputs=(ArgDef("x", "float32", "[*S]"),), outputs=(ArgDef("y", "float32", "[*S]"),))
    builder.node(double, "y", [x], {"factor": np.float32(2)}, [(float32, (2,))])
    check_handles(builder.graph)
    assert handle_of(builder.graph) == {}
