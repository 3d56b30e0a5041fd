"""Windows of images with noise around them."""

from __future__ import annotations

from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.random import stream_of
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


@kernel("ExtractGlimpse")
def extract_glimpse(w: Work) -> None:
    images, offsets = w.input("input"), w.input("offsets")
    wanted = [int(d) for d in w.host("size").reshape(-1)]
    if min(wanted) < 1:
        raise errors.InvalidArgumentError(f"size {wanted} must be positive")
    batch, rows, columns, channels = images.shape
    out = w.output((batch, *wanted, channels))
    if not out.size:
        return
    noise = 0 if w.attr("uniform_noise") else 2 if w.attr("noise") == "zero" else 1
    facts = w.scratch(dtypes.float32, (batch, 2))
    made = source("block.cuh", "philox.cuh", "glimpse.cuh", NOISE=str(noise))
    if noise != 2:
        w.launch(made, "measure", batch, 256, images, facts, i64(rows * columns * channels))
    sizes = (i64(rows), i64(columns), i64(channels), *(i64(d) for d in wanted))
    how = (i32(w.attr("normalized")), i32(w.attr("centered")))
    args = (*stream_of(w), images, offsets, facts, out, i64(out.size), *sizes, *how)
    w.launch(made, "glimpse", blocks(out.size), 256, *args)
