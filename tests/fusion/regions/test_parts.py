"""Parts that regions read where they lie: which are, what their programs say, and that what only cut them goes."""

from __future__ import annotations

import functools
import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Axis, Multiple, RegionInput, RegionProgram, Span, check_program, dtypes, hookimpl
from graphdock.errors import InvalidArgumentError, PlanError
from graphdock.plugin.host import Host
from graphdock_testing.region_reference import ReferenceCompiler

X = np.random.default_rng(4).normal(size=(6, 8)).astype(np.float32)


@pytest.fixture
def lab(process_host):
    host, compiler = process_host(Host()), ReferenceCompiler()
    hook = hookimpl(specname="register_region_compilers")(lambda: [compiler])
    host.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))
    return host, compiler


def _run(lab, build, x=X):
    """What the reference compiler's regions and the cpu's kernels give, and the kernels of the former."""
    host, _ = lab
    with tf.Graph().as_default():
        fed = tf.placeholder(tf.float32, x.shape, name="fed")
        fetches = build(fed)
        with tf.Session(config=tf.SessionConfig(backends=["cpu"]), host=host) as session:
            want = session.run(fetches, {fed: x})
        with tf.Session(config=tf.SessionConfig(backends=["lab", "cpu"]), host=host) as session:
            got = session.run(fetches, {fed: x})
            kernels = session.explain(fetches, {fed: x}).kernels()
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return kernels


def _run_any(lab, build, dims, *shapes):
    """The same with one plan for any shape."""
    host, _ = lab
    with tf.Graph().as_default():
        fed = tf.placeholder(tf.float32, dims)
        fetches, config = build(fed), functools.partial(tf.SessionConfig, shape_policy="generic")
        with (
            tf.Session(config=config(backends=["cpu"]), host=host) as plain,
            tf.Session(config=config(backends=["lab", "cpu"]), host=host) as session,
        ):
            for shape in shapes:
                x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
                pairs = zip(session.run(fetches, {fed: x}), plain.run(fetches, {fed: x}), strict=True)
                for a, b in pairs:
                    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
            return session.explain(fetches).kernels()


def _inputs(lab):
    return [i for program in lab[1].programs_built for i in program.inputs]


def test_columns_and_strided_rows_are_read_where_they_lie(lab):
    kernels = _run(lab, lambda x: [tf.tanh(tf.split(x, 2, 1)[1]) * 2.0, tf.exp(x[1::2, 3:]) + 1.0])
    assert kernels == {"lab.reference": 2}
    assert {(i.shape, i.strides, i.offset) for i in _inputs(lab)} == {((6, 4), (8, 1), 4), ((3, 5), (16, 1), 11)}
    printed = "\n".join(map(str, lab[1].programs_built))
    assert "strides 8, 1 from 4" in printed and "strides 16, 1 from 11" in printed


def test_a_transposed_matrix_is_one_of_products_alone(lab):
    w = np.random.default_rng(5).normal(size=(6, 3)).astype(np.float32)
    assert _run(lab, lambda x: [tf.matmul(tf.transpose(x), w)]) == {"lab.reference": 1}
    turned = lambda x: [tf.matmul(tf.transpose(tf.split(x, 2, 1)[1]), w)]  # noqa: E731
    assert _run(lab, turned) == {"lab.reference": 1}
    assert (8, 1, 4) in {(*i.strides, i.offset) for i in _inputs(lab) if i.strides is not None}
    kernels = _run(lab, lambda x: [tf.tanh(tf.transpose(x)) * 2.0])
    assert kernels == {"cpu.transpose": 1, "lab.reference": 1}


def test_views_of_views_are_read_where_the_first_one_lies(lab):
    """Rows of the value between have gaps: the transposed images, of which a channel is left out."""
    x = np.random.default_rng(6).normal(size=(2, 4, 3, 5)).astype(np.float32)

    def build(fed):
        first = tf.transpose(fed, [0, 3, 1, 2])
        return [tf.tanh(tf.transpose(first[:, 1:], [0, 2, 3, 1])) * 2.0]

    assert _run(lab, build, x) == {"lab.reference": 1}
    assert {(i.shape, i.strides, i.offset) for i in _inputs(lab)} == {((2, 4, 3, 4), (60, 15, 5, 1), 1)}

    def between(fed):
        first = tf.transpose(fed, [0, 3, 1, 2])[:, 1:]
        return [tf.tanh(tf.transpose(first, [0, 2, 3, 1])) * 2.0 + tf.transpose(tf.exp(first), [0, 2, 3, 1])]

    _run(lab, between, x)


