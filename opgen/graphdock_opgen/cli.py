"""``graphdock opgen``: the generator's commands."""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path

import click
from graphdock.errors import GraphdockError, OpSpecError

from graphdock_opgen.check_facts import check_facts
from graphdock_opgen.compare import at_revision, compare, of_directory
from graphdock_opgen.counts import Counts, decisions
from graphdock_opgen.expr import FollowingError
from graphdock_opgen.generate import Result, drift, plan, write
from graphdock_opgen.model import json_schema
from graphdock_opgen.pages import INDEX, render_index, render_pages
from graphdock_opgen.stubs import missing_functions, plan_stubs, signature_errors, write_stubs
from graphdock_opgen.writing_group import WritingGroup

__all__ = ["command"]

DEFAULT_PACKAGES = ("host/graphdock/ops", "plugins/std/graphdock_std")

_PACKAGES = click.argument(
    "packages", nargs=-1, metavar="[PKGDIR]...", type=click.Path(exists=True, file_okay=False, path_type=Path)
)


@click.group("opgen", cls=WritingGroup, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Make wrappers, OpDefs, gradients, stubs and pages from OpDef YAML.

    PKGDIR is a Python package that holds specs/*.yaml. It defaults to the one below ./src or here; in graphdock's own
    repository, to the host's ops and std.
    """


def _packages(packages: tuple[Path, ...]) -> list[Path]:
    if packages:
        return list(packages)
    own = [p for p in map(Path, DEFAULT_PACKAGES) if (p / "specs").is_dir()]
    return own or [_the_package("specs")]


def _the_package(holds: str) -> Path:
    """The one package below ./src or here that holds a file or folder of that name."""
    found = sorted({p.parent.resolve() for pattern in ("src/*", "*", ".") for p in Path().glob(f"{pattern}/{holds}")})
    if len(found) == 1:
        return Path(os.path.relpath(found[0]))
    shown = ": " + ", ".join(os.path.relpath(p) for p in found) if found else ""
    raise click.UsageError(
        f"no PKGDIR given, and {len(found) or 'no'} packages below ./src or here hold {holds}{shown}"
    )


def _plan(directory: Path) -> Result:
    try:
        return plan(directory)
    except GraphdockError as e:
        raise click.ClickException(str(e)) from e


def _show_undecided(result: Result) -> None:
    """Name the inputs that have no gradient: there must be no derivative, or somebody has to write it."""
    for kind in ("none", "todo"):
        names = [name for name, k in decisions(result.library) if k == kind]
        if names:
            click.echo(f"{result.library.package}: {kind}: {', '.join(names)}")


def _show_errors(result: Result) -> None:
    """Show each fault where it is; of what only uses an op with a fault, the number."""
    following = [error for error in result.errors if isinstance(error, FollowingError)]
    for error in result.errors:
        if error not in following or len(following) == len(result.errors):
            click.echo(f"error: {error}", err=True)
    if 0 < len(following) < len(result.errors):
        click.echo(
            f"and {len(following)} formulas that use what has a fault: they are checked when it has none", err=True
        )


@command.command(short_help="Write _gen, and stubs of what is yours to write.")
@_PACKAGES
@click.option("--keep-going", is_flag=True, help="Write the other ops although some have errors.")
@click.option("--counts", "only_counts", is_flag=True, help="Only print how inputs get their gradients; write nothing.")
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
        if only_counts:
            _show_undecided(result)
        if only_counts or (result.errors and not keep_going):
            continue
        changed = write(result)
        library = result.library
        click.echo(f"{library.package}: {len(library.ops)} ops, {len(changed)} of {len(result.files)} files written")
        for addition in plan_stubs(result.library):
            write_stubs([addition])
            where = os.path.relpath(addition.path)
            click.echo(f"{where}: appended {', '.join(addition.names)}: yours to fill in")
    click.echo(str(total))
    if faults:
        click.echo(f"{faults} errors", err=True)
        raise SystemExit(1)


@command.command(short_help="Exit 1 when _gen is not what the specs say.")
@_PACKAGES
@click.option("--counts", "only_counts", is_flag=True, help="Print only how inputs get their gradients.")
def check(packages: tuple[Path, ...], only_counts: bool) -> None:
    """Exit 1 when a spec has errors, _gen is not what the specs say, or a reference contradicts what its op declares."""
    total, bad = Counts(), False
    for directory in _packages(packages):
        result = _plan(directory)
        total += result.counts
        _show_errors(result)
        bad = bad or bool(result.errors)
        if only_counts:
            _show_undecided(result)
            continue
        if result.errors:
            continue  # what is left out for an error would be drift of every file
        drifted = drift(result)
        for text in drifted:
            bad = True
            click.echo(text)
        faults: list[OpSpecError] = []
        signature_errors(result.library, faults.append)
        missing_functions(result.library, faults.append)
        if not (drifted or faults):
            faults += check_facts(result.library)
        for addition in plan_stubs(result.library):
            bad = True
            click.echo(f"{addition.path}: lacks {', '.join(addition.names)}")
        for fault in faults:
            bad = True
            click.echo(f"error: {fault}", err=True)
    click.echo(str(total))
    if bad:
        click.echo("drift or errors: fix the specs, then run `graphdock opgen generate`", err=True)
        raise SystemExit(1)


@command.command(short_help="Write reference pages of ops, as Markdown.")
@_PACKAGES
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to write into, a folder per package and a page per spec; it is made.",
)
def pages(packages: tuple[Path, ...], out: Path) -> None:
    """Write a reference page for each spec of each package, OUT/PACKAGE/SPEC.md, and one that lists all ops.

    Exit 1 when a spec has errors; then nothing of that package is written.
    """
    faults = 0
    for directory in _packages(packages):
        result = _plan(directory)
        faults += len(result.errors)
        _show_errors(result)
        if not result.errors:
            made = {**render_pages(result.library), INDEX: render_index(result.library)}
            folder = out / result.library.package
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in made.items():
                (folder / name).write_text(text, encoding="utf-8", newline="\n")
            click.echo(f"{result.library.package}: {len(made)} pages in {folder}")
    if faults:
        raise SystemExit(1)


@command.command(short_help="Say which changes of specs break programs.")
@click.argument("package", metavar="PKGDIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--against", default="HEAD", metavar="REVISION", help="The git revision to compare with. Default: HEAD.")
@click.option(
    "--old",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Compare with this package folder instead of a revision.",
)
def diff(package: Path, against: str, old: Path | None) -> None:
    """Say what changed in PKGDIR's specs, and whether it breaks programs and stored graphs.

    Exit 1 when an op changed in a breaking way and kept its version, or is gone without having been deprecated.
    """
    try:
        changes = compare(of_directory(old) if old else at_revision(package, against), of_directory(package))
    except GraphdockError as e:
        raise click.ClickException(str(e)) from e
    for change in changes:
        click.echo(str(change))
    breaking = [c for c in changes if c.breaking]
    loose = [c for c in breaking if not c.versioned]
    click.echo(f"{len(breaking)} breaking, {len(changes) - len(breaking)} compatible")
    kept, gone = sorted({c.op for c in loose if not c.removed}), sorted({c.op for c in loose if c.removed})
    if kept:
        click.echo(f"raise the version of: {', '.join(kept)}", err=True)
    if gone:
        click.echo(
            f"keep for a release, with deprecated: REASON, what programs and files may use: {', '.join(gone)}", err=True
        )
    if loose:
        raise SystemExit(1)


@command.command()
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file instead of printing it."
)
def schema(out: Path | None) -> None:
    """The JSON Schema of OpDef YAML, for editors.

    VS Code: put `# yaml-language-server: $schema=FILE` on the first line of a spec.
    """
    text = json.dumps(json_schema(), indent=2, sort_keys=True) + "\n"
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8", newline="\n")


@command.command(short_help="Write what the code registers into the manifest.")
@click.argument(
    "package", required=False, metavar="[PKGDIR]", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--module", help="The entry point's module. Default: PKGDIR's package, then .plugin.")
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Write nothing; exit 1 when the manifest is not what the code registers.",
)
def manifest(package: Path | None, module: str | None, only_check: bool) -> None:
    """Write the ops and kernels that PKGDIR's code registers into its graphdock-plugin.toml.

    PKGDIR defaults to the package below ./src or here. Only what stands below the marker line is replaced.
    """
    from graphdock_opgen.manifest import FILE_NAME, updated  # needs the contracts, which the other commands do without

    try:
        path, before, after = updated(package or _the_package(FILE_NAME), module)
    except GraphdockError as e:
        raise click.ClickException(str(e)) from e
    if before == after:
        click.echo(f"{path}: up to date")
    elif only_check:
        click.echo(
            "".join(
                difflib.unified_diff(
                    before.splitlines(True), after.splitlines(True), f"{path} (on disk)", f"{path} (from the code)", n=1
                )
            )
        )
        raise SystemExit(1)
    else:
        path.write_text(after, encoding="utf-8", newline="\n")
        click.echo(f"{path}: written")


@command.command(short_help="Write the C header of an op, for native kernels.")
@click.argument("ops", nargs=-1, metavar="[OP]...")
@click.option(
    "--package",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="An import package, installed or not, whose ops may be meant. Without OP: those that it has kernels for.",
)
@click.option(
    "--out",
    default=".",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to write into; it is made.",
)
@click.option(
    "--check", "only_check", is_flag=True, help="Write nothing; exit 1 when a header is not what the op says."
)
def header(ops: tuple[str, ...], package: Path | None, out: Path, only_check: bool) -> None:
    """Write a header for each OP, such as so3.TensorProduct: its arguments and attributes by name, for a kernel in C or C++."""
    if not ops and package is None:
        raise click.UsageError("name an OP, or a package with --package")
    from graphdock_opgen.header import find_opdef, header_name, ops_with_kernels, render_header  # as manifest does

    stale = False
    try:
        if package is not None:
            ops = ops or tuple(ops_with_kernels(package))
        texts = {op: render_header(find_opdef(op, package)) for op in ops}
    except GraphdockError as e:
        raise click.ClickException(str(e)) from e
    for op, text in texts.items():
        path = out / header_name(op)
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            click.echo(f"{path}: up to date")
        elif only_check:
            stale = True
            click.echo(f"{path}: not what {op} says")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            click.echo(f"{path}: written")
    if stale:
        raise SystemExit(1)
