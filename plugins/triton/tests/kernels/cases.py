"""Problems that people have, for which every kernel of the library is compiled. The first of each kernel is in the quick tests."""

from __future__ import annotations

from collections.abc import Iterator

from graphdock_triton.kernels import norms
from graphdock_triton.kernels.spec import Kernel, Problem

__all__ = ["cases"]


def cases() -> Iterator[tuple[str, Kernel, Problem]]:
    """A name that is kept, a kernel, and a problem."""
    yield from _norms()


def _norms() -> Iterator[tuple[str, Kernel, Problem]]:
    forward = frozenset({"residual", "total", "gamma", "beta", "mean", "inverse"})
    backward = frozenset({"gamma", "mean", "dtotal", "dgamma", "dbeta"})
    for kind, width in (("bf16", 1024), ("fp32", 96), ("fp16", 4096), ("fp32", 8192), ("bf16", 16384), ("bf16", 50000)):
        dims, types = {"rows": 8192, "width": width}, {"T": kind, "U": "fp32"}
        yield f"norm {kind} {width}", norms.norm, Problem(dims, types, present=forward)
        yield f"norm_grad {kind} {width}", norms.norm_grad, Problem(dims, types, present=backward)
    rms = Problem(
        {"rows": 8192, "width": 4096}, {"T": "bf16", "U": "bf16"}, {"RMS": True}, frozenset({"gamma", "inverse"})
    )
    yield "norm rms bf16 4096", norms.norm, rms
    rms = Problem(
        {"rows": 8192, "width": 4096}, {"T": "bf16", "U": "bf16"}, {"RMS": True}, frozenset({"gamma", "dgamma"})
    )
    yield "norm_grad rms bf16 4096", norms.norm_grad, rms
