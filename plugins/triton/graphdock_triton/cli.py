"""``graphdock triton``: kernels compiled ahead, for machines that shall not compile."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from graphdock.contracts import CommandTools, KernelRefused, cache_dir

from graphdock_triton.ahead import BACKENDS, Built, build
from graphdock_triton.compiling import Asked

__all__ = ["command"]

_HEAD = ("KERNEL", "ARCH", "REGISTERS", "SPILLS", "SHARED", "FROM")


@click.group("triton")
def command() -> None:
    """Fused kernels, written in Triton."""


@command.command("build", short_help="Compile what programs need, for GPUs that need not be here.")
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@click.option(
    "--arch", "architectures", multiple=True, required=True, help="Such as sm_90; may be given several times."
)
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="The cache folder to fill. Default: graphdock's own.",
)
@click.option(
    "--backends", default=",".join(BACKENDS), show_default=True, help="As of the sessions that will run them."
)
@click.option(
    "--tune", is_flag=True, help="Choose sizes of tiles by what compiled kernels take of the GPU; takes longer."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def build_command(
    tools: CommandTools,
    targets: Sequence[str],
    architectures: Sequence[str],
    folder: Path | None,
    backends: str,
    tune: bool,
    as_json: bool,
) -> None:
    """Compile the fused kernels that steps of programs need, for GPUs that need not be here.

    TARGET is module:name or path/to/file.py:name, as for `graphdock explain`: a placeholder of an unknown size is planned for the
    size that a feed_dict gives it. The initial values of variables are planned too. Take the folder along and set
    GRAPHDOCK_CACHE_DIR to it: with the same Triton, nothing is compiled there.
    """
    if folder is not None:
        os.environ["GRAPHDOCK_CACHE_DIR"] = str(folder.resolve())
    names = [name.strip() for name in backends.split(",")]
    built = []
    for architecture in dict.fromkeys(architectures):
        with _Bar(architecture) as show:
            built.append(build(tools, targets, architecture, names, tune, show))
    if as_json:
        click.echo(json.dumps([dict(zip(map(str.lower, _HEAD), row, strict=True)) for b in built for row in _rows(b)]))
    else:
        _print(tools, built)
    failed = [(asked, error) for b in built for asked, error in b.failed]
    if failed:
        lines = dict.fromkeys(f"{a.job.name} for {a.architecture}: {_first_line(error)}" for a, error in failed)
        raise KernelRefused("some kernels do not compile, other ones take their place:\n" + "\n".join(lines))


def _print(tools: CommandTools, built: Sequence[Built]) -> None:
    rows = [row for b in built for row in _rows(b)]
    if rows:
        click.echo(tools.table(_HEAD, rows, right=("REGISTERS", "SPILLS", "SHARED")))
        click.echo(f"\n{len(rows)} kernels in {cache_dir() / 'triton'}")
        if any(str(row[0]).endswith("*") for row in rows):
            click.echo("* takes any addresses and sizes; without it they are multiples of 16, where that matters")
    else:
        click.echo("these plans have no kernels of Triton")
        for reason in dict.fromkeys(r for b in built for r in b.refused):
            click.echo(f"  refused: {reason}")
    if any(b.unknown for b in built):
        click.echo(
            "sizes are not known: let the target be a pair, (fetches, feed_dict), with feeds of the sizes that it will run with"
        )


def _rows(built: Built) -> list[tuple[Any, ...]]:
    return [_row(asked) for asked in built.asked if asked.cubin.exception() is None]


def _row(asked: Asked) -> tuple[Any, ...]:
    """A kernel; ``*`` stands behind one that takes any addresses."""
    cubin = asked.cubin.result()
    name = asked.job.name + ("" if asked.job.plain != asked.job else "*")
    source = "compiled" if asked.compiled else "cache"
    return name, asked.architecture, cubin.registers, cubin.spills, cubin.shared, source


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


class _Bar:
    """A bar on a terminal; nothing elsewhere."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> Callable[[int, int], None]:
        return self._show

    def _show(self, done: int, asked: int) -> None:
        if self._shown:
            full = 30 * done // max(asked, 1)
            click.echo(f"\r{self._label} [{'#' * full}{'-' * (30 - full)}] {done}/{asked}", nl=False, err=True)

    def __exit__(self, *_: object) -> None:
        if self._shown:
            click.echo(err=True)
