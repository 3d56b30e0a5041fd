"""Windows of images, with random numbers around them."""

from __future__ import annotations

from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import Stream, Work, blocks

__all__ = ["KERNELS", "MISSING"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

MISSING = {
    "SampleDistortedBoundingBoxV2": "one small box, drawn of values in host memory for values in host memory: the CPU's to do"
}


@kernel("ExtractGlimpse")
def glimpse(w: Work) -> None:
    images, offsets = w.input("input"), w.input("offsets")
    wanted = [int(d) for d in w.host("size")]
    if min(wanted) < 1:
        raise errors.InvalidArgumentError(f"size {wanted} must be positive")
    batch, height, width, channels = images.shape
    y = w.output((batch, *wanted, channels))
    if not y.size:
        return
    gaussian = not w.attr("uniform_noise")
    noise = not (gaussian and w.attr("noise") == "zero") and images.size > 0
    code = source("block.cuh", "philox.cuh", "glimpse.cuh")
    spread = w.scratch(dtypes.float32, 2 * batch)
    if noise:
        w.launch(code, "image_spread", batch, 256, images, spread, i64(images.size // batch), i32(gaussian))
    w.launch(
        code, "glimpse", blocks(y.size, 256 * 8), 256, Stream(), images, offsets, spread, y, i64(y.size), i64(height),
        i64(width), i64(channels), *map(i64, wanted), i32(bool(w.attr("centered"))), i32(bool(w.attr("normalized"))),
        i32(noise), i32(gaussian),
    )  # fmt: skip
