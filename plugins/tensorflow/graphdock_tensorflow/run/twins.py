"""Twins: modules that stand for those of TensorFlow, whose names are the public ones of graphdock.

``tensorflow.nn`` is ``tf.nn``. A module of the inside (``tensorflow.python.ops.math_ops``) has the public names that a
program takes from it: they are looked up in namespaces below ``tf`` by one rule, with its exceptions in ``twins.toml``. A name
that is nowhere is an AttributeError with its reason, and is remembered for the summary.

Threads: any; a name is looked up once per module.
"""

from __future__ import annotations

import functools
import importlib
import sys
import tomllib
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import graphdock

from graphdock_tensorflow.catalogue import entry, hint, renamed
from graphdock_tensorflow.run.uses import Uses

__all__ = ["VERSION", "Twin", "public_twin", "run_answers", "spaces_of", "table"]

#: Of TensorFlow, as ``tf.__version__`` tells a program.
VERSION = "1.15.0"
#: Namespaces of the table that stand for modules of this package.
_OWN = "run."


@functools.cache
def table() -> Mapping[str, Any]:
    """The rule's exceptions: see ``twins.toml``."""
    with Path(__file__).with_name("twins.toml").open("rb") as file:
        return tomllib.load(file)


def spaces_of(module: str) -> Sequence[str] | None:
    """Namespaces below ``tf`` that a module of TensorFlow stands for, in the order in which its names are looked up.

    Args:
      module: its name below ``tensorflow``, such as ``nn`` or ``python.ops.rnn_cell_impl``; empty for ``tensorflow`` itself.

    Returns:
      ``[""]`` for ``tf`` itself; nothing for a package, whose names are modules; None where there is no such module.
    """
    module = "" if module == "compat.v1" else module.removeprefix("compat.v1.")
    if not module:
        return [""]
    if module in table()["parts"]:
        return list(table()["parts"][module])
    first, _, rest = module.partition(".")
    if first == "contrib" and "python" in rest.split("."):
        return _inside_contrib(module)
    if first not in ("core", "python"):
        return [module] if _namespace(module) is not None else None
    if module in table()["packages"]:
        return []
    package, _, last = module.rpartition(".")
    if module in table()["refused"] or package not in table()["packages"]:
        return None
    if first == "core":
        return list(table()["core"].get(last, ["", "train"]))
    if rest in table()["spaces"]:
        return list(table()["spaces"][rest])
    last = last.removesuffix("_ops").removesuffix("_impl").removesuffix("_lib")
    return [*([last] if _namespace(last) is not None else []), *table()["usual"]]


def _inside_contrib(module: str) -> Sequence[str] | None:
    """Namespaces for a module of contrib's inside, such as ``contrib.rnn.python.ops.core_rnn_cell``."""
    package, _, inner = f"{module}.".partition(".python.")
    if _namespace(package) is None:
        return None
    parts = inner.rstrip(".").split(".")
    if not set(parts[:-1]) <= set(table()["contrib_packages"]):
        return None
    inside = [".".join([package, *parts[at:]]) for at in range(len(parts))] if inner else []
    found = [*(space for space in inside if _namespace(space) is not None), package]
    return found if parts[-1] in ("", *table()["contrib_packages"]) else [*found, *table()["usual"]]


def _namespace(space: str) -> Any:
    """The namespace below ``tf`` of a dotted name: a module, or None where there is none. Nothing is asked for in vain."""
    if space.startswith(_OWN):
        return importlib.import_module(f"graphdock_tensorflow.run.{space[len(_OWN) :]}")
    found: Any = graphdock
    for part in filter(None, space.split(".")):
        if part not in dir(found):
            return None
        found = getattr(found, part)
        if not isinstance(found, types.ModuleType):
            return None
    return found


def public_twin(name: str) -> str | None:
    """The public name below ``tf`` that a name of TensorFlow's inside is; None where there is none.

    Args:
      name: below ``tensorflow``, such as ``python.ops.math_ops.matmul``; what stands below a public name goes on below its twin.
    """
    parts = name.split(".")
    for cut in range(len(parts) - 1, 1, -1):
        module, first = ".".join(parts[:cut]), parts[cut]
        elsewhere = table()["names"].get(f"{module.removeprefix('python.')}:{first}")
        if elsewhere is not None and not elsewhere.startswith(_OWN):
            return ".".join([elsewhere, *parts[cut + 1 :]])
        for space in spaces_of(module) or ():
            names = None if space.startswith(_OWN) else _namespace(space)
            if names is not None and first in dir(names):
                return ".".join([*filter(None, [space]), first, *parts[cut + 1 :]])
    return None


