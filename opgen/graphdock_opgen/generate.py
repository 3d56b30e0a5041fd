"""Writing and checking a package's ``_gen``."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphdock.errors import OpSpecError

from graphdock_opgen.counts import Counts, counts
from graphdock_opgen.library import Library, load_library
from graphdock_opgen.reexports import FACADE, stubs
from graphdock_opgen.render import render_library

__all__ = ["Result", "drift", "plan", "write"]


@dataclass(frozen=True)
class Result:
    """Files that a package's ``_gen`` should hold.

    Attributes:
      files: path -> text.
      stale: generated files that no spec asks for; none while a spec has errors.
      errors: faults of the specs; while there are any, ``files`` lacks the ops concerned.
    """

    library: Library
    files: dict[Path, str]
    stale: tuple[Path, ...]
    errors: tuple[OpSpecError, ...]
    counts: Counts


def plan(directory: Path) -> Result:
    """Read, check and render one package; nothing is written."""
    library = load_library(directory)
    errors = list(library.errors)
    rendered = render_library(library, errors.append)
    files = {library.directory / name: text for name, text in rendered.items()}
    files |= stubs(library)
    folders = dict.fromkeys([library.directory / "_gen", *(p.parent for p in files if p.parent.name == FACADE)])
    stale = () if errors else tuple(p for folder in folders for p in _generated(folder) if p not in files)
    return Result(library, files, stale, tuple(errors), counts(library))


def _generated(directory: Path) -> Iterator[Path]:
    """Files below ``_gen`` that opgen wrote, whatever wrote them last."""
    for path in sorted(directory.rglob("*")):
        if path.suffix in (".py", ".pyi", ".md") and path.is_file() and "__pycache__" not in path.parts:
            yield path


def write(result: Result) -> list[Path]:
    """Write what differs, remove what is stale, and return those paths."""
    changed = []
    for path, text in result.files.items():
        if _read(path) != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, text)
            changed.append(path)
    for path in result.stale:
        path.unlink()
        changed.append(path)
    return changed


def _replace(path: Path, text: str) -> None:
    """Write a file so that a reader sees the former text or the new one, never a part."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8", newline="\n")
    os.replace(draft, path)


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _below(path: Path) -> str:
    """A path below graphdock's own folder, which std's names are written into."""
    return f"{FACADE}/{path.name}" if path.parent.name == FACADE else path.name


def drift(result: Result) -> list[str]:
    """A unified diff per file that ``generate`` would change; empty where there is none."""
    out = []
    wanted: dict[Path, str] = {**result.files, **dict.fromkeys(result.stale, "")}
    for path, text in wanted.items():
        current = _read(path)
        if current == text:
            continue
        inside = path.is_relative_to(result.library.directory)
        name = path.relative_to(result.library.directory).as_posix() if inside else _below(path)
        diff = difflib.unified_diff(
            (current or "").splitlines(keepends=True),
            text.splitlines(keepends=True),
            f"{name} (on disk)",
            f"{name} (from the specs)",
            n=1,
        )
        out.append("".join(diff))
    return out
