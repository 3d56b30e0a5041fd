"""Parts that regions read where they lie: which are, what their programs say, and that what only cut them goes."""

from __future__ import annotations

import functools
import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Axis, RegionInput, RegionProgram, check_program, dtypes, hookimpl
from graphdock.errors import PlanError
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


def test_what_has_no_gaps_stays_a_view_and_what_others_read_stays(lab):
    assert _run(lab, lambda x: [tf.tanh(tf.split(x, 2, 0)[1]) * 2.0]) == {"cpu.split": 1, "lab.reference": 1}

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
