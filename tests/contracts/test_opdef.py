"""OpDefs: lookups by whole name, what follows from effects and handles, and the line that shows one."""

from __future__ import annotations

import pytest
from graphdock.contracts.opdef import REQUIRED, VERBS, ArgDef, AttrDef, OpDef


def test_attributes_are_found_by_their_whole_name():
    opdef = OpDef("A", attrs=(AttrDef("transpose_a", "bool"), AttrDef("transpose", "bool")))
    found = [opdef.attr(name) for name in ("transpose", "trans", "transpose_a")]
    assert [a and a.name for a in found] == ["transpose", None, "transpose_a"]


def test_inputs_are_found_by_their_whole_name():
    opdef = OpDef("A", inputs=(ArgDef("x", "T"), ArgDef("xs", "T")))
    assert [opdef.input(n) and opdef.input(n).name for n in ("xs", "x", "y")] == ["xs", "x", None]


def test_an_attribute_is_required_unless_it_has_a_default():
    assert AttrDef("k", "int").default is REQUIRED and AttrDef("k", "int", default=None).default is None
    assert repr(REQUIRED) == "REQUIRED"


@pytest.mark.parametrize(
    ("opdef", "stateful", "active"),
    [
        (OpDef("A"), False, False),
        (OpDef("A", traits=frozenset({"stateful"})), True, True),
        (OpDef("A", effects=frozenset({"random"})), True, False),
        (OpDef("A", effects=frozenset({"io"})), True, True),
        (OpDef("A", effects=frozenset({"waits"})), True, True),
        (OpDef("A", inputs=(ArgDef("v", "resource", access="reads"),)), True, False),
        (OpDef("A", inputs=(ArgDef("v", "resource", access="writes"),)), True, True),
        (OpDef("A", inputs=(ArgDef("v", "resource", access="uses"),)), True, True),
        (OpDef("A", traits=frozenset({"stateful"}), effects=frozenset({"random"})), True, False),
        (OpDef("A", executes="handle", traits=frozenset({"stateful"})), True, False),
    ],
)
def test_what_may_not_be_merged_and_what_runs_though_nobody_reads_it(opdef, stateful, active):
    assert (opdef.is_stateful, opdef.is_active) == (stateful, active)


def test_the_verb_is_a_record():
    assert all(OpDef("A", executes=name).verb is verb for name, verb in VERBS.items())


def test_only_a_writer_mutates():
    assert [ArgDef("v", "resource", access=a).mutates for a in ("", "reads", "writes", "uses")] == [
        False,
        False,
        True,
        False,
    ]


def test_one_line_shows_arguments_and_their_arity():
    opdef = OpDef(
        "Mix",
        inputs=(ArgDef("xs", "T", arity="many", count="N"), ArgDef("b", "T", arity="optional")),
        outputs=(ArgDef("y", "float32"),),
    )
    assert str(opdef) == "Mix(*xs: T, ?b: T) -> y: float32"
    assert str(OpDef("Off")) == "Off() -> nothing"
