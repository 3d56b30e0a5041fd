"""Random region programs against the reference: any dtype, widths of vectors, rows shorter and longer than one."""

from __future__ import annotations

import re

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Axis, RegionInput, RegionOutput, RegionProgram, Term, dtypes
from graphdock_llvm.primitives import unsupported, what_forbids
from graphdock_llvm.printer import print_region
from graphdock_llvm.target import converts_halves
from graphdock_testing import random_regions
from graphdock_testing.random_regions import random_region
from graphdock_testing.region_reference import evaluate

#: Halves that the CPU converts.
HALVES = ("bfloat16", "float16") if converts_halves() else ("bfloat16",)

EXTENTS = [(5,), (3, 37), (4, 16), (2, 3, 70), (1000,), (7, 1), (2, 2, 2, 5)]
DTYPES = [("float32",), ("float32", "float64", "int32", "bool"), ("float32", *HALVES, "int64", "uint8")]
#: float32 of what the reference computes in float32 too, in another order.
NEAR = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-4, "float64": 1e-4}


@pytest.fixture(autouse=True)
def of_what_is_compiled(monkeypatch):
    """Draw of the primitives that are compiled, so that few programs are refused."""
    monkeypatch.setattr(random_regions, "_UNARY", ("abs", "neg", "sigmoid", "tanh"))
    monkeypatch.setattr(random_regions, "_INTEGERS", ("add", "maximum", "minimum", "mul", "sub"))


def programs(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        extents = EXTENTS[seed % len(EXTENTS)]
        whole = tuple(range(len(extents)))
        reduced = [(), whole[-1:], whole, whole[:-1]][seed % 4]
        program, arrays = random_region(rng, extents, reduced, DTYPES[seed % len(DTYPES)])
        if what_forbids(program, 16) is None:
            yield program, arrays


def compare(call, program, arrays, lanes=0):
    for out, got, want in zip(program.outputs, call(program, arrays, lanes), evaluate(program, arrays), strict=True):
        near = NEAR.get(out.dtype.name, 0)
        np.testing.assert_allclose(got.astype(float), want.astype(float), near, near, err_msg=str(program))


def test_random_programs_agree_with_the_reference(call):
    found = list(programs(range(120)))
    assert len(found) > 80
    for program, arrays in found:
        compare(call, program, arrays)


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", range(0, 2400, 300))
def test_many_random_programs_agree_with_the_reference(call, start):
    for program, arrays in programs(range(1000 + start, 1300 + start)):
        compare(call, program, arrays)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_every_width_of_vector_gives_the_same(call, lanes):
    for program, arrays in programs(range(200, 230)):
        compare(call, program, arrays, lanes)


@pytest.mark.parametrize("length", [*range(1, 35), 64, 1000])
@pytest.mark.parametrize("op", ["sum", "max", "min", "prod"])
def test_rows_of_every_length_are_reduced_whole_and_not_beyond(call, op, length):
    f32 = dtypes.float32
    program = RegionProgram(
        op,
        (Axis("i", 3), Axis("j", length)),
        (RegionInput("x", 0, f32, (3, length), (0, 1)),),
        (Term("input", f32, (), (0, 1), 0), Term(op, f32, (0,), (0,), (1,))),
        (RegionOutput("y", 1, f32, (3,), (0,)),),
    )
    x = np.random.default_rng(length).uniform(0.9, 1.1, (3, length)).astype(np.float32)
    (got,) = call(program, [x])
    np.testing.assert_allclose(got, getattr(np, op)(x.astype(float), 1), 1e-5)


def test_dear_terms_of_a_row_are_computed_once_and_kept(call):
    """A softmax: the exponential is needed by the sum and by the result."""
    f32 = dtypes.float32
    terms = (
        Term("input", f32, (), (0, 1), 0),
        Term("max", f32, (0,), (0,), (1,)),
        Term("sub", f32, (0, 1), (0, 1)),
        Term("exp", f32, (2,), (0, 1)),
        Term("sum", f32, (3,), (0,), (1,)),
        Term("divide", f32, (3, 4), (0, 1)),
    )

    def softmax(rows, length):
        shape = (rows, length)
        inputs, outputs = (RegionInput("x", 0, f32, shape, (0, 1)),), (RegionOutput("y", 5, f32, shape, (0, 1)),)
        return RegionProgram("softmax", (Axis("i", rows), Axis("j", length)), inputs, terms, outputs)

    x = np.random.default_rng(0).normal(size=(5, 100)).astype(np.float32)
    (got,) = call(softmax(5, 100), [x])
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), 1e-5)
    short, long = print_region(softmax(5, 80), 1, 16), print_region(softmax(5, 96_016), 1, 16)
    assert "alloca float" in short and "alloca float" not in long
    # 2^k is made twice per exponential
    assert len(re.findall(r"shl <16 x i32>", short)) == 2 and len(re.findall(r"shl <16 x i32>", long)) == 4


