"""``graphdock new``: starts a plugin package, or an op in one."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from graphdock.errors import AlreadyExistsError, GraphdockError, InvalidArgumentError, NotFoundError

__all__ = ["command"]

_PLUGIN = re.compile(r"[a-z][a-z0-9_]*")
#: Plugins and packages of graphdock's own, and what kernels of no plugin are said to come from.
_TAKEN = ("cpu", "std", "host", "user", "core", "opgen", "templates")
_OP = re.compile(r"[A-Z][A-Za-z0-9]*")


@click.group("new")
def command() -> None:
    """Start a plugin package, or an op in one."""


@command.command(short_help="Make the package graphdock-NAME, which works as it is.")
@click.argument("name")
@click.option("--device", is_flag=True, help="With a device type of its own, called NAME.")
@click.option("--ops", is_flag=True, help="With an op of its own, from a spec.")
@click.option("--summary", default=None, help="One line for `graphdock plugins`.")
@click.option(
    "--dir", "parent", default=".", type=click.Path(file_okay=False, path_type=Path), help="Where to make it."
)
def plugin(name: str, device: bool, ops: bool, summary: str | None, parent: Path) -> None:
    """Make the package graphdock-NAME: sources, manifest, tests; it builds, installs and passes them as it is.

    NAME is the plugin's and the backend's: lower case letters, digits and underscores. With neither --device nor --ops it
    brings a kernel for the cpu device.
    """
    if not _PLUGIN.fullmatch(name):
        raise click.UsageError(f"{name!r} is no plugin name: a lower-case letter, then letters, digits and underscores")
    if name in _TAKEN:
        raise AlreadyExistsError(f"graphdock has a {name!r} of its own", hint="name the plugin otherwise")
    package = f"graphdock_{name}"
    dist = name.replace("_", "-")
    root = parent / f"graphdock-{dist}"
    if root.exists():
        raise AlreadyExistsError(f"{root} exists", hint="name another plugin, or another folder with --dir")
    context: dict[str, Any] = {
        "name": name,
        "dist": dist,
        "package": package,
        "title": "".join(part.capitalize() for part in name.split("_")),
        "summary": summary or _summary(name, device, ops),
        "device": device,
        "ops": ops,
    }
    source = root / "src" / package
    files = {
        root / "pyproject.toml": "pyproject.toml",
        root / ".gitignore": "gitignore",
        root / "README.md": "README.md",
        root / "tests" / f"test_{name}.py": "test_plugin.py",
        source / "__init__.py": "init.py",
        source / "graphdock-plugin.toml": "manifest.toml",
        source / "plugin.py": "plugin.py",
        source / "kernels.py": "kernels.py",
        source / "py.typed": "py.typed",
    }
    if device:
        files[source / "device.py"] = "device.py"
    if ops:
        files[source / "specs" / f"{name}.yaml"] = "specs.yaml"
        files[source / "names.py"] = "names.py"
        files[source / "reference.py"] = "reference.py"
    for path, template in files.items():
        _write(path, _render(template, **context))
    if ops:
        _opgen("generate", source)
    _opgen("manifest", source)
    click.echo(f"made {root}")
    click.echo(f"next: cd {root} && pip install -e '.[test]' && pytest && pytest --graphdock-backend {name}")


@command.command(short_help="Add the op NAME (CamelCase) to a package.")
@click.argument("name")
@click.option(
    "--package",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The import package. Default: the one that holds specs/ below ./src or here.",
)
def op(name: str, package: Path | None) -> None:
    """Add the op NAME (CamelCase) to a package: a spec that works, its kernel, its oracle; then change all three.

    Text is appended to specs/*.yaml, kernels.py and reference.py; no line that is there is changed.
    """
    if not _OP.fullmatch(name):
        raise click.UsageError(f"{name!r} is no op name: CamelCase, such as ClipNorm")
    directory = (package or _find_package()).resolve()
    names: Any = importlib.import_module("graphdock_opgen.names")
    library: Any = importlib.import_module("graphdock_opgen.library")
    found = library.load_library(directory)
    if found.errors:
        raise found.errors[0]
    file = found.files[0]
    dotted, snake, type_ = library.dotted_name(directory), names.snake(name), names.op_type(file.spec.namespace, name)
    if any(known.type == type_ for known in found.ops):
        raise AlreadyExistsError(f"{dotted} declares the op {type_!r} already")
    context = {"op": name, "package": dotted, "snake": snake, "type": type_}
    spec = directory / "specs" / f"{file.stem}.yaml"
    before = spec.read_text(encoding="utf-8")
    _append(spec, _render("op.yaml", **context), "")
    try:
        errors = library.load_library(directory).errors
        if errors:
            raise errors[0]
    except GraphdockError:
        spec.write_text(before, encoding="utf-8", newline="\n")
        raise
    kernels = "import numpy as np\nfrom graphdock.contracts import KernelDef\n\nKERNELS = []\n"
    _append(directory / "kernels.py", _render("op_kernel.py", **context), f'"""Kernels of {dotted}."""\n\n{kernels}')
    reference = f'"""Oracles of {dotted}\'s ops."""\n\nimport numpy as np\n'
    _append(directory / "reference.py", _render("op_reference.py", **context), reference)
    _opgen("generate", directory)
    if (directory / "graphdock-plugin.toml").is_file():
        _opgen("manifest", directory)
    click.echo(f"{type_}: change its entry in {spec.name}, then {snake} in kernels.py and in reference.py")


def _summary(name: str, device: bool, ops: bool) -> str:
    if device:
        return f"The {name} device for graphdock"
    return f"Ops of {name} for graphdock" if ops else f"Kernels of {name} for graphdock"


def _render(template: str, **context: Any) -> str:
    environment: Any = importlib.import_module("graphdock_opgen.render").environment()
    text: str = environment.get_template(f"scaffold/{template}.j2").render(**context)
    return text


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.strip("\n") + "\n" if text else "", encoding="utf-8", newline="\n")


def _append(path: Path, text: str, head: str) -> None:
    before = path.read_text(encoding="utf-8") if path.is_file() else head
    if before and not before.endswith("\n"):
        before += "\n"
    path.write_text(before + text, encoding="utf-8", newline="\n")


def _find_package() -> Path:
    found = sorted(
        p.parent for pattern in ("src/*/specs", "*/specs", "specs") for p in Path().glob(pattern) if p.is_dir()
    )
    if not found:
        raise NotFoundError("no package with a folder specs/ below ./src or here", hint="name it with --package")
    if len(found) > 1:
        raise InvalidArgumentError(
            "several packages have a folder specs/: " + ", ".join(map(str, found)), hint="name one with --package"
        )
    return found[0]


def _opgen(subcommand: str, directory: Path) -> None:
    """Run opgen in a process of its own: the manifest's part of it imports the package."""
    done = subprocess.run(
        [sys.executable, "-m", "graphdock_opgen", subcommand, str(directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise GraphdockError(f"opgen {subcommand} {directory} failed:\n{done.stdout}{done.stderr}")
