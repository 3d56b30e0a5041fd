"""Matrix products by cuBLASLt, through nvmath-python's bindings.

cuBLASLt counts along columns. A row-major matrix is the transpose of a column-major one, so that ``D = op(A) op(B)`` is asked for
as ``D^T = op(B)^T op(A)^T``: the operands change places, none is moved. A bias per column of D is one per row of what is asked for,
which is what the library adds; sums of our B are those of its A.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphdock_cuda.driver.api import Gemm, GemmPlan, Unsupported
from graphdock_cuda.driver.errors import LibraryError

__all__ = ["FLOAT32", "CublasLt"]

#: ``cudaDataType``, ``cublasComputeType_t`` and the type of alpha, by dtype.
_TYPES = {
    "float16": (2, 68, np.float32),
    "bfloat16": (14, 68, np.float32),
    "float32": (0, 68, np.float32),
    "float64": (1, 70, np.float64),
}
#: ``cublasComputeType_t`` of float32 products, by what operands may be rounded to.
FLOAT32 = {"float32": 68, "float16": 74, "bfloat16": 75, "tf32": 77}
#: Epilogue -> the library's name of it, where that is another.
_EPILOGUES = {"sums_a": "BGRADB", "sums_b": "BGRADA"}
_SCALE_TYPES = {np.float32: 0, np.float64: 1}
_SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
_TRANSPOSED = 1
#: Statuses of heuristics that have nothing: invalid value, as for addresses that are aligned too little, and not supported.
_NOTHING = (7, 15)
#: Algorithms that the library is asked for.
_ASKED = 8
#: Bytes that operands are mostly aligned to; others take an algorithm that needs no more than an element's.
_ALIGNED = 16


def _cupy_device() -> int:
    from cupy_backends.cuda.api import runtime

    device: int = runtime.getDevice()
    return device


def _bindings() -> Any:
    from nvmath.bindings import cublasLt

    return cublasLt


class CublasLt:
    """See Blas. Safe from any thread; ``plans`` is of the current device.

    Args:
      bindings: module with the functions and enumerations of ``nvmath.bindings.cublasLt``; default: that one.
      device: gives the current device.
    """

    def __init__(self, bindings: Any = None, device: Callable[[], int] = _cupy_device) -> None:
        self._lt = bindings if bindings is not None else _bindings()
        self._device = device
        self._handles: dict[int, int] = {}
        self._plans: dict[tuple[int, Gemm, int], tuple[GemmPlan, ...]] = {}
        self._lock = threading.Lock()

    def plans(self, gemm: Gemm, workspace: int) -> Sequence[GemmPlan]:
        """See Blas.plans. Empty for dtypes that the library has no product of, and for an empty product.

        Raises Unsupported where the library can't be loaded, LibraryError for what it answers.
        """
        if gemm.dtype not in _TYPES or not (gemm.m and gemm.n and gemm.k and gemm.batch):
            return ()
        with self._lock:
            key = (self._device(), gemm, workspace)
            found = self._plans.get(key)
            if found is None:
                handle = self._handles.get(key[0])
                with _errors(self._lt, "cublasLt"):
                    if handle is None:
                        handle = self._handles[key[0]] = self._create()
                    found = self._plans[key] = tuple(_made(self._lt, handle, gemm, workspace))
            return found

    def _create(self) -> int:
        try:
            made: int = self._lt.create()
        except self._lt.cuBLASLtError:
            raise
        except (ImportError, OSError, RuntimeError) as error:  # the bindings look for the library now
            raise Unsupported(f"cuBLASLt can't be loaded: {error}") from error
        return made


@contextlib.contextmanager
def _errors(lt: Any, call: str) -> Iterator[None]:
    """The library's errors, whose numbers are not CUDA's, as LibraryError."""
    try:
        yield
    except lt.cuBLASLtError as error:
        raise LibraryError(call, int(getattr(error, "status", 0))) from error


def _made(lt: Any, handle: int, gemm: Gemm, workspace: int) -> list[GemmPlan]:
    request = _Request(lt, handle, gemm)
    element = _SIZES[gemm.dtype]
    aligned = request.algorithms(workspace, _ALIGNED)
    anyhow = request.algorithms(workspace, element)
    plans = []
    for algorithm, nbytes in aligned or anyhow:
        other, most = (anyhow[0][0], max(nbytes, anyhow[0][1])) if anyhow else (algorithm, nbytes)
        plans.append(GemmPlan(gemm, most, _Run(request, algorithm, other, most), 1 if anyhow else _ALIGNED))
    return plans


class _Request:
    """The library's description of a product. It lives as long as the plans that came from it."""

    def __init__(self, lt: Any, handle: int, gemm: Gemm) -> None:
        self.lt, self.handle, self.gemm = lt, handle, gemm
        kind, compute, scale = _TYPES[gemm.dtype]
        if gemm.dtype == "float32":
            compute = FLOAT32[gemm.operands]
        self.alpha, self.beta = np.array([gemm.alpha], scale), np.array([gemm.adds], scale)
        self.lock = threading.Lock()
        self.desc = lt.matmul_desc_create(compute, _SCALE_TYPES[scale])
        m, n, k = gemm.m, gemm.n, gemm.k
        # as the library sees them: B, then A, then D, each the transpose of what lies there
        left = (k, n, k) if gemm.transpose_b else (n, k, n)
        right = (m, k, m) if gemm.transpose_a else (k, m, k)
        self.left = self._layout(kind, left, gemm.stride_b)
        self.right = self._layout(kind, right, gemm.stride_a)
        self.result = self._layout(_TYPES[gemm.result][0], (n, m, n), gemm.stride_d)
        attributes = lt.MatmulDescAttribute
        if gemm.transpose_b:
            self.describe(attributes.TRANSA, np.int32, _TRANSPOSED)
        if gemm.transpose_a:
            self.describe(attributes.TRANSB, np.int32, _TRANSPOSED)
        if gemm.epilogue != "none":
            self.describe(
                attributes.EPILOGUE, np.uint32, int(lt.Epilogue[_EPILOGUES.get(gemm.epilogue, gemm.epilogue.upper())])
            )
        self.has_bias = gemm.epilogue.endswith("bias") or gemm.epilogue in _EPILOGUES
        self.has_aux = "aux" in gemm.epilogue or gemm.epilogue == "dgelu"
        if self.has_aux:
            self.describe(attributes.EPILOGUE_AUX_LD, np.int64, n)

    def _layout(self, kind: int, dims: tuple[int, int, int], stride: int) -> int:
        """Rows, columns and leading dim, along columns."""
        lt = self.lt
        layout: int = lt.matrix_layout_create(kind, *dims)
        if self.gemm.batch > 1:
            for attribute, dtype, value in (
                (lt.MatrixLayoutAttribute.BATCH_COUNT, np.int32, self.gemm.batch),
                (lt.MatrixLayoutAttribute.STRIDED_BATCH_OFFSET, np.int64, stride),
            ):
                held = np.array([value], dtype)
                lt.matrix_layout_set_attribute(layout, int(attribute), held.ctypes.data, held.nbytes)
        return layout

    def describe(self, attribute: Any, dtype: Any, value: int) -> None:
        held = np.array([value], dtype)
        self.lt.matmul_desc_set_attribute(self.desc, int(attribute), held.ctypes.data, held.nbytes)

    def point(self, bias: int, aux: int) -> None:
        """Put the addresses into the description that belong to it."""
        attributes = self.lt.MatmulDescAttribute
        if self.has_bias:
            self.describe(attributes.BIAS_POINTER, np.int64, bias)
        if self.has_aux:
            self.describe(attributes.EPILOGUE_AUX_POINTER, np.int64, aux)

    def algorithms(self, workspace: int, alignment: int) -> list[tuple[np.ndarray, int]]:
        """Return what the library's heuristics propose for operands aligned so, each with the bytes of workspace that it needs."""
        lt = self.lt
        self.point(alignment, alignment)  # the heuristics look how far these are aligned
        preference = lt.matmul_preference_create()
        try:
            wanted: list[tuple[Any, Any, int]] = [
                (lt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES, np.uint64, workspace)
            ]
            wanted += [(lt.MatmulPreferenceAttribute[f"MIN_ALIGNMENT_{x}_BYTES"], np.uint32, alignment) for x in "ABCD"]
            for attribute, dtype, value in wanted:
                held = np.array([value], dtype)
                lt.matmul_preference_set_attribute(preference, int(attribute), held.ctypes.data, held.nbytes)
            results = np.zeros(_ASKED, lt.matmul_heuristic_result_dtype)
            count = np.zeros(1, np.int32)
            layouts = (self.left, self.right, self.result, self.result)
            try:
                lt.matmul_algo_get_heuristic(
                    self.handle, self.desc, *layouts, preference, _ASKED, results.ctypes.data, count.ctypes.data
                )
            except lt.cuBLASLtError as error:
                if getattr(error, "status", None) in _NOTHING:
                    return []
                raise
        finally:
            lt.matmul_preference_destroy(preference)
        found = results[: int(count[0])]
        return [(r["algo"].copy(), int(r["workspace_size"])) for r in found if int(r["state"]) == 0]


