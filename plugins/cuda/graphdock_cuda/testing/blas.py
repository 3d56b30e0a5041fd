"""A fake matrix library: NumPy on the fake driver's memory, in the order of the stream."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from graphdock_cuda.driver.api import Gemm, GemmPlan
from graphdock_cuda.testing.driver import FakeDriver
from graphdock_cuda.testing.state import Use, bytes_of

__all__ = ["EPILOGUES", "REFUSED", "ROUNDED", "FakeBlas", "round_to_tf32"]

Array = np.ndarray[Any, Any]

_DTYPES = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}
#: Bytes of workspace that the second plan of a product writes to.
_WORKSPACE = 4096


def _gelu(x: Array) -> Array:
    """The approximation with tanh, which is cuBLASLt's."""
    wide: Array = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return wide


def _slope_of_gelu(x: Array) -> Array:
    root = math.sqrt(2 / math.pi)
    t = np.tanh(root * (x + 0.044715 * x**3))
    slope: Array = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x**2)
    return slope


#: What follows a bias, by the name of the epilogue less ``_aux`` and ``_bias``.
EPILOGUES: dict[str, Callable[[Array], Array]] = {
    "none": lambda x: x,
    "bias": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": _gelu,
}
_SUMS = frozenset({"sums_a", "sums_b"})
#: Epilogues of gradients, of one batch.
GRADIENTS = {"dgelu", *_SUMS}


#: What cuBLASLt's heuristics have no algorithm for: who says so, and whether it is such a product.
REFUSED: dict[str, Callable[[Gemm], bool]] = {
    "tensorflow/tensorflow pull request 55966: float64 has products, and no epilogues": lambda gemm: (
        gemm.dtype == "float64" and gemm.epilogue != "none"
    ),
    "cuBLAS, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: rows of aux are of eights": lambda gemm: (
        _has_aux(gemm) and gemm.n % 8 != 0
    ),
    "nvmath-python 1.0, epilog_protocol.py, DGeluAuxHandler: K=1 is not supported by cuBLAS": lambda gemm: (
        gemm.epilogue == "dgelu" and gemm.k == 1
    ),
    "nvmath-python 1.0, epilog_protocol.py, BgradHandler: K=1 is not supported before cuBLASLt 12.3.4": lambda gemm: (
        gemm.epilogue in _SUMS and gemm.k == 1
    ),
}


