"""Ops that move pixels between space, channels and batch, and windows of images laid out in channels."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from graphdock.contracts import KernelDef, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import PLAIN, family
from graphdock_cuda.launch import i32, i64, raw
from graphdock_cuda.moving import as_bits, move, strides_of
from graphdock_cuda.work import Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
_T = {"T": PLAIN}
MAX_RANK = 8


def _multiple(w: Work, size: int, of: int) -> int:
    if size % of:
        raise errors.InvalidArgumentError(f"{w.node.op}: {size} is not a multiple of {of}")
    return size // of


def _permuted(w: Work, x: Operand, spread: Sequence[int], perm: Sequence[int], shape: Sequence[int]) -> None:
    """``x`` as ``spread``, its axes permuted, as an output of that shape."""
    out = w.output(shape)
    back = strides_of(spread)
    dims = [spread[p] for p in perm]
    move(w, as_bits(out), as_bits(x), dims, strides_of(dims), [back[p] for p in perm])


@kernel("DepthToSpace", types=_T)
def depth_to_space(w: Work) -> None:
    x, s = w.input(0), w.attr("block_size")
    if w.attr("data_format") == "NCHW":
        n, c, rows, columns = x.shape
        c = _multiple(w, c, s * s)
        return _permuted(w, x, (n, s, s, c, rows, columns), (0, 3, 4, 1, 5, 2), (n, c, rows * s, columns * s))
    n, rows, columns, c = x.shape
    c = _multiple(w, c, s * s)
    return _permuted(w, x, (n, rows, columns, s, s, c), (0, 1, 3, 2, 4, 5), (n, rows * s, columns * s, c))


@kernel("SpaceToDepth", types=_T)
def space_to_depth(w: Work) -> None:
    x, s = w.input(0), w.attr("block_size")
    if w.attr("data_format") == "NCHW":
        n, c, rows, columns = x.shape
        rows, columns = _multiple(w, rows, s), _multiple(w, columns, s)
        return _permuted(w, x, (n, c, rows, s, columns, s), (0, 3, 5, 1, 2, 4), (n, c * s * s, rows, columns))
    n, rows, columns, c = x.shape
    rows, columns = _multiple(w, rows, s), _multiple(w, columns, s)
    return _permuted(w, x, (n, rows, s, columns, s, c), (0, 1, 3, 2, 4, 5), (n, rows, columns, c * s * s))


@kernel("SpaceToBatchND", types=_T)
def space_to_batch(w: Work) -> None:
    _between(w, "paddings", False)


@kernel("BatchToSpaceND", types=_T)
def batch_to_space(w: Work) -> None:
    _between(w, "crops", True)


def _between(w: Work, margins_name: str, back: bool) -> None:
    x, sizes, margins = w.input(0), w.host("block_shape").tolist(), w.host(margins_name).tolist()
    m = len(sizes)
    if len(margins) != m or any(len(row) != 2 for row in margins):
        raise errors.InvalidArgumentError(f"{w.node.op}: {margins_name} {margins}", expected=f"shape [{m},2]")
    if x.rank < m + 1:
        raise errors.InvalidArgumentError(f"{w.node.op}: input has rank {x.rank}", expected=f"rank {m + 1} or more")
    if min(sizes, default=1) < 1:
        raise errors.InvalidArgumentError(f"{w.node.op}: block_shape {sizes} must be positive")
    if min((v for row in margins for v in row), default=0) < 0:
        raise errors.InvalidArgumentError(f"{w.node.op}: {margins_name} {margins} must not be negative")
    count, inner = math.prod(sizes), x.shape[1 : m + 1]
    if back:
        batch = _multiple(w, x.shape[0], count)
        dims = [n * s - a - b for n, s, (a, b) in zip(inner, sizes, margins, strict=True)]
        if min(dims, default=0) < 0:
            raise errors.InvalidArgumentError(
                f"{w.node.op}: crops {margins} leave less than nothing of {list(x.shape)}"
            )
        space, shape = dims, (batch, *dims, *x.shape[m + 1 :])
        within = list(inner)
    else:
        batch = x.shape[0]
        within = [_multiple(w, n + a + b, s) for n, s, (a, b) in zip(inner, sizes, margins, strict=True)]
        space, shape = list(inner), (batch * count, *within, *x.shape[m + 1 :])
    out = w.output(shape)
    if not out.size:
        return
    if m > MAX_RANK:
        raise w.refuse(f"it has {m} spatial dims, and the kernel at most {MAX_RANK}")
    pad = MAX_RANK - m
    facts = (*space, *(1,) * pad, *within, *(1,) * pad, *sizes, *(1,) * pad, *(a for a, _ in margins), *(0,) * pad)
    packed = raw(struct.pack(f"<{4 * MAX_RANK}q", *facts))
    rest = math.prod(x.shape[m + 1 :])
    kept = source("word.cuh", "space_batch.cuh", SIZE=str(x.dtype.size))
    entry = "batch_to_space" if back else "space_to_batch"
    w.launch(
        kept, entry, blocks(out.size, 1024), 256, as_bits(x), out, i64(out.size), i32(m), i64(batch), i64(rest), packed
    )


def _windows(w: Work, shape: Sequence[int]) -> tuple[list[int], bytes]:
    """Counts of windows, and ``Windows`` of ``source/patches.cuh``."""
    counts, facts = [], []
    for n, k, s, r in zip(shape[1:3], w.attr("ksizes")[1:3], w.attr("strides")[1:3], w.attr("rates")[1:3], strict=True):
        reach = (k - 1) * r + 1
        if w.attr("padding") == "SAME":
            count = -(-n // s)
            before = max((count - 1) * s + reach - n, 0) // 2
        else:
            count, before = max(0, (n - reach) // s + 1), 0
        counts.append(count)
        facts.append((n, count, k, s, r, before))
    columns = [v for pair in zip(*facts, strict=True) for v in pair]
    return counts, raw(struct.pack("<12q", *columns))


@kernel("ExtractImagePatches")
def extract_image_patches(w: Work) -> None:
    x = w.input(0)
    counts, packed = _windows(w, x.shape)
    rows, columns = w.attr("ksizes")[1:3]
    out = w.output((x.shape[0], *counts, rows * columns * x.shape[3]))
    if out.size:
        kept = source("word.cuh", "patches.cuh", "patches_of.cuh", SIZE=str(x.dtype.size))
        w.launch(kept, "patches", blocks(out.size, 1024), 256, as_bits(x), out, i64(out.size), i64(x.shape[3]), packed)


@kernel("ExtractImagePatchesGrad")
def extract_image_patches_grad(w: Work) -> None:
    shape, g = w.host("images_shape").tolist(), w.input("patches_grad")
    counts, packed = _windows(w, shape)
    rows, columns = w.attr("ksizes")[1:3]
    expected = (shape[0], *counts, rows * columns * shape[3])
    if g.shape != expected:
        raise errors.InvalidArgumentError(
            f"{w.node.op}: patches_grad has shape {list(g.shape)}", expected=str(list(expected))
        )
    out = w.output(shape)
    if out.size:
        kept = source("patches.cuh", "patches_grad.cuh", ELEMENT=w.ctype(g))
        w.launch(kept, "patches_grad", blocks(out.size), 256, g, out, i64(out.size), i64(shape[3]), packed)
