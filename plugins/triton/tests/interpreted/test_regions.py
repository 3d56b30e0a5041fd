"""Random region programs, printed as Triton and interpreted, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.contracts import Axis, RegionInput, RegionOutput, RegionProgram, Term, dtypes
from graphdock_fusion.regions.typed import Terms
from graphdock_testing.random_regions import random_region, random_streams
from graphdock_testing.region_reference import evaluate
from graphdock_triton.regions.kernel import region_kernel
from graphdock_triton.regions.layout import what_forbids
from graphdock_triton.testing.interpreter import run_region

#: Of a half the interpreter cuts what a GPU rounds.
TOLERANCE = {"float16": 4e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-12}
EXTENTS = [(5, 7), (37,), (3, 4, 5), (6, 33)]
DTYPES = [
    ("float32", "float32", "float16", "bfloat16", "int32", "bool"),
    ("float32", "int8", "uint8", "int64"),
    ("float64", "float64", "bool"),
]
BLOCKS = [None, (4, 4), (2, 16), (8, 64), (4, 2, 3), (2, 4, 2)]


def check(seed):
    rng = np.random.default_rng(seed)
    extents = EXTENTS[seed % 4]
    last = len(extents) - 1
    reduced = [(), (last,), (0,), tuple(range(len(extents))), (max(last - 1, 0),)][int(rng.integers(5))]
    program, arrays = random_region(rng, extents, reduced, DTYPES[seed % 3])
    if what_forbids(program) is None:
        compare(program, arrays, BLOCKS[int(rng.integers(len(BLOCKS)))])


def compare(program, arrays, block=None, streams=()):
    kernel = region_kernel(program, block)
    got, want = run_region(kernel, arrays, streams), evaluate(program, arrays, streams)
    for out, a, b in zip(program.outputs, got, want, strict=True):
        tolerance = TOLERANCE.get(out.dtype.name, 0)
        shown = f"{program}\n{kernel.text.source}"
        np.testing.assert_allclose(
            a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance, err_msg=shown
        )


@pytest.mark.parametrize("start", range(0, 60, 20))
@pytest.mark.sampled(3)
def test_random_regions_agree_with_the_reference(start):
    for seed in range(start, start + 20):
        check(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", range(60, 700, 40))
def test_many_random_regions_agree_with_the_reference(start):
    for seed in range(start, start + 40):
        check(seed)


UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp expm1 floor log log1p neg rint rsqrt sigmoid sign sin "
    "sinh sqrt tan tanh isfinite isinf isnan"
)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.7, 1e-6, 20.0, np.nan, np.inf, -np.inf]


def over(op, arrays, dtype, gives=None, **term):
    """A program of one primitive over inputs of one axis."""
    inputs = tuple(RegionInput(f"x{i}", i, dtypes.as_dtype(a.dtype.name), a.shape, (0,)) for i, a in enumerate(arrays))
    terms = [Term("input", dtypes.as_dtype(a.dtype.name), (), (0,), i) for i, a in enumerate(arrays)]
    made = gives or dtype
    terms.append(Term(op, made, tuple(range(len(arrays))), (0,), **term))
    out = RegionOutput("y", len(arrays), made, arrays[0].shape, (0,))
    return RegionProgram(op, (Axis("i", arrays[0].size),), inputs, tuple(terms), (out,))


@pytest.mark.parametrize("op", UNARY.split())
@pytest.mark.sampled(2)
def test_every_function_of_one_number_is_the_references_for_nan_and_infinities_too(op):
    x = np.array(SPECIAL, np.float32)
    gives = dtypes.bool_ if op.startswith("is") else None
    compare(over(op, [x], dtypes.float32, gives), [x], (16, 1))


@pytest.mark.parametrize("op", "add atan2 divide floordiv floormod maximum minimum mul pow sub".split())
@pytest.mark.sampled(2)
def test_every_function_of_two_numbers_is_the_references_for_nan_and_infinities_too(op):
    x, y = (a.reshape(-1) for a in np.meshgrid(np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32)))
    compare(over(op, [x, y], dtypes.float32), [x, y], (64, 1))


@pytest.mark.parametrize("op", "greater greater_equal less less_equal equal not_equal".split())
@pytest.mark.sampled(2)
def test_comparisons_with_nan(op):
    x, y = (a.reshape(-1) for a in np.meshgrid(np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32)))
    compare(over(op, [x, y], dtypes.float32, dtypes.bool_), [x, y], (64, 1))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32", "int64"])
@pytest.mark.parametrize("op", "add divide floordiv floormod maximum minimum mul sub".split())
def test_integers_wrap_and_divide_by_nothing_to_nothing(op, dtype):
    kind = dtypes.as_dtype(dtype)
    numbers = np.array([0, 1, 2, 3, 7, kind.max, kind.max - 1, kind.min, *([-1, -2, -7] if kind.min else [])]).astype(
        dtype
    )
    x, y = (a.reshape(-1).copy() for a in np.meshgrid(numbers, numbers))
    if op in ("divide", "floordiv", "floormod") and kind.min:
        keep = ~((x == kind.min) & (y == -1))  # NumPy's own remainder traps there on some processors
        x, y = x[keep], y[keep]
    compare(over(op, [x, y], kind), [x, y], (32, 1))


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("block", [(4, 8), (4, 4), (4, 2, 2)])
@pytest.mark.sampled(2)
def test_reductions_see_nan_and_nothing_beyond_the_columns(op, block):
    x = np.linspace(-2, 2, 35, dtype=np.float32).reshape(5, 7)
    x[1, 3], x[2, 6], x[3, 0] = np.nan, np.inf, -np.inf
    axes = (Axis("i", 5), Axis("j", 7))
    terms = (Term("input", dtypes.float32, (), (0, 1), 0), Term(op, dtypes.float32, (0,), (0,), (1,)))
    program = RegionProgram(
        op,
        axes,
        (RegionInput("x", 0, dtypes.float32, (5, 7), (0, 1)),),
        terms,
        (RegionOutput("y", 1, dtypes.float32, (5,), (0,)),),
    )
    compare(program, [x], block)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(8))
def test_draws_within_a_region_are_numpys_numbers(seed):
    rng = np.random.default_rng(seed)
    extents = EXTENTS[seed % 4]
    reduced = [(), (len(extents) - 1,), (0,)][seed % 3]
    program, arrays = random_region(rng, extents, reduced, DTYPES[0 if seed % 2 else 2], 8, draws=1 + seed % 2)
    assert any(t.op == "draw" for t in program.terms)
    if what_forbids(program) is None:
        compare(program, arrays, BLOCKS[seed % len(BLOCKS)], random_streams(rng, program))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("extents", "reduced", "block"),
    [
        ((3, 24), (), (32, 1)),
        ((3, 24), (1,), (2, 32)),
        ((3, 24), (1,), (2, 8)),
        ((2, 3, 32), (2,), (4, 8, 2)),
        ((12, 24), (0,), (8, 16)),
        ((12, 24), (0,), (16, 4)),
        ((40, 8), (0,), (8, 8, 2)),
        ((6, 4, 8), (1,), (8, 4)),
        ((5, 7), (1,), (4, 8)),
        ((), (), (32, 1)),
    ],
)
def test_numbers_for_every_place_are_drawn_by_blocks_wherever_the_tiles_lie(dtype, extents, reduced, block):
    """Bit for bit, in a kernel without reductions, along reduced and along kept places, in loops and in shares."""
    kind, terms, space = dtypes.as_dtype(dtype), Terms(), tuple(range(len(extents)))
    drawn = terms.uniform(0, space, kind)
    terms.uniform(0, space[-1:], kind)
    outputs = [RegionOutput("y", drawn, kind, extents, space)]
    if reduced:
        kept = tuple(a for a in space if a not in reduced)
        largest = terms.reduce("max", drawn, reduced)
        outputs.append(RegionOutput("z", largest, kind, tuple(extents[a] for a in kept), kept))
    axes = tuple(Axis(f"a{i}", n) for i, n in enumerate(extents))
    program = RegionProgram("drawn", axes, (), tuple(terms.terms), tuple(outputs), ("s",))
    kernel, streams = region_kernel(program, block), random_streams(np.random.default_rng(1), program)
    by_blocks = extents != () and extents[-1] % 8 == 0 and extents != (6, 4, 8)
    assert (f"_draws_{dtype}(" in kernel.text.source.partition("def region_")[2]) == by_blocks
    for got, want in zip(run_region(kernel, [], streams), evaluate(program, [], streams), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.sampled(2)
def test_a_stream_is_that_of_the_op_on_the_cpu_bit_for_bit(dtype):
    import graphdock as tf

    with tf.Graph().as_default(), tf.Session() as sess:
        drawn = tf.random_uniform([3, 7], dtype=dtype, seed=5)
        steps = [sess.run(drawn) for _ in range(2)]
        seeds = [drawn.op.get_attr(name) for name in ("seed", "seed2")]
    kind, words = dtypes.as_dtype(dtype), dtypes.uint64
    for ordinal, want in enumerate(steps):
        terms = Terms()
        stream = [terms.literal(n, words) for n in (*seeds, 0, 0, ordinal)]
        whole = dtypes.int64
        row, column = terms.add("index", whole, (), (0,), 0), terms.add("index", whole, (), (1,), 1)
        start = terms.add("mul", whole, (row, terms.literal(7, whole)), (0,))
        number = terms.draw(kind, stream, terms.add("add", whole, (start, column), (0, 1)))
        out = RegionOutput("y", number, kind, (3, 7), (0, 1))
        program = RegionProgram("drawn", (Axis("i", 3), Axis("j", 7)), (), tuple(terms.terms), (out,))
        np.testing.assert_array_equal(evaluate(program, [])[0], want)
        np.testing.assert_array_equal(run_region(region_kernel(program, (4, 1)), [])[0], want)
