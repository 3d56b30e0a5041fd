"""The fake matrix library against NumPy."""

from __future__ import annotations

import math
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from graphdock_cuda.driver.api import Gemm
from graphdock_cuda.testing import FakeBlas
from graphdock_cuda.testing.blas import REFUSED, round_to_tf32
from graphdock_cuda.testing.state import Misuse

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}
#: Those that have epilogues.
FUSED = [dtype for dtype in DTYPES if dtype != "float64"]


def _run(rig, gemm, a, b, bias=None, plan=0, count=None, aux=0, before=None):
    d = rig.driver
    found = FakeBlas(d).plans(gemm, 1 << 20)[plan]
    size = np.dtype(DTYPES[gemm.result]).itemsize
    count = count or gemm.m * gemm.n * gemm.batch
    out = d.malloc(count * size, rig.s) if before is None else rig.put(before)
    work = d.malloc(found.workspace, rig.s) if found.workspace else 0
    found.run(rig.s, rig.put(a), rig.put(b), out, 0 if bias is None else rig.put(bias), aux, work)
    got = rig.get(out, count, DTYPES[gemm.result])
    d.verify()
    return got


@pytest.mark.parametrize("dtype", FUSED)
@pytest.mark.parametrize("epilogue", ["none", "bias", "relu", "relu_bias", "gelu", "gelu_bias"])
def test_products_with_epilogues(rig, dtype, epilogue):
    rng = np.random.default_rng(0)
    a, b, bias = (rng.standard_normal(s).astype(DTYPES[dtype]) for s in ((5, 7), (7, 3), (3,)))
    wide = np.float64 if dtype == "float64" else np.float32
    wanted = 0.5 * (a.astype(wide) @ b.astype(wide)) + (bias.astype(wide) if "bias" in epilogue else 0)
    if "relu" in epilogue:
        wanted = np.maximum(wanted, 0)
    if "gelu" in epilogue:
        wanted = 0.5 * wanted * (1 + np.tanh(math.sqrt(2 / math.pi) * (wanted + 0.044715 * wanted**3)))
    got = _run(rig, Gemm(5, 3, 7, dtype, alpha=0.5, epilogue=epilogue), a, b, bias).reshape(5, 3)
    exact = ml_dtypes.finfo(DTYPES[dtype]).eps
    np.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol=4 * exact, atol=4 * exact)


@pytest.mark.parametrize(
    ("dtype", "out"), [("float16", "float32"), ("bfloat16", "float32"), ("float16", ""), ("float64", "")]
)
def test_products_that_are_added_and_wider_results(rig, dtype, out):
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(s).astype(DTYPES[dtype]) for s in ((2, 5, 7), (2, 7, 3)))
    gemm = Gemm(5, 3, 7, dtype, batch=2, stride_a=35, stride_b=21, stride_d=15, alpha=0.5, out=out, adds=True)
    before = rng.standard_normal((2, 5, 3)).astype(DTYPES[out or dtype])
    got = _run(rig, gemm, a, b, before=before).reshape(2, 5, 3)
    wanted = before.astype(float) + 0.5 * (a.astype(float) @ b.astype(float))
    exact = ml_dtypes.finfo(DTYPES[out or dtype]).eps
    np.testing.assert_allclose(got.astype(float), wanted, rtol=4 * exact, atol=4 * exact)


def test_what_gelu_is_applied_to_is_a_second_result(rig):
    rng = np.random.default_rng(2)
    a, b, bias = (rng.standard_normal(s).astype(np.float32) for s in ((5, 7), (7, 16), (16,)))
    aux = rig.put(np.zeros((5, 16), np.float32))
    got = _run(rig, Gemm(5, 16, 7, "float32", epilogue="gelu_aux_bias"), a, b, bias, aux=aux).reshape(5, 16)
    before = rig.get(aux, 80, np.float32).reshape(5, 16)
    np.testing.assert_allclose(before, a @ b + bias, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        got, 0.5 * before * (1 + np.tanh(math.sqrt(2 / math.pi) * (before + 0.044715 * before**3))), rtol=1e-5
    )


