"""Finding installed plugins, the entry points of two groups, and their manifests; imports nothing."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.errors import did_you_mean

#: Name of a plugin's manifest.
FILE_NAME = "graphdock-plugin.toml"
GROUP = "graphdock"
#: Plugins of this group load only where a list of allowed plugins names them: for trials, not for programs.
OPT_IN = "graphdock.opt_in"
#: How alike a name and a known one must be to be taken for the same.
_MISSPELT = 0.75
#: The distribution whose plugins win over others of the same name.
OWN = "graphdock"


@lazy_dataclass(frozen=True, slots=True)
class Found:
    """One entry point.

    Attributes:
      plugin: the entry point's name: also the backend's and the plugin's.
      module: its value, a dotted module name.
      package: the undotted top of it.
      location: folder of ``sys.path`` that holds the distribution; empty for one that :meth:`Host.register` was given.
      opt_in: it is one of the group :data:`OPT_IN`.
    """

    plugin: str
    module: str
    distribution: str
    version: str
    location: str
    opt_in: bool = False

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]

    @property
    def release(self) -> str:
        """``graphdock-mychip 1.0``."""
        return f"{self.distribution} {self.version}"

    @property
    def in_memory(self) -> bool:
        return not self.location

    @property
    def is_own(self) -> bool:
        return self.distribution == OWN


def how_to_install(plugin: str, known: Iterable[str]) -> str:
    """Return what to do about a plugin that is not installed.

    Nobody knows here who owns the name that it would have in an index, so that a name which is clearly a misspelt one gets no line
    to install it.
    """
    import difflib  # for this error alone

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


#: Folder of ``sys.path`` -> the names of modules that it may hold, when the installed plugins were looked for last.
_listed: dict[str, frozenset[str]] = {}


def find_spec(name: str) -> ModuleSpec | None:
    """As ``importlib.util.find_spec`` of an undotted name, which asks each folder of ``sys.path``.

    Here, of those that were listed only the ones that hold the name are asked: an editable installation of several packages has as
    many folders.

    Raises:
      ValueError: a module in ``sys.modules`` that has no spec.
    """
    if name in sys.modules:
        return importlib.util.find_spec(name)
    folders = [f for f in sys.path if name in _listed.get(f, (name,))]
    for finder in sys.meta_path:
        ask = getattr(finder, "find_spec", None)  # an import passes over one that has none
        spec: ModuleSpec | None = None if ask is None else ask(name, folders if finder is PathFinder else None)
        if spec is not None:
            return spec
    return None


def discover() -> list[Found]:
    """Every installed plugin: graphdock's own first, then by name and distribution; at the end those that must be allowed by name.

    A distribution that is found twice on ``sys.path`` counts once: the first, which is also the one an import finds.
    """
    seen: set[str] = set()
    found = []
    for read, location in _records():
        try:
            points = _entry_points(read("entry_points.txt") or "")
            head = (read("METADATA") or read("PKG-INFO") or "").partition("\n\n")[0] if points else ""
        except UnicodeDecodeError:
            continue  # as a line that is no entry point: it stops nobody else
        if not points:
            continue
        about = dict(re.findall(r"^(Name|Version):\s*(\S+)", head, re.MULTILINE))
        name = normalized(about.get("Name") or points[0][1].partition(".")[0])
        if name in seen:
            continue
        seen.add(name)
        version = about.get("Version", "0")
        found += [Found(plugin, module, name, version, location(), opt_in) for plugin, module, opt_in in points]
    return sorted(found, key=lambda f: (f.opt_in, not f.is_own, f.plugin, f.distribution))


def _records() -> Iterator[tuple[Callable[[str], str | None], Callable[[], str]]]:
    """Each distribution on ``sys.path``, in its order: what reads a file of its record, and what says its folder.

    ``importlib.metadata``, which takes 15 ms to import, is asked where it knows more than what folders hold: of archives, and where
    somebody has a finder of distributions.
    """
    finders = [f for f in sys.meta_path if f is not PathFinder and hasattr(f, "find_distributions")]
    folders = [folder for folder in sys.path if isinstance(folder, str)]  # an import passes over others
    if finders or any(map(os.path.isfile, folders)):
        from importlib import metadata

        for dist in metadata.distributions():
            yield dist.read_text, functools.partial(lambda dist: os.path.realpath(str(dist.locate_file(""))), dist)
        return
    real = functools.cache(os.path.realpath)
    _listed.clear()
    for folder in folders:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue  # as an import does: it is not there, or not ours to read
        _listed[folder] = frozenset([name.partition(".")[0] for name in names])
        for name in names:
            if name.lower().endswith((".dist-info", ".egg-info")) or name == "EGG-INFO":
                yield functools.partial(_text, os.path.join(folder, name)), functools.partial(real, folder)


def _text(record: str, file: str) -> str | None:
    try:
        with open(os.path.join(record, file), encoding="utf-8") as opened:
            return opened.read()
    except OSError:
        return None


def _entry_points(text: str) -> list[tuple[str, str, bool]]:
    """Name, module and whether it is opt-in of each entry point; what is none is passed over, so that it stops nobody else."""
    points, group = [], ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]")
        elif group in (GROUP, OPT_IN) and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            points.append((name.strip(), value.partition(":")[0].partition("[")[0].strip(), group == OPT_IN))
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


def manifest_path(module: str) -> str | None:
    """Return where the manifest of an entry point's module should lie; None when Python can't find its package.

    It lies in the top-level package or, of a package that holds several plugins, in the nearest folder on the way to the module.
    Finding the spec of an undotted name runs no code of the package, and works for wheels and editable installs alike.
    """
    package, *inner = module.split(".")
    try:
        spec = find_spec(package) if package.isidentifier() else None
    except ValueError:  # a module in sys.modules without a spec, such as __main__
        spec = None
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    if not folders:
        return os.path.join(os.path.dirname(spec.origin or package), package, FILE_NAME)
    ways = [os.path.join(f, *inner[:depth], FILE_NAME) for depth in range(len(inner), -1, -1) for f in folders]
    return next((p for p in ways if os.path.isfile(p)), os.path.join(folders[0], FILE_NAME))
