"""Kernels that move pixels between space, channels and batch, and windows of images: strided copies into the result."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, In, KernelDef, Out, Scratch, dtypes, errors

from graphdock_cpu.kernels.array import bind_writer
from graphdock_cpu.kernels.common import is_half, known

__all__ = ["KERNELS"]


def _multiple(ctx: BuildContext, size: int, of: int) -> int:
    if size % of:
        raise errors.InvalidArgumentError(f"{ctx.node.op}: {size} is not a multiple of {of}")
    return size // of


def depth_to_space(ctx: BuildContext) -> Bound:
    s, first = ctx.attr("block_size"), ctx.attr("data_format") == "NCHW"

    def write(x: Any, out: Any) -> None:
        if first:
            n, _, h, w = x.shape
            c = out.shape[1]
            np.copyto(out.reshape(n, c, h, s, w, s), x.reshape(n, s, s, c, h, w).transpose(0, 3, 4, 1, 5, 2))
        else:
            n, h, w, _ = x.shape
            c = out.shape[3]
            np.copyto(out.reshape(n, h, s, w, s, c), x.reshape(n, h, w, s, s, c).transpose(0, 1, 3, 2, 4, 5))

    def grown(x: Any) -> Sequence[int]:
        if first:
            n, c, h, w = x.shape
            return n, _multiple(ctx, c, s * s), h * s, w * s
        n, h, w, c = x.shape
        return n, h * s, w * s, _multiple(ctx, c, s * s)

    return bind_writer(ctx, write, (0,), grown)


def space_to_depth(ctx: BuildContext) -> Bound:
    s, first = ctx.attr("block_size"), ctx.attr("data_format") == "NCHW"

    def write(x: Any, out: Any) -> None:
        if first:
            n, c, h, w = x.shape
            h, w = h // s, w // s
            np.copyto(out.reshape(n, s, s, c, h, w), x.reshape(n, c, h, s, w, s).transpose(0, 3, 5, 1, 2, 4))
        else:
            n, h, w, c = x.shape
            h, w = h // s, w // s
            np.copyto(out.reshape(n, h, w, s, s, c), x.reshape(n, h, s, w, s, c).transpose(0, 1, 3, 2, 4, 5))

    def shrunk(x: Any) -> Sequence[int]:
        if first:
            n, c, h, w = x.shape
            return n, c * s * s, _multiple(ctx, h, s), _multiple(ctx, w, s)
        n, h, w, c = x.shape
        return n, _multiple(ctx, h, s), _multiple(ctx, w, s), c * s * s

    return bind_writer(ctx, write, (0,), shrunk)


class _Blocks:
    """Where the elements of spatial dims, after a margin, lie in blocks along the batch. Checks what only a step knows."""

    def __init__(self, ctx: BuildContext, block_shape: Any, margins: Any, rank: int) -> None:
        self.op = ctx.node.op
        self.sizes, self.margins = [int(b) for b in block_shape], [(int(a), int(b)) for a, b in margins]
        if len(self.sizes) != len(self.margins) or rank <= len(self.sizes):
            raise errors.InvalidArgumentError(
                f"{self.op}: a block of {len(self.sizes)} dims with {len(self.margins)} margins does not fit rank {rank}"
            )
        if min(self.sizes, default=1) < 1 or min((p for row in self.margins for p in row), default=0) < 0:
            raise errors.InvalidArgumentError(
                f"{self.op}: block_shape {self.sizes} or margins {self.margins} are negative or zero"
            )
        self.count = math.prod(self.sizes)

    def to_batch(self, shape: Sequence[int]) -> list[int]:
        """The shape with the blocks along the batch."""
        m = len(self.sizes)
        dims = []
        for n, s, (a, b) in zip(shape[1 : m + 1], self.sizes, self.margins, strict=True):
            if (n + a + b) % s:
                raise errors.InvalidArgumentError(f"{self.op}: the padded size {n + a + b} is not a multiple of {s}")
            dims.append((n + a + b) // s)
        return [shape[0] * self.count, *dims, *shape[m + 1 :]]

    def to_space(self, shape: Sequence[int]) -> list[int]:
        """The shape with the blocks in space."""
        m = len(self.sizes)
        dims = [n * s - a - b for n, s, (a, b) in zip(shape[1 : m + 1], self.sizes, self.margins, strict=True)]
        if shape[0] % self.count or min(dims, default=0) < 0:
            raise errors.InvalidArgumentError(
                f"{self.op}: block_shape {self.sizes} with crops {self.margins} does not fit shape {list(shape)}"
            )
        return [shape[0] // self.count, *dims, *shape[m + 1 :]]

    def places(self, space: Sequence[int]) -> list[tuple[Any, Any]]:
        """Pairs (index of the batch form, index of the space form) of equal elements, one per position in a block."""
        batch, pairs = space[0], []
        for position, offsets in enumerate(itertools.product(*map(range, self.sizes))):
            inner, outer = [slice(position * batch, (position + 1) * batch)], [slice(None)]
            for o, s, (a, _), n in zip(offsets, self.sizes, self.margins, space[1:], strict=False):
                first = (o - a) % s
                at = (first + a) // s
                inner.append(slice(at, at + max(0, -(-(n - first) // s))))
                outer.append(slice(first, None, s))
            pairs.append((tuple(inner), tuple(outer)))
        return pairs


def _between(ctx: BuildContext, back: bool) -> Bound:
    """SpaceToBatchND, and BatchToSpaceND where ``back``."""

    def blocks(x: Any, block_shape: Any, margins: Any) -> _Blocks:
        return _Blocks(ctx, block_shape.tolist(), margins.tolist(), len(x))

    def copy(x: Any, out: Any, pairs: Any, filled: bool) -> None:
        if back:
            for inner, outer in pairs:
                out[outer] = x[inner]
            return
        if not filled:
            out.fill(b"" if out.dtype == object else 0)
        for inner, outer in pairs:
            out[inner] = x[outer]

    def shape_of(x: Any, block_shape: Any, margins: Any) -> list[int]:
        found = blocks(x.shape, block_shape, margins)
        return found.to_space(x.shape) if back else found.to_batch(x.shape)

    def write(x: Any, block_shape: Any, margins: Any, out: Any) -> None:
        found = blocks(x.shape, block_shape, margins)
        if tuple(found.to_space(x.shape) if back else found.to_batch(x.shape)) != out.shape:
            raise errors.InvalidArgumentError(f"{ctx.node.op}: the result does not have the shape {list(out.shape)}")
        copy(x, out, found.places(out.shape if back else x.shape), not margins.any())

    shape, block_shape, margins = ctx.inputs[0].shape, ctx.inputs[1].value, ctx.inputs[2].value
    if block_shape is None or margins is None or not known(shape) or ctx.fresh:
        return bind_writer(ctx, write, (0, 1, 2), shape_of)
    space = ctx.outputs[0].shape if back else shape
    pairs, filled = blocks(shape, block_shape, margins).places(space), not margins.any()  # type: ignore[arg-type]
    return Bound(lambda x, out: copy(x, out, pairs, filled), args=(In(0), Out(0)))


class _Windows:
    """Where the pixels of each tap of a window lie: pairs (rows and columns of windows, rows and columns of the image)."""

    def __init__(self, ctx: BuildContext, shape: Sequence[int]) -> None:
        self.sizes = ctx.attr("ksizes")[1:3]
        self.counts: list[int] = []
        axes: list[list[tuple[slice, slice]]] = []
        self.whole = True
        for n, k, s, r in zip(shape[1:3], self.sizes, ctx.attr("strides")[1:3], ctx.attr("rates")[1:3], strict=True):
            reach = (k - 1) * r + 1
            if ctx.attr("padding") == "SAME":
                count = -(-n // s)
                before = max((count - 1) * s + reach - n, 0) // 2
            else:
                count, before = max(0, (n - reach) // s + 1), 0
            taps = []
            for tap in range(k):
                at = tap * r - before
                low = max(0, -(at // s))
                high = max(low, min(count, (n - 1 - at) // s + 1))
                self.whole &= (low, high) == (0, count)
                begin = at + low * s
                taps.append(
                    (slice(low, high), slice(begin, begin + (high - low - 1) * s + 1 if high > low else begin, s))
                )
            self.counts.append(count)
            axes.append(taps)
        self.taps = [
            ((slice(None), wy, wx, i, j), (slice(None), y, x))
            for i, (wy, y) in enumerate(axes[0])
            for j, (wx, x) in enumerate(axes[1])
        ]
        self.shape = [shape[0], *self.counts, math.prod(self.sizes) * shape[3]]
        self.split = [shape[0], *self.counts, *self.sizes, shape[3]]


def extract_image_patches(ctx: BuildContext) -> Bound:
    def write(x: Any, out: Any, windows: _Windows) -> None:
        if not windows.whole:
            out.fill(0)
        spread = out.reshape(windows.split)
        for at, source in windows.taps:
            spread[at] = x[source]

    shape = ctx.inputs[0].shape
    if known(shape) and not ctx.fresh:
        fixed = _Windows(ctx, shape)  # type: ignore[arg-type]
        return Bound(lambda x, out: write(x, out, fixed), args=(In(0), Out(0)))
    return bind_writer(
        ctx, lambda x, out: write(x, out, _Windows(ctx, x.shape)), (0,), lambda x: _Windows(ctx, x.shape).shape
    )


def extract_image_patches_grad(ctx: BuildContext) -> Bound:
    dtype = ctx.outputs[0].dtype

    def add_up(g: Any, out: Any, total: Any) -> None:
        windows = _Windows(ctx, out.shape)
        if list(g.shape) != windows.shape:
            raise errors.InvalidArgumentError(
                f"{ctx.node.op}: patches_grad has shape {list(g.shape)}", expected=str(windows.shape)
            )
        total.fill(0)
        spread = g.reshape(windows.split)
        for at, target in windows.taps:
            part = total[target]
            np.add(part, spread[at], part)
        if total is not out:
            np.copyto(out, total, "unsafe")

    if is_half(dtype):
        if known(ctx.outputs[0].shape) and not ctx.fresh:
            scratch = (Scratch(dtypes.float32, tuple(ctx.outputs[0].shape)),)  # type: ignore[arg-type]
            return Bound(add_up, args=(In(1), Out(0), Out(1)), scratch=scratch)
        return bind_writer(
            ctx, lambda s, g, out: add_up(g, out, np.empty(out.shape, np.float32)), (0, 1), lambda s, g: s.tolist()
        )
    return bind_writer(ctx, lambda s, g, out: add_up(g, out, out), (0, 1), lambda s, g: s.tolist())


def _kernel(op: str, build: Any, **more: Any) -> KernelDef:
    return KernelDef(op, "cpu", build, **more)


KERNELS = [
    _kernel("DepthToSpace", depth_to_space),
    _kernel("SpaceToDepth", space_to_depth),
    _kernel(
        "SpaceToBatchND", lambda ctx: _between(ctx, back=False), layout="strided", host=("block_shape", "paddings")
    ),
    _kernel("BatchToSpaceND", lambda ctx: _between(ctx, back=True), layout="strided", host=("block_shape", "crops")),
    _kernel("ExtractImagePatches", extract_image_patches, layout="strided"),
    _kernel("ExtractImagePatchesGrad", extract_image_patches_grad, host=("images_shape",)),
]
