"""Places of what is not zero (Where); other families choose by flags through :func:`chosen`."""

from __future__ import annotations

from graphdock.contracts import KernelDef, dtypes

from graphdock_cuda.compiled import source
from graphdock_cuda.immediate import Run, dynamic_family
from graphdock_cuda.kernels.indices import THREADS, dims_param
from graphdock_cuda.kernels.scan import exclusive_sums
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import Operand, blocks

__all__ = ["KERNELS", "chosen"]

KERNELS: list[KernelDef] = []
dynamic = dynamic_family(KERNELS)

#: As source/choose.cuh has it.
_TILE = 1024


def chosen(r: Run, flags: Operand) -> Operand:
    """The places of the flags that are set, in order, int64. It waits for their number."""
    n = flags.size
    if not n:
        return r.scratch(dtypes.int64, 0)
    tiles = -(-n // _TILE)
    counts = r.scratch(dtypes.int64, tiles + 1)
    r.fill(counts.at(tiles, (1,)))
    made = source("block.cuh", "choose.cuh")
    grid = blocks(tiles, 1, 1 << 20)
    r.launch(made, "count_chosen", grid, THREADS, flags, counts, i64(n), i64(tiles))
    exclusive_sums(r, counts)
    (total,) = r.read(counts.at(tiles, (1,)))
    places = r.scratch(dtypes.int64, int(total))
    if total:
        r.launch(made, "write_chosen", grid, THREADS, flags, counts, places, i64(n), i64(tiles))
    return places


@dynamic("Where")
def where(r: Run) -> None:
    x = r.input("condition")
    made = source("where.cuh", TX=r.ctype(x))
    flags = r.scratch(dtypes.uint8, x.size)
    if x.size:
        r.launch(made, "set_flags", blocks(x.size, THREADS, 1 << 16), THREADS, x, flags, i64(x.size))
    places = chosen(r, flags)
    out = r.output((places.size, x.rank))
    if out.size:
        grid = blocks(places.size, THREADS, 1 << 16)
        r.launch(made, "coordinates", grid, THREADS, places, out, i64(places.size), i32(x.rank), dims_param(r, x.shape))
