"""The generated part of ``graphdock-plugin.toml``: the ops and kernels that a plugin's code registers."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from graphdock.contracts import KernelDef, KernelModule, OpDef, OpLibrary
from graphdock.contracts.kernel import snake_case
from graphdock.errors import GraphdockError, NotFoundError, PluginError
from graphdock.plugin import lint
from graphdock.plugin.discovery import FILE_NAME
from graphdock.plugin.hookspecs import HOOKS
from graphdock.plugin.kernel_registry import import_kernels, row_of
from graphdock.plugin.kernel_rows import HEADER, KernelRow
from graphdock.plugin.manifest import MARKER
from graphdock.plugin.registry import load_library

from graphdock_opgen.escape import toml
from graphdock_opgen.library import dotted_name, known_types

__all__ = ["FILE_NAME", "generated_part", "updated", "with_hook"]


def updated(directory: Path, module: str | None = None) -> tuple[Path, str, str]:
    """The manifest's path, its present text, and the text it should have: ``hooks`` names each that the plugin has.

    Args:
      directory: the package that holds the manifest.
      module: the entry point's module; default: ``<package>.plugin``.

    Raises:
      NotFoundError: no manifest there. PluginError: the module can't be imported, a hook of it raised, or what the hooks
        register is not what the package's specs say: a manifest of that would hold the fault fast. OpSpecError: a spec is wrong.
    """
    path = directory / FILE_NAME
    if not path.is_file():
        raise NotFoundError(f"{directory} holds no {FILE_NAME}", hint="`graphdock new plugin` makes one")
    text = path.read_text(encoding="utf-8")
    upper = text.partition(MARKER)[0].rstrip("\n")
    lower = generated_part(directory, module)
    package = dotted_name(directory)
    plugin = _import(module or f"{package}.plugin", directory, package)
    for hook in HOOKS:
        if hasattr(plugin, hook):
            upper = with_hook(upper, hook)
    return path, text, f"{upper}\n\n{lower}"


def with_hook(text: str, hook: str) -> str:
    """The manifest's text with a hook among its ``hooks``, where it states them: else every plan imports the plugin to see."""
    stated = re.search(r"^hooks\s*=\s*\[(.*?)\]", text, re.M | re.S)
    if stated is None or f'"{hook}"' in stated[1]:
        return text
    at = stated.start(1)
    return f'{text[:at]}"{hook}"{", " if stated[1].strip() else ""}{text[at:].lstrip(" ")}'


def generated_part(directory: Path, module: str | None = None) -> str:
    """The lower part, from its marker line on."""
    package = dotted_name(directory)
    plugin = _import(module or f"{package}.plugin", directory, package)
    ops: dict[str, Callable[[], OpDef]] = {}
    operators: list[str] = []
    for library in _call(plugin, "register_ops", OpLibrary):
        table = _table_of(library.module)
        ops |= table.OPS
        operators += getattr(table, "OPERATORS", ())
    kernels: list[tuple[KernelDef, str | None]] = []
    for item in _call(plugin, "register_kernels", (KernelDef, KernelModule)):
        if isinstance(item, KernelModule):
            kernels += [(kernel, item.name) for kernel in _kernels_of(item.name)]
        else:
            kernels.append((item, None))
    kernels.sort(key=lambda pair: (pair[0].op, pair[0].device, pair[0].short_name))
    _check(directory, package, ops, [kernel for kernel, _ in kernels])
    lines = [MARKER]
    if ops:
        lines += ["[ops]", "names = [", *(f"  {toml(name)}," for name in sorted(ops)), "]"]
    if operators:
        lines += [f"operators = [{', '.join(map(toml, sorted(operators)))}]"]
    provided = _provided(plugin)
    if provided:
        lines += ["", "[provides]", *(f"{kind} = [{', '.join(map(toml, names))}]" for kind, names in provided.items())]
    if kernels:
        lines += ["", HEADER + "\n".join(f"  {_row(row_of(kernel, of))}," for kernel, of in kernels), "]"]
    return "\n".join(lines) + "\n"


