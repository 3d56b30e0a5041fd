"""Matrix products: by the matrix library where there is one that takes them, else by tiles in shared memory.

float16 and bfloat16 are summed in float32 and rounded once, integers wrap around. A product with few results and a long inner dim
is summed in parts, which a second kernel joins in order: results do not depend on how blocks are scheduled.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphdock.contracts import KernelDef

from graphdock_cuda.compiled import source
from graphdock_cuda.driver.api import Gemm
from graphdock_cuda.joining import join
from graphdock_cuda.kernel import FLOATS, family
from graphdock_cuda.kernels.elementwise import MAX_RANK, broadcast_shape, merged
from graphdock_cuda.launch import raw
from graphdock_cuda.work import Operand, Work

__all__ = [
    "ACTIVATIONS",
    "KERNELS",
    "Product",
    "gemm_of",
    "library_or_own",
    "multiply",
    "parts_of",
    "product_of",
    "tile_of",
]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: As ``source/gemm.cuh`` numbers them.
ACTIVATIONS = {
    "none": "NONE", "relu": "RELU", "gelu": "GELU", "relu6": "RELU6", "tanh": "TANH", "sigmoid": "SIGMOID", "gelu_erf": "GELU_ERF",
}  # fmt: skip
#: Epilogues of gradients, which stand for an activation and a bias.
GRADIENTS = ("dgelu", "sums_a", "sums_b")
#: What float32 operands may be rounded to, by the option ``matmul_precision``.
OPERANDS = {"highest": "float32", "tf32": "tf32", "bf16": "bfloat16", "fp16": "float16"}
#: Dtypes of the matrix library.
LIBRARY = FLOATS


@dataclass(frozen=True, slots=True)
class Product:
    """``op(A) op(B)`` of the shapes of a node.

    Attributes:
      m, n, k: sizes. ``batch``: dims of the batch, as few as possible; ``a_strides``, ``b_strides``: of each dim, in
        elements, 0 where
        an operand is stretched. ``transpose_a``, ``transpose_b``: whether an operand lies transposed. ``out``: shape of the result.
    """

    m: int
    n: int
    k: int
    transpose_a: bool
    transpose_b: bool
    batch: tuple[int, ...]
    a_strides: tuple[int, ...]
    b_strides: tuple[int, ...]
    out: tuple[int, ...]

    @property
    def batches(self) -> int:
        return math.prod(self.batch)


def product_of(a: Sequence[int], b: Sequence[int], transpose_a: bool, transpose_b: bool) -> Product:
    """The product of two shapes that fit."""
    m, k = (a[-1], a[-2]) if transpose_a else (a[-2], a[-1])
    n = b[-2] if transpose_b else b[-1]
    dims = broadcast_shape([a[:-2], b[:-2]])
    batch, (a_steps, b_steps) = merged(dims, [a[:-2], b[:-2]])
    strides = tuple(s * m * k for s in a_steps), tuple(s * k * n for s in b_steps)
    return Product(m, n, k, transpose_a, transpose_b, tuple(batch), *strides, (*dims, m, n))


def tile_of(m: int, n: int, element_bytes: int, multiprocessors: int) -> int:
    """The side of a thread's results: 8, or 4 where that leaves the GPU idle or shared memory has no room, or 2."""
    if element_bytes <= 8 and -(-m // 128) * -(-n // 128) >= multiprocessors:
        return 8
    return 4 if max(m, n) > 32 else 2


def parts_of(tiles: int, k: int, multiprocessors: int) -> int:
    """Into how many parts the inner dim is cut, so that there are blocks enough; a part has 256 at least."""
    return max(1, min(2 * multiprocessors // max(tiles, 1), k // 256, 128))


def multiply(
    w: Work,
    a: Operand,
    b: Operand,
    d: Operand,
    product: Product,
    bias: Operand | None = None,
    activation: str = "none",
    alpha: float = 1.0,
    adds: bool = False,
) -> None:
    """Launch the package's own product ``d = activation(alpha * op(a) op(b) + bias)``; any dtype of numbers.

    Args:
      d: of the dtype of ``a`` and ``b``, or float32 where those are narrower.
      bias: ``n`` elements, added to every row. ``activation``: one of ``ACTIVATIONS``; of floats alone.
      adds: the product is added to what ``d`` holds.
    """
    if not d.size:
        return
    p, multiprocessors = product, w.multiprocessors
    if len(p.batch) > MAX_RANK:
        raise w.refuse(f"it broadcasts over {len(p.batch)} axes, and the kernel over at most {MAX_RANK}")
    wide = d.dtype.accumulator
    tile = tile_of(p.m, p.n, wide.size, multiprocessors)
    tiles = -(-p.m // (16 * tile)) * -(-p.n // (16 * tile))
    parts = parts_of(tiles * p.batches, p.k, multiprocessors)
    a_steps = (1, p.m) if p.transpose_a else (p.k, 1)
    b_steps = (1, p.k) if p.transpose_b else (p.n, 1)
    pad = (0,) * (MAX_RANK - len(p.batch))
    numbers = (p.m, p.n, p.k, *a_steps, *b_steps, p.batches, *p.batch, *pad, *p.a_strides, *pad, *p.b_strides, *pad)
    packed = raw(struct.pack(f"<{len(numbers)}qd2i", *numbers, alpha, len(p.batch), parts))
    made = source(
        "complex.cuh",
        "gemm.cuh",
        "matmul.cuh",
        TYPE=w.ctype(a),
        RESULT=w.ctype(d),
        GD_TILE=str(tile),
        GD_A_ALONG=str(int(not p.transpose_a)),
        GD_B_ALONG=str(int(p.transpose_b)),
        BIAS=str(int(bias is not None)),
        ACTIVATION=ACTIVATIONS[activation],
        ADDS=str(int(adds)),
    )
    with w.temporary():
        sums = w.scratch(wide, (parts, p.batches, p.m, p.n)) if parts > 1 else d
    args = (d, d if bias is None else bias)
    w.launch(made, "matmul", (tiles, parts, min(p.batches, 65535)), 256, a, b, *args, sums, packed)
    if parts > 1:
        w.launch(made, "matmul_join", min(-(-d.size // 256), 1 << 20), 256, sums, *args, packed)


def _product(w: Work) -> tuple[Operand, Operand, Product]:
    a, b = w.inputs
    return a, b, product_of(a.shape, b.shape, bool(w.attr("transpose_a")), bool(w.attr("transpose_b")))


@kernel("MatMul", name="matmul")
def matmul(w: Work) -> None:
    a, b, product = _product(w)
    multiply(w, a, b, w.output(product.out), product)


def gemm_of(w: Work, p: Product, dtype: str, bias: bool = False, activation: str = "none") -> Gemm | None:
    """The product as the matrix library takes it, with one batch dim; None where an operand's batch has no single step."""
    if len(p.batch) > 1 or dtype not in LIBRARY or not p.k:
        return None
    m, batches = p.m, p.batches
    a_stride, b_stride = (*p.a_strides, 0)[0], (*p.b_strides, 0)[0]
    if batches > 1 and not b_stride and not p.transpose_a and a_stride == m * p.k:  # one matrix of all rows
        m, batches, a_stride = m * batches, 1, 0
    epilogue = (
        activation
        if activation in GRADIENTS
        else "_".join(part for part in (activation if activation != "none" else "", "bias" if bias else "") if part)
    )
    return Gemm(
        m,
        p.n,
        p.k,
        dtype,
        p.transpose_a,
        p.transpose_b,
        batches,
        a_stride,
        b_stride,
        m * p.n if batches > 1 else 0,
        operands=OPERANDS[w.options.get("matmul_precision", "highest")] if dtype == "float32" else "float32",
        epilogue=epilogue or "none",
    )


@kernel("MatMulSum")
def matmul_sum(w: Work) -> None:
    """One product of the matrices side by side: the terms of all products are summed in one order."""
    transposed = bool(w.attr("transpose_a")), bool(w.attr("transpose_b"))
    a = _side_by_side(w, w.named("a"), -2 if transposed[0] else -1)
    b = _side_by_side(w, w.named("b"), -1 if transposed[1] else -2)
    product = product_of(a.shape, b.shape, *transposed)
    library_or_own(w, a, b, w.output(product.out), product)


def _side_by_side(w: Work, parts: Sequence[Operand], axis: int) -> Operand:
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    shape[axis] *= len(parts)
    whole = w.scratch(parts[0].dtype, shape)
    join(w, parts, whole, len(shape) + axis)
    return whole


@kernel("MatMul", name="matmul_lt", priority=10, types={"T": LIBRARY})
def matmul_lt(w: Work) -> None:
    """By the matrix library; by the own tiles where there is none, or it has no algorithm.

    It does not refuse those: shapes may be known in the step alone, when no other kernel can be chosen.
    """
    a, b, product = _product(w)
    library_or_own(w, a, b, w.output(product.out), product)


def library_or_own(
    w: Work, a: Operand, b: Operand, d: Operand, product: Product, alpha: float = 1.0, adds: bool = False
) -> None:
    """``d = alpha * op(a) op(b)``, or that added to ``d``; of the dtypes that :func:`multiply` takes."""
    gemm = gemm_of(w, product, a.dtype.name)
    if gemm is not None and (alpha != 1.0 or adds or d.dtype is not a.dtype):
        gemm = replace(gemm, alpha=alpha, adds=adds, out=d.dtype.name if d.dtype is not a.dtype else "")
    if d.size and (gemm is None or not w.gemm(gemm, a, b, d)):
        multiply(w, a, b, d, product, alpha=alpha, adds=adds)
