"""The sum of rows that share an id, for many long rows: by runs of a stable sort instead of an addition per row.

Rows of one id are added in their own order, so the bits are those of a loop over the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["pays", "sum_rows"]

#: Elements, and elements of a row, from which on sorting is cheaper than ``numpy.add.at``: 2 to 4 times at 2048 rows of 256.
_ELEMENTS, _WIDTH = 1 << 16, 64
#: Runs longer than this are reduced one by one; shorter ones all together, by the rank of a row in its run.
_LONG_RUN = 8


def pays(count: int, width: int) -> bool:
    """Return whether ``count`` rows of ``width`` elements are worth a sort."""
    return width >= _WIDTH and count * width >= _ELEMENTS


def sum_rows(rows: Any, ids: Any, out: Any, first: Any, second: Any) -> None:
    """``out[ids[i]] += rows[i]`` where ``out`` holds zeros.

    Args:
      rows: ``[n, width]``, n at least 1.
      ids: n row numbers, all within bounds.
      first, second: buffers like ``rows``.
    """
    order = ids.argsort(kind="stable")
    by_id = ids.take(order)
    begins = np.flatnonzero(np.concatenate(([True], by_id[1:] != by_id[:-1])))
    counts = np.diff(begins, append=ids.size)
    long = counts > _LONG_RUN
    for begin, count in zip(begins[long].tolist(), counts[long].tolist(), strict=True):
        run = first[:count]
        rows.take(order[begin : begin + count], 0, run, "clip")
        np.add.reduce(run, 0, out.dtype, out[by_id[begin]])
    begins, counts = begins[~long], counts[~long]
    for rank in range(int(counts.max(initial=0))):
        places = begins[counts > rank] + rank
        targets, added = by_id.take(places), first[: places.size]
        rows.take(order.take(places), 0, added, "clip")
        if rank:
            so_far = second[: places.size]
            out.take(targets, 0, so_far, "clip")
            np.add(so_far, added, added)
        out[targets] = added
