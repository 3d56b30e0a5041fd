"""Elementary functions over the whole range of their dtype, against wider arithmetic, in units in the last place."""

from __future__ import annotations

import cffi
import numpy as np
import pytest
from graphdock.contracts import Axis, RegionInput, RegionOutput, RegionProgram, Term, dtypes
from graphdock_llvm.printer import ALONE, print_region
from graphdock_llvm.target import compiled, permutes, width

scipy_special = pytest.importorskip("scipy.special")

FFI = cffi.FFI()


def apply(op: str, *xs: np.ndarray) -> np.ndarray:
    """The compiled function of arrays of one size."""
    count, x = len(xs), xs[0]
    dtype = dtypes.as_dtype(x.dtype)
    program = RegionProgram(
        op,
        (Axis("i", x.size),),
        tuple(RegionInput(f"x{i}", i, dtype, x.shape, (0,)) for i in range(count)),
        (*(Term("input", dtype, (), (0,), i) for i in range(count)), Term(op, dtype, tuple(range(count)), (0,))),
        (RegionOutput("y", count, dtype, x.shape, (0,)),),
    )
    y = np.empty_like(x)
    call = FFI.cast("void (*)(void **, int64_t *)", compiled(print_region(program, count, width())))
    call(FFI.new("void *[]", [FFI.from_buffer(a) for a in (*xs, y)]), FFI.new("int64_t[]", ALONE))
    return y


def every(dtype: type, count: int) -> np.ndarray:
    """Numbers of all exponents and both signs, those around 0 and 1, subnormals, and all that is special."""
    rng = np.random.default_rng(3)
    unsigned = np.uint32 if dtype is np.float32 else np.uint64
    info = np.iinfo(unsigned)
    bits = rng.integers(0, info.max, count, unsigned, endpoint=True).view(dtype)
    near = np.concatenate([rng.normal(scale=s, size=count // 8) for s in (1e-3, 1.0, 20.0, 100.0, 700.0)])
    one = 1.0 + rng.normal(scale=1e-3, size=count // 8)
    tiny = np.arange(1, 2000).astype(unsigned).view(dtype)
    limits = np.finfo(dtype)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        limits.max,
        limits.min,
        limits.tiny,
        -1.0,
        1.0,
        88.5,
        -87.5,
        709.5,
        -745.0,
    ]
    parts = [bits, near.astype(dtype), one.astype(dtype), tiny, -tiny, np.array(special, dtype)]
    return np.ascontiguousarray(np.concatenate(parts).astype(dtype))


REFERENCES = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: np.where(x < 0, np.exp(-np.abs(x)), 1) / (1 + np.exp(-np.abs(x))),
    "erf": lambda x: scipy_special.erf(x.astype(np.float64)).astype(x.dtype),
    "erfc": lambda x: scipy_special.erfc(x.astype(np.float64)).astype(x.dtype),
    "sin": np.sin,
    "cos": np.cos,
}
#: Units in the last place, by dtype.
BOUNDS = {
    "float32": {
        "exp": 2,
        "expm1": 2,
        "log": 1,
        "log1p": 2,
        "tanh": 5,
        "sqrt": 1,
        "rsqrt": 2,
        "sigmoid": 3,
        "erf": 3 if permutes() else 6,
        "erfc": 4,
        "sin": 1,
        "cos": 1,
    },
    "float64": {
        "exp": 2,
        "expm1": 4,
        "log": 2,
        "log1p": 4,
        "tanh": 6,
        "sqrt": 1,
        "rsqrt": 2,
        "sigmoid": 4,
        "erf": 2,
        "sin": 1,
        "cos": 1,
    },
}


def distance(got: np.ndarray, want: np.ndarray) -> float:
    """The largest error, in units in the last place of the right number; specials must be equal."""
    dtype = got.dtype
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), nan)
    with np.errstate(over="ignore"):
        rounded = want.astype(dtype)
    infinite = np.isinf(rounded) & ~nan
    largest = np.finfo(dtype).max
    assert (np.abs(got[infinite]) >= largest).all() and (np.sign(got[infinite]) == np.sign(rounded[infinite])).all()
    finite = ~nan & ~infinite
    unit = np.spacing(np.maximum(np.abs(rounded[finite]), np.finfo(dtype).smallest_subnormal)).astype(want.dtype)
    return float(np.max(np.abs(got[finite].astype(want.dtype) - want[finite]) / unit, initial=0.0))