def _row(row: KernelRow) -> str:
    """A row in the form that is quickest to read: op, device, name and module first; what is a default is left out."""
    plain = KernelRow(row.op, row.device, snake_case(row.op))
    pairs = [("op", row.op), ("device", row.device)]
    order = ("name", "module", *(f.name for f in fields(KernelRow)))
    pairs += [(n, getattr(row, n)) for n in dict.fromkeys(order) if getattr(row, n) != getattr(plain, n)]
    return "{" + ", ".join(f"{name} = {_value(row, value)}" for name, value in pairs) + "}"


def _value(row: KernelRow, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join([_value(row, item) for item in value])}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(name)} = {_value(row, item)}" for name, item in sorted(value.items())) + "}"
    raise PluginError(
        f"kernel {row.short_name} of {row.op} takes the attribute value {value!r}, which a manifest can't hold",
        expected="strings, numbers, booleans, or lists of them",
        hint="ask for it in `check`, or return the KernelDef itself from register_kernels",
    )


def _kernels_of(module: str) -> list[KernelDef]:
    """Raises PluginError: it can't be imported, or holds no list of kernels."""
    try:
        return import_kernels(module)
    except ImportError as error:
        raise PluginError(f"register_kernels names {module}, which can't be imported: {error}") from error


def _check(directory: Path, package: str, ops: Mapping[str, Callable[[], OpDef]], kernels: list[KernelDef]) -> None:
    """Raise PluginError for what ``graphdock doctor`` would find once the package is installed."""
    found = list(lint.spec_drift(directory, ops))
    if not found:
        known = {**_usual_ops(), **ops}
        namespaces = {package.rpartition(".")[2].removeprefix("graphdock_"), *(op.rpartition(".")[0] for op in ops)}
        found = [
            *lint.unknown_ops(kernels, {*ops, *known_types(directory)}, namespaces),
            *lint.unknown_arguments(kernels, lambda op: known[op]() if op in known else None),
            *lint.ambiguous_kernels(kernels),
        ]
    if found:
        raise PluginError(f"{package}: " + "; ".join(found))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml(name)


def _usual_ops() -> dict[str, Callable[[], OpDef]]:
    """The ops of the host and of std, where they were generated."""
    found: dict[str, Callable[[], OpDef]] = {}
    for package in ("graphdock.ops._gen", "graphdock_std._gen"):
        library = load_library(f"{package}.opdefs", missing_ok=package.rpartition("._gen")[0])
        found.update({} if library is None else library[0])
    return found


def _table_of(module: str) -> Any:
    """The generated module of that name. Raises NotFoundError where it was not generated yet."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        hint = "`graphdock opgen generate` makes it of the specs"
        raise NotFoundError(f"register_ops names {module}, which is not there", hint=hint) from None


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


def _provided(plugin: Any) -> dict[str, list[str]]:
    """Return what plans and users ask for by name: attribute of the host that holds it -> the names of the plugin's."""
    found = {
        hook.registry: sorted(getattr(item, hook.key) for item in _call(plugin, name, hook.types))
        for name, hook in HOOKS.items()
        if hook.noun is not None
    }
    return {kind: names for kind, names in found.items() if names}


def _call(plugin: Any, hook: str, kind: type | tuple[type, ...]) -> Iterable[Any]:
    function = getattr(plugin, hook, None)
    if function is None:
        return []
    takes_host = "host" in inspect.signature(function).parameters
    try:
        found = list(function(None) if takes_host else function())
    except GraphdockError:
        raise
    except Exception as e:
        missing = (e.name or "").partition(".")[0] if isinstance(e, ModuleNotFoundError) else ""
        hint = f"it needs {missing}: pip install {missing.replace('_', '-')}" if missing else None
        raise PluginError(f"{plugin.__name__}.{hook} raised {type(e).__name__}: {e}", hint=hint) from e
    for item in found:
        if not isinstance(item, kind):
            kinds = " or ".join([k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,))])
            raise PluginError(f"{plugin.__name__}.{hook} returned {item!r}", expected=f"an iterable of {kinds}")
    return found
