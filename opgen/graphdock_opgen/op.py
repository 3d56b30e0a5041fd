"""An op that passed every check, and the place in a file where checks report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from graphdock import dtypes

from graphdock_opgen.expr import Source
from graphdock_opgen.home import Home
from graphdock_opgen.model import DTYPE_CLASSES, ArgSpec, AttrSpec, OpSpec
from graphdock_opgen.reader import Document, Path_

__all__ = ["GradEntry", "Op", "Param", "Place", "expand_allow"]


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of the Python wrapper. ``default`` is source text, None when the caller must give it."""

    name: str
    of: str
    kind: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class GradEntry:
    """Entry of how one or several inputs get their gradient. ``kind``: formula, op, fn, none or todo."""

    inputs: tuple[str, ...]
    kind: str
    value: str
    path: Path_


@dataclass(frozen=True, slots=True)
class Op:
    """An op that passed every check.

    Attributes:
      type: the type string.
      function: name of its wrapper in ``module``.
      file: its spec's path below the package.
      home: what ships it.
      allow: type variable -> dtype names, () for all.
      entries: gradient entries in the order of the file, then ``none`` for inputs that have no entry.
      has_gradient: whether a gradient function is generated.
      inferred: int attributes that are the length of a list argument.
      free_types: type variables that no input binds; they are arguments of the wrapper.
    """

    spec: OpSpec
    type: str
    snake: str
    function: str
    module: str
    file: str
    line: int
    document: Document
    path: Path_
    allow: Mapping[str, tuple[str, ...]]
    entries: tuple[GradEntry, ...]
    has_gradient: bool
    inferred: tuple[str, ...]
    free_types: tuple[str, ...]
    params: tuple[Param, ...]
    home: Home
    gradcheck: tuple[str, ...] = ()
    lets: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def kinds(self) -> dict[str, str]:
        """Input -> kind, with the reason of a todo."""
        found = {n: (f"todo: {e.value}" if e.kind == "todo" else e.kind) for e in self.entries for n in e.inputs}
        return {a.name: found[a.name] for a in self.spec.inputs if a.name in found}

    def source(self, path: Path_, text: str) -> Source:
        return Source(text, self.document, (*self.path, *path))

    def input(self, name: str) -> ArgSpec | None:
        return next((a for a in self.spec.inputs if a.name == name), None)

    def output(self, name: str) -> ArgSpec | None:
        return next((a for a in self.spec.outputs if a.name == name), None)

    def attr(self, name: str) -> AttrSpec | None:
        return next((a for a in self.spec.attrs if a.name == name), None)

    def may_float(self, arg: ArgSpec) -> bool:
        """Return whether an argument may hold floating or complex elements."""
        attr = self.attr(arg.dtype)
        if attr is not None and attr.type in ("type", "list(type)"):
            return True
        return any(dtypes.ALL[d].kind in "fc" for d in self.dtypes_of(arg.dtype))

    def dtypes_of(self, dtype: str) -> tuple[str, ...]:
        """dtypes that an argument's ``dtype`` may stand for."""
        if dtype in dtypes.ALL:
            return (dtype,)
        return self.allow.get(dtype) or tuple(dtypes.ALL)


def expand_allow(allow: list[str]) -> tuple[str, ...]:
    """dtype names in the order of the dtype table; () for no restriction."""
    wanted: set[str] = set()
    for item in allow:
        wanted.update(DTYPE_CLASSES.get(item, (item,)))
    return tuple(name for name in dtypes.ALL if name in wanted)


class Place:
    """One op of a file: what it says, where that ships, and errors at its positions."""

    def __init__(self, document: Document, namespace: str, index: int, spec: OpSpec, home: Home) -> None:
        self.document, self.namespace, self.spec, self.home = document, namespace, spec, home
        self.path: Path_ = ("ops", index)
        self.attrs = {a.name: a for a in spec.attrs}
        self.type_attrs = {a.name for a in spec.attrs if a.type in ("type", "list(type)")}

    def fail(self, *path: str | int, message: str, hint: str | None = None, key: bool = False) -> NoReturn:
        """Raise OpSpecError at a value (or key) of this op."""
        self.document.fail((*self.path, *path), message, hint=hint, key=key)

    def source(self, *path: str | int, text: str) -> Source:
        """An expression of this op."""
        return Source(text, self.document, (*self.path, *path))
