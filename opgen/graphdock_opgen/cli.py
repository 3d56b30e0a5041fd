"""``graphdock opgen``: the generator's commands."""

from __future__ import annotations

from pathlib import Path

import click

from graphdock.errors import GraphdockError
from graphdock_opgen.generate import Result, drift, plan, write
from graphdock_opgen.render import Counts

__all__ = ["command"]

DEFAULT_PACKAGES = ("host/graphdock/ops", "plugins/std/graphdock_std")

_PACKAGES = click.argument("packages", nargs=-1, metavar="[PKGDIR]...", type=click.Path(exists=True, file_okay=False, path_type=Path))


@click.group("opgen", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Make wrappers, OpDefs, gradients, stubs, pages and cases from OpDef YAML.

    PKGDIR is a Python package that holds specs/*.yaml. In graphdock's own repository it defaults to the host's ops and std.
    """


def _packages(packages: tuple[Path, ...]) -> list[Path]:
    if packages:
        return list(packages)
    found = [p for p in map(Path, DEFAULT_PACKAGES) if (p / "specs").is_dir()]
    if not found:
        raise click.UsageError("no PKGDIR given, and this is not the root of graphdock's repository")
    return found


def _plan(directory: Path) -> Result:
    try:
        return plan(directory)
    except GraphdockError as e:
        raise click.ClickException(str(e)) from e


def _show_errors(result: Result) -> None:
    for error in result.errors:
        click.echo(f"error: {error}", err=True)


@command.command()
@_PACKAGES
@click.option("--keep-going", is_flag=True, help="Write the other ops although some have errors.")
@click.option("--counts", "only_counts", is_flag=True, help="Print only how inputs get their gradients; write nothing.")
def generate(packages: tuple[Path, ...], keep_going: bool, only_counts: bool) -> None:
    """Write _gen of each package; files that would not change are left alone.

    Exit 1 when a spec has errors; then nothing of that package is written, unless --keep-going.
    """
    total, faults = Counts(), 0
    for directory in _packages(packages):
        result = _plan(directory)
        total += result.counts
        faults += len(result.errors)
        _show_errors(result)
        if only_counts or (result.errors and not keep_going):
            continue
        changed = write(result)
        click.echo(f"{result.library.package}: {len(result.library.ops)} ops, {len(changed)} of {len(result.files)} files written")
    click.echo(str(total))
    if faults:
        click.echo(f"{faults} errors", err=True)
        raise SystemExit(1)


@command.command()
@_PACKAGES
@click.option("--counts", "only_counts", is_flag=True, help="Print only how inputs get their gradients.")
def check(packages: tuple[Path, ...], only_counts: bool) -> None:
    """Exit 1 when a spec has errors or _gen is not what the specs say."""
    total, bad = Counts(), False
    for directory in _packages(packages):
        result = _plan(directory)
        total += result.counts
        _show_errors(result)
        bad = bad or bool(result.errors)
        if only_counts:
            continue
        for diff in drift(result):
            bad = True
            click.echo(diff)
    click.echo(str(total))
    if bad:
        click.echo("drift or errors: fix the specs, then run `graphdock opgen generate`", err=True)
        raise SystemExit(1)