def test_what_is_not_compiled_says_why():
    f32 = dtypes.float32
    axes = (Axis("i", 3), Axis("j", 4))
    x = RegionInput("x", 0, f32, (3, 4), (0, 1))
    read = Term("input", f32, (), (0, 1), 0)

    def program(*terms, axes=axes, outputs=(), streams=()):
        return RegionProgram("p", axes, (x,), (read, *terms), outputs, streams)

    assert what_forbids(program(Term("tan", f32, (0,), (0, 1))), 16) == "there is no tan of float32"
    columns, again = Term("sum", f32, (0,), (1,), (0,)), Term("sub", f32, (0, 1), (0, 1))
    assert what_forbids(program(columns), 16) is None
    assert "along rows again, behind a reduction over them" in what_forbids(program(columns, again), 16)
    long = (Axis("i", 3), Axis("j", 4000)), RegionInput("x", 0, dtypes.float64, (3, 4000), (0, 1))
    wide = Term("input", dtypes.float64, (), (0, 1), 0), Term("sum", dtypes.float64, (0,), (1,), (0,))
    assert "over rows that are long" in what_forbids(RegionProgram("p", long[0], long[1:], wide, ()), 16)
    space = tuple(Axis(n, 3) for n in "ijk")
    cube = RegionInput("x", 0, f32, (3, 3, 3), (0, 1, 2))
    some = Term("input", f32, (), (0, 1, 2), 0), Term("sum", f32, (0,), (1, 2), (0,))
    assert "other axes than the last" in what_forbids(RegionProgram("p", space, (cube,), some, ()), 16)
    assert what_forbids(program(axes=(Axis("i", None), Axis("j", 4))), 16) is None
    assert what_forbids(program(columns, axes=(Axis("i", None), Axis("j", None))), 16) is None
    assert "is of complex64" in what_forbids(
        program(outputs=(RegionOutput("y", 0, dtypes.complex64, (3, 4), (0, 1)),)), 16
    )
    both = program(Term("sum", f32, (0,), (0,), (1,)), Term("sum", f32, (0,), (), (0, 1)))
    assert "two sets of axes" in what_forbids(both, 16) or "reads along some" in what_forbids(both, 16)
    assert not unsupported(program(), 16)


@pytest.mark.parametrize("shape", [(5000, 17), (3, 2001, 20), (40_000, 40)])
def test_sums_over_many_rows_are_exact_to_some_units(call, shape):
    x = np.random.default_rng(3).uniform(0, 1, shape).astype(np.float32)
    axes = tuple(range(len(shape) - 1))
    f32 = dtypes.float32
    program = RegionProgram(
        "p",
        tuple(Axis("ijk"[i], n) for i, n in enumerate(shape)),
        (RegionInput("x", 0, f32, shape, tuple(range(len(shape)))),),
        (Term("input", f32, (), tuple(range(len(shape))), 0), Term("sum", f32, (0,), (len(shape) - 1,), axes)),
        (RegionOutput("y", 1, f32, shape[-1:], (len(shape) - 1,)),),
    )
    np.testing.assert_allclose(call(program, [x])[0], x.astype(np.float64).sum(axes), 2e-6)


@pytest.mark.parametrize("policy", ["exact", "generic"])
@pytest.mark.parametrize("shape", [(1, 2_000_001), (2, 8192), (2, 8193), (2, 8207), (3, 16_400), (1500, 1600)])
def test_sums_of_long_rows_are_exact_to_some_units(shape, policy):
    x = np.random.default_rng(3).uniform(999, 1001, shape).astype(np.float32)
    with tf.Graph().as_default():
        fed = tf.placeholder(tf.float32, [None, None])
        squares = tf.square(fed)
        fetches = [tf.reduce_sum(squares, 1), tf.reduce_mean(squares * 2.0), tf.reduce_max(squares, 1)]
        with tf.Session(config=tf.SessionConfig(backends=["llvm", "cpu"], shape_policy=policy)) as session:
            sums, mean, largest = session.run(fetches, {fed: x})
    wide = x.astype(np.float64) ** 2
    np.testing.assert_allclose(sums, wide.sum(1), 1e-6)
    np.testing.assert_allclose(mean, 2 * wide.mean(), 1e-6)
    np.testing.assert_allclose(largest, wide.max(1), 1e-6)


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("vectors", [511, 512, 513, 1024, 1025, 1537])
def test_sums_of_sums_take_each_element_once(call, lanes, vectors):
    f32, length = dtypes.float32, vectors * lanes + 3
    program = RegionProgram(
        "p",
        (Axis("i", 2), Axis("j", length)),
        (RegionInput("x", 0, f32, (2, length), (0, 1)),),
        (
            Term("input", f32, (), (0, 1), 0),
            Term("sum", f32, (0,), (0,), (1,)),
            Term("max", f32, (0,), (0,), (1,)),
        ),
        (RegionOutput("y", 1, f32, (2,), (0,)), RegionOutput("z", 2, f32, (2,), (0,))),
    )
    x = np.random.default_rng(vectors).integers(-8, 8, (2, length)).astype(np.float32)  # sums are exact
    sums, largest = call(program, [x], lanes)
    np.testing.assert_array_equal(sums, x.sum(1))
    np.testing.assert_array_equal(largest, x.max(1))
