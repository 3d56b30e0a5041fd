"""Clusters of tasks of one process, for the examples that train on several: their servers listen nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import graphdock as tf

__all__ = ["HOST", "local_cluster"]

#: A host whose servers listen nowhere: no plugin reaches other processes.
HOST = tf.Host(block=["ray"])


@contextmanager
def local_cluster(name: str, servers: int, workers: int) -> Iterator[tuple[dict[str, list[str]], list[str]]]:
    """So many tasks of the jobs ps and worker, while the body runs.

    Yields their addresses by job, which ``name`` begins, and the workers' targets.
    """
    names = [f"{name}:{number + 1}" for number in range(servers + workers)]
    cluster = {job: found for job, found in (("ps", names[:servers]), ("worker", names[servers:])) if found}
    made: list[tf.train.Server] = []
    try:
        for job, addresses in cluster.items():
            made += [tf.train.Server(cluster, job, number, host=HOST) for number in range(len(addresses))]
        yield cluster, [server.target for server in made[servers:]]
    finally:
        for server in made:
            server.stop()
