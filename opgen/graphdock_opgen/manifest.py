"""The generated part of ``graphdock-plugin.toml``: the ops and kernels that a plugin's code registers."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphdock.contracts import KernelDef, OpLibrary
from graphdock.errors import NotFoundError, PluginError
from graphdock.plugin.manifest import FILE_NAME, MARKER

from graphdock_opgen.library import dotted_name

__all__ = ["generated_part", "updated"]


def updated(directory: Path, module: str | None = None) -> tuple[Path, str, str]:
    """The manifest's path, its present text, and the text it should have.

    Args:
      directory: the package that holds the manifest.
      module: the entry point's module; default: ``<package>.plugin``.

    Raises:
      NotFoundError: no manifest there. PluginError: the module can't be imported, or a hook of it raised.
    """
    path = directory / FILE_NAME
    if not path.is_file():
        raise NotFoundError(f"{directory} holds no {FILE_NAME}", hint="`graphdock new plugin` makes one")
    text = path.read_text(encoding="utf-8")
    upper = text.partition(MARKER)[0].rstrip("\n")
    return path, text, f"{upper}\n\n{generated_part(directory, module)}"


def generated_part(directory: Path, module: str | None = None) -> str:
    """The lower part, from its marker line on."""
    package = dotted_name(directory)
    plugin = _import(module or f"{package}.plugin", directory, package)
    ops: set[str] = set()
    for library in _call(plugin, "register_ops", OpLibrary):
        ops |= set(importlib.import_module(library.module).OPS)
    kernels = sorted(_call(plugin, "register_kernels", KernelDef), key=lambda k: (k.op, k.device, k.short_name))
    lines = [MARKER]
    if ops:
        lines += ["[ops]", "names = [", *(f"  {_string(name)}," for name in sorted(ops)), "]"]
    for kernel in kernels:
        lines += [
            "",
            "[[kernels]]",
            f"op = {_string(kernel.op)}",
            f"device = {_string(kernel.device)}",
            f"name = {_string(kernel.short_name)}",
        ]
        if kernel.types:
            rows = ", ".join(
                f"{var} = [{', '.join(map(_string, names))}]" for var, names in sorted(kernel.types.items())
            )
            lines.append(f"types = {{{rows}}}")
    return "\n".join(lines) + "\n"


def _string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _import(module: str, directory: Path, package: str) -> Any:
    top = directory.resolve()
    for _ in package.split("."):
        top = top.parent
    added = importlib.util.find_spec(package.partition(".")[0]) is None
    if added:
        sys.path.insert(0, str(top))
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise PluginError(f"{module} can't be imported: {e}", hint="name the entry point's module with --module") from e
    finally:
        if added:
            sys.path.remove(str(top))


def _call(plugin: Any, hook: str, kind: type) -> Iterable[Any]:
    function = getattr(plugin, hook, None)
    if function is None:
        return []
    takes_host = "host" in inspect.signature(function).parameters
    found = list(function(None) if takes_host else function())
    for item in found:
        if not isinstance(item, kind):
            raise PluginError(f"{plugin.__name__}.{hook} returned {item!r}", expected=f"an iterable of {kind.__name__}")
    return found
