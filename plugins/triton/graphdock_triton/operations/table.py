"""The ops that this plugin computes by kernels of its library. Imports no triton."""

from __future__ import annotations

from graphdock_triton.operations import calls, gather, images, softmax
from graphdock_triton.operations.call import Operation

__all__ = ["OPERATIONS"]

#: All of them; each module of this folder has those of one kind.
OPERATIONS: tuple[Operation, ...] = (*calls.CALLS, *softmax.CALLS, *gather.CALLS, *images.CALLS)
