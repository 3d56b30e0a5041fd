"""A shared library of kernels, and the KernelDefs of its functions."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphdock.arguments import check_keywords
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.kernel import KEYWORDS, KernelDef, PrepareContext, Prepared, Scratch
from graphdock.errors import InvalidArgumentError, PluginError
from graphdock.locks import new_lock

from graphdock_native.abi import open_library, symbol_of
from graphdock_native.build import library_suffix

__all__ = ["Launch", "NativeLibrary"]


@dataclass(frozen=True, slots=True)
class Launch:
    """Arguments that a call of a native kernel gets besides its node's arguments and attributes.

    Attributes:
      scratch: buffers for one call, ``call->scratch``; or a function from the inputs' shapes to them.
      constants: NumPy arrays that every call reads, ``call->constants``: tables that Python computes once.
      shapes: ``(node, inputs) -> a shape per output``, for outputs whose shape the op's spec does not tell.
      symbol: another function of the library than the one the kernel was declared with.
    """

    scratch: Sequence[Scratch] | Callable[[Sequence[Sequence[int]]], Sequence[Scratch]] = ()
    constants: Sequence[Any] = ()
    shapes: Callable[[PlanNode, Sequence[Any]], Sequence[Sequence[int]]] | None = None
    symbol: str | None = None

    def scratch_of(self, shapes: Sequence[Sequence[int]]) -> Sequence[Scratch]:
        """The scratch buffers for inputs of these shapes."""
        return self.scratch(shapes) if callable(self.scratch) else self.scratch


class NativeLibrary:
    """A shared library that was compiled with ``graphdock/kernel.h``. It is opened at first use, once.

    Args:
      file: path of the file; of one in ``package``, relative to the package's folder. Without a suffix it gets this system's.
      package: dotted name of the import package that ships it. It is found without being imported.

    May be used from any thread.
    """

    def __init__(self, file: str | Path, package: str | None = None) -> None:
        self.file, self.package = Path(file), package
        self._lock = new_lock()
        self._opened: tuple[Path, Any] | None = None

    @property
    def path(self) -> Path:
        """Return where the file is.

        Raises:
          PluginError: the package is not installed.
        """
        file = self.file if self.file.suffix else self.file.with_suffix(library_suffix())
        if self.package is None:
            return file
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise PluginError(
                f"the package {self.package!r}, which ships the native library {file.name}, can't be found"
            )
        places = [Path(place) / file for place in spec.submodule_search_locations]
        return next((p for p in places if p.is_file()), places[0])

    def symbol(self, name: str) -> Any:
        """The function of that name; it takes a pointer to a ``gd_call`` and returns a status.

        Raises:
          PluginError: cffi, the file or the function is not there, or the library is of another version of the interface.
        """
        with self._lock:
            if self._opened is None:
                path = self.path
                self._opened = path, open_library(path)
            return symbol_of(self._opened[1], self._opened[0], name)

    def kernel(
        self,
        op: str,
        symbol: str,
        *,
        device: str = "cpu",
        scratch: Sequence[Scratch] | Callable[[Sequence[Sequence[int]]], Sequence[Scratch]] = (),
        constants: Sequence[Any] = (),
        shapes: Callable[[PlanNode, Sequence[Any]], Sequence[Sequence[int]]] | None = None,
        prepare: Callable[[PrepareContext], Launch] | None = None,
        check: Callable[[PlanNode], str | None] | None = None,
        **fields: Any,
    ) -> KernelDef:
        """The KernelDef of a function of this library. Nothing is opened yet.

        Args:
          op: op type. ``symbol``: name of the function. ``device``: a device type whose buffers are NumPy arrays.
          scratch, constants, shapes: as of a :class:`Launch`, where they are the same for every node.
          prepare: makes the Launch of each node instead; called once per plan, may raise KernelRefused.
          check: ``PlanNode -> None``, or the reason why the function can't compute the node.
          fields: of KernelDef: ``types``, ``attrs``, ``layout``, ``inplace``, ``priority``, ``label``, ``name``, ``deterministic``.

        Raises:
          InvalidArgumentError: ``prepare`` beside what it makes, or a field that a native kernel, or any, does not have.
        """
        same = Launch(scratch, constants, shapes)
        if prepare is not None and same != Launch():
            raise InvalidArgumentError(
                f"the native kernel {symbol} has prepare and scratch, constants or shapes",
                hint="put them into the Launch that prepare returns",
            )
        refused = sorted({"views", "host", "build"} & fields.keys())
        if refused:
            raise InvalidArgumentError(f"a native kernel has no {refused[0]}", hint="write that kernel in Python")

        check_keywords(fields, KEYWORDS, f"the native kernel {symbol}")

        def prepared(ctx: PrepareContext) -> Prepared:
            from graphdock_native.kernel import prepare as prepare_native  # needs NumPy

            launch = same if prepare is None else prepare(ctx)
            return prepare_native(self, launch.symbol or symbol, launch, ctx)

        def checked(node: PlanNode) -> str | None:
            from graphdock_native.kernel import node_problem

            return node_problem(node) or (None if check is None else check(node))

        def probe() -> None:
            self.symbol(symbol)

        return KernelDef(op, device, prepare=prepared, check=checked, probe=probe, **fields)

    def __repr__(self) -> str:
        return f"NativeLibrary({str(self.file)!r}{f', package={self.package!r}' if self.package else ''})"
