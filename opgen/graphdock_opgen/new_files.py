"""Files that ``graphdock new`` writes: templates filled, text appended, and what opgen makes of it."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphdock.errors import GraphdockError, InvalidArgumentError, NotFoundError
from graphdock.plugin.discovery import FILE_NAME

__all__ = ["append", "find_package", "opgen", "render", "write"]


def render(template: str, **context: Any) -> str:
    """The text of a template below ``scaffold``."""
    environment: Any = importlib.import_module("graphdock_opgen.render").environment()
    text: str = environment.get_template(f"scaffold/{template}.j2").render(**context)
    return text


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.strip("\n") + "\n" if text else "", encoding="utf-8", newline="\n")


def append(path: Path, text: str, head: str) -> None:
    before = path.read_text(encoding="utf-8") if path.is_file() else head
    if before and not before.endswith("\n"):
        before += "\n"
    path.write_text(before + text, encoding="utf-8", newline="\n")


def find_package() -> Path:
    for name in ("specs", FILE_NAME):
        found = sorted({p.parent for pattern in ("src/*/", "*/", "") for p in Path().glob(pattern + name)})
        if len(found) > 1:
            raise InvalidArgumentError(
                f"several packages have {name}: " + ", ".join(map(str, found)), hint="name one with --package"
            )
        if found:
            return found[0]
    raise NotFoundError(f"no package with specs/ or {FILE_NAME} below ./src or here", hint="name it with --package")


#: Runs commands of opgen one after the other, up to the first that fails.
_COMMANDS = """
import json, sys
from graphdock_opgen.cli import command
for arguments in json.loads(sys.argv[1]):
    try:
        command(arguments, prog_name="graphdock opgen")
    except SystemExit as end:
        if end.code:
            raise
"""


def opgen(*commands: Sequence[str | Path]) -> None:
    """Run commands of opgen in a process of their own, which leaves no byte code: the manifest's part of it imports the package."""
    lines = [list(map(str, command)) for command in commands]
    done = subprocess.run(
        [sys.executable, "-B", "-c", _COMMANDS, json.dumps(lines)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        told = " and ".join(" ".join(line) for line in lines)
        raise GraphdockError(f"opgen {told} failed:\n{done.stdout}{done.stderr}")