@pytest.mark.parametrize("dtype", FUSED)
@pytest.mark.parametrize("epilogue", ["sums_a", "sums_b", "dgelu"])
def test_epilogues_of_gradients(rig, dtype, epilogue):
    """Sums are rounded once; gelu's slope is that of its differences."""
    rng = np.random.default_rng(4)
    a, b, x = (rng.standard_normal(s).astype(DTYPES[dtype]) for s in ((5, 7), (7, 8), (5, 8)))
    wide = [y.astype(np.float64) for y in (a, b, x)]
    sums = rig.put(np.zeros(8, DTYPES[dtype]))
    gemm = Gemm(5, 8, 7, dtype, epilogue=epilogue)
    d = rig.driver
    out = d.malloc(40 * x.itemsize, rig.s)
    FakeBlas(d).plans(gemm, 0)[0].run(rig.s, rig.put(a), rig.put(b), out, sums, rig.put(x), 0)
    wanted = wide[0] @ wide[1]
    if epilogue == "dgelu":
        by = [
            0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))
            for v in (wide[2] + 1e-6, wide[2] - 1e-6)
        ]
        wanted = wanted * (by[0] - by[1]) / 2e-6
    exact = max(float(ml_dtypes.finfo(DTYPES[dtype]).eps), 1e-9)
    np.testing.assert_allclose(
        rig.get(out, 40, DTYPES[dtype]).reshape(5, 8).astype(float), wanted, rtol=4 * exact, atol=4 * exact
    )
    summed = {"sums_a": wide[0].sum(1), "sums_b": wide[1].sum(0), "dgelu": np.zeros(8)}[epilogue]
    got = rig.get(sums, 8, DTYPES[dtype])[: len(summed)].astype(float)
    np.testing.assert_allclose(got, summed, rtol=4 * exact, atol=4 * exact)
    d.verify()


@pytest.mark.parametrize("plan", [0, 1])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_transposed_operands_and_batches(rig, plan, transpose_a, transpose_b):
    """B is shared by the batch; D has gaps."""
    rng = np.random.default_rng(1)
    m, n, k, batch = 4, 6, 5, 3
    a = rng.standard_normal((batch, k, m) if transpose_a else (batch, m, k))
    b = rng.standard_normal((n, k) if transpose_b else (k, n))
    gemm = Gemm(m, n, k, "float64", transpose_a, transpose_b, batch, m * k, 0, m * n + 2)
    got = _run(rig, gemm, a, b, plan=plan, count=(m * n + 2) * batch).reshape(batch, m * n + 2)
    wanted = (a.swapaxes(1, 2) if transpose_a else a) @ (b.T if transpose_b else b)
    np.testing.assert_allclose(got[:, : m * n].reshape(batch, m, n), wanted, rtol=1e-13, atol=1e-14)
    assert np.isnan(got[:, m * n :]).all()


def test_tf32_rounds_operands(rig):
    a = np.array([[1 + 2.0**-11, 1 + 2.0**-10 + 2.0**-11, 1 + 2.0**-12, np.inf]], np.float32)
    rounded = round_to_tf32(a)
    assert rounded.tolist() == [[1, 1 + 2.0**-9, 1, np.inf]]
    one = np.eye(3, dtype=np.float32)[:, :1]
    got = _run(rig, Gemm(1, 1, 3, "float32", operands="tf32"), a[:, :3].copy(), one)
    assert got.tolist() == [1]
    got = _run(rig, Gemm(1, 1, 3, "float32", operands="bfloat16"), a[:, :3].copy() + np.float32(1 / 64), one)
    assert got.tolist() == [1 + 1 / 64]
    large = np.full((1, 1), 65536, np.float32)
    assert _run(rig, Gemm(1, 1, 1, "float32", operands="float16"), large, one[:1]).tolist() == [np.inf]
    assert _run(rig, Gemm(1, 1, 3, "float32"), a[:, :3].copy(), one).tolist() == [1 + 2.0**-11]


