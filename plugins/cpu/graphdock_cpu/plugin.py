"""Entry point of the ``cpu`` plugin."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import DeviceFactory, KernelModule, hookimpl

#: Modules of ``graphdock_cpu.kernels``; each holds a list ``KERNELS``.
FAMILIES = (
    "arithmetic",
    "array",
    "bits",
    "candidates",
    "complex",
    "conv",
    "core",
    "depthwise",
    "erf",
    "fused",
    "image_boxes",
    "image_codecs",
    "image_color",
    "image_random",
    "image_resize",
    "counting",
    "custom",
    "ctc",
    "decoding",
    "hashes",
    "indexing",
    "layer_norm",
    "linalg",
    "linear_cross_entropy",
    "math",
    "matmul",
    "morphology",
    "matrix_functions",
    "nn",
    "normalization",
    "optimizers",
    "pool",
    "pool_argmax",
    "pool_max_grad",
    "quantization",
    "random",
    "rearrange",
    "recurrent",
    "reduce",
    "rms_norm",
    "rotary",
    "sampling",
    "scatter",
    "segment",
    "selection",
    "space",
    "suppression",
    "spectral",
    "special_functions",
    "sets",
    "text",
    "text_formats",
    "text_parts",
    "sparse",
    "train",
    "views",
)


@hookimpl
def register_devices() -> Iterable[DeviceFactory]:
    from graphdock_cpu.device import CpuFactory

    return [CpuFactory()]


@hookimpl
def register_kernels() -> Iterable[KernelModule]:
    return [KernelModule(f"graphdock_cpu.kernels.{family}") for family in FAMILIES]
