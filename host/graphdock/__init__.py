"""graphdock: a dataflow runtime whose ops, kernels, devices and executors are plugins.

    import graphdock as tf

This module is a lazy table: a name is imported when it is first used. The host's own stand in ``graphdock.names`` and come first;
others (``tf.matmul``, ``tf.nn.relu``, ``tf.train.AdagradOptimizer``) are looked up in the tables of installed plugins, as
:mod:`graphdock.plugin.endpoints` says. ``dir(tf)`` lists all of them, ``help(tf.matmul)`` describes one.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from typing import TYPE_CHECKING, Any

from graphdock.names import ENDPOINTS as _HOST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphdock.plugin.endpoints import Endpoints

__version__ = "0.1.0"

_MODULES = ["contracts", "dtypes", "errors", "nest", "ops", "typing"]
_DTYPES = (
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128 "
    "half double string resource variant"
).split()


class _Facade(types.ModuleType):
    """Keeps public names that are also modules (``shape``, ``gradients``) from being hidden when these are imported.

    Python binds a submodule in its parent; ``tf.gradients`` would turn into the package ``graphdock.gradients``. To ``dtypes``
    it adds the functions that plugins publish below it.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "dtypes":
            value.__getattr__ = _below_dtypes
            value.__dir__ = lambda: sorted({*vars(value), *_below("dtypes.")})
        if not (name in _HOST and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(f"graphdock.{name}")
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


def _below_dtypes(name: str) -> Any:
    """``tf.dtypes.cast`` and its like."""
    if name.startswith("_"):
        raise AttributeError(f"module 'graphdock.dtypes' has no attribute {name!r}")
    return _endpoint("dtypes.", name)


def _target(target: str) -> Any:
    """Return what ``"module:attribute"`` names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _of_ops() -> dict[str, str]:
    """Names of the host's ops. Read late, for opgen imports this package before there are any."""
    table: dict[str, str] = importlib.import_module("graphdock.ops._gen.endpoints").ENDPOINTS
    return table


def _is_hosts(name: str) -> bool:
    """Return whether a name below ``tf`` is the host's own, so that no plugin's is found."""
    return name in _HOST or name in _MODULES or name in _DTYPES or name in _of_ops()


def _published() -> Endpoints:
    """Return what plugins publish."""
    found: Endpoints = importlib.import_module("graphdock.plugin.host").default_host().endpoints
    return found


def _endpoint(prefix: str, name: str) -> Any:
    """A name of an op of the host, or of a plugin: a function, or a namespace such as ``nn``."""
    full = prefix + name
    target = _of_ops().get(full) or _published().target(full)
    if target:
        try:
            return _target(target)
        except ModuleNotFoundError as error:
            raise _needs(full, error) from error
    if target == "" or _holds(_of_ops(), full):
        return _namespace(full)
    raise _missing(prefix, name)


def _needs(full: str, error: ModuleNotFoundError) -> Exception:
    """The error of a name whose module imports what is not here: which plugin of graphdock's that is, where it is one's."""
    from graphdock.errors import UnavailableError
    from graphdock.plugin.left_out import who_brings

    brought = who_brings("packages", (error.name or "").partition(".")[0])
    return error if brought is None else UnavailableError(f"tf.{full} needs {error.name}", hint=brought)


def _holds(names: Iterable[str], space: str) -> bool:
    return any(name.startswith(space + ".") for name in names)


def _missing(prefix: str, name: str) -> AttributeError:
    from graphdock.errors import did_you_mean

    published = _published()
    said = _left_out(prefix + name) or published.hint(prefix + name)
    near = did_you_mean(name, _below(prefix))
    first = (
        near or said if prefix.startswith("contrib.") else said or near
    )  # that all of contrib is not here helps least
    notes, cause = published.notes()
    where = "module 'graphdock" + ("." + prefix.rstrip(".") if prefix else "") + "'"
    error = AttributeError("; ".join([f"{where} has no attribute {name!r}", *filter(None, (first, notes))]))
    error.__cause__ = cause
    return error


def _left_out(full: str) -> str | None:
    """Return which plugin of graphdock's would bring a name, where the installation lacks the plugin."""
    from graphdock.plugin.left_out import who_brings

    return who_brings("names", full.partition(".")[0], _published().states)


def _below(prefix: str) -> list[str]:
    """The names right below a namespace, ``nn.`` or ``""``, in the order of the alphabet."""
    found = (k[len(prefix) :].partition(".")[0] for k in {*_of_ops(), *_published().names()} if k.startswith(prefix))
    return sorted({*found, *(() if prefix else (*_HOST, *_MODULES, *_DTYPES))})


def _namespace(full: str) -> types.ModuleType:
    found = sys.modules.get(f"graphdock.{full}")
    if found is not None:
        return found
    module = types.ModuleType(f"graphdock.{full}", f"Names below ``tf.{full}``: the host's, and those of plugins.")
    module.__path__ = []  # modules below it may be imported

    def lookup(name: str) -> Any:
        if name == "__all__":  # for help()
            return _below(full + ".")
        if name.startswith("__"):
            raise AttributeError(f"module 'graphdock.{full}' has no attribute {name!r}")
        value = _endpoint(full + ".", name)
        setattr(module, name, value)
        return value

    module.__getattr__ = lookup  # type: ignore[method-assign]
    module.__dict__["__dir__"] = lambda: _below(full + ".")
    return sys.modules.setdefault(f"graphdock.{full}", module)


class _Namespaces:
    """``import graphdock.contrib.slim as slim``, as programs import TensorFlow's: a namespace is a module too."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        package, _, full = fullname.partition(".")
        if package != "graphdock" or not full:
            return None
        if not _is_namespace(full):
            said = _left_out(full)
            if said is not None:
                raise ModuleNotFoundError(f"no module named {fullname!r}; {said}", name=fullname)
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _namespace(spec.name.partition(".")[2])

    def exec_module(self, module: types.ModuleType) -> None:
        """Its names are looked up when they are used."""


def _is_namespace(full: str) -> bool:
    return _holds(_of_ops(), full) or _published().target(full) == ""


sys.meta_path.append(_Namespaces())  # type: ignore[arg-type]  # importlib.abc is dear to import


def __dir__() -> list[str]:
    return sorted([*_below(""), "__version__"])
