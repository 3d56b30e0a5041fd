"""What cuBLASLt is asked for: a stand-in for its bindings computes what descriptions and layouts mean, on the CPU."""

from __future__ import annotations

import ctypes
import enum
import itertools
from typing import Any

import numpy as np
import pytest
from graphdock_cuda.driver.api import Gemm, Unsupported
from graphdock_cuda.driver.cublaslt import FLOAT32, CublasLt
from graphdock_cuda.driver.errors import LibraryError

_TYPES = {0: np.float32, 1: np.float64, 2: np.float16}


class MatmulDescAttribute(enum.IntEnum):
    TRANSA = 3
    TRANSB = 4
    EPILOGUE = 7
    BIAS_POINTER = 8
    EPILOGUE_AUX_POINTER = 11
    EPILOGUE_AUX_LD = 12


class MatrixLayoutAttribute(enum.IntEnum):
    BATCH_COUNT = 5
    STRIDED_BATCH_OFFSET = 6


class MatmulPreferenceAttribute(enum.IntEnum):
    MAX_WORKSPACE_BYTES = 1
    MIN_ALIGNMENT_A_BYTES = 5
    MIN_ALIGNMENT_B_BYTES = 6
    MIN_ALIGNMENT_C_BYTES = 7
    MIN_ALIGNMENT_D_BYTES = 8


class Epilogue(enum.IntEnum):
    RELU = 2
    BIAS = 4
    RELU_BIAS = 6
    GELU = 32
    GELU_BIAS = 36
    GELU_AUX_BIAS = 164
    DGELU = 192
    BGRADA = 256
    BGRADB = 512


_POINTERS = (MatmulDescAttribute.BIAS_POINTER, MatmulDescAttribute.EPILOGUE_AUX_POINTER)


class cuBLASLtError(Exception):  # noqa: N801 - the bindings' name
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


def _gelu(x: np.ndarray) -> np.ndarray:
    made: np.ndarray = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return made


def _slope_of_gelu(x: np.ndarray) -> np.ndarray:
    """By differences."""
    wide = x.astype(np.float64)
    return np.asarray((_gelu(wide + 1e-6) - _gelu(wide - 1e-6)) / 2e-6)


def _values(address: int, nbytes: int) -> int:
    return int.from_bytes(ctypes.string_at(address, nbytes), "little", signed=nbytes == 8)


