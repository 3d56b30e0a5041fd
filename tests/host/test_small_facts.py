"""Dtypes, shapes, device names, attributes and lookups at their edges, against values worked out by hand."""

from __future__ import annotations

import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock import dtypes, ops
from graphdock.contracts.ir import Builder, PlanNode
from graphdock.contracts.ir_check import check
from graphdock.contracts.kernel import KernelDef
from graphdock.contracts.opdef import AttrDef, OpDef
from graphdock.device_name import DeviceSpec
from graphdock.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PlanError,
    ShapeError,
)
from graphdock.graph import nest
from graphdock.graph.attr_values import encode
from graphdock.graph.naming import NameTable
from graphdock.opdef.expression import compile_expression
from graphdock.opdef.resolve import resolve
from graphdock.plugin.registry import OpRegistry
from graphdock.runtime.random_stream import random_key
from graphdock.shape import merge


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_narrow_floats_accumulate_in_float32_and_the_others_in_themselves():
    wide = {d.name: d.accumulator.name for d in dtypes.ALL.values() if d.is_floating}
    assert wide == {"float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64"}


def test_every_dtype_is_a_name_of_the_module():
    assert all(getattr(tf, name) is dtype for name, dtype in dtypes.ALL.items() if name != "bool")
    assert tf.bool is dtypes.bool_


def test_an_inner_device_type_drops_the_outer_index():
    outer = DeviceSpec.parse("/job:worker/device:cuda:3")
    assert str(outer.merge(DeviceSpec.parse("cpu"))) == "/job:worker/device:cpu"
    assert str(outer.merge(DeviceSpec.parse("cuda"))) == "/job:worker/device:cuda:3"
    assert str(outer.merge(DeviceSpec(index=1))) == "/job:worker/device:cuda:1"


def test_numbers_that_were_given_by_name_are_passed_over():
    table = NameTable()
    assert [table.unique(n) for n in ("n", "n_1", "n_2", "n", "n")] == ["n", "n_1", "n_2", "n_3", "n_4"]


def test_short_names_of_kernels_are_snake_case():
    names = {op: KernelDef(op, "cpu", lambda ctx: print).short_name for op in ("MatMul", "LRN", "so3.TensorProduct")}
    assert names == {"MatMul": "mat_mul", "LRN": "lrn", "so3.TensorProduct": "tensor_product"}


@pytest.mark.parametrize(
    ("text", "value"), [("7 // 2", 3), ("-7 // 2", -4), ("7 % 4", 3), ("2 if 1 > 2 else 5", 5), ("max(1, 3) - 1", 2)]
)
def test_dim_expressions_stay_integers(text, value):
    found = compile_expression(text)[0]({})
    assert found == value and isinstance(found, int)


def test_the_rest_of_a_known_shape_is_known():
    x, y = tf.placeholder(tf.float32, [2, 3, 4]), tf.placeholder(tf.float32, [None, None])
    rest = ops.apply_op("Slice", x=ops.apply_op("Shape", input=x), begin=[1], size=[-1])
    assert tf.reshape(y, rest).shape == [3, 4]


def test_an_integer_is_int32_as_long_as_it_fits():
    assert [tf.constant(v).dtype.name for v in (2**31 - 1, 2**31, -(2**31), -(2**31) - 1)] == [
        "int32",
        "int64",
        "int32",
        "int64",
    ]


def test_an_integer_attribute_is_no_bool():
    with pytest.raises(InvalidArgumentError, match="'axis' of Pack has a wrong value"):
        ops.apply_op("Pack", values=[tf.constant(1.0)], axis=True)


def test_a_default_must_have_the_shape_that_may_be_fed():
    with pytest.raises(ShapeError, match=r"does not have the shape \[3\]"):
        tf.placeholder_with_default([1.0, 2.0], [3])


def test_a_name_in_a_spec_that_its_module_lacks_is_named_with_the_nearest():
    with pytest.raises(NotFoundError, match="module graphdock.shape has no 'brodcast'") as caught:
        resolve("graphdock.shape:brodcast")
    assert caught.value.hint == "did you mean 'broadcast'?"


def test_a_library_that_builds_an_op_under_another_name_breaks_a_promise():
    registry = OpRegistry()
    registry.add_library({"a.Right": lambda: OpDef("a.Wrong")}, {}, "a")
    with pytest.raises(InternalError, match=r"builds 'a.Wrong' under the name 'a.Right'"):
        registry.get("a.Right")


def test_an_op_library_that_is_nowhere_is_named():
    with pytest.raises(NotFoundError, match="no op library at 'nowhere.yaml'"):
        tf.load_op_library("nowhere.yaml")


def test_what_set_shape_adds_later_holds_for_the_next_step():
    x = tf.placeholder(tf.float32)
    y = x * 2.0
    with tf.Session() as sess:
        assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [2, 4]
        x.set_shape([3])
        with pytest.raises(ShapeError):
            sess.run(y, {x: [1.0, 2.0]})


