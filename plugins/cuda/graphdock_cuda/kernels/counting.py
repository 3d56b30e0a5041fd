"""Counters: a scalar variable that grows by one up to a limit."""

from __future__ import annotations

from graphdock.contracts import KernelDef, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.launch import i64
from graphdock_cuda.work import ErrorWord, Work

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


@kernel("ResourceCountUpTo")
def count_up_to(w: Work) -> None:
    var, limit = w.input(0), w.attr("limit")
    if var.rank:
        raise errors.InvalidArgumentError("a counter must be a scalar", got=str(list(var.shape)))

    def reached(first: int, second: int) -> errors.GraphdockError:
        return errors.OutOfRangeError(f"the counter has reached its limit of {first}")

    kept = source("report.cuh", "counting.cuh", TX=w.ctype(var))
    w.launch(kept, "count_up", 1, 1, var, w.output(()), i64(limit), ErrorWord(reached))
