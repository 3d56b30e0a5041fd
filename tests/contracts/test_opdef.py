"""OpDefs: lookups by whole name, what follows from effects and handles, and the line that shows one."""

from __future__ import annotations

import sys
import types

import pytest
from graphdock.contracts.opdef import REQUIRED, VERBS, ArgDef, AttrDef, OpDef, resolve
from graphdock.errors import NotFoundError
from graphdock.shape import broadcast


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


def test_the_object_itself_comes_back():
    assert resolve("graphdock.shape:broadcast") is broadcast


def test_a_name_in_a_spec_that_its_module_lacks_is_named_with_the_nearest():
    with pytest.raises(NotFoundError, match="module graphdock.shape has no 'brodcast'") as caught:
        resolve("graphdock.shape:brodcast")
    assert caught.value.hint == "did you mean 'broadcast'?"


def test_a_module_that_is_nowhere_is_named():
    with pytest.raises(NotFoundError, match="there is no module 'no_such_module'") as caught:
        resolve("no_such_module:f")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
    with pytest.raises(NotFoundError, match="there is no module 'graphdock.no.such'"):
        resolve("graphdock.no.such:f")


def test_a_module_that_imports_what_is_nowhere_is_pythons_own_error(tmp_path, monkeypatch):
    (tmp_path / "resolve_test_lame.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        resolve("resolve_test_lame:f")


def test_what_was_found_is_found_again_and_what_failed_is_tried_again(monkeypatch):
    module = types.ModuleType("resolve_test_module")
    monkeypatch.setitem(sys.modules, "resolve_test_module", module)
    with pytest.raises(NotFoundError):
        resolve("resolve_test_module:late")
    module.late = object()
    first = resolve("resolve_test_module:late")
    module.late = object()
    assert resolve("resolve_test_module:late") is first