def test_rows_side_by_side_are_read_where_they_lie(lab):
    """No kernel says of a slice that it has no gaps, and a region that does not take parts gets a copy."""
    assert _run(lab, lambda x: [tf.tanh(x[1:] - x[:-1]) * 2.0]) == {"lab.reference": 1}
    assert {(i.shape, i.offset) for i in _inputs(lab)} == {((5, 8), 0), ((5, 8), 8)}


def test_what_has_no_gaps_for_sure_stays_a_view_and_what_others_read_stays(lab):
    x = np.random.default_rng(7).normal(size=(1, 6, 8)).astype(np.float32)
    assert _run(lab, lambda x: [tf.tanh(tf.squeeze(x, [0])) * 2.0], x) == {"cpu.squeeze": 1, "lab.reference": 1}

    def both(x):
        left, right = tf.split(x, 2, 1)
        return [tf.tanh(left) * 2.0, right]

    assert _run(lab, both) == {"cpu.split": 1, "lab.reference": 1}
    assert {i.offset for i in _inputs(lab) if i.strides is not None} == {0}


def test_a_part_that_waits_is_no_region_s(lab):
    def waits(x):
        with tf.control_dependencies([tf.no_op()]):
            held = tf.identity(x)
        with tf.control_dependencies([tf.print(held)]):
            part = tf.split(held, 2, 1)[0]
        return [tf.tanh(part) * 2.0]

    assert _run(lab, waits)["cpu.split"] == 1


def test_a_part_in_a_program_is_only_read_and_says_all_its_strides():
    kind = dtypes.float32
    axes = (Axis("i", 2), Axis("j", 3))
    for fault in ({"strides": (4,)}, {"strides": (4, 1), "dying": True}):
        program = RegionProgram("p", axes, (RegionInput("x", 0, kind, (2, 3), (0, 1), **fault),), (), ())
        with pytest.raises(PlanError, match="strides"):
            check_program(program)
    check_program(RegionProgram("p", axes, (RegionInput("x", 0, kind, (2, 3), (0, 1), strides=(4, 1)),), (), ()))


def test_a_part_in_a_program_says_where_each_extent_that_is_not_known_is_found():
    axes, lies = (Axis("i", None), Axis("j", 3)), {"strides": (4, 1), "whole": (None, 4), "spans": (Span(0), None)}
    faults = (
        ({"spans": ()}, "spans"),
        ({"spans": (None, Span(1))}, "spans"),
        ({"spans": (Span(1), None)}, "spans"),
        ({"spans": (Span(2), None)}, "spans"),
        ({"whole": (4, 4)}, "spans"),
        ({"strides": (Multiple(4, (2,)), 1)}, "multiple of axes"),
        ({"strides": None}, "no strides"),
    )
    for fault, words in faults:
        source = RegionInput("x", 0, dtypes.float32, (None, 3), (0, 1), **{**lies, **fault})
        with pytest.raises(PlanError, match=words):
            check_program(RegionProgram("p", axes, (source,), (), ()))
    check_program(RegionProgram("p", axes, (RegionInput("x", 0, dtypes.float32, (None, 3), (0, 1), **lies),), (), ()))


SIZES = (3, 0, 1, 2, 41)


def test_columns_of_any_number_of_rows_are_read_where_they_lie(lab):
    kernels = _run_any(
        lab,
        lambda x: [tf.tanh(tf.split(x, 2, 1)[1]) * 2.0, tf.exp(x[1::2, 3:]) + 1.0, tf.sin(x[..., 1:3]) * 0.5],
        [None, 8],
        *[(size, 8) for size in SIZES],
    )
    assert kernels == {"lab.reference": 3}
    assert {(i.strides, i.offset, i.whole, i.spans) for i in _inputs(lab)} == {
        ((8, 1), 4, (None, 8), (Span(0), None)),
        ((16, 1), 11, (None, 8), (Span(0, 1, None, 2), None)),
        ((8, 1), 1, (None, 8), (Span(0), None)),
    }
    printed = "\n".join(map(str, lab[1].programs_built))
    assert "strides 8, 1 from 4, i along 0" in printed and "strides 16, 1 from 11, i along 0[1::2]" in printed


