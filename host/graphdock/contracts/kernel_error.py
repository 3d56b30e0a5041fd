"""What a kernel raises, as the user sees it: with the node, the kernel and the user's own line."""

from __future__ import annotations

from graphdock.contracts.ir import PlanNode
from graphdock.errors import GraphdockError, InternalError

__all__ = ["kernel_error"]


def kernel_error(error: Exception, node: PlanNode, failed: str = "failed") -> GraphdockError:
    """``error`` itself when it is graphdock's own, with the node filled in; else one that names it and the kernel.

    Raise the result ``from error`` when it is another one.
    """
    if isinstance(error, GraphdockError):
        if error.op is None:
            error.op, error.site = node.origin, node.site
        return error
    kernel = node.decision.kernel if node.decision is not None else "host"
    return InternalError(
        f"kernel {kernel} of {node.op} {failed}: {type(error).__name__}: {error}", op=node.origin, site=node.site
    )
