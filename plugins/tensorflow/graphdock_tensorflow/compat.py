"""``graphdock compat [SCRIPT]...``: which of TensorFlow 1's names are here, and which of them a program uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import click
from graphdock.contracts.command_line.output import count, json_option, print_json, table
from graphdock.errors import InvalidArgumentError

from graphdock_tensorflow.behaviours import Behaviour, behaviours_of
from graphdock_tensorflow.catalogue import Entry, catalogue, counts, entry, renamed
from graphdock_tensorflow.rewrite import rewritten
from graphdock_tensorflow.run.twins import public_twin, run_answers
from graphdock_tensorflow.run.twins import table as table_of_twins
from graphdock_tensorflow.script import Use, attributes, uses

__all__ = ["command"]

_WORDS = {
    "here": "here",
    "planned": "planned",
    "refused": "refused",
    "renamed": "renamed",
    "inside": "not public",
    "unknown": "not TensorFlow's",
}
#: Packages of TensorFlow that programs import from though they are none of its API -> what they are, and what to write.
_INSIDES = {
    "python": (
        "the inside of TensorFlow",
        "what is public of it stands below tf, such as tf.layers.Dense or tf.Operation",
    ),
    "core": ("the inside of TensorFlow", "the messages that are public stand below tf, such as tf.GraphDef"),
    "examples": ("no part of TensorFlow's API", "`graphdock run` answers it, from the files of MNIST"),
}


@click.command(
    help="Say which names of TensorFlow 1 the SCRIPTS use that are not here, with the reason and what to write instead. A folder "
    "means every .py file below it; nothing is run. Then say what of that is here and behaves otherwise than in TensorFlow. "
    "Without SCRIPTS, count the public names of TensorFlow 1.15's core API. Exit "
    "status 1: a name is missing."
)
@click.argument("scripts", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--all", "every", is_flag=True, help="Without SCRIPTS: list every name that is not here.")
@click.option(
    "--rewrite", is_flag=True, help="Show a diff that imports graphdock, with today's names, and write it when told to."
)
@click.option("--yes", is_flag=True, help="With --rewrite: write without asking.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, scripts: tuple[Path, ...], every: bool, rewrite: bool, yes: bool, as_json: bool
) -> None:
    if rewrite and (as_json or not scripts):
        raise click.UsageError("--rewrite shows diffs of SCRIPTS; --json has no place for them", ctx)
    if not scripts:
        _the_api(every, as_json)
        return
    files = [f for s in scripts for f in (sorted(s.rglob("*.py")) if s.is_dir() else [s])]
    rows, unread = [], []
    differing: dict[Behaviour, list[tuple[Path, Use]]] = {}
    for file in files:
        try:
            found = uses(file)
            rows += [(file, use.name, use.line, _entry(use.name)) for use in found]
            for use in [*found, *(attributes(file) if found else ())]:
                for behaviour in behaviours_of(use):
                    differing.setdefault(behaviour, []).append((file, use))
        except InvalidArgumentError as error:
            unread.append((file, str(error.message)))
    if rewrite:
        for file in files:
            if all(file != other for other, _ in unread):
                _rewrite(file, yes)
    names = {name: known for _, name, _, known in rows if not _is_space(name)}
    missing = [(f, n, line, e) for f, n, line, e in rows if n in names and (e is None or e.status != "here")]
    if as_json:
        print_json(
            {
                "names": len(names),
                "here": sum(e is not None and e.status == "here" for e in names.values()),
                "missing": [
                    {"file": str(f), "line": line, "name": n, **_said(n, e), "run": _by_run(n)}
                    for f, n, line, e in missing
                ],
                "differing": [
                    {"file": str(file), "line": use.line, "name": use.name, "here": row.here, "why": row.why}
                    for row, places in differing.items()
                    for file, use in places
                ],
                "unread": [{"file": str(file), "why": why} for file, why in unread],
            }
        )
    else:
        _report(files, names, missing, differing)
        for _, why in unread:
            click.echo(f"not read: {why}")
    ctx.exit(1 if missing or unread else 0)


def _entry(name: str) -> Entry | None:
    """Return what is known of a use, which may go on below a name: ``train.Saver.save`` is one of ``train.Saver``."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        found = entry(".".join(parts[:length]))
        if found is not None:
            return found
    return None


