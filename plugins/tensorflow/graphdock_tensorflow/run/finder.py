"""Imports of ``tensorflow`` and what is below it, answered by twins in this process, and in the Pythons that it starts.

Nothing on disk changes: the finder stands first on ``sys.meta_path``, so that an installed TensorFlow is not looked for. Children
find a package ``tensorflow`` of this folder first on ``PYTHONPATH``, which puts the finder in their place.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import types
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphdock_tensorflow.run.twins import Twin, spaces_of
from graphdock_tensorflow.run.uses import Uses

__all__ = ["OPTIONS", "Finder", "Options", "install", "installed_tensorflow"]

#: Environment variable that hands options on to children.
OPTIONS = "_TENSORFLOW_BY_GRAPHDOCK"
_CHILDREN = Path(__file__).parent / "children"
#: Modules that are more than a twin -> the module of this package that has their names.
_WRITTEN = {
    "tensorflow.examples.tutorials.mnist": "graphdock_tensorflow.run.mnist",
    "tensorflow.examples.tutorials.mnist.input_data": "graphdock_tensorflow.run.mnist",
    "tensorflow.examples.tutorials.mnist.mnist": "graphdock_tensorflow.run.mnist_network",
    "tensorflow.keras.datasets": "graphdock_tensorflow.run.datasets",
    "tensorflow.keras.datasets.mnist": "graphdock_tensorflow.run.datasets.mnist",
    "tensorflow.keras.datasets.fashion_mnist": "graphdock_tensorflow.run.datasets.fashion_mnist",
    "tensorflow.keras.datasets.cifar10": "graphdock_tensorflow.run.datasets.cifar10",
}
#: Of TensorFlow's first months, for ``--before-1.0``.
_WRITTEN_BEFORE_ONE = {
    name.replace("examples", "g3doc"): module
    for name, module in _WRITTEN.items()
    if name.startswith("tensorflow.examples")
}
_EMPTY_BEFORE_ONE = {"tensorflow.g3doc", "tensorflow.g3doc.tutorials"}
#: Packages without names of their own.
_EMPTY = {"tensorflow.examples", "tensorflow.examples.tutorials"}


@dataclass(frozen=True)
class Options:
    """Options of ``graphdock run``. ``before_one``: names of before 1.0. ``old_numpy``: names that NumPy and SciPy dropped.

    ``toy_data``: datasets are made of scikit-learn's digits where their files are not there.
    """

    before_one: bool = False
    old_numpy: bool = False
    toy_data: bool = False


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers ``tensorflow`` and all below it."""

    def __init__(self, options: Options, uses: Uses) -> None:
        self.options = options
        self.uses = uses
        self._written = {**_WRITTEN, **(_WRITTEN_BEFORE_ONE if options.before_one else {})}
        self._empty = _EMPTY | (_EMPTY_BEFORE_ONE if options.before_one else set())

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "tensorflow" and not fullname.startswith("tensorflow."):
            return None
        if (
            fullname not in self._written
            and fullname not in self._empty
            and spaces_of(fullname.partition(".")[2]) is None
        ):
            from graphdock_tensorflow.catalogue import hint

            name = fullname.partition(".")[2]
            why = hint(name) or hint(name.partition(".")[0]) or "graphdock has nothing of that name"
            self.uses.add(fullname, why)
            raise ModuleNotFoundError(f"No module named {fullname!r}: {why}", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        if spec.name in self._written:
            return _Mirror(spec.name, self._written[spec.name])
        below = spec.name.partition(".")[2]
        return Twin(spec.name, spaces_of(below) or [], self.uses, before=self.options.before_one)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: a twin looks its names up when they are asked for."""


class _Mirror(types.ModuleType):
    """A module under TensorFlow's name, whose names are those of a module of this package."""

    def __init__(self, name: str, source: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__dict__["_source"] = source

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self._source), name)

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module(self._source))


def install(options: Options, *, children: bool = True) -> Finder:
    """Answer ``import tensorflow`` from now on.

    Args:
      children: whether Pythons that this process starts do so too.

    Returns:
      The finder; a second call with the same options returns the first's.
    """
    for there in sys.meta_path:
        if isinstance(there, Finder):
            return there
    finder = Finder(options, Uses())
    for name in [n for n in sys.modules if n == "tensorflow" or n.startswith("tensorflow.")]:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    if options.old_numpy:
        from graphdock_tensorflow.run import shims

        shims.install()
    importlib.import_module("urllib.request")  # programs use it without importing it, for TensorFlow does

    from graphdock_tensorflow.run import digits, stand_ins

    digits.allow_toy_data(options.toy_data)
    stand_ins.log_as_tensorflow()
    if children:
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join([str(_CHILDREN), *([before] if before else [])])
        os.environ[OPTIONS] = json.dumps(asdict(options))
    return finder


def of_environment() -> Finder:
    """Install what this process's parent has: see :func:`install`."""
    return install(Options(**json.loads(os.environ.get(OPTIONS, "{}"))), children=False)


def installed_tensorflow() -> str | None:
    """Return where a TensorFlow is installed that is not used; None where there is none."""
    path = [entry for entry in sys.path if Path(entry or ".").resolve() != _CHILDREN]
    found = importlib.machinery.PathFinder.find_spec("tensorflow", path)
    return None if found is None else found.origin or str(next(iter(found.submodule_search_locations or ["?"])))
