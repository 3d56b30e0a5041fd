"""Products by programs that walk over tiles against NumPy in float64: layouts, batches, what follows; and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from graphdock.contracts import KernelRefused
from graphdock_triton.kernels.matmul_persistent import matmul_persistent
from graphdock_triton.kernels.spec import Config, plan
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide
from .test_functions import DEFINITIONS
from .test_matmul import operands, problem


def tiles(m=16, n=32, k=16, halves=1, group=2):
    return Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "HALVES": halves, "GROUP": group})


def of(a, b, c, kind, given=(), programs=3, **flags):
    """A problem for a GPU of so few multiprocessors that each program has several tiles."""
    flags = {"PRECISION": "tf32"} | flags if kind == "fp32" else flags
    return replace(problem(a, b, c, kind, given, **flags), multiprocessors=programs)


@pytest.mark.parametrize(
    ("kind", "m", "n", "k", "batch", "turned", "config"),
    [
        ("fp16", 40, 72, 24, 1, "", tiles()),
        ("fp16", 24, 40, 24, 3, "", tiles(halves=2)),
        ("bf16", 40, 35, 24, 2, "b", tiles(32, 32, 16)),
        ("bf16", 24, 88, 35, 1, "a", tiles(halves=2)),
        ("fp32", 37, 21, 36, 2, "b", tiles()),
        ("fp32", 20, 28, 44, 1, "ab", tiles(halves=2)),
        ("fp16", 40, 24, 72, 2, "ab", tiles(32, 16, 64)),
    ],
)
@pytest.mark.sampled(2)
def test_products_of_any_layout(kind, m, n, k, batch, turned, config):
    rng = np.random.default_rng(m)
    a, b = operands(rng, kind, m, n, k, batch, turned)
    c = empty((batch, m, n), kind)
    interpret(matmul_persistent, of(a, b, c, kind), config, a=a, b=b, c=c, alpha=0.5)
    assert_close(c, 0.5 * (wide(a) @ wide(b)), kind, 8)


@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize(("name", "first"), [("gelu_tanh", False), ("relu", True)])
@pytest.mark.sampled(2)
def test_bias_activation_and_residual_follow(name, first, halves):
    rng = np.random.default_rng(7)
    a, b = operands(rng, "fp16", 19, 40, 24, 2)
    bias, residual = draw(rng, 40), draw(rng, (2, 19, 40), "fp16")
    c, pre = empty((2, 19, 40), "fp16"), empty((2, 19, 40), "fp16")
    given = {"bias": bias, "residual": residual, "pre": pre}
    made = of(a, b, c, "fp16", given, ACTIVATION=name, ADD_FIRST=first)
    interpret(matmul_persistent, made, tiles(halves=halves), a=a, b=b, c=c, alpha=1.0, **given)
    linear = wide(a) @ wide(b) + wide(bias) + (wide(residual) if first else 0)
    assert_close(pre, linear, "fp16", 8)
    assert_close(c, DEFINITIONS[name](linear) + (0 if first else wide(residual)), "fp16", 8)


@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.sampled(2)
def test_backward_gate_and_gradient_of_the_bias(halves):
    rng = np.random.default_rng(8)
    a, b = operands(rng, "fp32", 37, 21, 20, 2, "b")
    before = wide(draw(rng, (2, 37, 21)))
    f = DEFINITIONS["gelu_erf"]
    bias, c, dbias = draw(rng, 21), empty((2, 37, 21)), empty(21)
    given = {"bias": bias, "gate": before.astype(np.float32), "dbias": dbias}
    made = of(a, b, c, "fp32", given, ACTIVATION="gelu_erf")
    interpret(matmul_persistent, made, tiles(halves=halves), a=a, b=b, c=c, alpha=1.0, **given)
    expected = (wide(a) @ wide(b) + wide(bias)) * (f(before + 1e-6) - f(before - 1e-6)) / 2e-6
    assert_close(c, expected, "fp32", 10)
    assert_close(dbias, expected.sum((0, 1)), "fp32", 100)


def test_one_matrix_for_all_and_rows_apart():
    rng = np.random.default_rng(9)
    a, b = draw(rng, (3, 9, 16), "fp16"), draw(rng, (1, 16, 24), "fp16")
    whole = empty((3, 9, 32), "fp16")
    c = whole[:, :, :24]
    interpret(matmul_persistent, of(a, b, c, "fp16"), tiles(), a=a, b=b, c=c, alpha=1.0)
    assert_close(c, wide(a) @ wide(b), "fp16", 8)
    assert np.isnan(whole[:, :, 24:]).all()


def test_nan_and_infinity_stay_in_their_rows_and_columns():
    rng = np.random.default_rng(10)
    a, b = operands(rng, "fp32", 18, 20, 20)
    a[0, 2, 3], b[0, 19, 5] = np.nan, np.inf
    c = empty((1, 18, 20))
    with np.errstate(all="ignore"):
        interpret(matmul_persistent, of(a, b, c, "fp32"), tiles(), a=a, b=b, c=c, alpha=1.0)
        expected = wide(a) @ wide(b)
    assert_close(c, expected, "fp32", 8)


def sized(m, n, k, kind="fp16", batch=1, turned="", present=(), **flags):
    dtype = np.float32 if kind == "fp32" else np.float16
    a = np.empty((batch, k, m) if "a" in turned else (batch, m, k), dtype)
    b = np.empty((batch, n, k) if "b" in turned else (batch, k, n), dtype)
    a, b = a.swapaxes(1, 2) if "a" in turned else a, b.swapaxes(1, 2) if "b" in turned else b
    return of(a, b, np.empty((batch, m, n), dtype), kind, present, 132, **flags)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (sized(0, 64, 64), "the result is empty"),
        (replace(sized(64, 64, 64), capability=80), "capability 8.0 has no copies of tiles by descriptors"),
        (replace(sized(64, 64, 64), capability=120), "capability 12.0 has too little shared memory"),
        (sized(64, 64, 64, "fp32", PRECISION="ieee"), "float32 operands are not rounded"),
        (sized(64, 64, 60), "rows or matrices of a lie 120 bytes apart, which 16 does not divide"),
        (sized(64, 60, 64), "rows or matrices of b lie 120 bytes apart"),
        (sized(1, 64, 64, turned="a"), "rows or matrices of a lie 2 bytes apart"),
        (replace(sized(64, 64, 64), unaligned=frozenset("cb")), "the address of b is no multiple of 16"),
    ],
)
@pytest.mark.sampled(2)
def test_what_descriptors_cannot_tell_is_refused(made, reason):
    with pytest.raises(KernelRefused, match=reason):
        plan(matmul_persistent, made)


def test_an_operand_without_neighbours_is_refused():
    made = sized(64, 64, 64)
    with pytest.raises(KernelRefused, match="neither the rows nor the columns of b lie side by side"):
        plan(matmul_persistent, replace(made, dims=made.dims | {"b_k": 128, "b_n": 2}))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (sized(8192, 4096, 1024), None),
        (sized(8192, 4096, 1024, present=("residual", "gate")), None),
        (sized(8192, 1024, 1024, "fp32", turned="b"), None),
        (sized(1024, 1024, 4096), None),
        (sized(512, 512, 64, batch=96), "the result has 768 tiles for 132 multiprocessors, and k is 64"),
        (sized(1024, 1024, 1024), "the result has 128 tiles for 132 multiprocessors, and k is 1024"),
        (sized(128, 256, 16384), "the result has .* tiles for 132 multiprocessors"),
        (sized(8192, 4096, 1024, "fp32"), "k does not lie side by side in both"),
        (replace(sized(8192, 4096, 1024), capability=100), "not that of Hopper"),
    ],
)
@pytest.mark.sampled(2)
def test_where_it_is_the_better_guess(made, reason):
    """Of what it can compute; the table of the module says what."""
    assert plan(matmul_persistent, made).launches
    found = matmul_persistent.decline(made)
    assert found is None if reason is None else re.search(reason, found or "")


def test_a_program_to_a_multiprocessor_and_room_for_its_descriptors():
    made = plan(matmul_persistent, sized(8192, 4096, 1024))
    (launch,) = made.launches
    assert launch.grid == (132, 1, 1) and launch.room == 3 * 128
    assert made.scratch[launch.place] == ("u8", 132 * 3 * 128)
    few = plan(matmul_persistent, sized(128, 256, 1024)).launches[0]
    assert few.grid[0] < 132


def test_every_configuration_fits_into_shared_memory():
    for made in (sized(4096, 4096, 4096, present=("gate", "residual")), sized(4096, 4096, 4096, "fp32")):
        found = matmul_persistent.configs(made)
        assert len(found) >= 3
        for c in found:
            width = made.bytes_of("T")
            assert c.stages * (c["BLOCK_M"] + c["BLOCK_N"]) * c["BLOCK_K"] * width <= 227 << 10
