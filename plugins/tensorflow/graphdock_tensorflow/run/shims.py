"""Names and arguments that NumPy, SciPy and Python's ``collections`` dropped since programs of TensorFlow 1 were written.

Each warns once when it is used.
What has a twin is answered by it (``np.int`` is ``int``, ``scipy.misc.imread`` reads by Pillow). Modules that moved are answered
when they are imported.
"""

from __future__ import annotations

import collections.abc
import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["install"]

#: Name below ``np`` -> what it was.
_NUMPY: dict[str, Any] = {
    "bool": bool, "int": int, "float": float, "complex": complex, "object": object, "str": str, "long": int, "unicode": str,
    "float_": np.float64, "complex_": np.complex128, "int0": np.intp, "uint0": np.uintp, "string_": np.bytes_,
    "unicode_": np.str_, "infty": np.inf, "Inf": np.inf, "Infinity": np.inf, "NaN": np.nan, "PINF": np.inf, "NINF": -np.inf,
    "product": np.prod, "cumproduct": np.cumprod, "sometrue": np.any, "alltrue": np.all, "row_stack": np.vstack,
    "asfarray": lambda a, dtype=np.float64: np.asarray(a, dtype), "in1d": np.isin, "trapz": getattr(np, "trapezoid", None),
    "round_": np.round, "rank": np.ndim, "asscalar": lambda a: a.item(),
}  # fmt: skip
#: Module that moved -> the one that has its names today.
_MOVED = {
    "scipy.sparse.linalg.eigen": "scipy.sparse.linalg",
    "scipy.sparse.linalg.eigen.arpack": "scipy.sparse.linalg",
    "scipy.misc.pilutil": "graphdock_tensorflow.run.old_scipy",
    "scipy.misc": "graphdock_tensorflow.run.old_scipy",
    "scipy.ndimage.imread": "graphdock_tensorflow.run.old_scipy",
}


def install() -> None:
    """Answer the old names in this process. Names that NumPy has are left as they are."""
    absent = {name: value for name, value in _NUMPY.items() if value is not None and name not in vars(np)}
    before: Callable[[str], Any] = vars(np)["__getattr__"]

    @functools.wraps(before)
    def answer(name: str) -> Any:
        if name not in absent:
            return before(name)
        _warn(f"np.{name}")
        return absent[name]

    np.__getattr__ = answer  # type: ignore[method-assign]
    for name, change in _CHANGED.items():
        setattr(np, name, change(getattr(np, name)))
    vars(collections)["__getattr__"] = _of_collections
    sys.meta_path.insert(0, _Moved())


def _of_collections(name: str) -> Any:
    """``collections.Iterable`` and its like, which stand in ``collections.abc`` alone since Python 3.10."""
    if name.startswith("_") or name not in collections.abc.__all__:
        raise AttributeError(f"module 'collections' has no attribute {name!r}")
    _warn(f"collections.{name}")
    return getattr(collections.abc, name)


def _reshape(today: Callable[..., Any]) -> Callable[..., Any]:
    """``np.reshape`` that takes ``newshape``."""

    @functools.wraps(today)
    def reshape(*args: Any, **keywords: Any) -> Any:
        if "newshape" in keywords:
            _warn("newshape of np.reshape")
            keywords["shape"] = keywords.pop("newshape")
        return today(*args, **keywords)

    return reshape


def _array(today: Callable[..., Any]) -> Callable[..., Any]:
    """``np.array`` whose ``copy=False`` copies where it must, as before NumPy 2."""

    @functools.wraps(today)
    def array(*args: Any, **keywords: Any) -> Any:
        if keywords.get("copy") is False:
            _warn("copy=False of np.array that copies where it must")
            keywords["copy"] = None
        return today(*args, **keywords)

    return array


def _fromstring(today: Callable[..., Any]) -> Callable[..., Any]:
    """``np.fromstring`` that reads bytes as they lie in memory where there is no separator: a copy, which may be written."""

    @functools.wraps(today)
    def fromstring(string: Any, dtype: Any = float, count: int = -1, *, sep: str = "", **keywords: Any) -> Any:
        if sep:
            return today(string, dtype, count, sep=sep, **keywords)
        _warn("np.fromstring of bytes")
        return np.frombuffer(string, dtype, count).copy()

    return fromstring


#: Functions that take other arguments today -> what makes one that takes the old ones too.
_CHANGED = {"reshape": _reshape, "array": _array, "fromstring": _fromstring}


def _warn(name: str) -> None:
    warnings.warn(f"{name} is gone from today's release; graphdock run --old-numpy answers it", FutureWarning, 3)


class _Moved(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _MOVED:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        made = types.ModuleType(spec.name)
        source = importlib.import_module(_MOVED[spec.name])
        made.__dict__.update({n: getattr(source, n) for n in dir(source) if not n.startswith("__")})
        made.__path__ = []
        _warn(spec.name)
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the names are there."""
