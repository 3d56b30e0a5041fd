"""Common parts of ops on padded arrays, and the gradient of padding by mirrors."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from graphdock.contracts import KernelDef, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.launch import i32, i64, raw
from graphdock_cuda.work import Work, blocks

__all__ = ["KERNELS", "packed_pads", "rows_of"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
MAX_RANK = 8


def rows_of(paddings: Any, shape: Sequence[int], mode: str) -> list[tuple[int, int]]:
    """Rows of paddings as ints. Raises InvalidArgumentError where they do not fit the shape."""
    if paddings.shape != (len(shape), 2):
        raise errors.InvalidArgumentError(
            f"Pad: paddings have shape {list(paddings.shape)}", expected=f"[{len(shape)},2]"
        )
    rows = [(int(a), int(b)) for a, b in paddings]
    for axis, ((a, b), n) in enumerate(zip(rows, shape, strict=True)):
        limit = None if mode == "constant" else n - (mode == "reflect")
        if min(a, b) < 0 or (limit is not None and max(a, b) > max(limit, 0)):
            raise errors.InvalidArgumentError(
                f"Pad: paddings [{a}, {b}] of axis {axis} do not fit mode {mode!r} and size {n}",
                expected="none negative" if limit is None else f"from 0 to {limit}",
            )
    return rows


def packed_pads(w: Work, rows: Sequence[tuple[int, int]], shape: Sequence[int], mode: str) -> tuple[int, bytes]:
    """Rank and ``Pads`` of ``source/pads.cuh``, after axes were joined that lie within one another.

    What is mirrored stays an axis of its own; a margin of one value spans all of the axes within it.
    """
    axes: list[list[int]] = []
    for (a, b), n in zip(rows, shape, strict=True):
        if axes and a == b == 0 and (mode == "constant" or axes[-1][1:] == [0, 0]):
            axes[-1] = [v * n for v in axes[-1]]
        else:
            axes.append([n, a, b])
    if len(axes) > MAX_RANK:
        raise w.refuse(f"it pads among {len(axes)} axes, and the kernel among at most {MAX_RANK}")
    rank = len(axes)
    axes += [[1, 0, 0]] * (MAX_RANK - len(axes))
    return rank, struct.pack(f"<{3 * MAX_RANK}q", *(a[k] for k in range(3) for a in axes))


@kernel("MirrorPadGrad")
def mirror_pad_grad(w: Work) -> None:
    dy, paddings, mode = w.input("dy"), w.host("paddings"), w.attr("mode")
    if paddings.shape != (dy.rank, 2):
        raise errors.InvalidArgumentError(
            f"paddings have shape {list(paddings.shape)}", expected=f"[{dy.rank},2], as dy has rank {dy.rank}"
        )
    sizes = [max(n - int(a) - int(b), 0) for n, (a, b) in zip(dy.shape, paddings, strict=True)]
    rows = rows_of(paddings, sizes, mode)
    out = w.output(sizes)
    if not out.size:
        return
    rank, packed = packed_pads(w, rows, sizes, mode)
    kept = source("complex.cuh", "pads.cuh", "mirror_pad_grad.cuh", ELEMENT=w.ctype(dy), MODE=f"mode_{mode}")
    w.launch(kept, "mirror_pad_grad", blocks(out.size), 256, dy, out, i64(out.size), i32(rank), raw(packed))