def test_sessions_are_left_in_the_order_in_which_they_were_entered():
    with tf.Session() as outer:
        with pytest.raises(FailedPreconditionError, match="reverse order"), tf.Session():
            outer.__exit__(None, None, None)
        assert tf.get_default_session() is not None


NEG = OpDef("Neg")


def test_a_plan_that_breaks_the_grammar_is_refused():
    b = Builder()
    x = b.input("x", dtypes.float32, (2,))
    (y,) = b.node(NEG, "y", [x], {}, [(dtypes.float32, (2,))])
    (z,) = b.node(NEG, "z", [y], {}, [(dtypes.float32, (2,))])
    graph = b.finish([z])
    first, second = graph.nodes

    def refused(match: str) -> None:
        with pytest.raises(PlanError, match=match):
            check(graph)

    graph.nodes = [second, first]
    refused("reads .* before it is defined")
    graph.nodes = [first, second, second]
    refused("stands in the graph twice")
    graph.nodes = [first, second]
    first.control = [second]
    refused("must run after z, which does not stand before it")
    first.control = []
    z.name = "y"
    refused("defines %y, which is defined already")
    z.name = "z"
    graph.targets = [PlanNode("Neg", "elsewhere", NEG, {}, [])]
    refused("must run elsewhere, which it does not hold")
    graph.targets = []
    check(graph)


def test_rows_without_a_whole_shape_know_all_dims_but_the_first():
    slices = tf.IndexedSlices(np.zeros((3, 4), np.float32), [0, 5, 9])
    assert slices.shape == [None, 4]
    assert tf.IndexedSlices(np.zeros((3, 4), np.float32), [0, 5, 9], [10, 4]).shape == [10, 4]


def test_attributes_are_found_by_their_whole_name():
    opdef = OpDef("A", attrs=(AttrDef("transpose_a", "bool"), AttrDef("transpose", "bool")))
    assert [opdef.attr(n) and opdef.attr(n).name for n in ("transpose", "trans", "transpose_a")] == [
        "transpose",
        None,
        "transpose_a",
    ]


def test_a_known_shape_is_a_constant():
    assert tf.shape(tf.placeholder(tf.float32, [2, 3])).op.type == "Const"
    assert tf.shape(tf.placeholder(tf.float32, [2, None])).op.type == "Shape"


def test_one_seed_of_zero_is_a_seed():
    assert [random_key(*seeds) for seeds in ((0, 5), (5, 0), (-1, 2))] == [(0, 5), (5, 0), (2**64 - 1, 2)]
    assert random_key(0, 0) != random_key(0, 0)


def test_two_partial_shapes_make_one():
    assert merge((None, 2, None), (3, None, None)) == (3, 2, None)
    assert merge(None, (1,)) == merge((1,), None) == (1,)


@pytest.mark.parametrize("name", ["/job:a/job:b", "/cpu:0/gpu:1", "/task:1/task:1"])
def test_a_device_name_says_each_field_once(name):
    with pytest.raises(InvalidArgumentError, match="twice"):
        DeviceSpec.parse(name)


def test_dicts_are_flattened_by_key_and_packed_in_their_own_order():
    given = {"b": 1, "a": (2, 3)}
    assert nest.flatten(given) == [2, 3, 1]
    packed = nest.map_structure(lambda v: v * 10, given)
    assert packed == {"b": 10, "a": (20, 30)} and list(packed) == ["b", "a"]


def test_the_default_session_belongs_to_a_thread():
    seen = []
    with tf.Session():
        other = threading.Thread(target=lambda: seen.append(tf.get_default_session()))
        other.start()
        other.join()
    assert seen == [None]


def test_numbers_of_any_width_are_written_in_their_shortest_digits():
    for dtype in (np.float16, np.float32, np.float64):
        data = encode("tensor", np.array([0.1], dtype))["tensor"]["data"]
        assert data == [0.1]


def test_an_operation_never_waits_for_itself():
    op = tf.constant(1.0).op
    op._add_control_input(op)
    assert op.control_inputs == []


def test_a_tuple_is_ready_when_all_of_it_is():
    w = tf.Variable(1.0)
    first, _, none = tf.tuple([tf.constant(7.0), tf.assign(w, 5.0), None])
    with tf.Session() as sess:
        sess.run(w.initializer)
        assert sess.run(first) == 7.0 and none is None
        assert sess.run(w) == 5.0


def test_variables_made_in_a_body_live_in_the_container_around_it(graph):
    made = []
    with graph.container("shared"):
        tf.cond(tf.constant(True), lambda: made.append(tf.Variable(lambda: tf.ones([]))) or 1, lambda: 2)
    assert made[0].op.get_attr("container") == "shared"


def test_rows_of_two_index_types_are_joined_in_the_wider_one():
    table = tf.Variable(np.ones((5, 2), np.float32))
    y = tf.gather(table, np.array([1], np.int32)) + tf.gather(table, np.array([2], np.int64))
    (slices,) = tf.gradients(y, [table])
    assert slices.indices.dtype is tf.int64 and slices.shape == [5, 2]
    with pytest.raises(tf.errors.DTypeError, match="IndexedSlices of the wrong dtype"):
        tf.convert_to_tensor(slices, tf.float64)
