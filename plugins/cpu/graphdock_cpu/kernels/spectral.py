"""Fourier transforms by ``numpy.fft`` into the output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, errors

__all__ = ["KERNELS"]

#: What ``numpy.fft`` makes of it; an output of another type is not for it to write.
_RESULT = {np.dtype(a): np.dtype(b) for a, b in (("f4", "c8"), ("f8", "c16"), ("c8", "f4"), ("c16", "f8"))}


def _transform(function: Callable[..., Any], rank: int) -> Callable[[BuildContext], Callable[..., Any]]:
    """Of complex numbers over the last ``rank`` axes; nothing is done where there is nothing."""
    axes = tuple(range(-rank, 0))

    def build(ctx: BuildContext) -> Callable[..., Any]:
        def into(x: np.ndarray, out: np.ndarray) -> None:
            if x.size:
                function(x, None, axes, None, out)

        def fresh(x: np.ndarray) -> np.ndarray:
            return np.asarray(function(x, None, axes)) if x.size else np.empty(x.shape, x.dtype)

        return fresh if ctx.fresh else into

    return build


def _real_transform(
    function: Callable[..., Any], rank: int, half: bool
) -> Callable[[BuildContext], Callable[..., Any]]:
    """Between real numbers and half of their spectrum: ``fft_length`` cuts and fills up."""
    axes = tuple(range(-rank, 0))

    def build(ctx: BuildContext) -> Callable[..., Any]:
        dtype = ctx.outputs[0].dtype.np

        def shape_of(x: np.ndarray, lengths: list[int]) -> tuple[int, ...]:
            if min(lengths) < 0:
                raise errors.InvalidArgumentError("fft_length must not be negative", got=str(lengths))
            last = lengths[-1] // 2 + 1 if half and lengths[-1] else lengths[-1]
            return (*x.shape[:-rank], *lengths[:-1], last)

        def into(x: np.ndarray, length: np.ndarray, out: np.ndarray) -> None:
            if not out.size:
                return
            lengths = length.tolist()
            x = x[..., *(slice(n) for n in lengths[:-1]), :]
            if not x.size:
                out[...] = 0
            elif list(x.shape[-rank:-1]) == lengths[:-1] and out.dtype == _RESULT[x.dtype]:
                function(x, lengths, axes, None, out)
            else:  # numpy.fft has the other axes done in the output too, before they have its size
                out[...] = function(x, lengths, axes)

        def fresh(x: np.ndarray, length: np.ndarray) -> np.ndarray:
            out = np.empty(shape_of(x, length.tolist()), dtype)
            into(x, length, out)
            return out

        return fresh if ctx.fresh else into

    return build


def _kernels() -> list[KernelDef]:
    kernels = []
    for rank, suffix in ((1, ""), (2, "2D"), (3, "3D")):
        for name, function in (("FFT", np.fft.fftn), ("IFFT", np.fft.ifftn)):
            kernels.append(KernelDef(name + suffix, "cpu", _transform(function, rank), layout="strided"))
        for name, real_function in (("RFFT", np.fft.rfftn), ("IRFFT", np.fft.irfftn)):
            build = _real_transform(real_function, rank, name == "RFFT")
            kernels.append(KernelDef(name + suffix, "cpu", build, layout="strided", host=("fft_length",)))
    return kernels


KERNELS = _kernels()
