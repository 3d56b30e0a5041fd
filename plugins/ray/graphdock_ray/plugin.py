"""Entry point of the ``ray`` plugin: what carries steps between the processes of a cluster."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import Transport, hookimpl


@hookimpl
def register_transports() -> Iterable[Transport]:
    from graphdock_ray.transport import RayTransport
    from graphdock_ray.zeromq import ZeroMQTransport

    carrier = ZeroMQTransport()
    return [carrier, RayTransport(carrier)]
