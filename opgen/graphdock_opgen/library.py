"""A package's op library: its spec files and its table of names, read and checked."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import graphdock.errors
from graphdock import dtypes
from graphdock.errors import InvalidArgumentError, OpSpecError
from graphdock.plugin.lint import digest

from graphdock_opgen.check import check_file
from graphdock_opgen.functions import BELOW_TF, HOST_OPS, Callee, formula_functions
from graphdock_opgen.home import Home
from graphdock_opgen.model import FileSpec, parse_file
from graphdock_opgen.names import BARE_NAMESPACES, is_dotted, is_name, op_type, snake
from graphdock_opgen.op import Op
from graphdock_opgen.other_library import AllOps, OtherLibrary
from graphdock_opgen.public_names import PublicNames, read_names
from graphdock_opgen.reader import Document, read

__all__ = ["Library", "SpecFile", "dotted_name", "known_types", "load_file", "load_library", "read_ops"]

_HOST = Path(graphdock.errors.__file__).parent


@dataclass(frozen=True, slots=True)
class SpecFile:
    """One YAML file.

    Attributes:
      name: its path below what ships it, as generated files show it.
      stem: of its page. module: of its wrappers.
      digest: of its text, by which others see that it has changed since.
    """

    name: str
    stem: str
    module: str
    document: Document
    spec: FileSpec
    ops: tuple[Op, ...]
    digest: str = ""


@dataclass(frozen=True)
class Library:
    """All of a package.

    Attributes:
      package: dotted name of the package that holds ``specs`` and ``_gen``.
      errors: faults found; the ops concerned are left out.
      functions: what its formulas may call.
      all_ops: op type -> Op, this package's and those of the host and of std.
      faulty: names of ops that were left out for a fault: types, and what formulas would call them.
      names: what its people write by hand.
    """

    package: str
    directory: Path
    files: tuple[SpecFile, ...]
    errors: tuple[OpSpecError, ...] = ()
    functions: dict[str, Callee] = field(default_factory=dict)
    all_ops: Mapping[str, Op] = field(default_factory=dict)
    faulty: frozenset[str] = frozenset()
    names: PublicNames = field(default_factory=PublicNames)

    @property
    def ops(self) -> list[Op]:
        """This package's ops, in the order of files and entries."""
        return [op for file in self.files for op in file.ops]

    @property
    def is_core(self) -> bool:
        return any(file.spec.namespace == "core" for file in self.files)

    @property
    def is_bare(self) -> bool:
        return any(file.spec.namespace in BARE_NAMESPACES for file in self.files)


def dotted_name(directory: Path) -> str:
    """``plugins/std/graphdock_std`` -> ``graphdock_std``: upwards while ``__init__.py`` exists."""
    directory = directory.resolve()
    if not (directory / "__init__.py").is_file():
        raise InvalidArgumentError(f"{directory} is not a Python package: it has no __init__.py")
    parts = [directory.name]
    while (directory.parent / "__init__.py").is_file():
        directory = directory.parent
        parts.append(directory.name)
    name = ".".join(reversed(parts))
    if not is_dotted(name):
        raise InvalidArgumentError(
            f"{name!r} is not a Python package: each part is a name of letters, digits and underscores"
        )
    return name


def load_library(directory: Path) -> Library:
    """Read and check every ``specs/*.yaml`` of a package; faults are collected in ``errors``, one per op."""
    directory = directory.resolve()
    package = dotted_name(directory)
    paths = sorted((directory / "specs").glob("*.yaml"))
    if not paths:
        raise InvalidArgumentError(f"{directory / 'specs'} holds no *.yaml", hint="an op library has its specs there")
    errors: list[OpSpecError] = []
    files = tuple(_files(paths, _shown, Home(package), errors.append))
    names = read_names(directory, _shown, errors.append)
    unread = _named_in(path for path in paths if path.stem not in {file.stem for file in files})
    return replace(_library(package, directory, files, names, errors.append, unread), errors=tuple(errors))


