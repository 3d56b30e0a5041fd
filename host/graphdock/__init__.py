"""graphdock: a dataflow runtime whose ops, kernels, devices and executors are plugins.

    import graphdock as tf

This module is a lazy table: a name is imported when it is first used. Names of the host stand in ``graphdock.names``; names of the
standard op library (``tf.matmul``, ``tf.nn.relu``, ``tf.train.AdagradOptimizer``) are looked up in its endpoint table.
``dir(tf)`` lists all of them, ``help(tf.matmul)`` describes one.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from typing import Any

from graphdock.names import ENDPOINTS as _HOST

__version__ = "0.1.0"

_MODULES = ["contracts", "dtypes", "errors", "ops", "testing", "typing"]
_DTYPES = (
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128 "
    "half double string resource variant"
).split()


class _Facade(types.ModuleType):
    """Keeps public names that are also modules (``shape``, ``gradients``) from being hidden when these are imported.

    Python binds a submodule in its parent; ``tf.gradients`` would turn into the package ``graphdock.gradients``.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOST and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module("graphdock_testing" if name == "testing" else f"graphdock.{name}")
    elif name in _HOST:
        value = _target(_HOST[name])
    elif name in _DTYPES:
        value = getattr(importlib.import_module("graphdock.dtypes"), name)
    elif name.startswith("_"):  # asked by tools, of each object they see; no public name is near
        raise AttributeError(f"module 'graphdock' has no attribute {name!r}")
    else:
        value = _endpoint("", name)
    globals()[name] = value
    return value


def _target(target: str) -> Any:
    """What ``"module:attribute"`` names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _endpoints(package: str) -> dict[str, str]:
    """An op library's public names: dotted name -> ``"module:attribute"``."""
    table: dict[str, str] = importlib.import_module(f"{package}.endpoints").ENDPOINTS
    return table


def _endpoint(prefix: str, name: str) -> Any:
    """A name of an op library: a function, or a namespace such as ``nn``."""
    full = prefix + name
    own = _endpoints("graphdock.ops._gen")
    table = own if full in own else own | _endpoints("graphdock_std")
    target = table.get(full)
    if target is not None:
        return _target(target)
    inner = full + "."
    if any(key.startswith(inner) for key in table):
        return _namespace(full, table)
    from graphdock_tensorflow.catalogue import hint as said_of

    from graphdock.errors import did_you_mean

    known = [k[len(prefix) :].partition(".")[0] for k in table if k.startswith(prefix)]
    if not prefix:
        known += [*_HOST, *_MODULES, *_DTYPES]
    said, near = said_of(full), did_you_mean(name, sorted(set(known)))
    hint = (
        near or said if prefix.startswith("contrib.") else said or near
    )  # that all of contrib is not here helps least
    where = "module 'graphdock" + ("." + prefix.rstrip(".") if prefix else "") + "'"
    raise AttributeError(f"{where} has no attribute {name!r}" + (f"; {hint}" if hint else ""))


def _namespace(full: str, table: dict[str, str]) -> types.ModuleType:
    found = sys.modules.get(f"graphdock.{full}")
    if found is not None:
        return found
    module = types.ModuleType(f"graphdock.{full}", f"The standard library's names under ``{full}``.")
    module.__path__ = []  # modules below it may be imported

    def lookup(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module 'graphdock.{full}' has no attribute {name!r}")
        value = _endpoint(full + ".", name)
        setattr(module, name, value)
        return value

    module.__getattr__ = lookup  # type: ignore[method-assign]
    names = sorted({k[len(full) + 1 :].partition(".")[0] for k in table if k.startswith(full + ".")})
    module.__dict__["__dir__"] = lambda: names
    module.__dict__["__all__"] = names  # for help()
    return sys.modules.setdefault(f"graphdock.{full}", module)


class _Namespaces:
    """``import graphdock.contrib.slim as slim``, as programs import TensorFlow's: a namespace is a module too."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        package, _, full = fullname.partition(".")
        if package != "graphdock" or not full or not _is_namespace(full):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _namespace(spec.name.partition(".")[2], _names())

    def exec_module(self, module: types.ModuleType) -> None:
        """Its names are looked up when they are used."""


def _is_namespace(full: str) -> bool:
    return any(name.startswith(full + ".") for name in _names())


def _names() -> dict[str, str]:
    """All public names of op libraries; without the standard library, the host's own."""
    table = _endpoints("graphdock.ops._gen")
    try:
        return table | _endpoints("graphdock_std")
    except ModuleNotFoundError:
        return table


sys.meta_path.append(_Namespaces())  # type: ignore[arg-type]  # importlib.abc is dear to import


def __dir__() -> list[str]:
    return sorted({*_HOST, *_MODULES, *_DTYPES, *(k.partition(".")[0] for k in _names()), "__version__"})
