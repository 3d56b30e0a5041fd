"""A kernel of the library run by the interpreter, as its description says it is launched."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from graphdock.contracts import errors

from graphdock_triton.kernels.spec import Config, Kernel, Problem, plan
from graphdock_triton.testing.interpreter import HostTensor, require

__all__ = ["DTYPES", "interpret"]

#: Element types as NumPy's.
DTYPES: dict[str, Any] = {
    "fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32, "i64": np.int64,
    "u32": np.uint32, "u64": np.uint64, "i1": np.bool_, "u8": np.uint8,
}  # fmt: skip


def interpret(kernel: Kernel, problem: Problem, config: Config | None = None, **values: Any) -> None:
    """Run every launch of the kernel, in place in the arrays of ``values``; those of dims come from the problem.

    Scratch memory begins as NaN or the largest integer. Raises FailedPreconditionError where nothing is interpreted; InternalError
    where an array is missing, or has not the type that is declared.
    """
    require()
    planned = plan(kernel, problem, config)
    arrays = dict(values)
    for name, (kind, count) in planned.scratch.items():
        dtype = np.dtype(DTYPES[kind])
        fill = np.iinfo(dtype).max if dtype.kind in "iu" else np.nan
        arrays[name] = np.full(count, fill, dtype)
    for launch in planned.launches:
        given = {}
        for name in launch.arguments:
            kind = launch.signature[name]
            got = arrays.get(name, launch.dims.get(name))
            if got is None:
                raise errors.InternalError(f"{kernel.name}: no value for {name}")
            if kind.startswith("*"):
                if got.dtype != DTYPES[kind[1:]]:
                    raise errors.InternalError(f"{kernel.name}: {name} is {got.dtype}, declared {kind}")
                given[name] = HostTensor(got)
            else:
                given[name] = got
        if min(launch.grid) > 0:
            launch.function[launch.grid](**given, **launch.constants)
