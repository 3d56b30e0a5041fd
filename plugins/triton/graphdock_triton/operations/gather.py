"""Calls for rows of a table by number. Imports no triton."""

from __future__ import annotations

import math

import numpy as np
from graphdock.contracts import KernelRefused, PrepareContext, errors

from graphdock_triton.operations.call import FLOATS, Call, Operation, dims_of, problem_of, type_of

__all__ = ["CALLS"]


def _gather(ctx: PrepareContext) -> Call:
    table, places = dims_of(ctx, 0), dims_of(ctx, 1)
    known = ctx.inputs[2].value
    if known is None:
        raise KernelRefused("the axis is not known")
    axis = int(known)
    if not -len(table) <= axis < len(table):
        raise KernelRefused(f"axis {axis} is out of bounds for rank {len(table)}")
    axis %= len(table)
    if math.prod(table[:axis]) != 1:
        raise KernelRefused(f"it takes rows, and what axis {axis} has are parts of rows")
    height = table[axis]
    dims = {"count": math.prod(places), "height": height, "width": math.prod(table[axis + 1 :])}
    if not dims["count"] * dims["width"]:
        raise KernelRefused("there are no elements")
    types = {"T": type_of(ctx, 0), "I": type_of(ctx, 1)}

    def wrong(number: int, place: int) -> errors.GraphdockError:
        where = "".join(f"[{int(i)}]" for i in np.unravel_index(place, places)) if places else ""
        return errors.InvalidArgumentError(
            f"indices{where} is {number}, which is out of bounds for axis {axis} of size {height}",
            expected=f"from 0 to {height - 1}",
        )

    problem = problem_of(ctx, dims, types, present=frozenset({"fault"}))
    return Call(problem, {"table": 0, "numbers": 1, "y": 3}, fault=wrong)


#: The ops of this module.
CALLS = (Operation("Gather", "gather_rows", _gather, {"T": FLOATS, "Tindices": ("int32", "int64")}),)