def _rewrite(file: Path, yes: bool) -> None:
    """Show the diff of a file, and write it when told to."""
    before = file.read_bytes().decode("utf-8")
    after = rewritten(before)
    if after == before:
        return
    name = str(file)
    lines = unified_diff(before.splitlines(True), after.splitlines(True), name, name)
    click.echo("".join(lines))
    if yes or click.confirm(f"Write {name}?"):
        file.write_bytes(after.encode("utf-8"))


def _by_run(name: str) -> str | None:
    """The command by which a program has a name that is not here as it stands; None where there is none."""
    if run_answers(name) or name.startswith("examples.tutorials.mnist"):
        return "graphdock run"
    return "graphdock run --before-1.0" if name in renamed() or name in table_of_twins()["before"] else None


def _is_space(name: str) -> bool:
    return name not in catalogue() and any(n.startswith(name + ".") for n in catalogue())


def _said(name: str, found: Entry | None) -> dict[str, Any]:
    package = name.partition(".")[0]
    within = package in ("python", "core") or (package == "contrib" and "python" in name.split("."))
    twin = public_twin(name) if within else None
    if within and (twin is not None or run_answers(name)):
        instead = "`graphdock run` answers it" if twin is None else f"tf.{twin}"
        inside = name[: name.index("python") + len("python")] if package == "contrib" else package
        return {"status": "inside", "why": f"tensorflow.{inside} is {_INSIDES['python'][0]}", "instead": instead}
    if found is None:
        if package in _INSIDES:
            what, instead = _INSIDES[package]
            return {"status": "inside", "why": f"tensorflow.{package} is {what}", "instead": instead}
        return {"status": "unknown", "why": "TensorFlow 1.15's core API has no such name", "instead": None}
    return {"status": found.status, "why": found.why, "instead": found.instead}


def _report(
    files: Sequence[Path],
    names: dict[str, Entry | None],
    missing: Sequence[Any],
    differing: Mapping[Behaviour, Sequence[tuple[Path, Use]]],
) -> None:
    by_name: dict[str, list[str]] = {}
    for file, name, line, _ in missing:
        by_name.setdefault(name, []).append(f"{file}:{line}")
    lines = []
    for name, places in sorted(by_name.items(), key=lambda item: (-len(item[1]), item[0])):
        said = _said(name, names[name])
        why = said["why"] + (f": {said['instead']}" if said["instead"] else "")
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        lines.append((f"tf.{name}", _WORDS[said["status"]], places[0] + more, why))
    if lines:
        click.echo(table(("NAME", "STATUS", "WHERE", "WHY, AND WHAT INSTEAD"), lines))
    if differing:
        click.echo("What is here and behaves otherwise than in TensorFlow:")
    for row, found in differing.items():
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        click.echo(f"  {row.what}  ({found[0][0]}:{found[0][1].line}{more}): {row.here}")
    here = sum(e is not None and e.status == "here" for e in names.values())
    verb = "uses" if len(files) == 1 else "use"
    answered = Counter(_by_run(name) for name in by_name)
    by_run = "".join(f" `{how}` answers {answered[how]} of these." for how in sorted(filter(None, answered)))
    asked = f"{count(len(files), 'file')} {verb} {count(len(names), 'name')} of TensorFlow"
    click.echo(f"{asked}: {here} here, {len(names) - here} not.{by_run}")


def _the_api(every: bool, as_json: bool) -> None:
    missing = [e for e in catalogue().values() if e.status != "here"]
    if as_json:
        print_json(
            {**counts(), "names": {e.name: {"status": e.status, "group": e.group} for e in catalogue().values()}}
        )
        return
    if every:
        click.echo(table(("NAME", "STATUS", "WHY"), [(f"tf.{e.name}", e.status, e.why) for e in missing]))
    else:
        groups = Counter((e.status, e.group, e.why) for e in missing)
        rows = [
            (number, status, group, why)
            for (status, group, why), number in sorted(groups.items(), key=lambda i: (i[0][0], -i[1]))
        ]
        click.echo(table(("NAMES", "STATUS", "GROUP", "WHY"), rows, right=("NAMES",)))
    of = counts()
    click.echo(
        f"Of {count(len(catalogue()), 'public name')} of TensorFlow 1.15's core API {of['here']} are here, {of['planned']} are "
        f"planned, {of['refused']} refused."
    )
