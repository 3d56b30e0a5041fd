"""``graphdock new``: starts a plugin package, or an op in one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from graphdock.errors import AlreadyExistsError
from graphdock.plugin.discovery import FILE_NAME, discover

from graphdock_opgen import new_op
from graphdock_opgen.new_files import opgen, render, write
from graphdock_opgen.new_parts import IN_C, PARTS, FileOfPart, hooks_of
from graphdock_opgen.writing_group import WritingGroup

__all__ = ["command"]

_PLUGIN = re.compile(r"[a-z][a-z0-9_]*")
#: What no plugin may be named, besides graphdock's own: packages of it, and what kernels of no plugin are said to come from.
_TAKEN = {"host", "user", "core", "templates"}


@click.group("new", cls=WritingGroup)
def command() -> None:
    """Start a plugin package, or an op in one."""


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    """An option for each part."""
    for name in [*PARTS][::-1]:
        function = click.option(f"--{name.replace('_', '-')}", name, is_flag=True, help=PARTS[name].help)(function)
    return function


@command.command(short_help="Make the package graphdock-NAME, which works as it is.")
@click.argument("name")
@_options
@click.option("--summary", default=None, help="One line for `graphdock plugins`.")
@click.option(
    "--dir", "parent", default=".", type=click.Path(file_okay=False, path_type=Path), help="Where to make it."
)
def plugin(name: str, summary: str | None, parent: Path, **given: bool) -> None:
    """Make the package graphdock-NAME: sources, manifest, tests; it builds, installs and passes them as it is.

    NAME is the plugin's and the backend's: lower case letters, digits and underscores. Options may be given together; without any
    the package brings a kernel for the cpu device, in NumPy.
    """
    parts = [part for part in PARTS if given[part]]
    for part in parts:
        for needed in PARTS[part].needs:
            if needed not in parts:
                raise click.UsageError(f"--{part} goes with --{needed}")
    if not _PLUGIN.fullmatch(name):
        raise click.UsageError(f"{name!r} is no plugin name: a lower-case letter, then letters, digits and underscores")
    if name in _TAKEN | {found.plugin for found in discover() if found.is_own}:
        raise AlreadyExistsError(f"graphdock has a {name!r} of its own", hint="name the plugin otherwise")
    root = parent / f"graphdock-{name.replace('_', '-')}"
    if root.exists():
        raise AlreadyExistsError(f"{root} exists", hint="name another plugin, or another folder with --dir")
    _make(root, name, parts, summary)
    click.echo(f"made {root}")
    install = "pip install -e '.[test]'"
    if "native" in parts:  # its build hook is graphdock's own
        install = f"pip install hatchling editables && {install} --no-build-isolation"
    click.echo(f"next: cd {root} && {install} && pytest && pytest --graphdock-backend {name}")


def _make(root: Path, name: str, parts: list[str], summary: str | None) -> None:
    """Write the package of these parts, and have opgen make what follows from it."""
    package, title = f"graphdock_{name}", "".join(part.capitalize() for part in name.split("_"))
    specs = "ops" in parts or "pattern" in parts
    with_kernels = not parts or specs or "device" in parts or "native" in parts
    plain = not parts
    in_c = {"device", "native"} <= set(parts) and "asynchronous" not in parts
    headers = "native" in parts and ("ops" in parts or not in_c)
    hooks = hooks_of(parts, package, title, specs=specs, kernels=with_kernels, in_c=in_c)
    files = {f.path: f for part in parts for f in PARTS[part].files}
    if with_kernels:
        about = "which function of the library computes which op" if parts == ["native"] else "one KernelDef per op"
        files["kernels"] = FileOfPart("src/{package}/kernels.py", "kernels.py", f"the kernels: {about}")
    about = "name, devices, options; the part below its marker line is written by the command below"
    files["manifest"] = FileOfPart(f"src/{{package}}/{FILE_NAME}", "manifest.toml", about)
    files |= {part: FileOfPart(f"tests/test_{part}.py", f"{part}/test.py") for part in parts if part != "asynchronous"}
    if in_c:
        files |= {f.path if "kernels" not in f.path else "kernels": f for f in IN_C}
        if not headers:
            del files["native/kernels.c"]
            files["native"] = FileOfPart("tests/test_native.py", "native/device_test.py")
    base = {
        "pyproject.toml": "pyproject.toml",
        ".gitignore": "gitignore",
        "README.md": "README.md",
        "tests/test_{name}.py": "test_plugin.py",
        "src/{package}/__init__.py": "init.py",
        "src/{package}/plugin.py": "plugin.py",
        "src/{package}/py.typed": "py.typed",
    }
    files |= {path: FileOfPart(path, template) for path, template in base.items()}
    placed = {f.path.format(package=package, name=name): f for f in files.values()}
    told = ["write-a-native-device.md"] * in_c + [PARTS[part].page for part in parts if part != "native" or headers]
    pages = ", ".join(f"docs/{page}" for page in told) or "docs/write-a-kernel.md"
    context: dict[str, Any] = {
        "name": name,
        "dist": name.replace("_", "-"),
        "package": package,
        "title": title,
        "summary": summary or _summary(name, parts),
        "specs": specs,
        "plain": plain,
        "in_c": in_c,
        "headers": headers,
        "numpy_kernels": plain or "device" in parts or "pattern" in parts or ("ops" in parts and "native" not in parts),
        "hooks": hooks,
        "files": [{"path": path, "about": f.about} for path, f in placed.items() if f.about],
        "pages": f"{pages}, docs/conformance.md",
        **{part: part in parts for part in PARTS},
    }
    for path, file in placed.items():
        write(root / path, render(file.template, **context))
    source = root / "src" / package
    commands: list[list[str | Path]] = [["generate", source]] if specs else []
    commands.append(["manifest", source])
    if headers:
        commands.append(["header", "--package", source, "--out", root / "native"])
    opgen(*commands)


def _summary(name: str, parts: list[str]) -> str:
    if not parts:
        return f"Kernels of {name} for graphdock"
    nouns = list(dict.fromkeys(PARTS[part].noun for part in parts))
    if nouns == ["device"]:
        return f"The {name} device for graphdock"
    text = ", ".join(nouns)
    return f"{text[0].upper()}{text[1:]} of {name} for graphdock"


command.add_command(new_op.op)
