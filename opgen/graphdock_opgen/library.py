"""A package's op library: its spec files, read and checked, and the names that its formulas may use."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import graphdock.errors
from graphdock.errors import InvalidArgumentError, OpSpecError

from graphdock_opgen.check import check_file
from graphdock_opgen.model import FileSpec, parse_file
from graphdock_opgen.names import BARE_NAMESPACES
from graphdock_opgen.op import Op
from graphdock_opgen.reader import Document, read

__all__ = ["Library", "SpecFile", "dotted_name", "load_file", "load_library", "read_ops"]

#: Formula helpers that graphdock.ops provides under another name, or under the same.
OPS_HELPERS = {
    "shape_of": "shape",
    "ones_like": "ones_like",
    "zeros_like": "zeros_like",
    "cast": "cast",
    "stop_gradient": "stop_gradient",
}


@dataclass(frozen=True, slots=True)
class SpecFile:
    """One YAML file."""

    stem: str
    document: Document
    spec: FileSpec
    ops: tuple[Op, ...]


@dataclass(frozen=True)
class Library:
    """All of a package.

    Attributes:
      package: dotted name of the package that holds ``specs`` and ``_gen``.
      errors: faults found; the ops concerned are left out.
      functions: name in a formula -> how generated code calls it (``_tf.matmul``, ``_math_ops.mat_mul_grad``).
      ops: op type -> Op, this package's and those of the host and of std.
    """

    package: str
    directory: Path
    files: tuple[SpecFile, ...]
    errors: tuple[OpSpecError, ...] = ()
    functions: dict[str, str] = field(default_factory=dict)
    all_ops: dict[str, Op] = field(default_factory=dict)

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
    return ".".join(reversed(parts))


def load_library(directory: Path) -> Library:
    """Read and check every ``specs/*.yaml`` of a package; faults are collected in ``errors``, one per op."""
    directory = directory.resolve()
    package = dotted_name(directory)
    paths = sorted((directory / "specs").glob("*.yaml"))
    if not paths:
        raise InvalidArgumentError(f"{directory / 'specs'} holds no *.yaml", hint="an op library has its specs there")
    errors: list[OpSpecError] = []
    files = tuple(_files(paths, _shown(paths), errors.append))
    others = _others(directory, files)
    functions, all_ops = _index(directory, files, others, errors.append)
    return Library(package, directory, files, tuple(errors), functions, all_ops)


def load_file(path: Path, package: str, report: Callable[[OpSpecError], None]) -> Library:
    """One file as a library of its own, under a package name that need not exist."""
    files = tuple(_files([path], str, report))
    others = _others(path.parent, files)
    functions, all_ops = _index(path.parent, files, others, report)
    return Library(package, path.parent, files, (), functions, all_ops)


def read_ops(paths: Iterable[Path], report: Callable[[OpSpecError], None]) -> dict[str, Op]:
    """Op type -> Op of some files, each checked by itself."""
    return {op.type: op for file in _files(paths, lambda p: p.name, report) for op in file.ops}


def _shown(paths: Iterable[Path]) -> Callable[[Path], str]:
    here = Path.cwd()

    def show(path: Path) -> str:
        return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)

    return show


def _files(
    paths: Iterable[Path], show: Callable[[Path], str], report: Callable[[OpSpecError], None]
) -> Iterable[SpecFile]:
    for path in paths:
        try:
            document = read(path, show(path))
            spec = parse_file(document)
        except OpSpecError as e:
            report(e)
            continue
        yield SpecFile(path.stem, document, spec, tuple(check_file(document, spec, path.stem, report)))


def _others(directory: Path, files: Iterable[SpecFile]) -> list[tuple[str, Path, tuple[SpecFile, ...]]]:
    """The libraries whose names formulas may use besides their own: the host's, and std's for third parties."""
    core = Path(graphdock.errors.__file__).parent / "ops"
    found = [("graphdock.ops", core)]
    std = importlib.util.find_spec("graphdock_std")
    namespaces = {file.spec.namespace for file in files}
    if std is not None and std.origin is not None and "core" not in namespaces:
        found.append(("graphdock_std", Path(std.origin).parent))
    out = []
    for package, place in found:
        if place.resolve() != directory and (place / "specs").is_dir():
            stamps = tuple((p, p.stat().st_mtime_ns) for p in sorted((place / "specs").glob("*.yaml")))
            out.append((package, place, _read_others(stamps)))
    return out


@lru_cache(maxsize=4)
def _read_others(stamps: tuple[tuple[Path, int], ...]) -> tuple[SpecFile, ...]:
    """The spec files of another package, read again when one of them changes."""
    return tuple(_files([path for path, _ in stamps], str, _ignore))


def _ignore(error: OpSpecError) -> None:
    """A fault in another package's specs is shown when that package is generated."""


def _index(
    directory: Path,
    files: tuple[SpecFile, ...],
    others: list[tuple[str, Path, tuple[SpecFile, ...]]],
    report: Callable[[OpSpecError], None],
) -> tuple[dict[str, str], dict[str, Op]]:
    functions: dict[str, str] = {}
    all_ops: dict[str, Op] = {}
    host = Path(graphdock.errors.__file__).parent
    tables = [host / "__init__.py", host / "ops" / "__init__.py"]
    for _, place, other_files in others:
        if place != host / "ops":
            functions |= {name: f"_tf.{name}" for name in _handwritten(place)}
        for file in other_files:
            for op in file.ops:
                all_ops[op.type] = op
                functions |= {e.name: f"_tf.{e.name}" for e in op.spec.api.endpoints}
        functions |= {name: f"_tf.{name}" for name in _public(place)}
    for table in tables:
        functions |= {name: f"_tf.{name}" for name in _table_names(table)}
    bare = any(file.spec.namespace in BARE_NAMESPACES for file in files)
    own_types: dict[str, Op] = {}
    endpoints: dict[str, Op] = {}
    wrappers: dict[tuple[str, str], Op] = {}
    operators: dict[str, Op] = {}
    public = _public(directory) if bare else []
    for op in (op for file in files for op in file.ops):
        if op.snake not in functions:
            functions[op.snake] = f"_{op.module}.{op.function}"
    if bare:
        functions = {n: f"_tf.{n}" for n in _handwritten(directory)} | functions
        functions |= {name: f"_tf.{name}" for name in public}
    for file in files:
        for op in file.ops:
            if op.type in own_types or (bare and op.type in all_ops):
                first = own_types.get(op.type) or all_ops[op.type]
                report(
                    _clash(op, ("name",), f"op {op.type} is defined twice, first at {first.document.file}:{first.line}")
                )
                continue
            own_types[op.type] = op
            if (op.module, op.function) in wrappers:
                first = wrappers[op.module, op.function]
                at = ("api", "endpoints", 0, "name") if op.spec.api.endpoints else ("name",)
                report(
                    _clash(
                        op,
                        at,
                        f"wrapper {op.function} is also {first.type}'s, {first.document.file}:{first.line}",
                    )
                )
            wrappers[op.module, op.function] = op
            for i, endpoint in enumerate(op.spec.api.endpoints):
                if endpoint.name in endpoints:
                    first = endpoints[endpoint.name]
                    where = f"{first.document.file}:{first.line}"
                    report(
                        _clash(
                            op,
                            ("api", "endpoints", i, "name"),
                            f"endpoint {endpoint.name!r} is also {first.type}'s, {where}",
                        )
                    )
                endpoints[endpoint.name] = op
                functions[endpoint.name] = f"_tf.{endpoint.name}" if bare else f"_{op.module}.{op.function}"
            for operator in op.spec.api.operator:
                if operator in operators:
                    report(_clash(op, ("api", "operator"), f"operator {operator} is also {operators[operator].type}'s"))
                operators[operator] = op
    return functions, all_ops | own_types


def _clash(op: Op, at: tuple[str | int, ...], message: str) -> OpSpecError:
    return op.document.error((*op.path, *at), message)


def _table_names(path: Path, table: str | None = None) -> list[str]:
    """Names in the lazy tables of a module: strings in the values it assigns at its top level, ``"module:name"`` apart.

    Args:
      table: only the table of this name; None for every dict.
    """
    if not path.is_file():
        return []
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8"), filename=str(path)).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        named = any(isinstance(t, ast.Name) and t.id == table for t in targets)
        if named if table is not None else isinstance(node.value, ast.Dict):
            strings = [
                n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant) and isinstance(n.value, str)
            ]
            words = [w for text in strings for w in text.split()]
            names.update(w for w in words if w.replace(".", "_").isidentifier() and not w.startswith("_"))
    return sorted(names)


def _public(directory: Path) -> list[str]:
    """Public names that a package writes by hand: the tables ``ENDPOINTS`` of its modules."""
    return sorted({name for path in sorted(directory.glob("*.py")) for name in _table_names(path, "ENDPOINTS")})


def _handwritten(directory: Path) -> list[str]:
    """Public functions at the top of a package's own modules, helpers apart."""
    names: set[str] = set()
    for path in sorted(directory.glob("*.py")):
        if any(word in path.stem for word in ("grad", "reference", "shape_fns", "plugin", "kernels", "cases")):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        names.update(n.name for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_"))
    return sorted(names)