def load_file(path: Path, package: str, report: Callable[[OpSpecError], None]) -> Library:
    """One file, of any name, as a library of its own, under a package name that need not exist."""
    files = tuple(_files([path], str, Home(package, path.parent), report))
    return _library(package, path.parent, files, PublicNames(), report)


def read_ops(paths: Iterable[Path], report: Callable[[OpSpecError], None]) -> dict[str, Op]:
    """Op type -> Op of some files, each checked by itself."""
    return {op.type: op for file in _files(paths, lambda p: p.name, Home(), report) for op in file.ops}


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _files(
    paths: Iterable[Path], show: Callable[[Path], str], home: Home, report: Callable[[OpSpecError], None]
) -> Iterable[SpecFile]:
    for path in paths:
        stem, name = path.stem, path.name if home.beside else f"specs/{path.name}"
        try:
            if home.beside:
                stem = "ops_" + re.sub(r"\W", "_", stem, flags=re.ASCII)
            elif not is_name(f"{stem}_ops"):
                hint = "a letter, then letters, digits and underscores"
                raise OpSpecError(f"no module can be called {stem + '_ops'!r}", file=show(path), hint=hint)
            document = read(path, show(path))
            spec = parse_file(document)
        except OpSpecError as e:
            report(e)
            continue
        ops = check_file(document, spec, name, f"{stem}_ops", home, report)
        yield SpecFile(name, stem, f"{stem}_ops", document, spec, tuple(ops), digest(path.read_text(encoding="utf-8")))


def _others(directory: Path, namespaces: Collection[str]) -> list[OtherLibrary]:
    """The host's library, and std's for all but the host."""
    found = [(HOST_OPS, _HOST / "ops")]
    std = importlib.util.find_spec("graphdock_std")
    if std is not None and std.origin is not None and "core" not in namespaces:
        found.append(("graphdock_std", Path(std.origin).parent))
    bare = any(name in BARE_NAMESPACES for name in namespaces)  # one of the two, of which nothing may be generated yet
    out = []
    for package, place in found:
        if place.resolve() != directory and (place / "specs").is_dir():
            generated = None if bare else OtherLibrary.generated(package, place, _read_other)
            out.append(generated or OtherLibrary.written(package, place, _read_other(package, place)))
    return out


def known_types(directory: Path) -> list[str]:
    """Op types of the host's library, and of std's, besides that of ``directory``."""
    return [name for other in _others(directory.resolve(), ()) for name in other.types]


def _read_other(package: str, directory: Path) -> dict[str, Op]:
    """The ops of another package, read again when one of its files changes."""
    paths = sorted((directory / "specs").glob("*.yaml"))
    return _ops_of(package, tuple((p, p.stat().st_mtime_ns) for p in paths))


@lru_cache(maxsize=4)
def _ops_of(package: str, stamps: tuple[tuple[Path, int], ...]) -> dict[str, Op]:
    specs = [path for path, _ in stamps]
    return {op.type: op for file in _files(specs, str, Home(package), _ignore) for op in file.ops}


def _ignore(error: OpSpecError) -> None:
    """A fault in another package's files is shown when that package is generated."""


def _library(
    package: str,
    directory: Path,
    files: tuple[SpecFile, ...],
    names: PublicNames,
    report: Callable[[OpSpecError], None],
    unread: frozenset[str] = frozenset(),
) -> Library:
    bare = any(file.spec.namespace in BARE_NAMESPACES for file in files)
    others = _others(directory, {file.spec.namespace for file in files})
    known = AllOps({}, others)
    ops = [op for file in files for op in file.ops]
    own = _unique_types(ops, known if bare else {}, report)
    _unique_wrappers(own.values(), report)
    _unique_endpoints(own.values(), names, _host_names(known) if package in BELOW_TF else {}, report)
    _unique_operators(own.values(), names, report)
    functions = formula_functions(package, own.values(), names, others)
    return Library(package, directory, files, (), functions, AllOps(own, others), _faulty(files) | unread, names)