class _Run:
    """``run`` of a GemmPlan."""

    def __init__(self, request: _Request, algorithm: np.ndarray, anyhow: np.ndarray, workspace: int) -> None:
        self._request = request
        self._algorithms = (np.array(algorithm), np.array(anyhow))
        self._workspace = workspace

    def __call__(self, stream: int, a: int, b: int, d: int, bias: int, aux: int, workspace: int) -> None:
        request = self._request
        algorithm = self._algorithms[bool((a | b | d | bias | aux) % _ALIGNED)]
        if not (request.has_bias or request.has_aux):
            self._queue(algorithm, stream, a, b, d, workspace)
            return
        with request.lock:  # the description holds these addresses; the library reads them within the call
            request.point(bias, aux)
            self._queue(algorithm, stream, a, b, d, workspace)

    def _queue(self, algorithm: np.ndarray, stream: int, a: int, b: int, d: int, workspace: int) -> None:
        r = self._request
        with _errors(r.lt, "cublasLtMatmul"):
            self._call(r, algorithm, stream, a, b, d, workspace)

    def _call(self, r: _Request, algorithm: np.ndarray, stream: int, a: int, b: int, d: int, workspace: int) -> None:
        r.lt.matmul(
            r.handle,
            r.desc,
            r.alpha.ctypes.data,
            b,
            r.left,
            a,
            r.right,
            r.beta.ctypes.data,
            d,
            r.result,
            d,
            r.result,
            algorithm.ctypes.data,
            workspace,
            self._workspace if workspace else 0,
            stream,
        )
