"""Attributes: what callers may give, what nodes hold, and errors that name op and attribute."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock import dtypes
from graphdock.contracts.opdef import AttrDef, OpDef, TypeVarDef
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.opdef.attrs import bind_types, check_type, normal_attr, normal_attrs


def normal(kind, value, **more):
    attr = AttrDef("k", kind, **more)
    return normal_attr(OpDef("t.Op", attrs=(attr,)), attr, value)


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        ("int", np.int64(3), 3),
        ("float", 3, 3.0),
        ("float", np.float16(0.5), 0.5),
        ("bool", np.bool_(True), True),
        ("string", b"text", "text"),
        ("type", np.float32, dtypes.float32),
        ("shape", [2, None], (2, None)),
        ("shape", None, None),
        ("list(int)", range(3), (0, 1, 2)),
        ("list(type)", ["int8", bool], (dtypes.int8, dtypes.bool_)),
        ("list(shape)", [[1], None], ((1,), None)),
    ],
)
def test_values_take_their_normal_form(kind, value, kept):
    found = normal(kind, value)
    assert found == kept and type(found) is type(kept)


def test_a_tensor_is_a_copy_that_nobody_writes():
    given = np.array([1, 2])
    kept = normal("tensor", given)
    given[0] = 9
    assert kept.tolist() == [1, 2] and not kept.flags.writeable


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", True),
        ("int", 1.5),
        ("float", "1"),
        ("float", True),
        ("bool", 1),
        ("string", 3),
        ("type", "flota"),
        ("shape", [1.5]),
        ("func", None),
        ("list(int)", "12"),
        ("list(int)", 3),
        ("list(bool)", [True, 0]),
    ],
)
def test_wrong_values_name_op_attribute_and_type(kind, value):
    with pytest.raises(InvalidArgumentError, match="attribute 'k' of t.Op has a wrong value") as caught:
        normal(kind, value)
    assert caught.value.expected == kind and caught.value.got == repr(value)


def test_an_unknown_dtype_suggests_the_nearest():
    with pytest.raises(InvalidArgumentError) as caught:
        normal("type", "flaot32")
    assert caught.value.hint == "did you mean 'float32'?"


def test_bounds_hold_for_numbers_and_for_the_lengths_of_lists():
    assert normal("int", 2, minimum=2, maximum=2) == 2
    assert normal("list(int)", [5, 6], minimum=1, maximum=2) == (5, 6)
    for kind, value, match in (
        ("int", 1, "too small"),
        ("int", 5, "too large"),
        ("list(int)", [9], "too small"),
        ("list(int)", [0] * 5, "too large"),
    ):
        with pytest.raises(InvalidArgumentError, match=match):
            normal(kind, value, minimum=2, maximum=4)


def test_only_allowed_values_are_taken():
    assert normal("string", "up", allowed=("up", "down")) == "up"
    assert normal("list(type)", ["int8"], allowed=("int8",)) == (dtypes.int8,)
    with pytest.raises(InvalidArgumentError, match="is not allowed") as caught:
        normal("string", "upp", allowed=("up", "down"))
    assert caught.value.hint == "did you mean 'up'?"


OP = OpDef(
    "t.Op",
    attrs=(AttrDef("N", "int", minimum=2, inferred=True), AttrDef("k", "int"), AttrDef("mode", "string", default="up")),
    types=(TypeVarDef("T", allow=("float32", "int8")), TypeVarDef("U", default="int32")),
)


def complete(given, found=None):
    attrs = dict(found or {"N": 2})
    normal_attrs(OP, given, attrs)
    return attrs


def test_defaults_fill_in_and_required_attributes_must_be_given():
    assert complete({"k": 3}) == {"N": 2, "k": 3, "mode": "up"}
    assert complete({"k": 3, "mode": None})["mode"] == "up"
    with pytest.raises(InvalidArgumentError, match="t.Op needs attribute 'k'"):
        complete({})


def test_what_the_inputs_say_may_be_said_again_but_not_otherwise():
    assert complete({"k": 1, "N": 2})["N"] == 2
    with pytest.raises(InvalidArgumentError, match="attribute 'N' of t.Op contradicts its inputs"):
        complete({"k": 1, "N": 3})
    with pytest.raises(InvalidArgumentError, match=r"t.Op needs at least 2 tensors \(N\)"):
        complete({"k": 1}, {"N": 1})


def test_a_name_that_the_op_lacks_suggests_the_nearest():
    with pytest.raises(InvalidArgumentError, match="t.Op has no argument 'mod'") as caught:
        complete({"k": 1, "mod": "up"})
    assert caught.value.hint == "did you mean 'mode'?"


def test_type_variables_are_bound_by_inputs_by_the_caller_or_by_default():
    attrs = {"T": dtypes.float32}
    bind_types(OP, {}, attrs, {})
    assert attrs == {"T": dtypes.float32, "U": dtypes.int32}
    attrs = {}
    bind_types(OP, {"T": "int8", "U": "string"}, attrs, {})
    assert attrs == {"T": dtypes.int8, "U": dtypes.string}
    with pytest.raises(DTypeError, match="T contradicts its inputs"):
        bind_types(OP, {"T": "int8"}, {"T": dtypes.float32}, {})
    with pytest.raises(InvalidArgumentError, match="t.Op needs the dtype 'T'"):
        bind_types(OP, {}, {}, {})


def test_a_dtype_that_is_not_allowed_names_what_bound_it():
    with pytest.raises(DTypeError, match=r"t.Op does not take int32 \(of x\)") as caught:
        check_type(OP, OP.types[0], dtypes.int32, "of x")
    assert caught.value.expected == "one of float32, int8"
