"""Finding installed plugins: entry points of the group ``graphdock`` and their manifests; imports nothing."""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from graphdock.errors import did_you_mean
from graphdock.plugin.manifest import FILE_NAME

__all__ = [
    "GROUP",
    "OWN",
    "SHIPPED_BLOCKED",
    "Found",
    "discover",
    "duplicates",
    "how_to_install",
    "manifest_path",
    "normalized",
    "shipped_blocked",
]

GROUP = "graphdock"
#: How alike a name and a known one must be to be taken for the same.
_MISSPELT = 0.75
#: The distribution whose plugins win over others of the same name.
OWN = "graphdock"
#: Plugins of graphdock that load only where a list of allowed plugins names them -> their modules.
SHIPPED_BLOCKED = {"queued": "graphdock_testing.queued"}


@dataclass(frozen=True, slots=True)
class Found:
    """One entry point of the group.

    Attributes:
      plugin: the entry point's name: also the backend's and the plugin's.
      module: its value, a dotted module name.
      package: the undotted top of it; where the manifest lies.
      location: folder of ``sys.path`` that holds the distribution; empty for one that :meth:`Host.register` was given.
      opt_in: it is one of :data:`SHIPPED_BLOCKED`, and its manifest lies beside its module.
    """

    plugin: str
    module: str
    distribution: str
    version: str
    location: str
    opt_in: bool = False

    @property
    def package(self) -> str:
        return self.module.rpartition(".")[0] if self.opt_in else self.module.partition(".")[0]

    @property
    def in_memory(self) -> bool:
        return not self.location

    @property
    def is_own(self) -> bool:
        return self.distribution == OWN


def how_to_install(plugin: str, known: Iterable[str]) -> str:
    """What to do about a plugin that is not installed.

    Nobody knows here who owns the name that it would have in an index, so that a name which is clearly a misspelt one gets no line
    to install it.
    """
    known = list(known)
    near = did_you_mean(plugin, known)
    if near is not None and difflib.get_close_matches(plugin, known, n=1, cutoff=_MISSPELT):
        return near
    distribution = f"graphdock-{plugin.replace('_', '-')}"
    install = f"install the package that brings it; if that is {distribution}: pip install {distribution}"
    return install if near is None else f"{near} or {install}"


def normalized(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def discover() -> list[Found]:
    """Every installed plugin: graphdock's own first, then by name and distribution.

    A distribution that is found twice on ``sys.path`` counts once: the first, which is also the one an import finds.
    """
    seen: set[str] = set()
    found = []
    for dist in metadata.distributions():
        try:
            points = _entry_points(dist.read_text("entry_points.txt") or "")
            about = dist.metadata if points else None
        except UnicodeDecodeError:
            continue  # as a line that is no entry point: it stops nobody else
        if about is None:
            continue
        name = normalized(about["Name"] or next(iter(points.values())).partition(".")[0])
        if name in seen:
            continue
        seen.add(name)
        location = os.path.realpath(str(dist.locate_file("")))
        found += [Found(plugin, module, name, about["Version"] or "0", location) for plugin, module in points.items()]
    return sorted(found, key=lambda f: (not f.is_own, f.plugin != "std", f.plugin, f.distribution))


def shipped_blocked(found: Iterable[Found]) -> list[Found]:
    """graphdock's plugins that must be allowed by name; none where graphdock itself is not among the ``found``."""
    own = next((f for f in found if f.is_own), None)
    if own is None:
        return []
    return [Found(name, module, OWN, own.version, own.location, True) for name, module in SHIPPED_BLOCKED.items()]


def _entry_points(text: str) -> dict[str, str]:
    """Name -> module of the group's entry points; a line that is none is passed over, so that it stops nobody else."""
    if f"[{GROUP}]" not in text:
        return {}
    points, inside = {}, False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{GROUP}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            points[name.strip()] = value.partition(":")[0].partition("[")[0].strip()
    return points


def duplicates(found: Iterable[Found]) -> dict[Found, list[Found]]:
    """Plugins that may not load because another distribution ships the same name -> those others.

    A name of graphdock's own wins; otherwise neither loads. The order of ``sys.path`` decides nothing.
    """
    by_name: dict[str, list[Found]] = {}
    for item in found:
        by_name.setdefault(item.plugin, []).append(item)
    losers: dict[Found, list[Found]] = {}
    for group in by_name.values():
        if len(group) > 1:
            for item in group:
                if not item.is_own:
                    losers[item] = [other for other in group if other is not item]
    return losers


def manifest_path(package: str) -> Path | None:
    """Where the manifest of a package should lie; None when Python can't find such a package.

    ``find_spec`` of an undotted name runs no code of the package, and works for wheels and editable installs alike. Of a dotted one
    it imports what is above: only graphdock's own plugins have such a name.
    """
    try:
        spec = importlib.util.find_spec(package) if package.replace(".", "").isidentifier() else None
    except ValueError:  # a module in sys.modules without a spec, such as __main__
        spec = None
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    if not folders:
        return Path(spec.origin or package).parent / package / FILE_NAME
    return next((p for p in (Path(f) / FILE_NAME for f in folders) if p.is_file()), Path(folders[0]) / FILE_NAME)