def run_answers(name: str) -> bool:
    """Return whether ``graphdock run`` answers a name of TensorFlow's inside, or a module, below ``tensorflow``, public or not."""
    if spaces_of(name) is not None:
        return True
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module, first = ".".join(parts[:cut]), parts[cut]
        if f"{module.removeprefix('python.')}:{first}" in table()["names"]:
            return True
        found = [_namespace(space) for space in spaces_of(module) or ()]
        if any(first in dir(names) for names in found if names is not None):
            return True
    return False


class Twin(types.ModuleType):
    """A module of TensorFlow's name, over namespaces of graphdock."""

    def __init__(self, name: str, spaces: Sequence[str], uses: Uses, *, before: bool = False) -> None:
        super().__init__(name, f"Stands for {name} of TensorFlow {VERSION}; its names are graphdock's.")
        self.__path__: list[str] = []
        below = name.partition(".")[2].removeprefix("compat.v1").lstrip(".")
        self.__dict__.update(_below=below, _spaces=list(spaces), _uses=uses, _before=before)
        if not below:
            self.__version__ = VERSION
            self.__git_version__ = f"v{VERSION}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = self._found(name) if self._spaces else self._module(name)
        if isinstance(value, types.ModuleType) and value.__name__.startswith("graphdock."):
            inner = f"{self.__name__}.{name}"
            spaces = self._inner(name) or [
                value.__name__.removeprefix("graphdock.")
            ]  # one that was elsewhere before 1.0
            value = sys.modules.get(inner) or Twin(inner, spaces, self._uses, before=self._before)
        self.__dict__[name] = value
        return value

    def _module(self, name: str) -> Any:
        """A module of a package."""
        try:
            return importlib.import_module(f"{self.__name__}.{name}")
        except ModuleNotFoundError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        names = {n for n in self.__dict__ if not n.startswith("_")}
        for space in self._spaces[:1]:
            names.update(n for n in dir(_namespace(space)) if not n.startswith("_"))
        return sorted(names)

    @property
    def __all__(self) -> list[str]:
        """Public names, for ``from tensorflow import *``: all that can be had, namespaces with them."""
        return dir(self)

    def _inner(self, name: str) -> Sequence[str]:
        return [f"{space}.{name}".strip(".") for space in self._spaces if _namespace(f"{space}.{name}".strip("."))]

    def _found(self, name: str) -> Any:
        inside = self._below.removeprefix("python.") if self._below.startswith("python.") else None
        if ".python" in self._below:
            inside = self._below
        elsewhere = None if inside is None else table()["names"].get(f"{inside}:{name}")
        if elsewhere is not None:
            space, _, last = elsewhere.rpartition(".")
            return getattr(_namespace(space.rstrip(".") if space != "run" else "run.stand_ins"), last)
        public = f"{self._below}.{name}".lstrip(".")
        if self._before:
            old = _of_before(public if inside is None else name)
            if old is not None:
                return old
        for space in self._spaces:
            names = _namespace(space)
            if names is not None and name in dir(names):
                return getattr(names, name)
        if public in table()["parts"]:
            return importlib.import_module(f"tensorflow.{public}")
        within = ".python" in self._below or (self._below.startswith("contrib.") and name == "python")
        if within and spaces_of(public) is not None:
            return self._module(name)
        if inside is None and not self._below.startswith("core"):
            why = hint(public)
            try:
                return getattr(_namespace(self._spaces[0]), name)
            except AttributeError as error:
                text = str(error).partition("; ")[2] or "TensorFlow 1.15 has no such public name"
                self._uses.add(f"tf.{public}", why or text)
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}; {why or text}") from None
        known = entry(name)
        why = "it is a part of TensorFlow's inside" + (f"; tf.{name} is public" if known is not None else "")
        self._uses.add(f"{self.__name__}.{name}", why)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}; {why}")


def _of_before(public: str) -> Any:
    """A name of before TensorFlow 1.0; None for one that was as it is in 1.15."""
    if public in table()["before"]:
        return getattr(importlib.import_module("graphdock_tensorflow.run.before_one"), table()["before"][public])
    today = renamed().get(public)
    if today is None:
        return None
    space, _, name = today.rpartition(".")
    return getattr(_namespace(space), name)