class Library:
    """The functions that the module calls, with the library's meaning: matrices lie along columns.

    Attributes:
      calls: of ``matmul``: stream, workspace and its size, and the number in the algorithm.
      pointed: addresses of bias and aux in each request for heuristics.
      refuses: the status that the heuristics end with; ``none_for``: alignments for which they have nothing.
    """

    MatmulDescAttribute = MatmulDescAttribute
    MatrixLayoutAttribute = MatrixLayoutAttribute
    MatmulPreferenceAttribute = MatmulPreferenceAttribute
    Epilogue = Epilogue
    cuBLASLtError = cuBLASLtError  # noqa: N815
    matmul_heuristic_result_dtype = np.dtype(
        [("algo", [("data_", "<u8", (8,))]), ("workspace_size", "<u8"), ("state", "<i4"), ("waves_count", "<f4")]
        + [("reserved", "<i4", (4,))]
    )

    def __init__(self) -> None:
        self._ids = itertools.count(1000)
        self.made: dict[int, Any] = {}
        self.handles: list[int] = []
        self.calls: list[tuple[int, int, int, int]] = []
        self.heuristics = 0
        self.pointed: list[tuple[int, ...]] = []
        self.refuses = 0
        self.none_for: set[int] = set()

    def _new(self, thing: Any) -> int:
        number = next(self._ids)
        self.made[number] = thing
        return number

    def create(self) -> int:
        self.handles.append(self._new("handle"))
        return self.handles[-1]

    def matmul_desc_create(self, compute: int, scale: int) -> int:
        return self._new({"compute": compute, "scale": scale, 3: 0, 4: 0, 7: 1})

    def matmul_desc_set_attribute(self, desc: int, attribute: int, address: int, nbytes: int) -> None:
        assert nbytes == (8 if attribute >= MatmulDescAttribute.BIAS_POINTER else 4)
        self.made[desc][attribute] = _values(address, nbytes)

    def matrix_layout_create(self, kind: int, rows: int, columns: int, leading: int) -> int:
        return self._new({"kind": kind, "rows": rows, "columns": columns, "ld": leading, 5: 1, 6: 0})

    def matrix_layout_set_attribute(self, layout: int, attribute: int, address: int, nbytes: int) -> None:
        assert nbytes == (8 if attribute == MatrixLayoutAttribute.STRIDED_BATCH_OFFSET else 4)
        self.made[layout][attribute] = _values(address, nbytes)

    def matmul_preference_create(self) -> int:
        return self._new({})

    def matmul_preference_destroy(self, preference: int) -> None:
        del self.made[preference]

    def matmul_preference_set_attribute(self, preference: int, attribute: int, address: int, nbytes: int) -> None:
        assert nbytes == (8 if attribute == MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES else 4)
        self.made[preference][attribute] = _values(address, nbytes)

    def matmul_algo_get_heuristic(self, handle: int, desc: int, *rest: int) -> None:
        *layouts, preference, asked, results, count = rest
        assert handle in self.handles and desc in self.made and all(n in self.made for n in layouts)
        self.heuristics += 1
        self.pointed.append(tuple(self.made[desc].get(name, 0) for name in _POINTERS))
        if self.refuses:
            raise cuBLASLtError(self.refuses)
        wanted = self.made[preference]
        alignment = wanted[MatmulPreferenceAttribute.MIN_ALIGNMENT_A_BYTES]
        found = np.zeros(asked, self.matmul_heuristic_result_dtype)
        found["algo"]["data_"][:, 0] = alignment
        found["workspace_size"] = min(wanted[MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES], 4096)
        found["state"][1] = 7  # one that failed
        ctypes.memmove(results, found.ctypes.data, found.nbytes)
        proposed = 0 if alignment in self.none_for else 3
        ctypes.memmove(count, np.array([proposed], np.int32).ctypes.data, 4)

    def matrix(self, address: int, layout: int, batch: int) -> np.ndarray:
        """The matrix that a layout sees from an address on, as a view."""
        seen = self.made[layout]
        dtype = np.dtype(_TYPES[seen["kind"]])
        where = address + batch * seen[6] * dtype.itemsize
        assert seen["ld"] >= seen["rows"]
        held = (ctypes.c_uint8 * (seen["ld"] * seen["columns"] * dtype.itemsize)).from_address(where)
        return np.frombuffer(held, dtype).reshape(seen["columns"], seen["ld"]).T[: seen["rows"]]

    def matmul(
        self,
        handle: int,
        desc: int,
        alpha: int,
        a: int,
        a_layout: int,
        b: int,
        b_layout: int,
        beta: int,
        c: int,
        c_layout: int,
        d: int,
        d_layout: int,
        algorithm: int,
        workspace: int,
        nbytes: int,
        stream: int,
    ) -> None:
        meant, scale = self.made[desc], _TYPES[self.made[desc]["scale"]]
        factor, keep = (np.frombuffer(ctypes.string_at(x, 8), scale)[0] for x in (alpha, beta))
        assert keep in (0, 1) and (c, c_layout) == (d, d_layout)
        self.calls.append((stream, workspace, nbytes, _values(algorithm, 8)))
        for batch in range(self.made[d_layout][5]):
            left, right = self.matrix(a, a_layout, batch), self.matrix(b, b_layout, batch)
            result = self.matrix(d, d_layout, batch)
            made = factor * ((left.T if meant[3] else left) @ (right.T if meant[4] else right))
            epilogue = meant[7]
            if epilogue & 4:
                held = (ctypes.c_uint8 * (len(made) * made.itemsize)).from_address(meant[8])
                made = made + np.frombuffer(held, made.dtype)[:, None]  # one per row
            if epilogue & 128:  # what the activation is applied to, with a leading dim of its own
                rows, step = len(made), meant[12]
                assert step % 8 == 0 and step >= rows
                held = (ctypes.c_uint8 * (step * made.shape[1] * made.itemsize)).from_address(meant[11])
                aux = np.frombuffer(held, made.dtype).reshape(made.shape[1], step).T
                if epilogue & 64:  # it is read there
                    made = made * _slope_of_gelu(aux[:rows])
                else:
                    aux[:rows] = made
            if epilogue & 768:  # sums over the inner dim, of what the library calls A or B
                sums = (
                    (left.T if meant[3] else left).sum(1) if epilogue & 256 else (right.T if meant[4] else right).sum(0)
                )
                held = (ctypes.c_uint8 * sums.nbytes).from_address(meant[8])
                np.frombuffer(held, made.dtype)[:] = sums
            if epilogue & 2:
                made = np.maximum(made, 0)
            if epilogue & 32:
                made = _gelu(made)
            result.setflags(write=True)
            result[...] = made + result if keep else made


