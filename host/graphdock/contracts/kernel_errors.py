"""Errors of kernels, as the user sees them: with the node, the kernel and the user's own line."""

from __future__ import annotations

import math
import sys

from graphdock.contracts.ir import PlanNode
from graphdock.errors import GraphdockError, InternalError, ResourceExhaustedError, UnimplementedError, also

__all__ = ["kernel_error"]


#: What NumPy says in a ValueError of arrays that it can't have -> what that is.
_OF_NUMPY: dict[str, type[GraphdockError]] = {
    "array is too big": ResourceExhaustedError,
    "aximum allowed dimension exceeded": ResourceExhaustedError,
    "maximum supported dimension": UnimplementedError,
}


def _is_too_large(node: PlanNode) -> bool:
    """Return whether an output has more bytes than a process can address: NumPy calls that a ValueError, without any
    element too.
    """
    sizes = [math.prod(d or 1 for d in v.shape) * v.dtype.size for v in node.outputs if v.shape is not None]
    return any(size > sys.maxsize for size in sizes)


def kernel_error(error: Exception, node: PlanNode, failed: str = "failed") -> GraphdockError:
    """``error`` itself when it is graphdock's own, with the node filled in; else one that names it and the kernel, and is of its
    class too.

    Raise the result ``from error`` when it is another one.
    """
    if isinstance(error, GraphdockError):
        if error.op is None:
            error.op = node.origin
        if error.site is None and error.op == node.origin:
            error.site = node.site
        return error
    kernel = "kernel" if node.decision is None else f"kernel {node.decision.kernel}"
    if isinstance(error, MemoryError) or _is_too_large(node):
        return ResourceExhaustedError(f"{kernel} of {node.op} found no memory: {error}", op=node.origin, site=node.site)
    for text, kind in _OF_NUMPY.items():
        if isinstance(error, ValueError) and text in str(error):
            return kind(f"{kernel} of {node.op}: {error}", op=node.origin, site=node.site)
    message = f"{kernel} of {node.op} {failed}: {type(error).__name__}: {error}"
    return also(InternalError(message, op=node.origin, site=node.site), error)
