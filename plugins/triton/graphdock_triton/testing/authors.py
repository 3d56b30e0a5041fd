"""Kernels of authors, run by the interpreter and compiled for GPUs that are not here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from graphdock.contracts import dtypes, errors

from graphdock_triton.compiling import check_room
from graphdock_triton.cubin import Cubin, compile_cubin
from graphdock_triton.testing.interpreter import HostTensor, require
from graphdock_triton.work import Tensor, Trace, Work

__all__ = ["compiled", "interpret"]


def _work(trace: Trace, inputs: Sequence[Any], outputs: Sequence[Any], attrs: Mapping[str, Any]) -> Work:
    facts = [[(dtypes.as_dtype(np.dtype(dtype).name), shape) for dtype, shape in side] for side in (inputs, outputs)]
    work = Work(SimpleNamespace(attrs=attrs), *facts)
    trace(work)
    return work


def interpret(
    trace: Trace, inputs: Sequence[np.ndarray], outputs: Sequence[tuple[Any, Sequence[int]]], **attrs: Any
) -> list[np.ndarray]:
    """Return what a kernel computes, in Triton's interpreter. What no program writes is 77.

    Args:
      outputs: dtype and shape of each. attrs: of the op, all of them.

    Raises FailedPreconditionError where this process does not interpret (``TRITON_INTERPRET=1`` before triton is imported).
    """
    require()
    work = _work(trace, [(a.dtype, a.shape) for a in inputs], outputs, attrs)
    made = [np.full(tuple(shape), 77).astype(dtype) for dtype, shape in outputs]
    arrays = [*(np.ascontiguousarray(a) for a in inputs), *made]
    for step in work.steps:
        given = {n: HostTensor(arrays[v.place]) if isinstance(v, Tensor) else v for n, v in step.arguments.items()}
        step.function[step.grid](**given, **step.constants)
    return made


def compiled(
    trace: Trace,
    inputs: Sequence[tuple[Any, Sequence[int]]],
    outputs: Sequence[tuple[Any, Sequence[int]]],
    architecture: str,
    **attrs: Any,
) -> list[Cubin]:
    """A kernel's launches, compiled for an architecture such as ``sm_90``; no GPU is needed.

    Raises KernelRefused where one does not compile, or makes more descriptors than it was said to; InternalError where there is
    none.
    """
    work = _work(trace, inputs, outputs, attrs)
    if not work.steps:
        raise errors.InternalError("nothing is launched for these shapes")
    jobs = [step.job([True] * (len(inputs) + len(outputs))) for step in work.steps]
    made = [compile_cubin(j.function(), j.signature, j.constants, architecture, j.options, j.divisible) for j in jobs]
    for job, cubin in zip(jobs, made, strict=True):
        check_room(job, cubin)
    return made