@pytest.fixture
def library() -> Library:
    return Library()


def _run(
    blas: CublasLt,
    gemm: Gemm,
    a: np.ndarray,
    b: np.ndarray,
    shape: Any,
    bias: np.ndarray | None = None,
    aux: np.ndarray | None = None,
    before: float = np.nan,
) -> Any:
    plan = blas.plans(gemm, 1 << 20)[0]
    d = np.full(shape, before, gemm.result)
    room = np.zeros(plan.workspace + 1, np.uint8)
    beside = (0 if x is None else x.ctypes.data for x in (bias, aux))
    plan.run(77, a.ctypes.data, b.ctypes.data, d.ctypes.data, *beside, room.ctypes.data)
    return d


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products(library: Library, dtype: str, transpose_a: bool, transpose_b: bool) -> None:
    rng = np.random.default_rng(1)
    m, n, k = 3, 5, 4
    a = rng.standard_normal((k, m) if transpose_a else (m, k)).astype(dtype)
    b = rng.standard_normal((n, k) if transpose_b else (k, n)).astype(dtype)
    gemm = Gemm(m, n, k, dtype, transpose_a, transpose_b, alpha=0.5)
    got = _run(CublasLt(library, lambda: 0), gemm, a, b, (m, n))
    np.testing.assert_allclose(got, 0.5 * ((a.T if transpose_a else a) @ (b.T if transpose_b else b)), rtol=1e-6)


@pytest.mark.parametrize(("dtype", "out"), [("float32", ""), ("float16", "float32")])
def test_products_that_are_added(library: Library, dtype: str, out: str) -> None:
    """The matrix that is added is the result; of halves it may be wider than they are."""
    rng = np.random.default_rng(3)
    a, b = rng.integers(-9, 9, (3, 4)).astype(dtype), rng.integers(-9, 9, (4, 5)).astype(dtype)
    gemm = Gemm(3, 5, 4, dtype, alpha=0.5, out=out, adds=True)
    got = _run(CublasLt(library, lambda: 0), gemm, a, b, (3, 5), before=0.25)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, 0.25 + 0.5 * (a.astype(float) @ b.astype(float)))


@pytest.mark.parametrize("shared", [False, True])
def test_batches(library: Library, shared: bool) -> None:
    rng = np.random.default_rng(2)
    a = rng.standard_normal((6, 3, 4)).astype(np.float32)
    b = rng.standard_normal((4, 5) if shared else (6, 4, 5)).astype(np.float32)
    gemm = Gemm(3, 5, 4, "float32", batch=6, stride_a=12, stride_b=0 if shared else 20, stride_d=15)
    np.testing.assert_allclose(_run(CublasLt(library, lambda: 0), gemm, a, b, (6, 3, 5)), a @ b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("epilogue", ["bias", "relu", "relu_bias"])
def test_epilogues(library: Library, epilogue: str) -> None:
    rng = np.random.default_rng(3)
    a, b, bias = (rng.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 5), (5,)))
    has = epilogue.endswith("bias")
    got = _run(
        CublasLt(library, lambda: 0), Gemm(3, 5, 4, "float32", epilogue=epilogue), a, b, (3, 5), bias if has else None
    )
    want = a @ b + (bias if has else 0)
    np.testing.assert_allclose(got, np.maximum(want, 0) if "relu" in epilogue else want, rtol=1e-5, atol=1e-6)


