"""Counters: a scalar variable that grows by one up to a limit."""

from __future__ import annotations

from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

__all__ = ["KERNELS"]


def _count_up_to(ctx: BuildContext) -> Bound:
    limit = ctx.attr("limit")

    def compute(var: Any) -> Any:
        if var.ndim:
            raise errors.InvalidArgumentError("a counter must be a scalar", got=str(list(var.shape)))
        if var >= limit:
            raise errors.OutOfRangeError(f"the counter has reached its limit of {limit}")
        before = var.copy()
        np.add(var, 1, var)
        return before

    return Bound(compute)


KERNELS = [KernelDef("ResourceCountUpTo", "cpu", _count_up_to, modes=("fresh",))]
