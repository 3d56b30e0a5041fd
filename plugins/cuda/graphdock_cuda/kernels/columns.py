"""Launches of sums per channel: in as many parts as fill the GPU, which a second kernel joins in order."""

from __future__ import annotations

from graphdock.contracts import dtypes

from graphdock_cuda.compiled import Source
from graphdock_cuda.launch import i64
from graphdock_cuda.work import Arg, Operand, Work

__all__ = ["over_columns", "wide_of"]

#: Elements of a channel that a part has at least.
LEAST = 256


def wide_of(*kinds: dtypes.DType) -> dtypes.DType:
    """Return what elements and statistics are computed in: float64 where one of them is, else float32."""
    return dtypes.float64 if dtypes.float64 in kinds else dtypes.float32


def over_columns(
    w: Work, source: Source, entry: str, args: tuple[Arg, ...], dims: tuple[int, int, int], part_bytes: int
) -> tuple[Operand, int]:
    """Launch ``entry`` with ``_last`` or ``_first`` behind it: ``(*args, parts, sizes)``.

    Args:
      dims: batch, channels and inner; inner is 1 where channels are last. ``part_bytes``: of one accumulator.

    Returns where the parts lie, and how many there are per channel.
    """
    batch, channels, inner = dims
    count = batch * inner
    first = entry.endswith("_first")
    across = channels if first else -(-channels // 32)
    fill = -(-2 * w.multiprocessors // max(across, 1))
    parts = max(1, min(fill, count // LEAST, 1024))
    kept = w.scratch(dtypes.uint8, (parts * channels * part_bytes,))
    sizes = (i64(batch), i64(channels), i64(inner)) if first else (i64(batch), i64(channels))
    w.launch(source, entry, (across, parts), 256, *args, kept, *sizes)
    return kept, parts
