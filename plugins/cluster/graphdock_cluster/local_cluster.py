"""``tf.test.create_local_cluster``: servers of workers and parameter servers in this process."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

from graphdock_cluster.server import Server


def create_local_cluster(
    num_workers: int,
    num_ps: int,
    protocol: str = "grpc",
    worker_config: Any = None,
    ps_config: Any = None,
) -> tuple[list[Server], list[Server]]:
    """Start servers of the jobs ``worker`` and ``ps`` on free ports of this machine.

    Args:
      num_workers, num_ps: how many. protocol: as of ``tf.train.Server``.
      worker_config, ps_config: configurations of their sessions.

    Returns:
      The workers and the parameter servers.
    """
    ports = _free_ports(num_workers + num_ps)
    names = [f"localhost:{port}" for port in ports]
    jobs = {"worker": names[:num_workers], "ps": names[num_workers:]}
    jobs = {job: addresses for job, addresses in jobs.items() if addresses}
    workers = [Server(jobs, "worker", n, protocol, worker_config) for n in range(num_workers)]
    return workers, [Server(jobs, "ps", n, protocol, ps_config) for n in range(num_ps)]


def _free_ports(number: int) -> list[int]:
    """Ports that nobody listens on; all are held until the last one is found, so that they differ."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]
