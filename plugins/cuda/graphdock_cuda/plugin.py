"""Entry point of the ``cuda`` plugin. It touches no driver and imports no binding to one."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import DeviceFactory, KernelModule, hookimpl

#: Modules of ``graphdock_cuda.kernels``; each holds a list ``KERNELS``.
FAMILIES: tuple[str, ...] = (
    "activations",
    "arithmetic",
    "array",
    "array_values",
    "attention",
    "bins",
    "bits",
    "candidates",
    "complex_parts",
    "conv",
    "conv_cudnn",
    "core",
    "counting",
    "ctc",
    "decompositions",
    "depthwise",
    "elementwise",
    "fused",
    "gather",
    "histories",
    "image_boxes",
    "image_color",
    "image_random",
    "image_resize",
    "layer_norm",
    "linalg",
    "linear_cross_entropy",
    "matmul",
    "matrix_functions",
    "morphology",
    "normalization",
    "norms",
    "pads",
    "partition",
    "pool",
    "pool_argmax",
    "quantization",
    "random",
    "rearrange",
    "recurrent",
    "reduce",
    "rms_norm",
    "rotary",
    "sampling",
    "scan",
    "scatter",
    "segment",
    "sets",
    "softmax",
    "space",
    "sparse",
    "special",
    "spectral",
    "suppression",
    "top_k",
    "train",
    "unique",
    "views",
    "where",
)


@hookimpl
def register_devices() -> Iterable[DeviceFactory]:
    from graphdock_cuda.factory import CudaFactory

    return [CudaFactory()]


@hookimpl
def register_kernels() -> Iterable[KernelModule]:
    return [KernelModule(f"graphdock_cuda.kernels.{family}") for family in FAMILIES]