def _faulty(files: Iterable[SpecFile]) -> frozenset[str]:
    found: set[str] = set()
    for file in files:
        sound = {op.name for op in file.ops}
        for spec in file.spec.ops:
            if spec.name not in sound:
                found |= {spec.name, op_type(file.spec.namespace, spec.name), snake(spec.name)}
                found |= {e.name for e in spec.api.endpoints}
    return frozenset(found)


def _named_in(paths: Iterable[Path]) -> frozenset[str]:
    """Names that files which can't be read would declare, by their text: others that use it have no fault of their own."""
    found: set[str] = set()
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        namespace = re.search(r"^namespace:\s*(\w+)", text, re.M)
        for name in re.findall(r"(?:\bname|^\s*- \w+):\s*[\"']?([\w.]+)", text, re.M):
            found |= {name, snake(name)} | ({op_type(namespace[1], name)} if namespace else set())
    return frozenset(found)


def _unique_types(ops: Iterable[Op], known: Mapping[str, Op], report: Callable[[OpSpecError], None]) -> dict[str, Op]:
    """Op type -> the op that declares it first."""
    found: dict[str, Op] = {}
    for op in ops:
        first = found.get(op.type) or known.get(op.type)
        if first is None:
            found[op.type] = op
        else:
            report(_clash(op, ("name",), f"op {op.type} is defined twice, first at {_place(first)}"))
    return found


def _unique_wrappers(ops: Iterable[Op], report: Callable[[OpSpecError], None]) -> None:
    found: dict[tuple[str, str], Op] = {}
    for op in ops:
        first = found.setdefault((op.module, op.function), op)
        if first is not op:
            at = ("api", "endpoints", 0, "name") if op.spec.api.endpoints else ("name",)
            report(_clash(op, at, f"wrapper {op.function} is also {first.type}'s, {_place(first)}"))


def _unique_endpoints(
    ops: Iterable[Op], names: PublicNames, host: Mapping[str, str], report: Callable[[OpSpecError], None]
) -> None:
    """A public name has one maker: one op, or a function written by hand, or the host."""
    found: dict[str, Op] = {}
    for op in ops:
        for i, endpoint in enumerate(op.spec.api.endpoints):
            name, at = endpoint.name, ("api", "endpoints", i, "name")
            first = found.setdefault(name, op)
            if first is not op:
                report(_clash(op, at, f"endpoint {name!r} is also {first.type}'s, {_place(first)}"))
            elif name in host:
                report(_clash(op, at, f"endpoint {name!r} is the host's own: {host[name]}"))
            elif name in names.public:
                report(_clash(op, at, f"endpoint {name!r} is written by hand too, {names.place(name)}"))
    for name in names.public:
        if name in host:
            message = f"{name!r} is the host's own: {host[name]}"
            file, line = names.places[name]
            report(OpSpecError(message, file=file, line=line, column=1))


def _unique_operators(ops: Iterable[Op], names: PublicNames, report: Callable[[OpSpecError], None]) -> None:
    found: dict[str, Op] = {}
    for op in ops:
        for operator in op.spec.api.operator:
            first = found.setdefault(operator, op)
            if first is not op:
                report(_clash(op, ("api", "operator"), f"operator {operator} is also {first.type}'s"))
            elif operator in names.operators:
                message = f"operator {operator} is written by hand too, {names.place(operator)}"
                report(_clash(op, ("api", "operator"), message))


def _host_names(ops: Mapping[str, Op]) -> dict[str, str]:
    """Names below ``tf`` that are the host's -> what they are."""
    generated = {e.name: f"its op {op.type}" for op in ops.values() for e in op.spec.api.endpoints}
    types = dict.fromkeys(dtypes.ALL, "a dtype")
    return {**generated, **read_names(_HOST).public, **types}


def _place(op: Op) -> str:
    return f"{op.document.file}:{op.line}"


def _clash(op: Op, at: tuple[str | int, ...], message: str) -> OpSpecError:
    return op.document.error((*op.path, *at), message)