@pytest.mark.parametrize(("dtype", "op"), [(d, op) for d, table in BOUNDS.items() for op in table])
@pytest.mark.sampled(2)
def test_a_function_is_near_over_its_whole_range(dtype: str, op: str) -> None:
    x = every(np.float32 if dtype == "float32" else np.float64, 200_000)
    if dtype == "float64" and np.finfo(np.longdouble).nmant < 63:
        pytest.skip("no arithmetic here is wider than float64")
    wide = x.astype(np.float64 if dtype == "float32" else np.longdouble)
    with np.errstate(all="ignore"):
        want = REFERENCES[op](wide)
    error = distance(apply(op, x), want)
    print(dtype, op, round(error, 2))
    assert error <= BOUNDS[dtype][op]


@pytest.mark.parametrize("op", ["abs", "ceil", "floor", "neg", "rint", "sign"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_exact_is_numpys(op: str, dtype: type) -> None:
    x = every(dtype, 20_000)
    function = {"neg": np.negative}.get(op) or getattr(np, op)
    np.testing.assert_array_equal(apply(op, x), function(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_are_near_and_their_special_cases_are_those_of_c(dtype: type) -> None:
    rng = np.random.default_rng(1)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -2.0, -3.0, 1e30, -1e30, np.inf, -np.inf, np.nan, 16777217.0]
    x, y = (a.reshape(-1).astype(dtype) for a in np.meshgrid(special, special))
    for a, b in ((x, y), (np.abs(every(dtype, 50_000)), None), (rng.normal(size=60_000).astype(dtype), None)):
        b = (rng.normal(size=a.size) * 10).astype(dtype) if b is None else b
        with np.errstate(all="ignore"):
            want = np.power(a.astype(np.float64 if dtype is np.float32 else np.longdouble), b)
        assert distance(apply("pow", np.ascontiguousarray(a), np.ascontiguousarray(b)), want) <= 1.01


def test_erfc_of_float64_is_near_where_scipys_is_no_zero() -> None:
    x = np.linspace(-6.0, 26.0, 5_001)
    np.testing.assert_allclose(apply("erfc", x), scipy_special.erfc(x), 1e-13)


@pytest.mark.parametrize("op", ["erf", "tanh"])
def test_what_ends_in_1_is_never_beyond_it(op):
    """Else the root of what is left of 1 would be NaN."""
    x = np.linspace(0, 12, 600_001, dtype=np.float32)
    y = apply(op, x)
    assert y[0] == 0 and y.max() <= 1 and y[-1] > 1 - 5e-7
    assert np.diff(y).min() > -7e-7
    np.testing.assert_array_equal(apply(op, -x), -y)


@pytest.mark.parametrize(("lanes", "length"), [(n, k) for n in (4, 8, 16) for k in (2 * n, 3 * n, 6 * n + 1, 1 << 19)])
def test_vectors_side_by_side_give_what_each_gives(call, lanes, length):
    """Two at a time where they are even in number, in every part."""
    f32, shape = dtypes.float32, (length,)
    terms = (Term("input", f32, (), (0,), 0), Term("exp", f32, (0,), (0,)), Term("add", f32, (1, 0), (0,)))
    inputs, outputs = (RegionInput("x", 0, f32, shape, (0,)),), (RegionOutput("y", 2, f32, shape, (0,)),)
    program = RegionProgram("p", (Axis("i", length),), inputs, terms, outputs)
    wide = f"store <{lanes} x float>"
    assert print_region(program, 1, lanes).count(wide) == (1 if length // lanes % 2 else 2)
    x = np.random.default_rng(length).normal(size=length).astype(np.float32)
    (got,) = call(program, [x], lanes)
    np.testing.assert_allclose(got, np.exp(x.astype(float)) + x, 1e-5, 1e-6)
