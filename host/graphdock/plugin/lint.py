"""Checks of whether the parts of a plugin fit one another: specs, what was made of them, what its hooks register, its kernels.

``graphdock doctor`` asks after loading a plugin, in a process of its own; a session would come upon each of these only when
it needs the part. Nothing is imported here.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from graphdock.contracts import KernelDef, OpDef, RegionCompiler
from graphdock.contracts.kernel_facts import unknown_names
from graphdock.errors import PluginError, did_you_mean

__all__ = [
    "absent_ops",
    "ambiguous_kernels",
    "digest",
    "parse_generated",
    "spec_drift",
    "stale_libraries",
    "unknown_arguments",
    "unknown_devices",
    "unknown_ops",
]


def digest(text: str) -> str:
    """Return what ``_gen/opdefs.py`` keeps of each spec that it was made from."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def stale_libraries(folder: Path) -> Iterator[str]:
    """Yield each native library of a package's folder whose sources have changed since it was compiled, where both are here."""
    for record in sorted(folder.rglob("*.sources")):
        library = record.with_suffix("")
        lines = [line.partition("  ") for line in record.read_text(encoding="utf-8", errors="replace").splitlines()]
        files = [(made, record.parent / place) for made, _, place in lines]
        changed = [
            file.name
            for made, file in files
            if file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() != made
        ]
        if changed and library.is_file():
            name = library.relative_to(folder).as_posix()
            yield f"{', '.join(changed)} has changed since {name} was compiled: rebuild: pip install -e . --no-build-isolation"


def spec_drift(folder: Path, declared: Iterable[str]) -> Iterator[str]:
    """Yield what a package's folder says of its ops and its hooks do not do.

    Args:
      folder: the package. declared: the op types that its hooks have registered.
    """
    specs = sorted((folder / "specs").glob("*.yaml"))
    made = folder / "_gen" / "opdefs.py"
    if not made.is_file():
        if specs:
            yield f"nothing was made of specs/{specs[0].name}: run `graphdock opgen generate`"
        return
    types, sources = parse_generated(made.read_text(encoding="utf-8", errors="replace"))
    changed = [
        p.name for p in specs if digest(p.read_text(encoding="utf-8", errors="replace")) != sources.get(p.name, "")
    ]
    if specs and (changed or len(specs) != len(sources)):
        named = ", ".join(f"specs/{n}" for n in changed or sorted(set(sources) - {p.name for p in specs}))
        yield f"{named} has changed since _gen was made: run `graphdock opgen generate`"
    missing = sorted(set(types) - set(declared))
    if missing:
        yield f"register_ops does not bring {_some(missing)}, which specs/ declares"


def parse_generated(text: str) -> tuple[list[str], Mapping[str, str]]:
    """The op types that a generated ``opdefs.py`` holds, and the digest of each spec that it was made from.

    Raises:
      PluginError: the file is not what opgen writes.
    """
    types: list[str] = []
    sources: dict[str, str] = {}
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError) as error:
        raise PluginError(f"_gen/opdefs.py is not Python: {error}", hint="run `graphdock opgen generate`") from error
    for node in body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            rows = zip(node.value.keys, node.value.values, strict=True)
            types += [str(k.value) for k, v in rows if isinstance(k, ast.Constant) and isinstance(v, ast.Lambda)]
            if target.id == "SPECS":
                sources = {str(k): str(v) for k, v in ast.literal_eval(node.value).items()}
    return types, sources


def unknown_ops(kernels: Iterable[KernelDef], known: Iterable[str], namespaces: Iterable[str]) -> Iterator[str]:
    """Kernels for ops that nobody declares, and whose names are therefore wrong.

    Args:
      known: op types of the host, of std and of every installed plugin.
      namespaces: those of the plugin's own ops. An op of a namespace that nobody here has may belong to a package that is not
        installed (:func:`absent`).
    """
    known = set(known)
    namespaces = {"", *namespaces, *(op.rpartition(".")[0] for op in known)}
    for kernel in kernels:
        if kernel.op not in known:
            hint = did_you_mean(kernel.op, known)
            if hint or kernel.op.rpartition(".")[0] in namespaces:
                yield f"kernel {kernel.short_name} is for {kernel.op}, which nobody declares" + (
                    f"; {hint}" if hint else ""
                )


def unknown_devices(
    kernels: Iterable[KernelDef], devices: Iterable[str], compilers: Iterable[RegionCompiler] = ()
) -> Iterator[str]:
    """Kernels and region compilers for device types that nobody has and that are named nearly as one that somebody has.

    Args:
      devices: device types of every installed plugin.
    """
    devices = {"host", *devices}
    parts = [(f"kernel {k.short_name} of {k.op}", k.device) for k in kernels]
    for part, device in [*parts, *((f"region compiler {c.name}", c.device_type) for c in compilers)]:
        hint = None if device in devices else did_you_mean(device, devices)
        if hint:
            yield f"{part} is for the device {device}, which nobody has; {hint}"


def absent_ops(kernels: Iterable[KernelDef], known: Iterable[str], devices: Iterable[str]) -> Iterator[str]:
    """Yield what kernels are for and nobody here has, and may be of a package that is not installed: no fault."""
    known, devices = set(known), {"host", *devices}
    kernels = list(kernels)
    namespaces = {"", *(op.rpartition(".")[0] for op in known)}
    away = {k.op for k in kernels if k.op not in known and k.op.rpartition(".")[0] not in namespaces}
    ops = [op for op in sorted(away) if not did_you_mean(op, known)]
    if ops:
        yield f"it has kernels for {_some(ops)}, which no installed package declares"
    types = [d for d in sorted({k.device for k in kernels} - devices) if not did_you_mean(d, devices)]
    if types:
        yield f"it has kernels for the device {_some(types)}, which no installed package has"


def unknown_arguments(kernels: Iterable[KernelDef], opdef: Callable[[str], OpDef | None]) -> Iterator[str]:
    """Type variables, attributes, inputs and outputs that kernels name and their ops do not have.

    Args:
      opdef: op type -> OpDef; None where it is not known here.
    """
    for kernel in kernels:
        found = opdef(kernel.op)
        if found is not None:
            yield from unknown_names(kernel, found)


def ambiguous_kernels(kernels: Iterable[KernelDef]) -> Iterator[str]:
    """Pairs of kernels of one plugin between which nothing decides for some node.

    Two that both look at the node may exclude one another, so of them nothing is said.
    """
    groups: dict[tuple[str, str, int], list[KernelDef]] = {}
    for kernel in kernels:
        if not kernel.label:
            groups.setdefault((kernel.op, kernel.device, kernel.priority), []).append(kernel)
    for (op, device, _), group in groups.items():
        for first, second in combinations(group, 2):
            if first.check is not None and second.check is not None:
                continue
            types, attrs = _shared(first.types, second.types), _shared(first.attrs, second.attrs)
            if types is None or attrs is None:
                continue
            where = ", ".join(f"{var} = {values[0]}" for var, values in (types | attrs).items())
            yield (
                f"kernels {first.short_name} and {second.short_name} tie for {op} on {device}"
                + (f" (such as {where})" if where else "")
                + ": give one a higher priority, or a label"
            )


def _shared(first: Mapping[str, Sequence[Any]], second: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]] | None:
    """Per name that either constrains, what both take; None where they share nothing of a name."""
    found = {}
    for name in (*first, *(n for n in second if n not in first)):
        mine, theirs = first.get(name), second.get(name)
        both = list(mine or theirs or ()) if mine is None or theirs is None else [v for v in mine if v in theirs]
        if not both:
            return None
        found[name] = both
    return found


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
