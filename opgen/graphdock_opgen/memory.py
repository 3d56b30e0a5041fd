"""Ops from a YAML file without a package: what ``tf.load_op_library("ops.yaml")`` returns."""

from __future__ import annotations

import itertools
import linecache
import os
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from graphdock.errors import GradientError, OpSpecError, did_you_mean

from graphdock_opgen.library import Library, load_file
from graphdock_opgen.render import render_library

if TYPE_CHECKING:
    from graphdock.plugin.host import Host

__all__ = ["load"]

_numbers = itertools.count()
#: Host -> (file, its bytes) -> what load returned.
_loaded: WeakKeyDictionary[Any, dict[tuple[Path, bytes], types.SimpleNamespace]] = WeakKeyDictionary()
#: Host -> file -> the package that stands for what was loaded of it last.
_packages: WeakKeyDictionary[Any, dict[Path, str]] = WeakKeyDictionary()


class _Namespace(types.SimpleNamespace):
    """Namespace that load returns. A name that it has not is told the nearest."""

    def __getattr__(self, name: str) -> Any:
        near = None if name.startswith("_") else did_you_mean(name, vars(self))
        said = f"the op library {Path(vars(self).get('__file__', '')).name!r} has no {name!r}"
        raise AttributeError(said if near is None else f"{said}; {near}")


class _Handwritten(types.ModuleType):
    """Stands for PKGDIR/gradients.py: functions are assigned to it, and one that is missing says how."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise GradientError(
            f"the spec names the gradient function {name!r}, which nobody has given yet",
            hint=f"assign it: library.gradients.{name} = function(op, *grads)",
        )


def load(
    path: str | os.PathLike[str], host: Host, on_replace: Callable[[], object] = lambda: None
) -> types.SimpleNamespace:
    """Declare the ops of a YAML file in a host.

    The same file with the same text, as when a notebook's cell runs again, gives the namespace made before; with another text its
    ops take the place of those it declared before, and graphs made before keep theirs. Of the code that the file may name, the
    modules that lie beside it, nothing is imported before an op needs it.

    Args:
      on_replace: called when ops have taken the place of others.

    Returns:
      A namespace with the wrappers, under snake-case names and the last part of their endpoints; ``gradients``, to
      which the functions of ``{fn: f}`` entries are assigned; ``ops``, the op types; ``__file__``.

    Raises:
      OpSpecError: the first fault of the file, with line and column.
      AlreadyExistsError: another file, or a package, declares an op of that name.
    """
    file = Path(os.fspath(path))
    key = (file.resolve(), file.read_bytes())
    before = _loaded.setdefault(host, {}).get(key)
    if before is not None:
        return before
    package = f"graphdock_loaded_{re.sub(r'[^A-Za-z0-9]', '_', file.stem)}_{next(_numbers)}"
    errors: list[OpSpecError] = []
    library = load_file(file, package, errors.append)
    if errors:
        raise errors[0]
    rendered = render_library(library, errors.append)
    if errors:
        raise errors[0]
    try:
        gradients = _Handwritten(f"{package}.gradients")
        _package(package, file.parent).__dict__["gradients"] = gradients
        sys.modules[gradients.__name__] = gradients
        _package(f"{package}._gen")
        loaded = {}
        for stem in _modules(library):
            loaded[stem] = _module(f"{package}._gen.{stem}", rendered[f"_gen/{stem}.py"])
        replaced = [name for path, name in _packages.get(host, {}).items() if path == file.resolve()]
        mine = [name for name in loaded["opdefs"].OPS if name in host.ops and host.ops.get(name).package in replaced]
        host.ops.remove(mine)
        host.ops.add_library(loaded["opdefs"].OPS, loaded["opdefs"].OPERATORS, package)
    except BaseException:
        for name in [n for n in sys.modules if n == package or n.startswith(f"{package}.")]:
            del sys.modules[name]
        raise
    namespace = _Namespace(__file__=str(file), gradients=gradients, ops=[op.type for op in library.ops])
    for op in library.ops:
        wrapper = getattr(loaded[op.module], op.function)
        setattr(namespace, op.function, wrapper)
        setattr(namespace, op.snake, wrapper)
    for name in mine:
        for item in host.kernels.for_op(name):
            if item.package in replaced:
                host.kernels.replace(item.kernel, item.kernel, package)
    if replaced:
        on_replace()
    _packages.setdefault(host, {})[key[0]] = package
    _loaded[host] = {known: made for known, made in _loaded[host].items() if known[0] != key[0]}
    _loaded[host][key] = namespace
    return namespace


def _modules(library: Library) -> list[str]:
    """The generated modules that are needed, each after those that it imports: gradients and decompositions call wrappers."""
    return ["opdefs", *dict.fromkeys(op.module for op in library.ops), "gradients", "decompositions"]


def _package(name: str, folder: Path | None = None) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__path__ = [] if folder is None else [str(folder.resolve())]
    sys.modules[name] = module
    return module


def _module(name: str, text: str) -> types.ModuleType:
    module = types.ModuleType(name)
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    sys.modules[name] = module
    exec(compile(text, filename, "exec"), module.__dict__)
    return module