def test_the_second_plan_writes_to_its_workspace(rig):
    gemm = Gemm(2, 2, 2, "float32")
    blas = FakeBlas(rig.driver)
    assert [plan.workspace for plan in blas.plans(gemm, 1 << 20)] == [0, 4096]
    assert [plan.workspace for plan in blas.plans(gemm, 100)] == [0]
    work = rig.put(np.zeros(4096, "u1"))
    x = rig.put(np.zeros((2, 2), "f4"))
    blas.plans(gemm, 4096)[1].run(rig.s, x, x, rig.put(np.zeros((2, 2), "f4")), 0, 0, work)
    assert rig.get(work, 4096, "u1").all()


def test_what_it_has_no_plan_for(rig):
    blas = FakeBlas(rig.driver)
    assert not blas.plans(Gemm(2, 2, 2, "int32"), 0)
    assert not blas.plans(Gemm(2, 2, 2, "float32", epilogue="tanh"), 0)
    assert not blas.plans(Gemm(2, 2, 2, "float64", out="float32"), 0)
    assert not blas.plans(Gemm(2, 2, 2, "float32", out="float16"), 0)
    assert not blas.plans(Gemm(2, 12, 2, "float32", epilogue="gelu_aux_bias"), 0)  # rows of aux are of eights
    assert not blas.plans(Gemm(2, 12, 2, "float32", epilogue="dgelu"), 0)
    assert not blas.plans(Gemm(2, 8, 2, "float32", batch=2, epilogue="sums_b"), 0)
    assert not blas.plans(Gemm(2, 8, 2, "float32", epilogue="relu_aux_bias"), 0)  # its aux is a mask of bits


@pytest.mark.parametrize(
    ("gemm", "who"),
    [
        (Gemm(2, 8, 2, "float64", epilogue="bias"), "tensorflow"),
        (Gemm(2, 12, 2, "float32", epilogue="gelu_aux_bias"), "AUX_LD"),
        (Gemm(2, 8, 1, "float32", epilogue="dgelu"), "DGeluAuxHandler"),
        (Gemm(2, 8, 1, "float16", epilogue="sums_a"), "BgradHandler"),
    ],
)
def test_what_the_library_refuses_has_a_source(rig, gemm, who):
    assert [who in source for source, refused in REFUSED.items() if refused(gemm)] == [True]
    assert not FakeBlas(rig.driver).plans(gemm, 0) and FakeBlas(rig.driver).plans(replace(gemm, epilogue="none"), 0)


def test_it_works_in_the_order_of_the_stream_and_in_recordings(rig):
    d = rig.driver
    x, y = rig.put(np.eye(2, dtype="f4")), rig.put(np.zeros((2, 2), "f4"))
    (plan,) = FakeBlas(d).plans(Gemm(2, 2, 2, "float32", alpha=2.0), 0)
    d.capture_begin(rig.s)
    plan.run(rig.s, x, x, y, 0, 0, 0)
    d.copy(x, y, 16, rig.s)
    executable = d.instantiate(d.capture_end(rig.s), rig.s)
    d.graph_launch(executable, rig.s)
    d.graph_launch(executable, rig.s)
    assert rig.get(x, 4, "f4").tolist() == [8, 0, 0, 8]
    d.verify()


@pytest.mark.parametrize("bad", ["short", "pinned", "bias", "aux", "sums", "slope"])
def test_operands_that_are_no_memory_for_it(rig, bad):
    d = rig.driver
    x = rig.put(np.zeros(3 if bad == "short" else 16, "f4"))
    a = d.host_alloc(16) if bad == "pinned" else x
    epilogue = {"bias": "bias", "aux": "gelu_aux_bias", "sums": "sums_b", "slope": "dgelu"}.get(bad, "none")
    with pytest.raises(Misuse, match="not within|no memory of cuda:0"):
        gemm = Gemm(2, 8 if bad in ("aux", "slope") else 2, 2, "float32", epilogue=epilogue)
        FakeBlas(d).plans(gemm, 0)[0].run(rig.s, a, x, x, 0 if bad in ("bias", "sums") else x, 0, 0)
