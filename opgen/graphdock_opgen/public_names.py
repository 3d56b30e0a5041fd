"""A package's names that people write by hand: the tables of its ``names.py``, read as data and never imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from graphdock.contracts.op_table import names_of
from graphdock.errors import OpSpecError, did_you_mean

from graphdock_opgen.check_api import OPERATOR_METHODS
from graphdock_opgen.names import is_dotted

__all__ = ["PublicNames", "read_names"]

#: The module beside ``specs``. A package that writes nothing by hand has none.
FILE_NAME = "names.py"
_TAKEN = re.compile(r"tf|ops|builtins|import_module|todo|GradientError|fn\d*|\w+_ops")
TABLES = ("FUNCTIONS", "ENDPOINTS", "HELPERS", "OPERATORS")


@dataclass(frozen=True, slots=True)
class PublicNames:
    """Tables of names, each name -> ``"module:attribute"``.

    Attributes:
      functions: public functions of tensors, which formulas may call.
      endpoints: other public names.
      helpers: what formulas may call though it is not public.
      operators: operator methods of tensors.
      places: name -> the module's path as errors show it, and the line, from 1, where it stands.
    """

    functions: Mapping[str, str] = field(default_factory=dict)
    endpoints: Mapping[str, str] = field(default_factory=dict)
    helpers: Mapping[str, str] = field(default_factory=dict)
    operators: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def public(self) -> dict[str, str]:
        """Return what users of the package see."""
        return {**self.functions, **self.endpoints}

    @property
    def targets(self) -> dict[str, str]:
        """Every row."""
        return {**self.functions, **self.endpoints, **self.helpers, **self.operators}

    def place(self, name: str) -> str:
        """``names.py:12``."""
        file, line = self.places[name]
        return f"{file}:{line}"


def read_names(
    package: Path, show: Callable[[Path], str] = str, report: Callable[[OpSpecError], None] | None = None
) -> PublicNames:
    """The tables of a package; empty ones where it has none.

    Args:
      package: the folder in which ``names.py`` stands.
      show: a path as errors show it.
      report: takes each fault, and the row concerned is left out; None raises the first one.
    """
    tables: dict[str, dict[str, str]] = {name: {} for name in TABLES}
    places: dict[str, tuple[str, int]] = {}
    file = package / FILE_NAME
    if file.is_file():
        reader = _Reader(show(file), report, places)
        try:
            tables = reader.read(file.read_text(encoding="utf-8"))
        except UnicodeDecodeError as e:
            reader.fault(ast.Pass(lineno=1, col_offset=0), f"not UTF-8 text: {e.reason} at byte {e.start}")
    return PublicNames(tables["FUNCTIONS"], tables["ENDPOINTS"], tables["HELPERS"], tables["OPERATORS"], places)


class _Reader:
    def __init__(
        self, file: str, report: Callable[[OpSpecError], None] | None, places: dict[str, tuple[str, int]]
    ) -> None:
        self.file, self.report, self.places = file, report, places

    def fault(self, node: ast.AST, message: str, hint: str | None = None) -> None:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
        error = OpSpecError(message, file=self.file, line=line, column=column, hint=hint)
        if self.report is None:
            raise error
        self.report(error)

    def read(self, text: str) -> dict[str, dict[str, str]]:
        tables: dict[str, dict[str, str]] = {name: {} for name in TABLES}
        try:
            tree = ast.parse(text)
        except SyntaxError as e:
            place = ast.Pass(lineno=e.lineno or 1, col_offset=max((e.offset or 1) - 1, 0))
            self.fault(place, f"not Python: {e.msg}")
            return tables
        except (ValueError, RecursionError, MemoryError) as e:
            self.fault(ast.Pass(lineno=1, col_offset=0), f"not Python: {e}")
            return tables
        for name, value in self.assigned(tree):
            tables[name] = dict(self.rows(name, value))
        return tables

    def assigned(self, tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
        """The module's tables. It may hold nothing else but its docstring, ``__all__`` and ``from __future__``."""
        for i, node in enumerate(tree.body):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [t.id if isinstance(t, ast.Name) else ast.unparse(t) for t in targets]
                if names == ["__all__"]:
                    continue
                if len(names) == 1 and names[0] in TABLES:
                    yield names[0], node.value
                    continue
                hint = did_you_mean(names[0], TABLES) or f"tables: {', '.join(TABLES)}"
                self.fault(node, f"{FILE_NAME} has no table {names[0]!r}", hint)
                continue
            docstring = i == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if not docstring and not future:
                self.fault(node, f"{FILE_NAME} holds tables only: it is read without being run")

    def rows(self, table: str, value: ast.expr) -> Iterator[tuple[str, str]]:
        if not isinstance(value, ast.Dict):
            self.fault(value, f"{table} is not a dict that is written out")
            return
        for key, item in zip(value.keys, value.values, strict=True):
            name, target = _text(key), _text(item)
            if key is not None and name is not None and target is not None:
                yield from self.row(table, name, target, key, item)
            elif name is not None and isinstance(item, ast.Dict):
                for spaces, words in zip(item.keys, item.values, strict=True):
                    for of_module, its_target in names_of(name, _text(spaces) or "", _text(words) or ""):
                        yield from self.row(table, of_module, its_target, words, words)
                    if not (_text(spaces) and _text(words)):
                        self.fault(words, f"{table} holds strings that are written out, nothing computed")
            else:
                self.fault(key or item, f"{table} holds strings that are written out, nothing computed")

    def row(self, table: str, name: str, target: str, key: ast.expr, item: ast.expr) -> Iterator[tuple[str, str]]:
        """A name and its target, unless one of them is at fault; they stand at ``key`` and ``item``."""
        if name in self.places:
            file, line = self.places[name]
            first = f"line {line}" if file == self.file else f"{file}:{line}"
            self.fault(key, f"{name!r} stands here twice, first in {first}")
        elif table == "OPERATORS" and name not in OPERATOR_METHODS:
            self.fault(key, f"no operator method {name!r}", did_you_mean(name, OPERATOR_METHODS))
        elif not is_dotted(name):
            self.fault(key, f"{name!r} is not a dotted Python name")
        elif table in ("FUNCTIONS", "HELPERS") and _TAKEN.fullmatch(name):
            self.fault(key, f"{name!r} can't be called by formulas: generated code binds _{name} itself")
        elif not _is_target(target):
            self.fault(item, f"{name}: expected 'module:attribute', got {target!r}")
        else:
            self.places[name] = self.file, key.lineno
            yield name, target


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _is_target(text: str) -> bool:
    module, _, attribute = text.partition(":")
    return is_dotted(module) and is_dotted(attribute) and "." not in attribute
