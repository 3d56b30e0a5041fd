"""``graphdock cluster``: the tasks of a cluster on this machine, and what a running one says of itself."""

from __future__ import annotations

import sys
from concurrent.futures import TimeoutError as Late
from pathlib import Path
from typing import Any

import click
from graphdock.contracts import errors
from graphdock.plugin.host import default_host

from graphdock_cluster.launch import addresses_of, launch
from graphdock_cluster.transports import RoutedTransport

__all__ = ["command"]

#: Seconds that a task has to say what it is.
PATIENCE = 5.0


@click.group()
def command() -> None:
    """Run a script as the tasks of a cluster; look at one that runs."""


@command.command("run", context_settings={"ignore_unknown_options": True})
@click.option("--ps", default=1, show_default=True, type=click.IntRange(0), help="Tasks of the job ps.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1), help="Tasks of the job worker.")
@click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(ps: int, workers: int, script: Path, arguments: tuple[str, ...]) -> None:
    """Run SCRIPT once per task on this machine, as graphdock run does.

    Each task finds the cluster in TF_CONFIG, and in the flags --job_name, --task_index, --ps_hosts and --worker_hosts where the
    script names them. What stands behind SCRIPT is passed to all. The tasks of ps are ended when all workers have ended.
    """
    if ps + workers > 1:
        RoutedTransport(default_host()).needs_others()
    cluster = addresses_of(ps, workers)
    for job, tasks in cluster.items():
        for index, address in enumerate(tasks):
            click.echo(f"[/job:{job}/task:{index}] {address}")
    sys.exit(launch(script, cluster, arguments, click.echo))


@command.command("status")
@click.argument("target")
def status(target: str) -> None:
    """Say which tasks the cluster of TARGET (grpc://host:port) has, which answer, and what devices they have."""
    address = target.partition("://")[2] or target
    transport = RoutedTransport(default_host())
    cluster = transport.call(address, "info", {}).result(PATIENCE)["cluster"]
    silent = 0
    for name, where in cluster.items():
        said: Any
        try:
            said = transport.call(where, "info", {}).result(PATIENCE)
        except (errors.UnavailableError, Late) as error:
            silent += 1
            click.echo(f"{name:24} {where:24} does not answer: {getattr(error, 'message', 'it takes too long')}")
            continue
        devices = ", ".join(d.rpartition("/device:")[2] for d in said["devices"])
        click.echo(f"{name:24} {where:24} graphdock {said['version']}, {devices}")
    sys.exit(1 if silent else 0)
