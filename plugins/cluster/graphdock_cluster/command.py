"""``graphdock cluster``: a script as the tasks of a cluster, on Ray or on this machine, and what a running one says of itself."""

from __future__ import annotations

import importlib.util
import sys
from concurrent.futures import TimeoutError as Late
from pathlib import Path
from typing import Any

import click
from graphdock.contracts import errors
from graphdock.plugin.host import default_host

from graphdock_cluster.launch import launch, local_places, tasks_of
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
@click.option(
    "--on",
    "where",
    type=click.Choice(["ray", "processes"]),
    help="What starts the tasks: Ray, on its machines, or this command, on this one. Default: Ray where it is installed.",
)
@click.option("--cluster", "name", default="graphdock", show_default=True, help="Name of the cluster on Ray.")
@click.option(
    "--restarts",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="How often a task that fails is begun anew.",
)
@click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(
    ps: int, workers: int, where: str | None, name: str, restarts: int, script: Path, arguments: tuple[str, ...]
) -> None:
    """Run SCRIPT once per task, as graphdock run does.

    Each task finds the cluster in TF_CONFIG, and in the flags --job_name, --task_index, --ps_hosts and --worker_hosts where the
    script names them. What stands behind SCRIPT is passed to all. The tasks of ps are ended when all workers have ended.
    """
    tasks = tasks_of(ps, workers)
    if where is None:
        where = "ray" if importlib.util.find_spec("ray") is not None else "processes"
        why = "" if where == "ray" else ", because Ray is not installed"
        click.echo(f"the tasks run on {'Ray' if where == 'ray' else 'this machine'}{why} (--on ray|processes)")
    if where == "ray":
        places = RoutedTransport(default_host(), "ray").places(name, tasks)
    else:
        if len(tasks) > 1:
            RoutedTransport(default_host()).needs_others()
        places = local_places(tasks)
    for task, place in places.items():
        click.echo(f"[{task}] {place.address}")
    sys.exit(launch(script, places, arguments, click.echo, restarts))


@command.command("status")
@click.argument("target")
def status(target: str) -> None:
    """Say which tasks the cluster of TARGET (grpc://host:port or ray://NAME) has, which answer, and what devices they have."""
    scheme, _, address = target.rpartition("://")
    transport = RoutedTransport(default_host(), scheme or "grpc")
    silent = 0
    own = transport.call(address, "info", {}).result(PATIENCE)
    for name, where in sorted(transport.tasks(address, own).items()):
        said: Any
        try:
            said = transport.call(where, "info", {}).result(PATIENCE)
        except (errors.UnavailableError, Late) as error:
            silent += 1
            click.echo(
                f"{name!s:24} {where:24} does not answer: {getattr(error, 'message', '') or 'it takes too long'}"
            )
            continue
        devices = ", ".join(d.rpartition("/device:")[2] for d in said["devices"])
        click.echo(f"{name!s:24} {where:24} graphdock {said['version']}, {devices}")
    sys.exit(1 if silent else 0)
