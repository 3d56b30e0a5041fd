"""Parts of a step's memory, for the error of one that does not fit."""

from __future__ import annotations

from collections.abc import Sequence

from graphdock.errors import ResourceExhaustedError
from graphdock.units import in_bytes

from graphdock_executor.storage import Root

__all__ = ["explain_exhausted"]

#: Buffers that are named.
LARGEST = 5


def explain_exhausted(error: ResourceExhaustedError, nbytes: int, roots: Sequence[Root]) -> None:
    """Add what the step's buffers need at their peak, and the largest of them with the nodes that make them."""
    lines = [f"the step's {len(roots)} buffers need {in_bytes(nbytes)} at their peak; the largest:"]
    for root in sorted(roots, key=lambda r: -r.nbytes)[:LARGEST]:
        where = "" if root.node is None else f" of {root.node.origin}"
        line = "" if root.node is None or not root.node.site else f", made at {root.node.site}"
        lines.append(f"  {in_bytes(root.nbytes)}: {root.dtype.name}{list(root.shape)}{where}{line}")
    error.add_note("\n".join(lines))
    error.hint = error.hint or "feed smaller batches, or run fewer steps at once"
