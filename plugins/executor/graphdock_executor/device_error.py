"""Errors of devices, as the user sees them: with the device, and what it was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanNode
from graphdock.errors import DeviceLostError, GraphdockError, InternalError, ResourceExhaustedError

from graphdock_executor.storage import Root

__all__ = ["asking", "device_error", "explain_exhausted"]


def device_error(
    error: Exception, device: Device, asked: str, node: PlanNode | None = None, op: str | None = None
) -> GraphdockError:
    """``error`` itself when it is graphdock's own, with device and node filled in; else one that names them.

    Raise the result ``from error`` when it is another one.
    """
    name = f"{device.info.device_type}:{device.info.index}"
    op, site = (op, None) if node is None else (node.origin, node.site)
    if isinstance(error, GraphdockError):
        if error.op is None and not isinstance(error, DeviceLostError):  # which has no culprit
            error.op, error.site = op, site
        if name not in str(error):
            error.add_note(f"device {name}, asked for: {asked}")
        return error
    if isinstance(error, MemoryError):
        return ResourceExhaustedError(f"device {name} has no memory left for {asked}: {error}", op=op, site=site)
    return InternalError(f"device {name} failed at {asked}: {type(error).__name__}: {error}", op=op, site=site)


@contextmanager
def asking(device: Device, asked: str, node: PlanNode | None = None, op: str | None = None) -> Iterator[None]:
    """Name the device, and what it was asked for, in whatever is raised meanwhile."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever a device raises is raised again with its name
        explained = device_error(error, device, asked, node, op)
        if explained is error:
            raise
        raise explained from error


#: Buffers that are named.
LARGEST = 5


def explain_exhausted(error: ResourceExhaustedError, nbytes: int, roots: Sequence[Root]) -> None:
    """Add what the step's buffers need at their peak, and the largest of them with the nodes that make them."""
    from graphdock.units import in_bytes

    lines = [f"the step's {len(roots)} buffers need {in_bytes(nbytes)} at their peak; the largest:"]
    for root in sorted(roots, key=lambda r: -r.nbytes)[:LARGEST]:
        where = "" if root.node is None else f" of {root.node.origin}"
        line = "" if root.node is None or not root.node.site else f", made at {root.node.site}"
        lines.append(f"  {in_bytes(root.nbytes)}: {root.dtype.name}{list(root.shape)}{where}{line}")
    error.add_note("\n".join(lines))
    error.hint = error.hint or "feed smaller batches, or run fewer steps at once"
