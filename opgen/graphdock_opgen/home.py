"""Home of a spec file: where it ships, which bounds the code that it may name.

A ``"module:function"`` of a spec resolves inside the package that ships the file, or among the public functions of graphdock_std.
A file that ``load_op_library`` reads ships the modules that lie beside it, and names them by their own names. Nothing is imported
to find that out.
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from graphdock_opgen.expr import Source
from graphdock_opgen.names import is_dotted

__all__ = ["STD", "Home"]

#: The op library whose public functions any spec may name.
STD = "graphdock_std"
#: Modules of a loaded library that are made when it is loaded.
_MADE = ("_gen", "gradients")


@dataclass(frozen=True, slots=True)
class Home:
    """Package that ships a spec file.

    Attributes:
      package: dotted name of the package that holds ``specs``; empty where nobody asks what a file names.
      beside: the folder of a file that has no package, whose modules it may name; None for a package.
    """

    package: str = ""
    beside: Path | None = None

    @property
    def top(self) -> str:
        return self.package.partition(".")[0]

    def check(self, source: Source) -> None:
        """Raise OpSpecError unless the text is ``module:name`` of something that the file may name."""
        module, colon, name = source.text.partition(":")
        if not colon or "." in name or not is_dotted(name) or not is_dotted(module):
            source.fail("expected 'module:name'")
        if not self.package or self._of_package(module):
            return
        if module == STD or module.startswith(STD + "."):
            if name not in _public(module):
                source.fail(f"{STD} has no public function {source.text!r}")
            return
        if self.beside is None:
            source.fail(
                f"a spec names code of its own package, and {module!r} is outside of {self.top!r}",
                hint=f"write a function of {self.top} that calls it",
            )
        elif module.partition(".")[0] in _MADE or _file(self.beside, module) is None:
            source.fail(
                f"there is no module {module!r} beside the spec", hint=f"it names modules that lie in {self.beside}"
            )

    def full(self, target: str) -> str:
        """A target that was checked, as the host resolves it."""
        module = target.partition(":")[0]
        own = self.beside is None or module == STD or module.startswith(STD + ".")
        return target if own else f"{self.package}.{target}"

    def _of_package(self, module: str) -> bool:
        return self.beside is None and (module == self.top or module.startswith(self.top + "."))


def _file(folder: Path, module: str) -> Path | None:
    """The file of a module below a folder."""
    base = folder.joinpath(*module.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()), None)


@lru_cache(maxsize=64)
def _public(module: str) -> frozenset[str]:
    """The functions that a module of graphdock_std defines, those of its own use excluded."""
    std = importlib.util.find_spec(STD)
    if std is None or std.origin is None:
        return frozenset()
    path = _file(Path(std.origin).parents[1], module)
    if path is None:
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_"))