def round_to_tf32(values: Array) -> Array:
    """float32 values with ten bits of mantissa, to nearest even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + (0xFFF + (bits >> 13 & 1)).astype(np.uint32)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(values), rounded.view(np.float32), values)


def _through(dtype: Any) -> Callable[[Array], Array]:
    """Rounds float32 values to a dtype and back."""

    def rounded(values: Array) -> Array:
        with np.errstate(over="ignore"):
            return values.astype(dtype).astype(np.float32)

    return rounded


#: How float32 operands are rounded, by ``Gemm.operands``.
ROUNDED: dict[str, Callable[[Array], Array]] = {
    "float32": lambda x: x,
    "tf32": round_to_tf32,
    "bfloat16": _through(ml_dtypes.bfloat16),
    "float16": _through(np.float16),
}


class FakeBlas:
    """See Blas. Of two plans the second needs workspace, writes to it, and adds up in another order."""

    def __init__(self, driver: FakeDriver) -> None:
        self._driver = driver

    def plans(self, gemm: Gemm, workspace: int) -> Sequence[GemmPlan]:
        if gemm.dtype not in _DTYPES or "relu_aux" in gemm.epilogue:
            return ()
        if gemm.result not in (gemm.dtype, "float32") or (gemm.result, gemm.dtype) == ("float32", "float64"):
            return ()
        if gemm.epilogue not in GRADIENTS and _activation(gemm) not in EPILOGUES:
            return ()
        if gemm.batch > 1 and (gemm.epilogue in GRADIENTS or "aux" in gemm.epilogue):
            return ()
        if any(refused(gemm) for refused in REFUSED.values()):
            return ()
        plans = [GemmPlan(gemm, 0, functools.partial(self._run, gemm, 0))]
        if workspace >= _WORKSPACE:
            plans.append(GemmPlan(gemm, _WORKSPACE, functools.partial(self._run, gemm, _WORKSPACE)))
        return plans

    def _run(
        self, gemm: Gemm, scratch: int, stream: int, a: int, b: int, d: int, bias: int, aux: int, workspace: int
    ) -> None:
        driver = self._driver
        size, result_size = _DTYPES[gemm.dtype].itemsize, _DTYPES[gemm.result].itemsize
        reads = [
            (a, _reach(gemm.m * gemm.k, gemm.stride_a, gemm.batch)),
            (b, _reach(gemm.k * gemm.n, gemm.stride_b, gemm.batch)),
        ]
        writes = [(d, _reach(gemm.m * gemm.n, gemm.stride_d, gemm.batch) * result_size)]
        if "bias" in gemm.epilogue:
            reads.append((bias, gemm.n))
        if gemm.epilogue == "dgelu":
            reads.append((aux, gemm.m * gemm.n))
        reads = [(address, count * size) for address, count in reads]
        if gemm.adds:
            reads.append(writes[0])
        if "aux" in gemm.epilogue:
            writes.append((aux, gemm.m * gemm.n * size))
        if gemm.epilogue in _SUMS:
            writes.append((bias, (gemm.m if gemm.epilogue == "sums_a" else gemm.n) * size))
        if scratch:
            writes.append((workspace, scratch))
        with driver.lock:
            on = driver.stream_of(stream, "gemm")
            what = f"gemm {gemm.dtype} {gemm.m}x{gemm.n}x{gemm.k}" + (f" batch={gemm.batch}" if gemm.batch > 1 else "")
            with driver.call("gemm", f"{what} {gemm.epilogue}", device=on.device) as late:
                uses = []
                for address, nbytes in (*reads, *writes):
                    block = driver.block_at(address, "gemm", nbytes)
                    if block is None or driver.device_of(block) is not on.device or address % size:
                        raise driver.misuse("gemm", 1, f"{what}: no memory of {on.device.name} for it at {address:#x}")
                    uses.append((Use(block), bytes_of(block, address, nbytes)))
                driver.queue(
                    on,
                    what,
                    lambda: _multiply(gemm, a, b, d, bias, aux, workspace if scratch else 0),
                    uses=[use for use, _ in uses],
                    reads=[found for _, found in uses[: len(reads)]],
                    writes=[found for _, found in uses[len(reads) :]],
                    counted=("kernel", "gemm", 0),
                    late=late,
                )


def _activation(gemm: Gemm) -> str:
    return gemm.epilogue.removesuffix("_bias").removesuffix("_aux")


def _has_aux(gemm: Gemm) -> bool:
    return "aux" in gemm.epilogue or gemm.epilogue == "dgelu"


def _reach(count: int, stride: int, batch: int) -> int:
    """Elements from the first of an operand to its last."""
    return count + stride * (batch - 1)


def _at(address: int, count: int, dtype: np.dtype[Any]) -> Array:
    """Memory as an array; no copy."""
    raw = np.ctypeslib.as_array((ctypes.c_ubyte * (count * dtype.itemsize)).from_address(address))
    return raw.view(dtype)


def _multiply(gemm: Gemm, a: int, b: int, d: int, bias: int, aux: int, workspace: int) -> None:
    dtype, result_dtype = _DTYPES[gemm.dtype], _DTYPES[gemm.result]
    wide = np.dtype(np.float64 if gemm.dtype == "float64" else np.float32)
    m, n, k = gemm.m, gemm.n, gemm.k
    added = _at(bias, n, dtype).astype(wide) if "bias" in gemm.epilogue else wide.type(0)
    activation = EPILOGUES["none"] if gemm.epilogue in GRADIENTS else EPILOGUES[_activation(gemm)]
    for number in range(gemm.batch):
        left = _at(a + number * gemm.stride_a * dtype.itemsize, m * k, dtype).astype(wide)
        right = _at(b + number * gemm.stride_b * dtype.itemsize, k * n, dtype).astype(wide)
        left = left.reshape(k, m).T if gemm.transpose_a else left.reshape(m, k)
        right = right.reshape(n, k).T if gemm.transpose_b else right.reshape(k, n)
        if gemm.dtype == "float32":
            left, right = ROUNDED[gemm.operands](left), ROUNDED[gemm.operands](right)
        if workspace:
            ctypes.memset(workspace, 0xAB, _WORKSPACE)
            half = k // 2
            product = left[:, half:] @ right[half:] + left[:, :half] @ right[:half]
        else:
            product = left @ right
        with np.errstate(over="ignore", invalid="ignore"):
            before = wide.type(gemm.alpha) * product + added
            if "aux" in gemm.epilogue:
                _at(aux, m * n, dtype)[:] = before.astype(dtype).reshape(-1)
            result = activation(before)
            if gemm.epilogue == "dgelu":
                result = result * _slope_of_gelu(_at(aux, m * n, dtype).astype(wide).reshape(m, n))
            if gemm.epilogue in _SUMS:
                summed = left.sum(1) if gemm.epilogue == "sums_a" else right.sum(0)
                _at(bias, summed.size, dtype)[:] = summed.astype(dtype)
            made = _at(d + number * gemm.stride_d * result_dtype.itemsize, m * n, result_dtype)
            if gemm.adds:
                result = result + made.astype(wide).reshape(m, n)
            made[:] = result.astype(result_dtype).reshape(-1)