def test_what_an_activation_is_applied_to_is_a_second_result(library: Library) -> None:
    rng = np.random.default_rng(4)
    a, b, bias = (rng.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 16), (16,)))
    before, gemm = np.full((3, 16), np.nan, np.float32), Gemm(3, 16, 4, "float32", epilogue="gelu_aux_bias")
    got = _run(CublasLt(library, lambda: 0), gemm, a, b, (3, 16), bias, before)
    want = a @ b + bias
    np.testing.assert_allclose(before, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got, _gelu(want), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("epilogue", ["sums_a", "sums_b"])
def test_sums_of_an_operand_are_a_second_result(library: Library, epilogue: str, transposed: bool) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 5)))
    sums = np.full(3 if epilogue == "sums_a" else 5, np.nan, np.float32)
    gemm = Gemm(3, 5, 4, "float32", transposed, transposed, epilogue=epilogue)
    given = [np.ascontiguousarray(x.T) if transposed else x for x in (a, b)]
    got = _run(CublasLt(library, lambda: 0), gemm, *given, (3, 5), sums)
    np.testing.assert_allclose(got, a @ b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(sums, a.sum(1) if epilogue == "sums_a" else b.sum(0), rtol=1e-5, atol=1e-6)


def test_a_product_takes_the_slope_of_gelu(library: Library) -> None:
    rng = np.random.default_rng(6)
    a, b, x = (rng.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 16), (3, 16)))
    kept = x.copy()
    got = _run(CublasLt(library, lambda: 0), Gemm(3, 16, 4, "float32", epilogue="dgelu"), a, b, (3, 16), aux=x)
    np.testing.assert_allclose(got, (a @ b) * _slope_of_gelu(x), rtol=1e-5, atol=1e-6)
    assert np.array_equal(x, kept)


@pytest.mark.parametrize("epilogue", ["none", "bias", "gelu_aux_bias", "dgelu", "sums_b"])
def test_heuristics_are_told_how_far_bias_and_aux_are_aligned(library: Library, epilogue: str) -> None:
    CublasLt(library, lambda: 0).plans(Gemm(2, 8, 2, "float32", epilogue=epilogue), 0)
    has = ("bias" in epilogue or "sums" in epilogue, "aux" in epilogue or epilogue == "dgelu")
    assert library.pointed == [(16 * has[0], 16 * has[1]), (4 * has[0], 4 * has[1])]


def test_epilogues_have_plans_of_their_own(library: Library) -> None:
    blas = CublasLt(library, lambda: 0)
    plain, biased = (blas.plans(Gemm(2, 8, 2, "float32", epilogue=e), 0) for e in ("none", "bias"))
    assert plain is not biased and blas.plans(Gemm(2, 8, 2, "float32", epilogue="bias"), 0) is biased


@pytest.mark.parametrize(
    ("dtype", "operands", "compute", "scale"),
    [
        ("float32", "float32", 68, 0),
        ("float32", "tf32", 77, 0),
        ("float32", "bfloat16", 75, 0),
        ("float32", "float16", 74, 0),
        ("float64", "tf32", 70, 1),
        ("bfloat16", "tf32", 68, 0),
    ],
)
def test_compute_types(library: Library, dtype: str, operands: str, compute: int, scale: int) -> None:
    CublasLt(library, lambda: 0).plans(Gemm(2, 2, 2, dtype, operands=operands), 0)
    (desc,) = [x for x in library.made.values() if isinstance(x, dict) and "compute" in x]
    assert (desc["compute"], desc["scale"]) == (compute, scale)


def test_stream_and_workspace_go_to_the_library(library: Library) -> None:
    a = np.ones((2, 2), np.float32)
    plan = CublasLt(library, lambda: 0).plans(Gemm(2, 2, 2, "float32"), 1 << 20)[0]
    d = np.zeros((2, 2), np.float32)
    assert plan.workspace == 4096
    plan.run(9, a.ctypes.data, a.ctypes.data, d.ctypes.data, 0, 0, 4)
    assert library.calls[-1][:3] == (9, 4, 4096)


