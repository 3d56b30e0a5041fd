"""Slices parted by numbers, and put together where indices say."""

from __future__ import annotations

import math

from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.immediate import Run, dynamic_family
from graphdock_cuda.kernel import PLAIN
from graphdock_cuda.kernels.gather import gather_rows
from graphdock_cuda.kernels.indices import THREADS, bad_index, sorted_rows, starts_of, write_last
from graphdock_cuda.kernels.reduce import multiprocessors
from graphdock_cuda.launch import i64
from graphdock_cuda.work import blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
dynamic = dynamic_family(KERNELS)


@dynamic("DynamicPartition", types={"T": PLAIN})
def dynamic_partition(r: Run) -> None:
    """A stable sort by partition, then one copy for each."""
    data, partitions, count = r.input("data"), r.input("partitions"), int(r.attr("num_partitions"))
    if data.shape[: partitions.rank] != partitions.shape:
        raise errors.InvalidArgumentError(
            f"the shape {list(data.shape)} of data does not begin with the shape {list(partitions.shape)} of partitions"
        )
    rest, n = data.shape[partitions.rank :], partitions.size
    error = bad_index(partitions.shape, [count], "partitions", ["partitions"])
    rows = sorted_rows(r, partitions, [count], 1, error)
    starts = [int(s) for s in r.read(starts_of(r, rows.keys, count))]
    assert rows.order is not None
    for number in range(count):
        begin, end = starts[number], starts[number + 1]
        out = r.output((end - begin, *rest), number)
        shape = (1, end - begin, math.prod(rest))
        gather_rows(r, data, rows.order.at(begin, (end - begin,)), out, shape, [n], error)


@dynamic("DynamicStitch", types={"T": PLAIN})
def dynamic_stitch(r: Run) -> None:
    """Of several slices for one row the last one stays, of the last tensor that has one."""
    indices, data = r.named("indices"), r.named("data")
    smallest, largest = r.scratch(dtypes.int64, len(indices)), r.scratch(dtypes.int64, len(indices))
    r.fill(smallest, 0x7F)
    r.fill(largest, 0xFF)
    made = source("extremes.cuh", INDEX="i32")
    for i, x in enumerate(indices):
        if x.size:
            grid = blocks(x.size, THREADS, 4 * multiprocessors(r))
            r.launch(made, "extremes", grid, THREADS, x, smallest.at(i, (1,)), largest.at(i, (1,)), i64(x.size))
    lowest, highest = r.read(smallest).tolist(), r.read(largest).tolist()
    for low in lowest:
        if low < 0:
            raise errors.InvalidArgumentError(f"indices hold {low}", expected="0 or more")
    rest = data[0].shape[indices[0].rank :]
    for x, values in zip(indices, data, strict=True):
        if values.shape != (*x.shape, *rest):
            raise errors.InvalidArgumentError(f"data have shape {list(values.shape)}", expected=str([*x.shape, *rest]))
    count = max(highest) + 1
    out = r.output((count, *rest))
    r.fill(out)
    width = math.prod(rest)
    for x, values in zip(indices, data, strict=True):
        if x.size:
            rows = sorted_rows(r, x, [count], 1, bad_index(x.shape, [count]))
            write_last(r, values.reshaped(values.size), rows, out, width)