def test_strides_are_multiples_of_dims_that_the_part_has(lab):
    def build(x):
        turned = tf.transpose(tf.reshape(x, [-1, 3, 2, 4]), [0, 2, 1, 3])
        return [tf.tanh(x[:, :, 2:]) * 2.0, tf.sin(turned[:, :, 1:]) * 2.0]

    shapes = [(size, 3, 8) for size in SIZES] + [(2, 6, 8)]
    assert _run_any(lab, build, [None, None, 8], *shapes) == {"cpu.reshape": 1, "lab.reference": 2}
    found = {(i.strides, i.offset, i.spans) for i in _inputs(lab)}
    assert ((Multiple(8, (1,)), 8, 1), 2, (Span(0), Span(1), None)) in found
    assert ((24, 4, 8, 1), 8, (Span(0), None, None, None)) in found


def test_what_lies_elsewhere_in_each_step_is_copied(lab):
    """Offsets that follow from a size, a slice of what is a slice already, strides that are multiples of what the part has not."""

    def build(x):
        return [tf.tanh(x[:, -3:, 1:]) * 2.0, tf.tanh(x[:, 1:][:, :2, 1:]) * 2.0, tf.tanh(x[:, ::-1, 1:]) * 2.0]

    kernels = _run_any(lab, build, [2, None, 8], *[(2, size, 8) for size in SIZES])
    assert kernels == {"cpu.strided_slice": 4, "lab.reference": 3}
    kernels = _run_any(lab, lambda x: [tf.tanh(x[:, 1:, 1:]) * 2.0], [None, None, 8], (2, 3, 8), (2, 1, 8), (3, 0, 8))
    assert kernels == {"cpu.strided_slice": 1, "lab.reference": 1}


def test_an_index_that_a_dim_may_not_have_is_an_error_all_the_same(lab):
    build = lambda x: [tf.tanh(x[2, :, 1:]) * 2.0]  # noqa: E731
    assert _run_any(lab, build, [None, 3, 8], (3, 3, 8), (5, 3, 8)) == {"lab.reference": 1}
    for size in (0, 2):
        with pytest.raises(InvalidArgumentError):
            _run_any(lab, build, [None, 3, 8], (3, 3, 8), (size, 3, 8))


def test_a_part_of_a_variable_of_unknown_shape_is_what_it_held_when_it_was_read(lab):
    host, _ = lab
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    config = tf.SessionConfig(backends=["lab", "cpu"], shape_policy="generic")
    with tf.Graph().as_default(), tf.Session(config=config, host=host) as session:
        variable = tf.Variable(x, use_resource=True, validate_shape=False)
        half = tf.split(tf.reshape(variable.read_value(), [-1, 4]), 2, 1)[1]
        with tf.control_dependencies([half]):
            written = variable.assign_add(tf.ones([3, 4]) * 10.0)
        with tf.control_dependencies([written]):
            later = tf.tanh(half) * 0.0 + half * 2.0
        session.run(variable.initializer)
        for turn in range(3):
            np.testing.assert_array_equal(session.run(later), (x + 10 * turn)[:, 2:] * 2)


def test_a_part_of_more_than_memory_holds_is_planned(lab):
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(backends=["lab", "cpu"]), host=lab[0]) as session:
        x = tf.placeholder(tf.float32, [1 << 40, 8])
        assert session.explain(tf.tanh(x[1:, 2:4]) * 2.0).kernels() == {"lab.reference": 1}


def test_parts_of_many_parts_are_copied_where_they_are_too_many(lab):
    x = np.random.default_rng(6).normal(size=(3, 1520)).astype(np.float32)

    def nested(many, x):
        for _ in range(many):
            x = x[:, : int(x.shape[1]) - 1]
        return [tf.tanh(x) * 2.0]

    assert _run(lab, functools.partial(nested, 10), x) == {"lab.reference": 1}
    assert _run(lab, functools.partial(nested, 1500), x) == {"cpu.strided_slice": 1500, "lab.reference": 1}