def test_operands_that_are_not_aligned_take_another_algorithm(library: Library) -> None:
    room = np.zeros(256, np.uint8)
    begin = -room.ctypes.data % 16
    plan = CublasLt(library, lambda: 0).plans(Gemm(2, 2, 2, "float32"), 0)[0]
    for offset, alignment in ((0, 16), (4, 4)):
        at = [room[begin + 64 * i :].ctypes.data for i in range(3)]
        plan.run(1, at[0] + offset, at[1], at[2], 0, 0, 0)
        assert library.calls[-1][3] == alignment


def test_a_bias_that_is_not_aligned_takes_another_algorithm(library: Library) -> None:
    room = np.zeros(256, np.uint8)
    begin = room.ctypes.data + -room.ctypes.data % 16
    plan = CublasLt(library, lambda: 0).plans(Gemm(2, 2, 2, "float32", epilogue="bias"), 0)[0]
    for offset, alignment in ((0, 16), (4, 4)):
        plan.run(1, begin, begin + 64, begin + 128, begin + 192 + offset, 0, 0)
        assert library.calls[-1][3] == alignment


def test_plans_are_kept_per_device(library: Library) -> None:
    now = [0]
    blas = CublasLt(library, lambda: now[0])
    gemm = Gemm(2, 2, 2, "float32")
    first = blas.plans(gemm, 0)
    asked = library.heuristics
    assert blas.plans(gemm, 0) is first and library.heuristics == asked
    now[0] = 1
    assert blas.plans(gemm, 0) is not first and len(library.handles) == 2
    assert len(first) == 2  # of three proposals one had failed


def test_what_the_library_has_not(library: Library) -> None:
    blas = CublasLt(library, lambda: 0)
    assert not blas.plans(Gemm(2, 2, 2, "int32"), 0)
    assert not blas.plans(Gemm(2, 2, 0, "float32"), 0)
    for status in (7, 15):
        library.refuses = status
        assert not blas.plans(Gemm(3, 2, status, "float32"), 0)
    library.refuses = 14
    with pytest.raises(LibraryError, match=r"cublasLt: internal error \(cuBLAS status 14\)") as caught:
        blas.plans(Gemm(4, 2, 2, "float32"), 0)
    assert not hasattr(caught.value, "status")  # which explain would take for CUDA's


def test_an_algorithm_for_aligned_addresses_alone_says_so(library: Library) -> None:
    blas = CublasLt(library, lambda: 0)
    library.none_for = {4}
    assert [plan.aligned for plan in blas.plans(Gemm(2, 2, 2, "float32", epilogue="bias"), 0)] == [16, 16]
    library.none_for = set()
    assert {plan.aligned for plan in blas.plans(Gemm(2, 2, 3, "float32"), 0)} == {1}


def test_a_library_that_cannot_be_loaded_is_none(library: Library) -> None:
    """The bindings look for it at the first call."""

    def create() -> int:
        raise RuntimeError("libcublasLt.so.13: cannot open shared object file")

    library.create = create
    with pytest.raises(Unsupported, match="cuBLASLt can't be loaded: libcublasLt.so.13"):
        CublasLt(library, lambda: 0).plans(Gemm(2, 2, 2, "float32"), 0)


def test_the_numbers_are_the_bindings() -> None:
    real = pytest.importorskip("nvmath.bindings.cublasLt")
    for mine in (MatmulDescAttribute, MatrixLayoutAttribute, MatmulPreferenceAttribute, Epilogue):
        theirs = getattr(real, mine.__name__)
        assert {e.name: int(theirs[e.name]) for e in mine} == {e.name: int(e) for e in mine}
    names = {"float32": "32F", "float16": "32F_FAST_16F", "bfloat16": "32F_FAST_16BF", "tf32": "32F_FAST_TF32"}
    compute = pytest.importorskip("nvmath.bindings.cublas").ComputeType
    assert {how: int(compute[f"COMPUTE_{name}"]) for how, name in names.items()} == FLOAT32
    assert real.matmul_heuristic_result_dtype == Library.matmul_heuristic_result_dtype
